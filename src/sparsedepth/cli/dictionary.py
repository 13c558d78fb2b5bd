"""Describe and draw a dictionary."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from sparsedepth.cli.batch.plan import require_writable
from sparsedepth.cli.options import JsonOption, load_dictionary
from sparsedepth.cli.terminal import print_facts


def dictionary_command(
    name: Annotated[str, typer.Argument(help="A dictionary file, or the name of a shipped one.", show_default=False)],
    mosaic: Annotated[Path | None, typer.Option(help="Write a picture of all atoms (PNG).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Say what a dictionary is and where it comes from; draw it."""
    if mosaic is not None:
        require_writable(mosaic, ".png")
    dictionary = load_dictionary(name)
    coherence = np.abs(dictionary.atoms @ dictionary.atoms.T) - np.eye(dictionary.n_atoms)
    facts: dict[str, Any] = {
        "atoms": dictionary.n_atoms,
        "patch_shape": list(dictionary.patch_shape),
        "type": str(dictionary.atoms.dtype),
        "median_coherence": round(float(np.median(coherence.max(axis=1))), 4),
        **dictionary.about,
    }
    if mosaic is not None:
        from sparsedepth.pictures import save_mosaic

        save_mosaic(dictionary, mosaic, title=f"{Path(name).stem}: {dictionary.n_atoms} atoms")
        facts["mosaic"] = str(mosaic)
    print_facts(as_json, facts)

"""Describe and draw a dictionary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from sparsedepth.cli.batch.plan import require_writable
from sparsedepth.cli.options import JsonOption, load_dictionary
from sparsedepth.cli.terminal import print_facts
from sparsedepth.dictionary import Dictionary
from sparsedepth.vocabulary import InputError


def dictionary_command(
    name: Annotated[str, typer.Argument(help="A dictionary file, or the name of a shipped one.", show_default=False)],
    mosaic: Annotated[Path | None, typer.Option(help="Write a picture of all atoms (PNG).")] = None,
    curve: Annotated[
        Path | None, typer.Option(help="Write its held-out energy over the steps of learning (PNG).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the size, the settings and the source of a dictionary, or draw its atoms."""
    for picture in (mosaic, curve):
        if picture is not None:
            require_writable(picture, ".png")
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
    if curve is not None:
        from sparsedepth.pictures import save_learning

        save_learning(_history(name, dictionary), curve, title=f"{Path(name).stem}: held-out energy")
        facts["curve"] = str(curve)
    if not as_json and "held_out_energy" in facts:
        facts["held_out_energy"] = _in_short(_history(name, dictionary))
    print_facts(as_json, facts)


def _in_short(history: list[tuple[float, float]]) -> str:
    """Describe the first and the last energy; --curve draws all, and --json lists them."""
    (first, began), (last, ended) = history[0], history[-1]
    return f"{began:g} after {first:g} steps, {ended:g} after {last:g}; --curve draws it"


def _history(name: str, dictionary: Dictionary) -> list[tuple[float, float]]:
    """Read what learning reported."""
    reported = json.loads(dictionary.about.get("held_out_energy", "[]"))
    if not reported:
        raise InputError(f"{name} does not say its energies; dictionaries of `sparsedepth learn` do")
    return [(step, energy) for step, energy in reported]

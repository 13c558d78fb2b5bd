"""Outcomes kept on disk, so that an experiment that is run again does only what has changed.

``SPARSEDEPTH_CACHE`` names the folder; without it nothing is kept. An outcome is found again by the map, its truth, the
contestant's name and the text of the program that made it: whatever changes one of these, makes it anew.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sparsedepth
from sparsedepth.atomic_files import write_atomically
from sparsedepth.experiments._methods import Outcome
from sparsedepth.vocabulary import DepthMap, Floats

OURS = ("restore", "coding", "patches.py", "dictionary.py", "models/dictionaries/default.safetensors")
THEIRS = ("baselines",)
"""The rooms on which the outcome of a contestant depends."""


def kept(name: str, rooms: Sequence[str], maps: Sequence[DepthMap], make: Callable[[], Outcome]) -> Outcome:
    """The outcome of a contestant on some maps, from the folder if it is there."""
    held = kept_maps(name, rooms, maps, lambda: _fields(make()))
    parameter = float(held["parameter"])
    maps_of = {field: values for field, values in held.items() if field != "parameter"}
    return Outcome(**maps_of, parameter=None if np.isnan(parameter) else parameter)


def kept_maps(
    name: str, rooms: Sequence[str], maps: Sequence[Floats], make: Callable[[], dict[str, NDArray[Any]]]
) -> dict[str, NDArray[Any]]:
    """Arrays by their names, made of some maps, from the folder if they are there."""
    folder = os.environ.get("SPARSEDEPTH_CACHE")
    if not folder:
        return make()
    key = sha256("\n".join((name, text_of(tuple(rooms)))).encode())
    for each in maps:
        key.update(repr(each.shape).encode() + np.ascontiguousarray(each).tobytes())
    path = Path(folder) / f"{key.hexdigest()}.npz"
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as found:
            return {field: found[field] for field in found.files}
    except (OSError, ValueError, zipfile.BadZipFile):
        made = make()
        _write(path, made)
        return made


def _fields(outcome: Outcome) -> dict[str, NDArray[Any]]:
    fields = {"depth": outcome.depth, "variance": outcome.variance, "origin": outcome.origin}
    parameter = np.array(np.nan if outcome.parameter is None else outcome.parameter)
    return {"parameter": parameter} | {name: values for name, values in fields.items() if values is not None}


def _write(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content.getvalue())


@cache
def text_of(rooms: tuple[str, ...]) -> str:
    """One number for all files of some rooms."""
    root = Path(sparsedepth.__file__).parent
    places = [root / room for room in rooms]
    files = (file for place in places for file in ([place] if place.is_file() else place.rglob("*")))
    digest = sha256()
    for file in sorted(file for file in files if file.suffix in (".py", ".safetensors")):
        digest.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()

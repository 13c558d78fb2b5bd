"""Cache of experiment outcomes on disk, so that a second run computes only what has changed.

``SPARSEDEPTH_CACHE`` names the folder; without it nothing is cached. The key is the name of the outcome, the version of
the methods that made it, and the maps it was made from. Versions are the ``METHOD_VERSION`` of `sparsedepth.restore`,
`sparsedepth.stereo` and `sparsedepth.baselines`, raised by hand when results change, and checksums of dictionaries and
of fitted coefficients.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparsedepth import baselines, restore, stereo
from sparsedepth.atomic_files import write_atomically
from sparsedepth.dictionary import Dictionary
from sparsedepth.stereo.variance import weights
from sparsedepth.vocabulary import Floats
from sparsedepth_experiments._methods import Outcome

Result = TypeVar("Result")


@dataclass(frozen=True)
class Codec(Generic[Result]):
    """How results become named arrays, and come back."""

    to_arrays: Callable[[Result], dict[str, NDArray[Any]]]
    from_arrays: Callable[[dict[str, NDArray[Any]]], Result]


def _fields(outcome: Outcome) -> dict[str, NDArray[Any]]:
    fields = {"depth": outcome.depth, "variance": outcome.variance, "origin": outcome.origin}
    parameter = np.array(np.nan if outcome.parameter is None else outcome.parameter)
    return {"parameter": parameter} | {name: values for name, values in fields.items() if values is not None}


def _outcome(arrays: dict[str, NDArray[Any]]) -> Outcome:
    parameter = float(arrays["parameter"])
    maps = {field: values for field, values in arrays.items() if field != "parameter"}
    return Outcome(**maps, parameter=None if np.isnan(parameter) else parameter)


OUTCOMES = Codec(_fields, _outcome)
"""Maps restored by a method."""
ARRAYS: Codec[dict[str, NDArray[Any]]] = Codec(dict, dict)
"""Named arrays."""


@dataclass(frozen=True, eq=False)
class Stored(Generic[Result]):
    """What finds a result in the cache, and how it is written there.

    Parameters
    ----------
    name
        The method and all its settings.
    version
        Of the methods that make it.
    maps
        What it is made from.
    codec
        How it becomes arrays and comes back.
    """

    name: str
    version: str
    maps: Sequence[Floats]
    codec: Codec[Result]


def restoration_version(*dictionaries: str) -> str:
    """Name the version of restoration and the contents of the built-in dictionaries that it is used with."""
    return ", ".join((f"restoration {restore.METHOD_VERSION}", *map(checksum, dictionaries or ("default",))))


def stereo_version() -> str:
    """Name the version of stereo matching."""
    return f"stereo {stereo.METHOD_VERSION}"


def matching_version() -> str:
    """Name the version of `match`: that of stereo matching, and its coefficients of the variance."""
    return f"{stereo_version()}, variance {sha256(weights().tobytes()).hexdigest()}"


def baselines_version() -> str:
    """Name the version of the baselines."""
    return f"baselines {baselines.METHOD_VERSION}"


@cache
def checksum(dictionary: str) -> str:
    """Compute the SHA-256 of the atoms of a built-in dictionary."""
    return checksum_of(Dictionary.builtin(dictionary))


def checksum_of(dictionary: Dictionary) -> str:
    """Compute the SHA-256 of the atoms and the patch shape of a dictionary."""
    atoms = np.ascontiguousarray(dictionary.atoms).tobytes()
    return sha256(repr(dictionary.patch_shape).encode() + atoms).hexdigest()


def cached(stored: Stored[Result], make: Callable[[], Result]) -> Result:
    """Load a result, or make and store it."""
    return stored.codec.from_arrays(_arrays(stored, lambda: stored.codec.to_arrays(make())))


def _arrays(stored: Stored[Any], make: Callable[[], dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    folder = os.environ.get("SPARSEDEPTH_CACHE")
    if not folder:
        return make()
    path = Path(folder) / f"{_key(stored)}.npz"
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as found:
            return {field: found[field] for field in found.files}
    except (OSError, ValueError, zipfile.BadZipFile):
        made = make()
        _write(path, made)
        return made


def _key(stored: Stored[Any]) -> str:
    key = sha256(f"{stored.name}\n{stored.version}\n".encode())
    for each in stored.maps:
        key.update(f"{each.dtype} {each.shape}".encode() + np.ascontiguousarray(each).tobytes())
    return key.hexdigest()


def _write(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content.getvalue())

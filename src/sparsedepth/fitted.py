"""Coefficients that were fitted to data: files of ``models/`` whose headers say how they were made.

Every number that a training script computed lies in such a file, none in the source. A file names the script, the data
with their checksum, the seed, the commit and the date; one that does not is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType

import numpy as np

from sparsedepth.atomic_files import write_atomically
from sparsedepth.tensor_files import encode_tensors, read_tensors
from sparsedepth.vocabulary import Floats, InputError

FITTED_KIND = "sparsedepth fitted coefficients"
PROVENANCE = ("what", "script", "data", "seed", "commit", "date")
"""The keys that every file's header has."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """Fitted coefficients and their provenance."""

    arrays: Mapping[str, Floats]
    """By name; they cannot be written to."""
    about: Mapping[str, str]
    """What was fitted, by which script, on which data, with which seed, at which commit, and when."""


@cache
def load_fitted(name: str) -> Fitted:
    """Load the shipped coefficients of that name, once.

    Parameters
    ----------
    name : str
        A file of ``models/`` without its suffix.

    Returns
    -------
    Fitted
        The same record at every call.

    Examples
    --------
    >>> sorted(load_fitted("stereo_variance").arrays)
    ['weights']
    """
    with resources.as_file(resources.files("sparsedepth") / "models" / f"{name}.safetensors") as path:
        return read_fitted(path)


def read_fitted(path: str | Path) -> Fitted:
    """Read a file of coefficients; refuse one that does not say how it was made."""
    arrays, about = read_tensors(path, FITTED_KIND)
    try:
        _require_provenance(about)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    for array in arrays.values():
        array.flags.writeable = False
    return Fitted(MappingProxyType(arrays), MappingProxyType(about))


def save_fitted(path: str | Path, arrays: Mapping[str, Floats], about: Mapping[str, str]) -> None:
    """Write coefficients and their provenance; the file appears whole or not at all.

    Parameters
    ----------
    path : str or Path
        For shipped coefficients `shipped_path` gives it.
    arrays : mapping of str to ndarray
        The coefficients.
    about : mapping of str to str
        All keys of `PROVENANCE`, and more if there is more to say.
    """
    _require_provenance(about)
    exact = {name: np.asarray(array) for name, array in arrays.items()}
    write_atomically(path, encode_tensors(exact, {**about, "kind": FITTED_KIND}))


def shipped_path(name: str) -> Path:
    """Locate the file of the shipped coefficients of that name, in a checkout."""
    return Path(__file__).parent / "models" / f"{name}.safetensors"


def _require_provenance(about: Mapping[str, str]) -> None:
    missing = [key for key in PROVENANCE if not about.get(key)]
    if missing:
        raise InputError(f"the header does not say {', '.join(missing)}; fit the coefficients with a training script")

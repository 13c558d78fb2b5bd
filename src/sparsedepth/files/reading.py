"""From a path to a map: look at the header, take the pixels, say what they mean."""

from __future__ import annotations

import os
from pathlib import Path

from sparsedepth.files import numpy_arrays
from sparsedepth.files.decoding import said_of
from sparsedepth.files.encoding import decode
from sparsedepth.files.formats import format_of
from sparsedepth.files.profiles import Codes, assumption, for_file, profile_named, with_options
from sparsedepth.files.stored import Budget, Pixels, Stored
from sparsedepth.vocabulary import DepthImage, DepthMap, InputError, Profile

MOST_PIXELS = 1 << 28
MOST_BYTES = 1 << 31


def read(
    path: str | Path,
    profile: str | Profile = "auto",
    *,
    scale: float | None = None,
    invalid: Codes = None,
    most_pixels: int = MOST_PIXELS,
    most_bytes: int = MOST_BYTES,
) -> DepthImage:
    """A map with its unit and kind; ``assumed`` says what "auto" took for granted.

    ``scale`` (stored number per unit) and ``invalid`` (stored numbers that mean unknown, one or several) replace those
    of the profile and of the file. NaN and the infinities are always unknown; so are the codes that the file declares.

    >>> import tempfile
    >>> from sparsedepth.files import write
    >>> door = Path(tempfile.mkdtemp()) / "door.png"
    >>> write(door, [[1.5, float("nan")]], profile="tum")
    >>> read(door).values, read(door).unit
    (array([[1.5, nan]], dtype=float32), 'm')
    """
    path = Path(path)
    stored = _load(path, Budget(most_pixels, most_bytes))
    assumed = ""
    if profile == "auto":
        chosen, assumed = assumption(stored, path.suffix.lower(), scaled=scale is not None)
    else:
        chosen = for_file(profile_named(profile), stored)
    chosen = with_options(chosen, scale, invalid)
    values = said_of(path, lambda: decode(stored.pixels, chosen))
    return DepthImage(values, chosen.unit, chosen.kind, chosen, f"{path.name}: {assumed}" if assumed else "")


def read_map(path: str | Path, *, scale: float = 1.0, most_pixels: int = MOST_PIXELS) -> DepthMap:
    """A map as float32, stored numbers divided by ``scale`` (Middlebury's 3, TUM's 5000, ...), NaN = unknown.

    Integer files: 0 is unknown, or the code that the file declares. Float files: NaN and infinities are.
    """
    path = Path(path)
    plain = Profile("", "", scale=scale)
    stored = _load(path, Budget(most_pixels, MOST_BYTES))
    codes = stored.says.invalid if stored.says is not None else stored.invalid
    if codes is None:
        codes = () if stored.pixels.dtype.kind == "f" else (0.0,)
    return said_of(path, lambda: decode(stored.pixels, with_options(plain, None, codes)))


def read_array(
    path: str | Path, *, name: str = "", most_pixels: int = MOST_PIXELS, most_bytes: int = MOST_BYTES
) -> Pixels:
    """The numbers as they stand in the file, of a variance or an origin map; ``name`` picks an array of an npz file."""
    path, budget = Path(path), Budget(most_pixels, most_bytes)
    if not name:
        return _load(path, budget).pixels
    if path.suffix.lower() != ".npz":
        raise InputError(f"{path} has no named arrays; only .npz files do")
    _check_is_file(path)
    return said_of(path, lambda: numpy_arrays.read_named(path, budget, name))


def _load(path: Path, budget: Budget) -> Stored:
    file_format = format_of(path)
    _check_is_file(path)
    return said_of(path, lambda: file_format.read(path, budget))


def _check_is_file(path: Path) -> None:
    if not os.path.isfile(path):
        raise InputError(f"there is no file {path}")

"""Read maps: check the header, read the pixels, find out what they mean."""

from __future__ import annotations

import os
from pathlib import Path

from sparsedepth.files import numpy_arrays
from sparsedepth.files.codec import decode
from sparsedepth.files.errors import describe_errors
from sparsedepth.files.formats import format_of
from sparsedepth.files.profiles import InvalidCodes, resolve_profile, with_options
from sparsedepth.files.stored import Budget, Pixels, Stored
from sparsedepth.vocabulary import DepthImage, DepthMap, InputError, Profile

MOST_PIXELS = 1 << 28
MOST_BYTES = 1 << 31


def read(
    path: str | Path,
    profile: str | Profile = "auto",
    *,
    scale: float | None = None,
    invalid: InvalidCodes = None,
    most_pixels: int = MOST_PIXELS,
    most_bytes: int = MOST_BYTES,
) -> DepthImage:
    """Read a map with its unit and kind.

    NaN and the infinities are always unknown; so are the codes that the file declares.

    Parameters
    ----------
    path
        The file; its suffix names the format.
    profile
        How the file holds numbers: the name of a profile, or a `Profile`. "auto" follows what the file declares, or
        assumes something, and ``assumed`` of the result says what.
    scale
        Stored number per unit, instead of the profile's and the file's own.
    invalid
        Stored numbers that mean unknown, instead of the profile's and the file's own.
    most_pixels, most_bytes
        A file that declares more is refused before memory is allocated.

    Returns
    -------
    DepthImage
        (height, width) float32, NaN = unknown.

    Examples
    --------
    >>> import tempfile
    >>> from sparsedepth.files import write
    >>> path = Path(tempfile.mkdtemp()) / "scan.png"
    >>> write(path, [[1.5, float("nan")]], profile="tum")
    >>> read(path).values, read(path).unit
    (array([[1.5, nan]], dtype=float32), 'm')
    """
    path = Path(path)
    stored = _load(path, Budget(most_pixels, most_bytes))
    chosen, assumed = resolve_profile(stored, path, profile, scale, invalid)
    with describe_errors(path):
        values = decode(stored.pixels, chosen)
    return DepthImage(values, chosen.unit, chosen.kind, chosen, assumed, stored.metadata)


def read_map(path: str | Path, *, scale: float = 1.0, most_pixels: int = MOST_PIXELS) -> DepthMap:
    """Read a map as a plain array, NaN = unknown.

    Parameters
    ----------
    path
        The file; its suffix names the format.
    scale
        Stored number per unit: Middlebury's 3, TUM's 5000, ...
    most_pixels
        A file that declares more is refused before memory is allocated.

    Returns
    -------
    (height, width) float32. In integer files 0 is unknown, or the code that the file declares; in float files NaN and
    infinities are.

    Examples
    --------
    >>> import tempfile
    >>> from sparsedepth.files import write
    >>> path = Path(tempfile.mkdtemp()) / "scan.png"
    >>> write(path, [[1.5, float("nan")]], profile="tum")
    >>> read_map(path, scale=5000)
    array([[1.5, nan]], dtype=float32)
    """
    path = Path(path)
    plain = Profile("", "", scale=scale)
    stored = _load(path, Budget(most_pixels, MOST_BYTES))
    codes = stored.declared.invalid if stored.declared is not None else stored.invalid
    if codes is None:
        codes = () if stored.pixels.dtype.kind == "f" else (0.0,)
    with describe_errors(path):
        return decode(stored.pixels, with_options(plain, None, codes))


def read_array(
    path: str | Path, *, name: str = "", most_pixels: int = MOST_PIXELS, most_bytes: int = MOST_BYTES
) -> Pixels:
    """Read numbers as the file holds them, of a variance or an origin.

    Parameters
    ----------
    path
        The file; its suffix names the format.
    name
        Name of an array in an npz file; "" = the map.
    most_pixels, most_bytes
        A file that declares more is refused before memory is allocated.

    Returns
    -------
    (height, width), of the type that the file holds.

    Examples
    --------
    >>> import tempfile
    >>> from sparsedepth.files import write_array
    >>> path = Path(tempfile.mkdtemp()) / "variance.tiff"
    >>> write_array(path, [[0.25, float("inf")]])
    >>> read_array(path)
    array([[0.25,  inf]], dtype=float32)
    """
    path, budget = Path(path), Budget(most_pixels, most_bytes)
    if not name:
        return _load(path, budget).pixels
    if path.suffix.lower() != ".npz":
        raise InputError(f"{path} has no named arrays; only .npz files do")
    _check_is_file(path)
    with describe_errors(path):
        return numpy_arrays.read_named(path, budget, name)


def _load(path: Path, budget: Budget) -> Stored:
    if not path.suffix:
        _check_is_file(path)  # a name that was mistyped, or a folder, has none
    file_format = format_of(path)
    _check_is_file(path)
    with describe_errors(path):
        return file_format.read(path, budget)


def _check_is_file(path: Path) -> None:
    if not os.path.isfile(path):
        raise InputError(f"there is no file {path}")

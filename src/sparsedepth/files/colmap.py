"""Read and write the dense maps of COLMAP: ``width&height&channels&`` in text, then float32, channel by channel."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from sparsedepth.atomic_files import write_atomically
from sparsedepth.files.errors import describe_errors
from sparsedepth.files.stored import Budget, Pixels, Stored, read_pixels
from sparsedepth.vocabulary import Floats, InputError, Profile, as_array

MAX_HEADER_BYTES = 64
MOST_NORMALS = 1 << 26
_HEADER = re.compile(rb"(\d{1,9})&(\d{1,9})&(\d{1,9})&")
NUMBER = np.dtype("<f4")
UNKNOWN = 0.0
"""What COLMAP writes where it knows no depth, and no normal."""


def read(path: Path, budget: Budget) -> Stored:
    """Read a map of one channel; 0 is unknown."""
    return Stored(_channels(path, budget, 1)[0], invalid=(UNKNOWN,))


def _channels(path: Path, budget: Budget, wanted: int) -> Pixels:
    """Read all channels, (channels, height, width)."""
    with open(path, "rb") as file:
        found = _HEADER.match(file.read(MAX_HEADER_BYTES))
        if found is None:
            raise InputError("it does not begin as a dense map of COLMAP does, with width&height&channels&")
        width, height, channels = (int(number) for number in found.groups())
        if channels != wanted:
            what = {1: "depths", 3: "normals"}
            came = what.get(channels, f"{channels} numbers a pixel")
            raise InputError(f"it holds {came}, not {what[wanted]}; depths are read by read, normals by read_normals")
        budget.allow((height, width), NUMBER)
        budget.allow_amount(width, height, channels * NUMBER.itemsize)
        file.seek(found.end())
        return read_pixels(file, (channels * height, width), NUMBER).reshape(channels, height, width)


def write(pixels: Pixels, profile: Profile | None) -> bytes:
    """Encode a map of one channel."""
    return _encoded(pixels[None])


def _encoded(channels: Pixels) -> bytes:
    depth, height, width = channels.shape
    return f"{width}&{height}&{depth}&".encode() + np.ascontiguousarray(channels, NUMBER).tobytes()


def read_normals(path: str | Path, *, most_pixels: int = MOST_NORMALS) -> Floats:
    """Read the normals of a dense map of COLMAP.

    Parameters
    ----------
    path
        The file, ``normal_maps/*.bin``.
    most_pixels
        A file that declares more is refused before memory is allocated.

    Returns
    -------
    (height, width, 3) float32 in the frame of the camera; NaN = unknown.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "normals.bin"
    >>> write_normals(path, np.full((2, 3, 3), np.nan))
    >>> bool(np.isnan(read_normals(path)).all())
    True
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    with describe_errors(path):
        normals = np.moveaxis(_channels(path, Budget(most_pixels, 12 * most_pixels), 3), 0, -1)
    unknown = (normals == UNKNOWN).all(axis=-1, keepdims=True)
    return np.where(unknown, np.float32(np.nan), normals)


def write_normals(path: str | Path, normals: ArrayLike) -> None:
    """Write normals as a dense map of COLMAP, whole or not at all.

    Parameters
    ----------
    path
        The file, ``normal_maps/*.bin``.
    normals
        (height, width, 3); what is not finite is unknown, and written as 0.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "normals.bin"
    >>> write_normals(path, np.full((2, 3, 3), [0.0, 0.0, -1.0]))
    >>> read_normals(path)[1, 2]
    array([ 0.,  0., -1.], dtype=float32)
    """
    array = np.asarray(as_array("the normals", normals), np.float32)
    if array.ndim != 3 or array.shape[2] != 3 or array.size == 0:
        raise InputError(f"the normals have shape {array.shape}; give (height, width, 3)")
    known = np.isfinite(array).all(axis=-1, keepdims=True)
    write_atomically(Path(path), _encoded(np.moveaxis(np.where(known, array, UNKNOWN), -1, 0)))

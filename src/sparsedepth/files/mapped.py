"""Maps that are too large for memory: files looked at, and written to, a part at a time.

npy and uncompressed TIFF hold plain numbers, so the system can show them as arrays and fetch the parts that are used.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import numpy.lib.format as npy
import tifffile

from sparsedepth.files import numpy_arrays, tiff
from sparsedepth.files.profiles import Codes, assumption, for_file, profile_named, with_options
from sparsedepth.files.stored import Pixels, Stored, take_room
from sparsedepth.vocabulary import InputError, Profile

SUFFIXES = (".npy", ".tif", ".tiff")
HUGE = 1 << 24
"""Pixels from which a map is worth the trouble."""
PAUSE = 0.25
"""Seconds between two times that mapped pages are given back."""


@dataclass(frozen=True, eq=False)
class MappedMap:
    """The stored numbers of a map as they lie in its file, and how they are to be understood."""

    pixels: Pixels
    profile: Profile
    assumed: str


def is_huge(path: str | Path, pixels: int = HUGE) -> bool:
    """Whether a file promises a huge map in a form that can be mapped; broken files are not, and will be told so."""
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES or not os.path.isfile(path) or path.stat().st_size < pixels:
        return False
    try:
        if path.suffix.lower() == ".npy":
            with open(path, "rb") as file:
                shape, fortran, dtype = numpy_arrays.read_header(file)
                plain = not fortran and file.tell() + int(np.prod(shape)) * dtype.itemsize <= path.stat().st_size
            return plain and dtype.kind in "fiu" and len(shape) == 2 and int(np.prod(shape)) > pixels
        with tifffile.TiffFile(path) as file:
            page = file.pages.first
            return page.compression == 1 and len(page.shape) == 2 and int(np.prod(page.shape)) > pixels
    except Exception:  # whatever is wrong with it, reading it the usual way says it better
        return False


def map_file(
    path: str | Path, profile: str | Profile = "auto", *, scale: float | None = None, invalid: Codes = None
) -> MappedMap:
    """A huge map, mapped and not read; what its numbers mean is found as `read` does.

    A TIFF of tiles is laid out by rows in a temporary file first.
    """
    path = Path(path)
    try:
        stored = _mapped_npy(path) if path.suffix.lower() == ".npy" else tiff.mapped(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be mapped: {error}") from None
    assumed = ""
    if profile == "auto":
        chosen, assumed = assumption(stored, path.suffix.lower(), scaled=scale is not None)
    else:
        chosen = for_file(profile_named(profile), stored)
    chosen = with_options(chosen, scale, invalid)
    return MappedMap(stored.pixels, chosen, f"{path.name}: {assumed}" if assumed else "")


def _mapped_npy(path: Path) -> Stored:
    with open(path, "rb") as file:
        shape, _, dtype = numpy_arrays.read_header(file)
        return Stored(np.memmap(path, dtype, "r", file.tell(), shape))


def new_file(path: Path, shape: tuple[int, int], dtype: np.dtype[Any], profile: Profile | None, *, kind: str) -> Pixels:
    """A file of zeros, to be filled through the array; its room on the disk is taken now, so that it cannot run out.

    ``kind`` is the suffix that the file will have.
    """
    if kind == ".npy":
        with open(path, "wb") as file:
            header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
            npy.write_array_header_1_0(file, header)
            offset = file.tell()
    else:
        offset = tiff.new_file(path, shape, dtype, profile)
    with open(path, "rb+") as file:
        take_room(file, max(path.stat().st_size, offset + int(np.prod(shape)) * dtype.itemsize))
    return np.memmap(path, dtype, "r+", offset, shape)


def scratch(shape: tuple[int, int], dtype: np.dtype[Any], folder: Path) -> Pixels:
    """An array on the disk that is gone when nobody uses it."""
    with tempfile.TemporaryFile(dir=folder) as file:
        take_room(file, int(np.prod(shape)) * dtype.itemsize)
        return np.memmap(file, dtype, "r+", 0, shape)


@contextmanager
def given_back(arrays: Sequence[Pixels], pause: float = PAUSE) -> Iterator[None]:
    """Within it, mapped pages are given back to the system every now and then: it keeps them as long as it likes."""
    done = Event()
    maps = [found for found in map(_map_of, arrays) if found is not None]

    def give_back() -> None:
        while not done.wait(pause):
            for each in maps:
                each.madvise(mmap.MADV_DONTNEED)

    if not (maps and hasattr(mmap, "MADV_DONTNEED")):
        yield
        return
    giver = Thread(target=give_back, daemon=True)
    giver.start()
    try:
        yield
    finally:
        done.set()
        giver.join()


def _map_of(array: Any) -> mmap.mmap | None:
    while array is not None:
        if isinstance(array, mmap.mmap):
            return array
        array = array.base if isinstance(array, np.ndarray) else None
    return None

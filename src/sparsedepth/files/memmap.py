"""Memory-mapped maps: files too large for memory, read and written a part at a time.

npy and uncompressed TIFF hold plain numbers, so the system can show them as arrays and load the parts that are used.
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
from sparsedepth.files.profiles import InvalidCodes, resolve_profile
from sparsedepth.files.stored import Pixels, Stored, preallocate
from sparsedepth.vocabulary import InputError, Metadata, Profile

SUFFIXES = (".npy", ".tif", ".tiff")
MIN_PIXELS = 1 << 24
"""Smaller maps are read into memory."""
RELEASE_SECONDS = 0.25
"""Time between two releases of mapped pages."""


@dataclass(frozen=True, eq=False)
class MappedMap:
    """The stored numbers of a map in its file, how to decode them, and what was assumed of them."""

    pixels: Pixels
    profile: Profile
    assumed: str
    metadata: Metadata | None = None


def should_map(path: str | Path, pixels: int = MIN_PIXELS) -> bool:
    """Return whether a file holds a large map in a form that can be mapped; broken files are left to `read`."""
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
            plain = page.compression == 1 and len(page.shape) == 2 and not tiff.has_mask(page)
            return plain and int(np.prod(page.shape)) > pixels
    except Exception:  # whatever is wrong with it, reading it the usual way says it better
        return False


def map_file(
    path: str | Path, profile: str | Profile = "auto", *, scale: float | None = None, invalid: InvalidCodes = None
) -> MappedMap:
    """Map a large map into memory; what its numbers mean is found as `read` does.

    A TIFF of tiles is laid out by rows in a temporary file first.
    """
    path = Path(path)
    try:
        stored = _mapped_npy(path) if path.suffix.lower() == ".npy" else tiff.memory_mapped(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be mapped: {error}") from None
    return MappedMap(stored.pixels, *resolve_profile(stored, path, profile, scale, invalid), stored.metadata)


def _mapped_npy(path: Path) -> Stored:
    with open(path, "rb") as file:
        shape, _, dtype = numpy_arrays.read_header(file)
        return Stored(np.memmap(path, dtype, "r", file.tell(), shape))


def new_file(
    path: Path,
    shape: tuple[int, int],
    dtype: np.dtype[Any],
    profile: Profile | None,
    *,
    kind: str,
    metadata: Metadata | None = None,
) -> Pixels:
    """Create a file of zeros, to be filled through the array; its disk space is reserved now.

    ``kind`` is the suffix that the file will have.
    """
    if kind == ".npy":
        with open(path, "wb") as file:
            header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
            npy.write_array_header_1_0(file, header)
            offset = file.tell()
    else:
        offset = tiff.new_file(path, shape, dtype, profile, metadata)
    with open(path, "rb+") as file:
        preallocate(file, max(path.stat().st_size, offset + int(np.prod(shape)) * dtype.itemsize))
    return np.memmap(path, dtype, "r+", offset, shape)


def scratch(shape: tuple[int, int], dtype: np.dtype[Any], folder: Path) -> Pixels:
    """Return an array on the disk whose space is freed with its last user."""
    with tempfile.TemporaryFile(dir=folder) as file:
        preallocate(file, int(np.prod(shape)) * dtype.itemsize)
        return np.memmap(file, dtype, "r+", 0, shape)


@contextmanager
def release_pages(arrays: Sequence[Pixels], pause: float = RELEASE_SECONDS) -> Iterator[None]:
    """Release mapped pages to the system every now and then, which would keep them as long as there is memory."""
    done = Event()
    maps = [found for found in map(_map_of, arrays) if found is not None]

    def release() -> None:
        while not done.wait(pause):
            for each in maps:
                each.madvise(mmap.MADV_DONTNEED)

    if not (maps and hasattr(mmap, "MADV_DONTNEED")):
        yield
        return
    releaser = Thread(target=release, daemon=True)
    releaser.start()
    try:
        yield
    finally:
        done.set()
        releaser.join()


def _map_of(array: Any) -> mmap.mmap | None:
    while array is not None:
        if isinstance(array, mmap.mmap):
            return array
        array = array.base if isinstance(array, np.ndarray) else None
    return None

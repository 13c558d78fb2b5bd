"""Pixels as a file holds them, and the budget that is checked before they are read."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from sparsedepth.vocabulary import InputError, Metadata, Profile, TooLargeError

Pixels = NDArray[Any]
"""(height, width), integer or float, as stored."""

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Stored:
    """The pixels of a file, and what the file declares about them.

    ``declared`` is the profile that the file carries, ``invalid`` a code, ``name`` the name of the array. ``likely`` is
    what files like it hold, and ``metadata`` what the file says besides.
    """

    pixels: Pixels
    declared: Profile | None = None
    invalid: tuple[float, ...] | None = None
    name: str = ""
    likely: Profile | None = None
    metadata: Metadata | None = None


@dataclass(frozen=True)
class Budget:
    """How many pixels and bytes one file may hold."""

    pixels: int
    bytes: int

    def allow(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Refuse what is no map, or a larger one than the budget, before memory is allocated."""
        if len(shape) != 2 or dtype.kind not in "fiu":
            raise InputError(f"it holds {dtype} of shape {shape}; a map has one real number a pixel, in 2-D")
        if min(shape) <= 0:
            raise InputError(f"it declares {shape[1]} x {shape[0]} pixels; a map has at least one")
        self.allow_amount(shape[1], shape[0], dtype.itemsize)

    def allow_amount(self, width: int, height: int, itemsize: int) -> None:
        """Refuse a picture, or a part of one, beyond the budget."""
        declared = f"it declares {width} x {height} pixels"
        if width * height > self.pixels:
            raise TooLargeError(f"{declared}; the budget is {self.pixels} pixels (most_pixels)")
        if width * height * itemsize > self.bytes:
            raise TooLargeError(f"{declared} of {itemsize} bytes; the budget is {self.bytes} bytes (most_bytes)")


def read_pixels(file: BinaryIO, shape: tuple[int, int], dtype: np.dtype[Any]) -> Pixels:
    """Read the next pixels of a stream in chunks: one that ends early has allocated no more than it held."""
    wanted = math.prod(shape) * dtype.itemsize
    content = bytearray()
    while len(content) < wanted:
        chunk = file.read(min(CHUNK_BYTES, wanted - len(content)))
        if not chunk:
            got = len(content) // dtype.itemsize
            raise InputError(f"it ends after {got} of {math.prod(shape)} pixels; copy it again")
        content += chunk
    return np.frombuffer(content, dtype).reshape(shape)


def preallocate(file: Any, size: int) -> None:
    """Reserve the disk space of an open file: a full disk would kill a process that writes to mapped memory."""
    file.truncate(size)
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)

"""What passes between a format and the rest: pixels as they stand in the file, and a budget that is checked first."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from sparsedepth.vocabulary import InputError, Profile, TooLargeError

Pixels = NDArray[Any]
"""(height, width), integer or float, as stored."""

PIECE = 1 << 20


@dataclass(frozen=True)
class Stored:
    """The pixels of a file, and what the file itself says about them.

    ``says`` is the profile that the file carries, ``invalid`` a code it declares, ``name`` what it calls the array.
    """

    pixels: Pixels
    says: Profile | None = None
    invalid: tuple[float, ...] | None = None
    name: str = ""


@dataclass(frozen=True)
class Budget:
    """How many pixels and bytes one file may ask for."""

    pixels: int
    bytes: int

    def allow(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Refuse what is no map, or a larger one than the budget; no memory has been taken yet."""
        if len(shape) != 2 or dtype.kind not in "fiu":
            raise InputError(f"it holds {dtype} of shape {shape}; a map has one real number a pixel, in 2-D")
        if min(shape) <= 0:
            raise InputError(f"it promises {shape[1]} x {shape[0]} pixels; a map has at least one")
        self.allow_amount(shape[1], shape[0], dtype.itemsize)

    def allow_amount(self, width: int, height: int, itemsize: int) -> None:
        """Refuse a picture, or a part of one, beyond the budget."""
        promised = f"it promises {width} x {height} pixels"
        if width * height > self.pixels:
            raise TooLargeError(f"{promised}; the budget is {self.pixels} pixels (most_pixels)")
        if width * height * itemsize > self.bytes:
            raise TooLargeError(f"{promised} of {itemsize} bytes; the budget is {self.bytes} bytes (most_bytes)")


def take(file: BinaryIO, shape: tuple[int, int], dtype: np.dtype[Any]) -> Pixels:
    """The next pixels of a stream, in pieces: one that holds more or less than it promised takes no more memory."""
    wanted = math.prod(shape) * dtype.itemsize
    content = bytearray()
    while len(content) < wanted:
        piece = file.read(min(PIECE, wanted - len(content)))
        if not piece:
            got = len(content) // dtype.itemsize
            raise InputError(f"it ends after {got} of {math.prod(shape)} pixels; copy it again")
        content += piece
    return np.frombuffer(content, dtype).reshape(shape)


def take_room(file: Any, size: int) -> None:
    """Give an open file its size, and the disk's room for it: met while writing to mapped memory, a full disk kills."""
    file.truncate(size)
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)

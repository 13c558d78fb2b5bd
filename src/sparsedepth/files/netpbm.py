"""Read and write PGM (8 or 16 bits) and PFM (float32, bottom row first): a line of header, then plain numbers."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np

from sparsedepth.files.stored import Budget, Pixels, Stored, read_pixels
from sparsedepth.vocabulary import InputError, Profile

_GAP = rb"(?:\s|#[^\n]*\n)+"
_HEADER = re.compile(rb"(P\S)" + _GAP + rb"(\d{1,9})" + _GAP + rb"(\d{1,9})" + _GAP + rb"([-+.\deE]{1,30})(?:\r\n|\s)")
_OTHERS = {
    b"P2": "a PGM of decimal text",
    b"P3": "a colour picture",
    b"P6": "a colour picture",
    b"PF": "a PFM in colour",
}


def read_pgm(path: Path, budget: Budget) -> Stored:
    """Read binary PGM; its values are kept, whatever the largest one the header allows."""
    return _read(path, budget, b"P5")


def read_pfm(path: Path, budget: Budget) -> Stored:
    """Read one-channel PFM, top row first; the sign of the header's scale is the byte order, its size is ignored."""
    stored = _read(path, budget, b"Pf")
    return Stored(stored.pixels[::-1])


def _read(path: Path, budget: Budget, wanted: bytes) -> Stored:
    with open(path, "rb") as file:
        head = file.read(2048)
        found = _HEADER.match(head)
        if found is None or found[1] != wanted:
            what = _OTHERS.get(head[:2], "something else")
            raise InputError(f"it is {what}; a map is binary and of one channel ({wanted.decode()})")
        width, height = int(found[2]), int(found[3])
        dtype = _dtype(wanted, float(found[4]))
        budget.allow((height, width), dtype)
        file.seek(found.end())
        return Stored(read_pixels(file, (height, width), dtype))


def _dtype(kind: bytes, number: float) -> np.dtype:
    """Return the type of the pixels: PGM's number is the largest value, PFM's is negative for little-endian files."""
    if kind == b"P5":
        if not 0 < number < 65536:
            raise InputError(f"its largest value is {number:g}; PGM has 1 to 65535")
        return np.dtype("u1" if number < 256 else ">u2")
    if number == 0 or not math.isfinite(number):
        raise InputError(f"its scale is {number:g}, whose sign should give the byte order")
    return np.dtype("<f4" if number < 0 else ">f4")


def write_pgm(pixels: Pixels, profile: Profile | None) -> bytes:
    """Encode binary PGM."""
    height, width = pixels.shape
    largest, order = (255, "u1") if pixels.dtype == np.uint8 else (65535, ">u2")
    return f"P5\n{width} {height}\n{largest}\n".encode() + pixels.astype(order).tobytes()


def write_pfm(pixels: Pixels, profile: Profile | None) -> bytes:
    """Encode little-endian PFM."""
    height, width = pixels.shape
    return f"Pf\n{width} {height}\n-1.0\n".encode() + pixels[::-1].astype("<f4").tobytes()

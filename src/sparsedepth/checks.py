"""Conversions and limits of what users and files give: numbers, and the text of errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsedepth.vocabulary import Floats, InputError, as_array

LARGEST = np.float64(1e100)
"""Depths beyond this are refused: their squares, and what these are divided by, must stay finite."""


def as_floats(what: str, values: Any) -> Floats:
    """Convert numbers to float64, or keep them float32 if they came so; masked ones become NaN."""
    array = as_array(what, values)
    short = array.dtype.newbyteorder("=") == np.float32
    with np.errstate(over="ignore"):
        return np.ma.filled(array.astype(np.float32 if short else np.float64, copy=False), np.nan)


def one_line(text: object, most: int = 400) -> str:
    """Shorten a text to one line without control characters, fit for the sentence of an error."""
    line = " ".join(str(text).split())
    line = "".join(letter if letter.isprintable() else "?" for letter in line)
    return line if len(line) <= most else f"{line[:most]}..."


def as_guide(picture: Any, shape: tuple[int, ...]) -> Floats:
    """Convert a grey or colour picture of the map's size to (height, width, channels) of 0..255."""
    array = np.asarray(picture)
    if array.ndim not in (2, 3) or array.shape[:2] != tuple(shape) or array.dtype.kind not in "fiu":
        raise InputError(
            f"the guide is {array.dtype} of shape {array.shape} but the map is {shape[0]} x {shape[1]}; give a grey or "
            "colour picture of the same view and size"
        )
    values = array.reshape(*shape, -1).astype(np.float64)
    if not np.isfinite(values).all():
        raise InputError("the guide holds NaN or infinities; every pixel of a picture must have a colour")
    white = 255.0 if array.dtype == np.uint8 else float(np.abs(values).max())
    return values * (255 / white if white > 0 else 1)


def positive(name: str, count: int) -> int:
    """Return a count; refuse one below 1."""
    if count < 1:
        raise InputError(f"{name} is {count}; it must be at least 1")
    return count

"""Conversions and limits of what users and files give: numbers, and the text of errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsedepth.vocabulary import Floats, as_array

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

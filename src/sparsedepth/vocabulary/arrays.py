"""Aliases of arrays, and the one error a user meets."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
"""A float array of any shape."""

DepthMap = NDArray[np.floating[Any]]
"""(height, width); NaN = unknown."""

Patches = NDArray[np.floating[Any]]
"""(n, pixels), one patch a row; NaN = missing."""

Codes = NDArray[np.floating[Any]]
"""(n, atoms), one code a row: a patch is about ``codes @ atoms``."""

Vector = NDArray[np.floating[Any]]
"""(n,), one number a patch."""

UnaryCost = Callable[[DepthMap], Floats]
"""What a disparity map costs at each pixel, (height, width) -> (height, width); any real, finite disparities."""


class InputError(ValueError):
    """What came in cannot be used; the message says what came, what was wanted and what to do."""


class TooLargeError(InputError):
    """What came in asks for more than its budget."""


def as_array(what: str, values: Any) -> Any:
    """Anything as an array of real numbers, a masked one as it is; what is none is refused."""
    if isinstance(values, str | PathLike):
        raise InputError(f"{what} is the name of a file; read it first: sparsedepth.files.read({str(values)!r})")
    if hasattr(values, "data_vars"):
        raise InputError(f"{what} is a Dataset of the variables {', '.join(map(str, values.data_vars))}; give one")
    try:
        array = values if np.ma.isMaskedArray(values) else np.asarray(values)
    except ValueError:
        raise InputError(f"{what} has rows of different lengths; give all of them the same number of pixels") from None
    if array.dtype.kind not in "fiu":
        raise InputError(f"{what} is an array of {array.dtype}; give real numbers, NaN = unknown")
    return array

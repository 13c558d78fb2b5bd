"""Nouns that every room shares: array aliases and the one error a user meets."""

from __future__ import annotations

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


class InputError(ValueError):
    """What came in cannot be used; the message says what came, what was wanted and what to do."""

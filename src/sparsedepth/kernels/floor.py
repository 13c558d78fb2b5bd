"""The noise that second differences show: what floor.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import DOUBLE, INT, array, kernel

_D = array(np.float64)

shown = kernel("floor_shown", INT, INT, _D, DOUBLE, _D, _D)
"""Compute the noise around each pixel: (height, width, depth, unit, scratch, shown)."""

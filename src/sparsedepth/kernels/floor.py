"""The least noise of each pixel: what floor.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import DOUBLE, INT, array, kernel

_D, _B = array(np.float64), array(np.uint8)

scratch = kernel("floor_scratch", INT, result=INT)
"""Count the numbers of scratch of both others: (width)."""

shown = kernel("floor_shown", INT, INT, _D, DOUBLE, _D, _D)
"""Compute the noise around each pixel: (height, width, depth, unit, scratch, shown)."""

raised = kernel("floor_raise", INT, INT, _D, *(DOUBLE,) * 3, _B, _B, INT, _D, INT, _D, DOUBLE, _D, _D)
"""Raise variances: (height, width, value, scale, centre, unit, valid, kept, n_steps, steps, n_law, law, smallest,
scratch, variance)."""

"""Surfaces of windows: what windows.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import FLOAT, INT, array, kernel

_F, _D, _I, _B = array(np.float32), array(np.float64), array(np.int64), array(np.uint8)

fit = kernel("windows_fit", *(INT,) * 4, _D, _I, _F, _I, INT, FLOAT, FLOAT, FLOAT, _F, _D, _F, _B, _D, _D, _I)
"""Fit surfaces: (n, side, pitch, n_sample, map, places, basis, sample, iterations, to_std, tukey, sigmas, scratch,
wide, residual, inlier, std, level, counts)."""

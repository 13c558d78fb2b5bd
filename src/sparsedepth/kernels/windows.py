"""Surfaces of windows: what windows.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import FLOAT, INT, array, kernel

SURFACE, STANDARD = 7, 3
"""Numbers of a fitted surface, and numbers that values are standardised by."""

_F, _D, _I, _B, _N = array(np.float32), array(np.float64), array(np.int64), array(np.uint8), array(np.int32)

scratch = kernel("windows_scratch", INT, INT, result=INT)
"""Count the numbers of scratch of a fit: (side, n_sample)."""

fit = kernel("windows_fit", *(INT,) * 4, _D, _I, _I, INT, FLOAT, FLOAT, FLOAT, _F, _I, _D, _F, _I)
"""Fit surfaces: (n, side, pitch, n_sample, map, places, sample, iterations, to_std, tukey, sigmas, scratch, keys,
standard, surface, counts)."""

residuals = kernel("windows_residuals", *(INT,) * 3, _D, _I, _D, _F, _F, _F, _B)
"""Compute residuals: (n, side, pitch, map, places, standard, surface, scratch, residual, inlier)."""

valid = kernel("windows_valid", *(INT,) * 4, _D, _N, _I)
"""Count valid pixels: (height, width, side, stride, map, columns, counts)."""

products_scratch = kernel("windows_products_scratch", INT, INT, result=INT)
"""Count the numbers of scratch of products: (side, lags)."""

products = kernel("windows_products", *(INT,) * 3, _F, _B, _F, _D)
"""Add up products of pixels: (n, side, lags, residual, inlier, scratch, sums)."""

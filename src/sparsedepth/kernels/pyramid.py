"""Averages of a map at halved sizes: what pyramid.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import INT, array, kernel

_D = array(np.float64)

halve = kernel("pyramid_halve", INT, INT, _D, _D, _D)
"""Halve a map: (height, width, values, scratch, half)."""

blend = kernel("pyramid_blend", INT, INT, _D, _D, _D, _D)
"""Blend averages: (height, width, coarse, weights, scratch, sums)."""

first = kernel("pyramid_first", INT, INT, _D, _D, _D, _D)
"""Halve a map with missing pixels: (height, width, values, scratch, half_sums, half_weights)."""

last = kernel("pyramid_last", INT, INT, _D, _D, _D, _D)
"""Fill missing pixels: (height, width, values, coarse, scratch, filled)."""

"""Ranks and means of the neighbours of each pixel: what neighbours.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import INT, array, kernel

_F, _I = array(np.float32), array(np.int64)

nearest = kernel("neighbours_nearest", *(INT,) * 4, _F, _F, _F)
"""Average the distances to the two nearest in depth: (n, height, width, radius, depth, scratch, out)."""

grid_median = kernel("neighbours_grid_median", *(INT,) * 4, _I, INT, INT, _I, _F, _F, _F)
"""Compute medians: (n, height, width, reach, offsets, sorting, merging, pairs, values, scratch, out)."""

_D = array(np.float64)

RANGE = {
    np.dtype(np.float32): kernel("neighbours_range_float", *(INT,) * 4, *(_F,) * 4),
    np.dtype(np.float64): kernel("neighbours_range_double", *(INT,) * 4, *(_D,) * 4),
}
"""Find extremes, by the type of the values: (n, height, width, radius, values, scratch, lowest, highest)."""

BOX = {
    np.dtype(np.float32): kernel("neighbours_box_float", *(INT,) * 5, _F, _D, _F, _F),
    np.dtype(np.float64): kernel("neighbours_box_double", *(INT,) * 5, *(_D,) * 4),
}
"""Average in squares, by the type of the values: (n, height, width, side, nearest, values, scratch, middle, means)."""

"""Ranks and means of the neighbours of each pixel: what neighbours.c and chosen.c compute."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import FLOAT, INT, array, kernel

_F, _I = array(np.float32), array(np.int64)

nearest = kernel("neighbours_nearest", *(INT,) * 4, _F, _F, _F)
"""Average the distances to the two nearest in depth: (n, height, width, radius, depth, scratch, out)."""

grid_median = kernel("neighbours_grid_median", *(INT,) * 4, _I, INT, INT, _I, _F, _F, _F)
"""Compute medians: (n, height, width, reach, offsets, sorting, merging, pairs, values, scratch, out)."""

table = kernel("neighbours_table", *(INT,) * 4, array(np.int8), array(np.int32))
"""Sum whole numbers above and to the left: (n, height, width, radius, values, table)."""

chosen_nearest = kernel("chosen_nearest", INT, _I, _F, INT, _I, _I, INT, _F)
"""Sort distances in depth: (n, centre, values, rings, ends, shifts, kept, out)."""

chosen_spread = kernel("chosen_spread", INT, _I, _F, INT, _I, _I, _F, _F)
"""Find medians, extremes and similar neighbours: (n, centre, values, rings, ends, shifts, limits, out)."""

blocks = kernel("neighbours_blocks", INT, INT, INT, _F, _F, _F)
"""Find the least range of 2x2 pixels: (n, height, width, values, scratch, out)."""

similar = kernel("neighbours_similar", INT, INT, _F, FLOAT, array(np.int8))
"""Count similar neighbours: (height, width, values, step, counts)."""

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

VARIANCE = {
    np.dtype(np.float32): kernel("neighbours_variance_float", *(INT,) * 4, _F, _D, _F),
    np.dtype(np.float64): kernel("neighbours_variance_double", *(INT,) * 4, *(_D,) * 3),
}
"""Variances in squares, by the type of the values: (n, height, width, side, values, scratch, variances)."""

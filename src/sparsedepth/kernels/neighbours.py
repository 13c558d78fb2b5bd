"""Ranks among the neighbours of each pixel: what neighbours.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import INT, array, kernel

_F, _I = array(np.float32), array(np.int64)

nearest = kernel("neighbours_nearest", *(INT,) * 4, _F, _F, _F)
"""Average the distances to the two nearest in depth: (n, height, width, radius, depth, scratch, out)."""

grid_median = kernel("neighbours_grid_median", *(INT,) * 4, _I, INT, INT, _I, _F, _F, _F)
"""Compute medians: (n, height, width, reach, offsets, sorting, merging, pairs, values, scratch, out)."""

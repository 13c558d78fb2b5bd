"""Patches of a map: what patches.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import FLOAT, INT, array, kernel

_F, _D, _I, _B = array(np.float32), array(np.float64), array(np.int64), array(np.uint8)

holding = kernel("patches_holding", INT, _I, INT, _I, _B, _B)
"""Mark patches that hold a marked pixel: (n, places, n_offsets, offsets, marked, holds)."""

cut = kernel("patches_cut", INT, _I, INT, INT, INT, _F, FLOAT, _F, _F, _F, _I)
"""Cut patches without their medians: (n, places, height, width, stride, map, unit, scratch, patches, centres,
valid)."""

add = kernel("patches_add", INT, _I, INT, INT, INT, INT, _F, _D, _D, _D, _D, _D)
"""Add patches to three maps: (n, places, height, width, stride, size, values, scale, centres, of_patch, of_pixel,
sums)."""

AVERAGE = {
    np.dtype(np.float32): kernel("patches_average_float", INT, _D, _F),
    np.dtype(np.float64): kernel("patches_average_double", INT, _D, _D),
}
"""Divide sums by their weights, by the type of the averages: (n, sums, averages)."""

"""Medians of disparities: what stereo_median.c computes; all for the rows from begin to end."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import FLOAT, INT, array, kernel

_BYTES, _F, _COUNTS = array(np.uint8), array(np.float32), array(np.uint32)

weighted_median = kernel(
    "stereo_weighted_median", *(INT,) * 7, _BYTES, _BYTES, _F, array(np.int32), FLOAT, _COUNTS, INT, _COUNTS, _F
)
"""Replace pixels by medians weighted by colour: (begin, end, height, width, n_channels, radius, every, guide, where,
disparity, bins, bin_px, weights, n_weights, histogram, medians)."""

near_edges = kernel("stereo_near_edges", *(INT,) * 5, FLOAT, _F, _F, _F, _BYTES)
"""Find pixels near steps: (begin, end, height, width, radius, step, disparity, lowest, highest, near)."""

median = kernel("stereo_median", *(INT,) * 4, _F, _F, _F)
"""Take medians of 3 x 3 pixels: (begin, end, height, width, disparity, sorted, medians)."""

"""Semi-global matching: what stereo_paths.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import INT, array, kernel

_BYTES, _SHORTS, _SUMS, _F = array(np.uint8), array(np.int16), array(np.uint16), array(np.float32)

semi_global = kernel(
    "stereo_semi_global", *(INT,) * 10, _SHORTS, _BYTES, _BYTES, _SHORTS, _SHORTS, _BYTES, _SHORTS, _SUMS, _SUMS, _F
)
"""Extend paths over rows, and find the least: (begin, end, order, is_second, height, width, n_channels, n, stride,
jump, penalties, left, right, costs, room, edges, by_label, sums, total, disparity)."""

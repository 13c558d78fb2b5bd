"""Semi-global matching: what stereo_paths.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import ADDRESS, INT, kernel

ARRAYS = (np.int16, np.uint8, np.uint8, np.int16, np.int16, np.uint8, np.int16, np.uint16, np.uint16, np.float32)
"""Types of the arrays that `semi_global` takes."""

semi_global = kernel("stereo_semi_global", *(INT,) * 10, *(ADDRESS,) * len(ARRAYS))
"""Extend paths over rows, and find the least: (begin, end, order, is_second, height, width, n_channels, n, stride,
jump, and addresses of penalties, left, right, costs, room, edges, by_label, sums, total, disparity)."""

"""Warping of a belief to another view: what stream_warp.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import FLOAT, INT, array, kernel

_F, _PLACES = array(np.float32), array(np.int64)

splat = kernel("stream_splat", INT, INT, _F, _F, _F, _F)
"""Project all pixels: (height, width, depth, intrinsics, motion, near)."""

close = kernel("stream_close", INT, INT, _F, _F, FLOAT)
"""Close gaps of one pixel: (height, width, near, closed, crack)."""

look = kernel("stream_look", INT, INT, *(_F,) * 6)
"""Find where new pixels look: (height, width, near, intrinsics, back, columns, rows, depths)."""

sample = kernel("stream_sample", INT, INT, *(_F,) * 6, _PLACES, _F, FLOAT)
"""Sample the old view: (height, width, mean, noise, columns, rows, expected, value, from, slope, edge)."""

bring = kernel("stream_bring", INT, _F, _F, _F, INT, INT, _F, _F, _F)
"""Bring sampled depths to the new view: (n, depth, columns, rows, height, width, intrinsics, motion, brought)."""

take = kernel("stream_take", INT, _PLACES, _F, _F, FLOAT)
"""Take the state of old pixels: (n, from, old, taken, unknown)."""

average_cells = kernel("stream_average_cells", *(INT,) * 3, _F, _F, FLOAT, FLOAT, _F, _F)
"""Average cells: (height, width, side, mean, variance, sigmas, share, mean_out, variance_out)."""

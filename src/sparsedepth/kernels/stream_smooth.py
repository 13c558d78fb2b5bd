"""Edge-aware smoothing of a map: what stream_smooth.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import FLOAT, INT, array, kernel

_F = array(np.float32)

smooth = kernel("stream_smooth", INT, INT, INT, _F, _F, array(np.int64), INT, _F, _F, _F, *(FLOAT,) * 4)
"""Smooth a map: (height, width, margin, padded, variance, offsets, n, scratch, smoothed, ratio, reach, of_centre,
of_pairs, inflation)."""

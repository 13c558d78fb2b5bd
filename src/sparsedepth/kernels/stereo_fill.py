"""Occlusions and the surfaces behind them: what stereo_fill.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import FLOAT, INT, array, kernel

_BYTES, _F, _ROOM = array(np.uint8), array(np.float32), array(np.int32)

lr_difference = kernel("stereo_lr_difference", *(INT,) * 3, _F, _F, _F)
"""Compare the maps of both views: (begin, end, width, left, right, difference)."""

speckles = kernel("stereo_speckles", INT, INT, _F, INT, FLOAT, _ROOM, _ROOM, _BYTES)
"""Find small components: (height, width, disparity, min_px, step, parent, size, small)."""

surfaces = kernel("stereo_surfaces", *(INT,) * 5, _F, _BYTES, _BYTES, INT, INT, _F, FLOAT, FLOAT, FLOAT, _F, _F)
"""Fit planes next to bad pixels: (begin, end, height, width, n_channels, disparity, bad, guide, radius, every, reach,
colour_weight, slope_prior, max_slope, level, slope)."""

background = kernel("stereo_background", *(INT,) * 3, array(np.int64), _F, _BYTES, _F, _F, _F)
"""Fill from the background: (begin, end, width, source, disparity, bad, level, slope, filled)."""

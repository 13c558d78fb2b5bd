"""Holes of a map: what holes.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import INT, array, kernel

_D, _I, _N, _B = array(np.float64), array(np.int64), array(np.int32), array(np.uint8)

whole = kernel("holes_whole", *(INT,) * 4, _B, _I, _B)
"""Mark holes that contain a rectangle: (height, width, down, right, missing, scratch, marked)."""

distance = kernel("holes_distance", INT, INT, _B, _N)
"""Compute distances to valid pixels: (height, width, missing, distance)."""

variance = kernel("holes_variance", *(INT,) * 3, _B, _D, _D, _D, _D)
"""Compute variances around missing pixels: (height, width, side, missing, values, scratch, variance, fraction)."""

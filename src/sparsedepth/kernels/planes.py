"""Planes in segments: what planes.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import DOUBLE, INT, array, kernel

_D, _L = array(np.float64), array(np.int64)

score = kernel("planes_score", INT, _L, _D, _D, _D, DOUBLE, _D)
"""Score planes: (n, start, place, value, planes, tolerance, scores)."""

normal_equations = kernel("planes_normal_equations", INT, _L, _D, _D, _D, DOUBLE, _D, _D)
"""Sum up normal equations: (n, start, place, value, planes, tolerance, normal, right)."""

draw = kernel("planes_draw", INT, INT, array(np.int32), _D, _D, _D)
"""Draw planes: (height, width, segments, planes, centre, drawn)."""

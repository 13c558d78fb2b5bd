"""Thin plates through the valid pixels of a map: what plates.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import DOUBLE, INT, array, kernel

OTHERS = 12
"""Neighbours of a pixel that share a bend with it."""

_D, _I, _N = array(np.float64), array(np.int64), array(np.int32)

bend = kernel("plates_bend", INT, _I, _N, _D, _D, _D, _D)
"""Compute second differences: (kinds, ends, corners, factors, offset, values, bends)."""

scratch = kernel("plates_scratch", INT, result=INT)
"""Count the numbers of scratch: (missing pixels)."""

solve = kernel("plates_solve", INT, INT, _I, _N, _D, _I, _D, _D, INT, DOUBLE, _D, _N, _D)
"""Descend: (n, kinds, ends, corners, factors, slots, offset, weights, iterations, tolerance, scratch, neighbours,
values)."""

"""Thin plates through the valid pixels of a map: what plates.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import DOUBLE, INT, array, kernel

OTHERS, CORNERS = 12, 4
"""Neighbours of a pixel that share a bend with it, and most pixels of a bend."""

_D, _I, _N, _B = array(np.float64), array(np.int64), array(np.int32), array(np.uint8)

number = kernel("plates_number", INT, INT, _B, _N, _N, _N, _I, result=INT)
"""Number missing pixels, and count their parts: (height, width, missing, scratch, number, pixels, ends)."""

listed = kernel("plates_list", INT, INT, _N, _N, INT, _I, _D, INT, _B, _N, _D, _I, result=INT)
"""List bends, and count them: (height, width, number, pixels, parts, pixel_ends, values, fill, kinds, corners, offset,
ends)."""

bend = kernel("plates_bend", INT, _B, _N, _D, _D, _D)
"""Compute second differences: (rows, kinds, corners, offset, values, bends)."""

scratch = kernel("plates_scratch", INT, result=INT)
"""Count the numbers of scratch: (pixels of the largest part)."""

solve = kernel("plates_solve", INT, _I, _I, _B, _N, _D, _D, INT, DOUBLE, DOUBLE, _D, _N, _D)
"""Descend: (parts, pixel_ends, row_ends, kinds, corners, offset, weights, iterations, tolerance, least_gradient,
scratch, neighbours, values)."""

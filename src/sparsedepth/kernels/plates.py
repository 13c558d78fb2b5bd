"""Thin plates through the valid pixels of a map: what plates.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import DOUBLE, INT, array, kernel

BORDER = 2
"""Pixels around a map that are numbered with it."""

_D, _I, _N, _B = array(np.float64), array(np.int64), array(np.int32), array(np.uint8)

number = kernel("plates_number", INT, INT, _B, _N, _N, _N, _I, result=INT)
"""Number missing pixels, and count their parts: (height, width, missing, scratch, number, pixels, ends)."""

scratch = kernel("plates_scratch", INT, INT, INT, _I)
"""Count the numbers of scratch: (height, width, pixels of the largest part, sizes)."""

fill = kernel("plates_fill", INT, INT, _N, _N, INT, _I, _I, _D, DOUBLE, INT, DOUBLE, DOUBLE, _D, _N, _B, _D, _D)
"""Fill a map: (height, width, number, pixels, parts, ends, iterations, tolerance, least_gradient, reweightings,
bend_scale, power, doubles, numbers, bytes, plate, robust)."""

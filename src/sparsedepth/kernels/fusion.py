"""Costs of maps and of choices between two: what fusion.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import DOUBLE, FLOAT, INT, array, kernel

_F, _D, _I, _L = array(np.float32), array(np.float64), array(np.int32), array(np.int64)

costs = kernel("fusion_costs", INT, INT, *(_F,) * 5, FLOAT, array(np.uint8), _F, _I, _D, result=DOUBLE)
"""Compute costs of pixels: (height, width, maps, seen, hidden, along_rows, along_columns, bend, taken, disparity, bins,
costs) -> their sum."""

terms = kernel("fusion_terms", INT, INT, *(_F,) * 5, FLOAT, DOUBLE, _L, _D, _D, _I, _I, _D, _I, _I, _D, _I, _I, _L)
"""Build a polynomial: (height, width, maps, seen, hidden, along_rows, along_columns, bend, least_cubic, sizes, slope,
near, first, second, coupling, far_first, far_second, far_coupling, bins, takes, hiders)."""

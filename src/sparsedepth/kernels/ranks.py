"""Numbers by their rank: what ranks.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import FLOAT, INT, array, kernel

_F, _I = array(np.float32), array(np.int64)

select = kernel("ranks_select", INT, _F, INT, _I, array(np.int32), _F, _F)
"""Find numbers of some ranks: (n, values, wanted, ranks, counts, scratch, out)."""

count = kernel("ranks_count", INT, _F, FLOAT, _I)
"""Count numbers, and those up to a limit: (n, values, limit, counts)."""

steps = kernel("ranks_steps", INT, INT, _F, _F, _F)
"""Compute differences of adjacent pixels: (height, width, values, right, below)."""

linear = kernel("ranks_linear", INT, _F, FLOAT, FLOAT, INT, _F, _F)
"""Interpolate between knots: (n, values, first, per_knot, knots, heights, out)."""

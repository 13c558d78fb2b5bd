"""Moves of graph cuts: what grid_cut.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import DOUBLE, INT, array, kernel

_I, _D = array(np.int32), array(np.float64)

move = kernel(
    "grid_move",
    *(INT, INT, array(np.float32), _D, _D, DOUBLE, INT, INT, DOUBLE, array(np.int16), *(_I,) * 3),
    result=INT,
)
"""Make a move: (n, stride, costs, right, down, scale, a, b, least_gain, labels, residual, nodes, chosen)
-> the number of changed labels."""

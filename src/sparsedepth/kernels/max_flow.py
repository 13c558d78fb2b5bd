"""Maximum flow and roof duality: what max_flow.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import DOUBLE, INT, array, kernel

_I, _D = array(np.int32), array(np.float64)

max_flow = kernel("max_flow", INT, INT, *(_I,) * 8, array(np.uint8), result=INT)
"""Cut a graph: (n, m, excess, tail, head, forward, backward, start, arcs, nodes, sink_side) -> the flow."""

roof_duality = kernel("roof_duality", INT, INT, _D, _I, _I, _D, DOUBLE, _D, *(_I,) * 4, array(np.int8), result=INT)
"""Label a polynomial: (n, m, slope, first, second, coupling, scale, scratch, arc, start, arcs, nodes, labels)
-> the flow."""

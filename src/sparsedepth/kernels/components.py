"""Connected components: what components.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import DOUBLE, FLOAT, INT, array, kernel

_F, _D, _B, _I, _S = array(np.float32), array(np.float64), array(np.bool_), array(np.int64), array(np.int32)

COMPONENTS = {
    np.dtype(np.float32): kernel("components_float", INT, INT, INT, _F, FLOAT, _B, INT, _I, _S, _S),
    np.dtype(np.float64): kernel("components_double", INT, INT, INT, _D, DOUBLE, _B, INT, _I, _S, _S),
}
"""Number components, by the type of the values: (height, width, channels, values, step, within, n_offsets, offsets,
parents, numbers)."""

interior = kernel("components_interior", INT, INT, _F, FLOAT, INT, _S, _S, _B, _B)
"""Mark interior pixels and large sets of them: (height, width, values, step, most_px, parents, sizes, interior,
reached)."""

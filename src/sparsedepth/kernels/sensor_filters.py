"""Filters of a frame counted in standard deviations: what sensor_filters.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import FLOAT, INT, array, kernel

_F = array(np.float32)

blur = kernel("sensor_blur", INT, INT, INT, *(_F,) * 4)
"""Blur a map: (height, width, radius, weights, values, scratch, blurred)."""

rises = kernel("sensor_rises", INT, INT, *(_F,) * 3)
"""Compute the rise along columns and along rows: (height, width, values, down, across)."""

variation = kernel("sensor_variation", INT, INT, _F, FLOAT, INT, _F, _F, _F)
"""Minimise total variation: (height, width, values, weight, steps, pushes, scratch, smooth)."""

tilted = kernel("sensor_tilted", *(INT,) * 4, *(_F,) * 5, array(np.int64), _F, INT, FLOAT, *(_F,) * 3)
"""Sum pixels of the same tilted surface: (height, width, first, end, pilot, down, across, weight, shown, offsets,
spatial, n, narrow, total, sums, squares)."""

"""Update of a belief by a frame: what stream_update.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import FLOAT, INT, array, kernel

_F = array(np.float32)

compare = kernel("stream_compare", *(INT,) * 3, *(_F,) * 11, *(FLOAT,) * 6)
"""Compare a frame with a belief: (height, width, side, value, noise, mean, variance, residual, count, scale, run,
innovation, level, sums, temporal, scale_rate, largest_scale, gate, run_memory, run_clip)."""

fuse = kernel("stream_fuse", *(INT,) * 3, *(_F,) * 13, array(np.uint8), *(FLOAT,) * 10)
"""Fuse a compared frame: (height, width, side, value, noise, innovation, level, drift, mean, variance, scale, run,
residual, candidate, count, missed, jumped, gate, least_gain, huber, run_std, run_sigmas, run_relief, drift_prior,
candidate_sigmas, growth, memory)."""

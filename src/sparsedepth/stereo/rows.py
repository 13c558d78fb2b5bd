"""Views as the kernels take them: bytes, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.kernels import stereo_costs
from sparsedepth.vocabulary import Floats

Bytes = NDArray[np.uint8]


def byte_rows(view: Floats) -> Bytes:
    """Round a view (height, width, channels) of brightness 0..255 to bytes (height, channels, width)."""
    height, width, n_channels = view.shape
    rounded = np.empty((height, n_channels, width), np.uint8)
    stereo_costs.to_bytes(height, width, n_channels, np.ascontiguousarray(view, np.float32), rounded)
    return rounded


def reversed_rows(rows: NDArray[Any], n_repeated: int) -> NDArray[Any]:
    """Reverse rows along the last axis, and repeat their first column behind their end."""
    first = np.broadcast_to(rows[..., :1], (*rows.shape[:-1], n_repeated))
    return np.concatenate([rows[..., ::-1], first], axis=-1)

"""Connected components of pixels with nearly equal values."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sparsedepth.kernels import components as kernels

FORWARD_OFFSETS = {4: ((0, 1), (1, 0)), 8: ((0, 1), (1, -1), (1, 0), (1, 1))}
"""Rows and columns from a pixel to the neighbours that follow it, by connectivity."""


def connected_components(
    values: NDArray[Any],
    max_step: float,
    *,
    connectivity: Literal[4, 8] = 4,
    within: NDArray[np.bool_] | None = None,
) -> NDArray[np.int32]:
    """Label sets of pixels that are connected by neighbours of nearly equal value.

    Parameters
    ----------
    values : ndarray, shape (height, width) or (height, width, channels)
        NaN is connected to nothing.
    max_step : float
        By how much connected neighbours differ at most, in every channel.
    connectivity : {4, 8}
        Whether pixels have neighbours along rows and columns only, or along diagonals too.
    within : ndarray of bool, shape (height, width), optional
        The pixels to label; all by default. All others are one background. So are pixels connected to it.

    Returns
    -------
    ndarray of int32, shape (height, width)
        Numbers from 1 on, in the order of each component's first pixel, row by row; 0 for the background.

    Examples
    --------
    >>> connected_components(np.array([[1.0, 1.5, 4.0], [9.0, 8.0, 4.0]]), 1.0).tolist()
    [[1, 1, 2], [3, 3, 2]]
    """
    height, width = values.shape[:2]
    values = values.astype(np.result_type(values, np.float32), copy=False)
    values = np.ascontiguousarray(values, values.dtype if values.dtype in kernels.COMPONENTS else np.float64)
    within = np.ones((height, width), bool) if within is None else np.ascontiguousarray(within, bool)
    forward, channels = np.array(FORWARD_OFFSETS[connectivity], np.int64), values.size // max(height * width, 1)
    parents, numbers = np.empty(height * width + 1, np.int32), np.empty((height, width), np.int32)
    sizes, step = (height, width, channels), float(max_step)
    kernels.COMPONENTS[values.dtype](*sizes, values, step, within, len(forward), forward, parents, numbers)
    return numbers


def interior_pixels(
    values: NDArray[Any], max_step: float, max_size_px: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Mark pixels similar to their four neighbours, and what large connected sets of them reach.

    Parameters
    ----------
    values : ndarray, shape (height, width)
        NaN is similar to nothing, nor is anything beyond the border.
    max_step : float
        By how much similar neighbours differ at most.
    max_size_px : int
        Pixels of the largest set that is not large; sets are connected by eight neighbours.

    Returns
    -------
    interior : ndarray of bool, shape (height, width)
    reached : ndarray of bool, shape (height, width)
        Pixels of large sets, and their four neighbours.

    Examples
    --------
    >>> interior, reached = interior_pixels(np.zeros((3, 5)), 0.5, max_size_px=2)
    >>> int(interior.sum()), int(reached.sum())
    (3, 11)
    """
    values = np.ascontiguousarray(values, np.float32)
    parents, sizes = np.empty(values.size, np.int32), np.empty(values.size, np.int32)
    interior, reached = np.empty(values.shape, bool), np.empty(values.shape, bool)
    kernels.interior(*values.shape, values, float(max_step), max_size_px, parents, sizes, interior, reached)
    return interior, reached

"""Arithmetic on the neighbourhoods of all pixels: ranges, means and medians.

Maps are (height, width); stacks of maps with leading axes are treated map by map. NaN marks missing pixels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sparsedepth.kernels import neighbours as kernels
from sparsedepth.vocabulary import DepthMap, Floats

NEIGHBOUR_RADIUS_PX = 2
"""Radius of the window in which neighbours of similar depth are searched."""

GRID_OFFSETS_PX = (-3, -1, 1, 3)
"""Rows and columns around a pixel of the grid of `grid_median`."""


def local_range(values: Floats, radius: int) -> tuple[Floats, Floats]:
    """Find the least and the greatest valid value in a square about each pixel.

    Parameters
    ----------
    values : ndarray of float, shape (..., height, width)
        NaN is not valid.
    radius : int
        The square has sides of ``2 * radius + 1`` pixels; beyond the border nothing is valid.

    Returns
    -------
    lowest, highest : ndarray of float, shape (..., height, width)
        Infinity and minus infinity where the square has no valid value.

    Examples
    --------
    >>> lowest, highest = local_range(np.array([[1.0, np.nan, 5.0, 2.0]]), 1)
    >>> lowest.tolist(), highest.tolist()
    ([[1.0, 1.0, 2.0, 2.0]], [[1.0, 5.0, 5.0, 5.0]])
    """
    values = np.ascontiguousarray(values, values.dtype if values.dtype in kernels.RANGE else np.float64)
    (rows, columns), lowest, highest = values.shape[-2:], np.empty_like(values), np.empty_like(values)
    n, scratch = values.size // max(rows * columns, 1), np.empty((2, columns + 2 * radius), values.dtype)
    kernels.RANGE[values.dtype](n, rows, columns, radius, values, scratch, lowest, highest)
    return lowest, highest


def box_mean(values: Floats, side: int, mode: Literal["nearest", "constant"] = "nearest") -> Floats:
    """Average the values in a square about each pixel.

    Parameters
    ----------
    values : ndarray of float, shape (..., height, width)
        Without NaN. The result has their precision.
    side : int
        The side of the square, in pixels.
    mode : {"nearest", "constant"}
        Beyond the border the map goes on as at its edge, or is zero.

    Examples
    --------
    >>> box_mean(np.array([[0.0, 3.0, 6.0]]), 3).tolist()
    [[1.0, 3.0, 5.0]]
    """
    values = np.ascontiguousarray(values, values.dtype if values.dtype in kernels.BOX else np.float64)
    (rows, columns), means = values.shape[-2:], np.empty_like(values)
    n, scratch, middle = values.size // max(rows * columns, 1), np.empty(columns), np.empty(columns, values.dtype)
    kernels.BOX[values.dtype](n, rows, columns, side, mode == "nearest", values, scratch, middle, means)
    return means


def box_sum(values: Floats, side: int) -> Floats:
    """Add the values in a square about each pixel, zero beyond the border.

    Sums of whole numbers are whole up to rounding only; `chosen_pixels.BoxCounts` are exact.

    Examples
    --------
    >>> box_sum(np.array([[0.0, 3.0, 6.0]]), 3).round().tolist()
    [[3.0, 9.0, 9.0]]
    """
    return side**2 * box_mean(values, side, mode="constant")


def local_variance(values: Floats, side: int) -> Floats:
    """Compute the variance of the values in a square about each pixel, whose map goes on as at its edge.

    Sums have 64 bits; the result has the precision of the values.

    Examples
    --------
    >>> local_variance(np.array([[1.0, 1.0, 4.0]]), 3).round(9).tolist()
    [[0.0, 2.0, 2.0]]
    """
    values = np.ascontiguousarray(values, values.dtype if values.dtype in kernels.VARIANCE else np.float64)
    (rows, columns), variances = values.shape[-2:], np.empty_like(values)
    n, scratch = values.size // max(rows * columns, 1), np.empty((2, columns))
    kernels.VARIANCE[values.dtype](n, rows, columns, side, values, scratch, variances)
    return variances


def similar_neighbours(depth: DepthMap, max_step: float) -> NDArray[np.int8]:
    """Count the eight neighbours of each pixel that differ from it by no more than a step.

    Examples
    --------
    >>> similar_neighbours(np.array([[1.0, 1.5, np.nan, 9.0, 9.0]]), 0.5).tolist()
    [[1, 1, 0, 1, 1]]
    """
    depth, counts = np.ascontiguousarray(depth, np.float32), np.empty(depth.shape, np.int8)
    kernels.similar(*depth.shape, depth, float(max_step), counts)
    return counts


def block_range(depth: DepthMap) -> Floats:
    """Find the least range of the four squares of 2x2 pixels that hold each pixel; infinity where none is valid.

    Examples
    --------
    >>> block_range(np.array([[1.0, 1.5, 9.0], [1.0, 2.0, 9.0]])).tolist()
    [[1.0, 1.0, 7.5], [1.0, 1.0, 7.5]]
    """
    (rows, columns), depth = depth.shape[-2:], np.ascontiguousarray(depth, np.float32)
    least, scratch = np.empty(depth.shape, np.float32), np.empty((2, columns + 1), np.float32)
    kernels.blocks(depth.size // max(rows * columns, 1), rows, columns, depth, scratch, least)
    return least


def nearest_depth_distance(depth: DepthMap) -> Floats:
    """Average the distances of each pixel to the two nearest, in depth, of its neighbours; 0 where missing."""
    radius, (rows, columns) = NEIGHBOUR_RADIUS_PX, depth.shape[-2:]
    padded = np.full((*depth.shape[:-2], rows + 2 * radius, columns + 2 * radius), np.inf, np.float32)
    padded[..., radius:-radius, radius:-radius] = np.where(np.isfinite(depth), depth, np.inf)
    distance = np.empty(depth.shape, np.float32)
    n, scratch = depth.size // max(rows * columns, 1), np.empty((2, columns), np.float32)
    kernels.nearest(n, rows, columns, radius, padded, scratch, distance)
    return distance


def grid_median(values: Floats) -> Floats:
    """Compute the higher median of the sixteen `GRID_OFFSETS_PX` of each pixel; maps are mirrored at borders.

    A sorting network over rows: the same exchanges at every pixel.
    """
    reach, (rows, columns) = max(GRID_OFFSETS_PX), values.shape[-2:]
    padded = np.pad(values, [(0, 0)] * (values.ndim - 2) + [(reach, reach)] * 2, mode="symmetric")
    sorting, merging = list(_batcher_network(4, 1)), list(_batcher_network(16, 4))
    pairs, offsets = np.array(sorting + merging), np.array(GRID_OFFSETS_PX)
    medians = np.empty(values.shape, np.float32)
    n, scratch = values.size // max(rows * columns, 1), np.empty((20, columns + 2 * reach), np.float32)
    sizes = (n, rows, columns, reach, offsets, len(sorting), len(merging))
    kernels.grid_median(*sizes, pairs, np.ascontiguousarray(padded, np.float32), scratch, medians)
    return medians


def _batcher_network(n: int, sorted_run: int) -> Iterator[tuple[int, int]]:
    """Yield Batcher's odd-even merge exchanges for n numbers whose runs are sorted; both are powers of two."""
    run = sorted_run
    while run < n:
        gap = run
        while gap:
            for low in range(gap % run, n - gap):
                if (low - gap % run) // gap % 2 == 0 and low // (2 * run) == (low + gap) // (2 * run):
                    yield low, low + gap
            gap //= 2
        run *= 2

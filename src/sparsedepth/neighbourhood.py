"""Arithmetic on the neighbourhoods of pixels: values at offsets, ranges, sums and medians.

Maps are (height, width); stacks of maps with leading axes are treated map by map. NaN marks missing pixels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sparsedepth.kernels import neighbours as kernels
from sparsedepth.vocabulary import DepthMap, Floats, Vector

Pixels = NDArray[np.bool_] | tuple[NDArray[np.intp], ...]
"""A mask of pixels, or their index arrays as `numpy.nonzero` returns them."""

NEIGHBOUR_RADIUS_PX = 2
"""Radius of the window in which neighbours of similar depth are searched."""

GRID_OFFSETS_PX = (-3, -1, 1, 3)
"""Rows and columns around a pixel of the grid of `grid_median`."""


def square_offsets(radius: int) -> NDArray[np.intp]:
    """List the offsets to all neighbours within a square, row by row and without the centre.

    Returns
    -------
    ndarray of int, shape ((2 * radius + 1)**2 - 1, 2)
        Rows down and columns to the right.

    Examples
    --------
    >>> square_offsets(1).tolist()
    [[-1, -1], [-1, 0], [-1, 1], [0, -1], [0, 1], [1, -1], [1, 0], [1, 1]]
    """
    square = np.indices((2 * radius + 1, 2 * radius + 1)).reshape(2, -1).T - radius
    return square[np.abs(square).max(axis=1) > 0]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Flat indices of chosen pixels and of their neighbours, into maps padded so that none lies outside."""

    padding: tuple[tuple[int, int], ...]
    """As `numpy.pad` takes it."""
    centre: NDArray[np.intp]
    """The chosen pixels (pixels,)."""
    shift: NDArray[np.intp]
    """What takes a pixel to each of its neighbours (neighbours,)."""

    @classmethod
    def at(cls, shape: tuple[int, ...], where: Pixels, offsets: NDArray[np.intp]) -> Neighbours:
        """Index the neighbours of some pixels of maps of a shape.

        Parameters
        ----------
        shape : tuple of int
            Shape of the map, or of the stack of maps.
        where : ndarray of bool, or tuple of ndarray of int
            The pixels: a mask, or their indices along each axis.
        offsets : ndarray of int, shape (neighbours, 2)
            Rows down and columns to the right.
        """
        radius = int(np.abs(offsets).max(initial=0))
        padding = ((0, 0),) * (len(shape) - 2) + ((radius, radius),) * 2
        padded = tuple(size + sum(pad) for size, pad in zip(shape, padding, strict=True))
        *which, row, column = where if isinstance(where, tuple) else np.nonzero(where)
        centre = np.ravel_multi_index((*which, row + radius, column + radius), padded)
        return cls(padding, centre, offsets @ np.array([padded[-1], 1]))

    def pad(self, values: NDArray[Any], fill: float = np.nan) -> NDArray[Any]:
        """Flatten a map, padded with a value, to what the indices refer to."""
        return np.pad(values, self.padding, constant_values=fill).ravel()

    def index(self, pixels: slice = slice(None)) -> NDArray[np.intp]:
        """Index the neighbours of a range of the chosen pixels (pixels, neighbours)."""
        return self.centre[pixels, None] + self.shift


def gather(values: NDArray[Any], where: Pixels, offsets: NDArray[np.intp], fill: float = np.nan) -> NDArray[Any]:
    """Take the values at offsets from chosen pixels.

    Parameters
    ----------
    values : ndarray, shape (..., height, width)
        A map, or a stack of maps.
    where : ndarray of bool, or tuple of ndarray of int
        The chosen pixels: a mask, or their indices along each axis.
    offsets : ndarray of int, shape (neighbours, 2)
        Rows down and columns to the right.
    fill : float
        The value beyond the border.

    Returns
    -------
    ndarray, shape (pixels, neighbours)
        The values, in the order of the pixels and of the offsets.

    Examples
    --------
    >>> values = np.arange(6.0).reshape(2, 3)
    >>> gather(values, values == 4, np.array([(-1, 0), (0, 1), (1, 0)])).tolist()
    [[1.0, 5.0, nan]]
    """
    neighbours = Neighbours.at(values.shape, where, offsets)
    return neighbours.pad(values, fill)[neighbours.index()]


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

    Sums of whole numbers are whole up to rounding only; `BoxCounts` are exact.

    Examples
    --------
    >>> box_sum(np.array([[0.0, 3.0, 6.0]]), 3).round().tolist()
    [[3.0, 9.0, 9.0]]
    """
    return side**2 * box_mean(values, side, mode="constant")


def local_variance(values: Floats, side: int) -> Floats:
    """Compute the variance of the values in a square about each pixel, whose map goes on as at its edge.

    Examples
    --------
    >>> local_variance(np.array([[1.0, 1.0, 4.0]]), 3).tolist()
    [[0.0, 2.0, 2.0]]
    """
    mean, square = box_mean(values, side), box_mean(np.square(values), side)
    return np.maximum(square - np.square(mean), 0)


@dataclass(frozen=True, eq=False)
class BoxCounts:
    """Exact sums of small whole numbers in squares about chosen pixels, from one integral image.

    Examples
    --------
    >>> values = np.array([[1, 0, 1, 1]], np.int8)
    >>> counts = BoxCounts.of(values, values > 0, max_side=3)
    >>> counts.within(3).tolist(), counts.around(3).tolist()
    ([1.0, 2.0, 2.0], [0.0, 1.0, 1.0])
    """

    table: NDArray[np.int32]
    """The sum of all values above and to the left, of the padded map."""
    at: tuple[NDArray[np.intp], ...]
    """The indices of the chosen pixels in the table."""
    own: NDArray[np.int32]
    """The value of each chosen pixel."""

    @classmethod
    def of(cls, values: NDArray[np.bool_ | np.int8], where: NDArray[np.bool_], max_side: int) -> BoxCounts:
        """Prepare the sums about the pixels of a mask, in squares up to a side in pixels; zero beyond the border."""
        radius = max_side // 2
        padding = [(0, 0)] * (values.ndim - 2) + [(radius + 1, radius)] * 2
        table = np.pad(values, padding).cumsum(axis=-1, dtype=np.int32)
        np.cumsum(table, axis=-2, out=table)
        *which, row, column = np.nonzero(where)
        return cls(table, (*which, row + radius, column + radius), values[where].astype(np.int32))

    def within(self, side: int) -> Vector:
        """Add all values in the square of an odd side about each chosen pixel."""
        before, behind = -(side // 2), side // 2 + 1
        *which, row, column = self.at
        above, all_of_it = (
            self.table[*which, row + down, column + behind] - self.table[*which, row + down, column + before]
            for down in (before, behind)
        )
        return (all_of_it - above).astype(np.float64)

    def around(self, side: int) -> Vector:
        """Add all values in the square of an odd side about each chosen pixel, without the pixel's own."""
        return self.within(side) - self.own


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

"""Neighbours of chosen pixels: their places, their values, counts of marked pixels around them.

Maps are (height, width); stacks of maps with leading axes are treated map by map. NaN marks missing pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.kernels import neighbours as kernels
from sparsedepth.vocabulary import Floats, Vector

Pixels = NDArray[np.bool_] | tuple[NDArray[np.intp], ...]
"""A mask of pixels, or their index arrays as `numpy.nonzero` returns them."""


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


def ring_offsets(*radii: int) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """List the offsets to the neighbours on square rings, ring by ring, and their numbers up to each ring.

    Examples
    --------
    >>> offsets, ends = ring_offsets(1, 2)
    >>> offsets.shape, ends.tolist()
    ((24, 2), [8, 24])
    """
    square = square_offsets(max(radii))
    rings = [square[np.abs(square).max(axis=1) == radius] for radius in radii]
    return np.concatenate(rings), np.cumsum([len(ring) for ring in rings])


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
        return cls(padding, _flat(where, padded, radius), offsets @ np.array([padded[-1], 1]))

    def pad(self, values: NDArray[Any], fill: float = np.nan) -> NDArray[Any]:
        """Flatten a map, padded with a value, to what the indices refer to."""
        return np.pad(values, self.padding, constant_values=fill).ravel()

    def index(self, pixels: slice = slice(None)) -> NDArray[np.intp]:
        """Index the neighbours of a range of the chosen pixels (pixels, neighbours)."""
        return self.centre[pixels, None] + self.shift

    def nearest(self, depth: Floats, ends: NDArray[np.int64], kept: int) -> Floats:
        """Sort the distances in depth to the neighbours within each ring of `ring_offsets`.

        Parameters
        ----------
        depth : ndarray of float32
            A map that `pad` returned.
        ends : ndarray of int
            Numbers of neighbours up to each ring.
        kept : int
            How many distances are returned, at most 16.

        Returns
        -------
        ndarray of float32, shape (rings, kept, pixels)
            The smallest first; infinity where there are too few.
        """
        nearest = np.empty((len(ends), kept, len(self.centre)), np.float32)
        kernels.chosen_nearest(len(self.centre), self.centre, depth, len(ends), ends, self.shift, kept, nearest)
        return nearest

    def spread(self, depth: Floats, ends: NDArray[np.int64], limits: Vector) -> Floats:
        """Find medians, extremes and similar neighbours of each chosen pixel.

        Parameters
        ----------
        depth : ndarray of float32
            A map that `pad` returned.
        ends : ndarray of int
            Numbers of neighbours up to each ring of `ring_offsets`; 24 at most in all.
        limits : ndarray of float, shape (pixels,)
            Neighbours less than this far away in depth are similar.

        Returns
        -------
        ndarray of float32, shape (rings + 3, pixels)
            The median within each ring, then the least and the greatest of all, and the number of similar ones.
        """
        found, limits = np.empty((len(ends) + 3, len(self.centre)), np.float32), _not_below(limits)
        kernels.chosen_spread(len(self.centre), self.centre, depth, len(ends), ends, self.shift, limits, found)
        return found


def _flat(where: Pixels, padded: tuple[int, ...], shift: int) -> NDArray[np.intp]:
    """Return the flat indices of pixels in maps with `shift` more rows above and columns to the left."""
    *which, row, column = where if isinstance(where, tuple) else np.nonzero(where)
    return np.ravel_multi_index((*which, row + shift, column + shift), padded)


def _not_below(values: Vector) -> Vector:
    """Return the least numbers of 32 bits that are not below those of 64 bits: the same numbers are less than they."""
    rounded = values.astype(np.float32)
    return np.where(rounded < values, np.nextafter(rounded, np.float32(np.inf)), rounded)


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
    at: NDArray[np.intp]
    """The flat indices of the chosen pixels in the table."""
    own: NDArray[np.int32]
    """The value of each chosen pixel."""

    @classmethod
    def of(cls, values: NDArray[np.bool_ | np.int8], where: Pixels, max_side: int) -> BoxCounts:
        """Prepare the sums about chosen pixels, in squares up to a side in pixels; zero beyond the border."""
        radius, (rows, columns), values = max_side // 2, values.shape[-2:], np.ascontiguousarray(values)
        table = np.empty((*values.shape[:-2], rows + 2 * radius + 1, columns + 2 * radius + 1), np.int32)
        kernels.table(values.size // max(rows * columns, 1), rows, columns, radius, values.view(np.int8), table)
        return cls(table, _flat(where, table.shape, radius), values[where].astype(np.int32))

    def within(self, side: int) -> Vector:
        """Add all values in the square of an odd side about each chosen pixel."""
        before, behind, pitch, table = -(side // 2), side // 2 + 1, self.table.shape[-1], self.table.ravel()
        above, all_of_it = (
            table[self.at + (down * pitch + behind)] - table[self.at + (down * pitch + before)]
            for down in (before, behind)
        )
        return (all_of_it - above).astype(np.float64)

    def around(self, side: int) -> Vector:
        """Add all values in the square of an odd side about each chosen pixel, without the pixel's own."""
        return self.within(side) - self.own

"""Surfaces through what is known of a map: one that bends least, and one that would rather be folded than bend.

The first is a thin plate whose border is free. A plate rounds edges off, and swings beside them. The second begins at
the plate and bends anew a few times, each time more easily where it bent much before: it keeps its folds in few places.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_erosion
from scipy.sparse import csr_matrix

from sparsedepth.vocabulary import DepthMap, Floats, Vector

BENDS: tuple[tuple[int, dict[tuple[int, int], int]], ...] = (
    (1, {(0, 0): 1, (1, 0): -2, (2, 0): 1}),
    (1, {(0, 0): 1, (0, 1): -2, (0, 2): 1}),
    (2, {(0, 0): 1, (1, 0): -1, (0, 1): -1, (1, 1): 1}),
)
"""The second differences along columns, along rows and across both, and how often the square of each counts.

The bending energy is the sum of these squares as far as they lie within the map: a plane bends nowhere, not even at the
border.
"""
RIM = 8
"""Pixels of a wide hole, from its border, that the surface goes on into; it would be held fast there otherwise."""
FOLDS = 3
"""How often the surface bends anew."""
POWER, SMALL = 0.7, 0.02
"""The power of a bend that its energy grows with, beyond what is small, in deviations of the map."""
MOST, TOLERANCE = 300, 3e-3
MOST_ANEW, TOLERANCE_ANEW = 80, 5e-2
"""Steps of conjugate gradients, for the plate and each time it bends anew, and the share of the slope that may stay."""


class Surfaces(NamedTuple):
    smooth: Floats
    folded: Floats


def surfaces(
    depth: DepthMap, hopeless: NDArray[np.bool_] | None = None, *, most: int = MOST, tolerance: float = TOLERANCE
) -> Surfaces:
    """The surfaces through the known pixels of a map of unit deviation; nothing known: zero everywhere.

    They start from averages of what is known, the nearest that there are; wide holes end a little short of the minimum,
    and within ``hopeless`` ones the averages stay.
    """
    unknown = ~np.isfinite(depth)
    if hopeless is not None:
        unknown &= ~np.asarray(binary_erosion(hopeless, iterations=RIM, border_value=1), bool)
    smooth = _averages(depth)
    folded = smooth.copy()
    if unknown.any() and not unknown.all():
        sheet = _Sheet.of(smooth, unknown)
        values = sheet.relaxed(smooth[unknown], np.ones(len(sheet.rest)), most, tolerance)
        smooth[unknown] = values
        for _ in range(FOLDS):
            bend = sheet.bends @ values + sheet.rest
            ease = (1 + np.square(bend / SMALL)) ** (POWER / 2 - 1)
            values = sheet.relaxed(values, ease, MOST_ANEW, TOLERANCE_ANEW)
        folded[unknown] = values
    return Surfaces(smooth, folded)


@dataclass(frozen=True, eq=False)
class _Sheet:
    """The bends of a surface that touch an unknown pixel, as linear functions of the unknown pixels in their order."""

    bends: csr_matrix
    rest: Vector
    """What known pixels add to each bend."""

    @classmethod
    def of(cls, values: Floats, unknown: NDArray[np.bool_]) -> _Sheet:
        count = int(unknown.sum())
        number = np.full(unknown.shape, -1, np.int32)
        number[unknown] = np.arange(count, dtype=np.int32)
        lengths, numbers, shares, rest = [], [], [], []
        for weight, pixels in BENDS:
            theirs = _seen_by(number, pixels)
            touched = np.nonzero(np.maximum.reduce(theirs) >= 0)
            which = np.stack([each[touched] for each in theirs], axis=1)
            held = np.stack([each[touched] for each in _seen_by(values, pixels)], axis=1)
            share, free = np.sqrt(weight) * np.array(list(pixels.values()), np.float64), which >= 0
            lengths.append(free.sum(axis=1))
            numbers.append(which[free])
            shares.append(np.broadcast_to(share, which.shape)[free])
            rest.append(np.where(free, 0, held) @ share)
        ends = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
        bends = csr_matrix((np.concatenate(shares), np.concatenate(numbers), ends), (len(ends) - 1, count))
        return cls(bends, np.concatenate(rest))

    @cached_property
    def back(self) -> csr_matrix:
        return csr_matrix(self.bends.T)

    def relaxed(self, values: Vector, ease: Vector, most: int, tolerance: float) -> Vector:
        """Nearer to the least sum of squared bends, each counting by its ease, by conjugate gradients."""
        lengths = np.diff(self.bends.indptr)
        eased = csr_matrix((self.bends.data * np.repeat(ease, lengths), *self._places), self.bends.shape)
        energy = csr_matrix(self.back @ eased)
        descent = -(eased.T @ (self.bends @ values + self.rest))
        stiffness = energy.diagonal()
        values, step = values.copy(), descent / stiffness
        direction, left = step.copy(), float(descent @ step)
        goal = tolerance**2 * left
        for _ in range(most):
            if left <= goal:
                break
            change = energy @ direction
            length = left / float(direction @ change)
            values += length * direction
            change *= length
            descent -= change
            np.divide(descent, stiffness, out=step)
            left, before = float(descent @ step), left
            direction *= left / before
            direction += step
        return values

    @property
    def _places(self) -> tuple[NDArray[Any], NDArray[Any]]:
        return self.bends.indices, self.bends.indptr


def _seen_by(values: NDArray[Any], pixels: Collection[tuple[int, int]]) -> list[NDArray[Any]]:
    """The values of each of these pixels, counted from a corner, at all places where every one lies within the map."""
    down, right = (max(along) for along in zip(*pixels, strict=True))
    rows, columns = (max(side - far, 0) for side, far in zip(values.shape, (down, right), strict=True))
    return [values[row : row + rows, column : column + columns] for row, column in pixels]


def _averages(depth: DepthMap) -> Floats:
    """A first guess: unknown pixels are filled from maps of half the size, those from maps of a quarter, and so on."""
    known = np.isfinite(depth)
    return _pulled(np.where(known, depth, 0.0).astype(np.float64), known.astype(np.float64))


def _pulled(total: Floats, weight: Floats) -> Floats:
    """Means of what is known, given by sums and weights; with less weight than one the map of half the size helps."""
    shape, share = total.shape, np.minimum(weight, 1)
    mean = total / np.where(weight > 0, weight, 1)
    axes = [axis for axis in (0, 1) if shape[axis] > 1]
    if not axes or share.min() == 1:
        return mean
    for axis in axes:
        total, weight = _halved(total, axis), _halved(weight, axis)
    coarse = _pulled(total, weight)
    for axis in axes:
        coarse = _doubled(coarse, axis, shape[axis])
    return coarse + share * (mean - coarse)


def _halved(values: Floats, axis: int) -> Floats:
    """Sums of two neighbours; of an odd number, each second pixel with half of those beside it: flips commute."""
    along = np.moveaxis(values, axis, 0)
    if len(along) % 2 == 0:
        half = along[::2] + along[1::2]
    else:
        half = along[::2].copy()
        half[1:] += along[1::2] / 2
        half[:-1] += along[1::2] / 2
    return np.moveaxis(half, 0, axis)


def _doubled(values: Floats, axis: int, size: int) -> Floats:
    """Straight lines between the pixels that `_halved` makes of so many, level beyond the ends."""
    along = np.moveaxis(values, axis, 0)
    double = np.empty((size, *along.shape[1:]))
    if size % 2 == 0:
        framed = np.concatenate([along[:1], along, along[-1:]])
        double[::2] = 0.75 * along + 0.25 * framed[:-2]
        double[1::2] = 0.75 * along + 0.25 * framed[2:]
    else:
        double[::2], double[1::2] = along, (along[1:] + along[:-1]) / 2
    return np.moveaxis(double, 0, axis)

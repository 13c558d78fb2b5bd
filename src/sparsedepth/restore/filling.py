"""Filling holes: the smoothest surface through what is known, then codes that trust it a little.

A hole gives a patch nothing to hold on to: with many holes its codes are those of very few pixels. The surface that
bends least is a fair first guess everywhere; the codes then sharpen it, with the guess counting as a measurement of
small weight. How far to follow the codes is learned from known pixels that were hidden.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_erosion
from scipy.sparse import csr_matrix

from sparsedepth.coding.noise import Stationary
from sparsedepth.restore.door import Window
from sparsedepth.restore.votes import Coding, vote
from sparsedepth.vocabulary import DepthMap, Floats

SPARSITY = 0.6
"""What a unit of code costs, in noise floors: half of what detection asks, because there are no outliers left."""
ROUNDS = 24
GUESS_WEIGHT = 0.02
"""What a guessed pixel counts for beside a measured one."""
MEASURED = 1e-8
"""The variance that measured pixels have beside the noise floor."""
RIM = 8
"""Pixels of a wide hole, from its border, that the surface goes on into; it would be held fast there otherwise."""


@dataclass(frozen=True, eq=False)
class Filled:
    """Two answers at every unknown pixel, and how sure they are."""

    surface: Floats
    coded: Floats
    doubt: Floats
    """The variance of the patches' values, and the squared difference of the two answers."""

    def blend(self, trust: float) -> Floats:
        return self.surface + trust * (self.coded - self.surface)


def fill(
    depth: DepthMap,
    coding: Coding,
    threads: int,
    hopeless: NDArray[np.bool_] | None = None,
    window: Window | None = None,
) -> Filled:
    """Fill the unknown pixels of a map of unit deviation; known ones keep their values.

    ``hopeless`` pixels get a coarse guess that nobody will see, so that no time is spent on wide holes.
    """
    known = np.isfinite(depth)
    surface = smoothest(depth, hopeless)
    if known.all() or not known.any() or coding.unit is None:
        return Filled(surface, surface, np.zeros(depth.shape))
    apart = min(coding.stride + 1, min(coding.dictionary.patch_shape) // 2)
    quiet = replace(coding, noise=Stationary(1.0), sparsity=SPARSITY, stride=max(apart, 1), max_rounds=ROUNDS)
    variance = np.where(known, MEASURED, coding.unit**2 * (1 / GUESS_WEIGHT - 1)).astype(np.float32)
    wanted = ~known if hopeless is None else ~known & ~hopeless
    votes = vote(surface.astype(np.float32), quiet, variance, only=wanted, window=window, threads=threads)
    coded = np.where(known | (votes.count == 0), surface, votes.mean)
    return Filled(surface, coded, votes.spread + np.square(coded - surface))


def trust_in_codes(filled: Filled, truth: Floats, hidden: NDArray[np.bool_]) -> float:
    """How far to go from the surface to the codes, by least squares over hidden pixels."""
    step = (filled.coded - filled.surface)[hidden]
    wanted = (truth - filled.surface)[hidden]
    energy = float(step @ step)
    return float(np.clip(step @ wanted / energy, 0, 1)) if energy > 0 else 1.0


def smoothest(
    depth: DepthMap, hopeless: NDArray[np.bool_] | None = None, *, most: int = 300, tolerance: float = 1e-4
) -> Floats:
    """The surface through the known pixels that bends least, as a thin plate would, by conjugate gradients.

    It starts from averages of what is known, the nearest that there are; wide holes end a little short of the minimum.
    Nothing known: zero everywhere.
    """
    unknown = ~np.isfinite(depth)
    if hopeless is not None:
        unknown &= ~np.asarray(binary_erosion(hopeless, iterations=RIM, border_value=1), bool)
    surface = _averages(depth)
    if not unknown.any() or unknown.all():
        return surface
    bending = _bending(unknown)
    descent = -_change_of_bending(surface)[unknown]
    values, direction, squared = surface[unknown], descent.copy(), float(descent @ descent)
    goal = tolerance**2 * squared
    for _ in range(most):
        if squared <= goal:
            break
        change = bending @ direction
        step = squared / float(direction @ change)
        values += step * direction
        change *= step
        descent -= change
        squared, before = float(descent @ descent), squared
        direction *= squared / before
        direction += descent
    surface[unknown] = values
    return surface


BENDS: tuple[tuple[int, dict[tuple[int, int], int]], ...] = (
    (1, {(0, 0): 1, (1, 0): -2, (2, 0): 1}),
    (1, {(0, 0): 1, (0, 1): -2, (0, 2): 1}),
    (2, {(0, 0): 1, (1, 0): -1, (0, 1): -1, (1, 1): 1}),
)
"""The second differences along columns, along rows and across both, and how often the square of each counts.

The bending energy is the sum of these squares as far as they lie within the map: a plane bends nowhere, not even at the
border.
"""
NEAR = sorted({(c - a, d - b) for _, pixels in BENDS for a, b in pixels for c, d in pixels})
"""Where the pixels are that bend together with a pixel, itself among them, in the order of a map."""


def _bending(unknown: NDArray[np.bool_]) -> csr_matrix:
    """The matrix of the bending energy over the unknown pixels, in their order."""
    shares = np.zeros((len(NEAR), *unknown.shape), np.int8)
    for weight, pixels in BENDS:
        for one, (place, share) in enumerate(pixels.items()):
            for other, factor in pixels.items():
                apart = NEAR.index((other[0] - place[0], other[1] - place[1]))
                _seen_by(shares[apart], pixels)[one][...] += weight * share * factor
    count, far = int(unknown.sum()), max(max(apart) for apart in NEAR)
    number = np.full(unknown.shape, -1, np.int32)
    number[unknown] = np.arange(count, dtype=np.int32)
    number = np.pad(number, far, constant_values=-1)
    rows, columns = unknown.shape
    near = np.stack([number[far + r : far + r + rows, far + c : far + c + columns][unknown] for r, c in NEAR], axis=1)
    there = near >= 0
    ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    weights = shares.transpose(1, 2, 0)[unknown][there].astype(np.float64)
    return csr_matrix((weights, near[there], ends), (count, count))


def _change_of_bending(values: Floats) -> Floats:
    """How the bending energy changes with each pixel: half its gradient."""
    change = np.zeros_like(values)
    for weight, pixels in BENDS:
        views, shares = _seen_by(values, pixels), pixels.values()
        bend, part = np.zeros(views[0].shape), np.empty(views[0].shape)
        for view, share in zip(views, shares, strict=True):
            bend += np.multiply(view, share, out=part)
        for view, share in zip(_seen_by(change, pixels), shares, strict=True):
            view += np.multiply(bend, weight * share, out=part)
    return change


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

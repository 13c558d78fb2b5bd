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
from scipy.ndimage import binary_erosion, gaussian_filter
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
REACH = (1, 2, 4, 8, 16, 32, 64)
"""The Gaussians, in pixels, by which the first guess is carried into holes."""


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

    It starts from Gaussian averages of what is known, the narrowest that reaches; wide holes end a little short of the
    minimum. Nothing known: zero everywhere.
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
    known = np.isfinite(depth)
    if not known.any():
        return np.zeros(depth.shape)
    values, surface = np.where(known, depth, 0.0), np.where(known, depth, np.nan).astype(np.float64)
    for reach in REACH:
        if not np.isnan(surface).any():
            return surface
        weight = gaussian_filter(known.astype(np.float64), reach)
        total = gaussian_filter(values.astype(np.float64), reach)
        seen = np.isnan(surface) & (weight > 1e-3)
        surface[seen] = total[seen] / weight[seen]
    return np.where(np.isnan(surface), values[known].mean(), surface)

"""A rehearsal: the map, or a sample of it, with noise that we know added and known pixels hidden.

Where noise goes and where pixels are hidden is drawn with the symmetries of a square about the map's centre, so that
flipping or transposing a map does the same to its rehearsal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsedepth.restore.tiling import Part
from sparsedepth.vocabulary import DepthMap, Floats, Vector

MOST_PIXELS, LEAST_PIXELS = 20_000, 20_000
"""A larger map is rehearsed on tiles of it; a smaller one is rehearsed several times, with other draws."""
TILE = 64
MOST_TIMES = 16
ENOUGH, MOST_BINS = 30, 16
"""Telling pixels in one of the `Bins`, and the most bins."""
NOISY = 0.04
"""The share of pixels to which noise is added."""
HIDDEN = {True: 0.03, False: 0.1}
"""The share of known pixels that are hidden, where holes are few or many."""
FEW_HOLES = 0.2
"""Up to this share, pixels under the map's own holes, turned about its centre, are hidden too; more is too much."""


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """What the restoration sees, and what it is not told; all arrays are (parts, height, width)."""

    depth: DepthMap
    truth: DepthMap
    """The map as it was measured: mostly true."""
    noise: Floats
    """What was added; 0 at most pixels."""
    hidden: NDArray[np.bool_]
    variance: DepthMap | None
    """A sensor's, if there is one."""
    corners: list[tuple[int, int]]

    @property
    def shown(self) -> Part:
        """All parts, as a stack."""
        return Part.of_all(self.depth, self.variance)

    def sample(self, values: NDArray[Any]) -> NDArray[Any]:
        """What a map has where the rehearsal is."""
        return _cut(values, self.corners, (self.depth.shape[1], self.depth.shape[2]))


def rehearse(depth: DepthMap, variance: DepthMap | None, sizes: ArrayLike, rng: np.random.Generator) -> Rehearsal:
    """Add noise as the paper does, of one size or of some, in deviations of the map."""
    whole = depth.size <= MOST_PIXELS
    shape = (
        depth.shape[0] if whole else min(TILE, depth.shape[0]),
        depth.shape[1] if whole else min(TILE, depth.shape[1]),
    )
    times = int(np.clip(LEAST_PIXELS // depth.size, 1, MOST_TIMES))
    corners = [(0, 0)] * times if whole else _tiles(depth, shape, rng)
    truth = _cut(depth, corners, shape)
    noise = np.stack([np.where(np.isfinite(part), _noise(shape, sizes, rng), 0) for part in truth])
    hidden = np.stack([_hidden(part, rng) for part in truth]) & (noise == 0)
    shown = np.where(hidden, np.nan, truth + noise).astype(depth.dtype)
    return Rehearsal(shown, truth, noise, hidden, None if variance is None else _cut(variance, corners, shape), corners)


def _tiles(depth: DepthMap, shape: tuple[int, int], rng: np.random.Generator) -> list[tuple[int, int]]:
    """Corners of tiles, drawn from a grid: of those at least half known, or half as well as the best if none is."""
    known = {
        (top, left): float(np.isfinite(depth[top : top + shape[0], left : left + shape[1]]).mean())
        for top in range(0, depth.shape[0] - shape[0] + 1, shape[0])
        for left in range(0, depth.shape[1] - shape[1] + 1, shape[1])
    }
    most = max(known.values())
    corners = [corner for corner, share in known.items() if share >= (0.5 if most >= 0.5 else most / 2)]
    chosen = rng.permutation(len(corners))[: MOST_PIXELS // (shape[0] * shape[1])]
    return [corners[i] for i in np.sort(chosen)]


def _cut(values: NDArray[Any], corners: list[tuple[int, int]], shape: tuple[int, int]) -> NDArray[Any]:
    return np.stack([values[top : top + shape[0], left : left + shape[1]] for top, left in corners])


def _hidden(depth: DepthMap, rng: np.random.Generator) -> NDArray[np.bool_]:
    known = np.isfinite(depth)
    few = bool((~known).mean() < FEW_HOLES)
    hidden = _drawn((depth.shape[0], depth.shape[1]), HIDDEN[few], rng) < 1
    if few:
        hidden |= ~known[::-1, ::-1]
    return hidden & known


def _folded(shape: tuple[int, int]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The distances of rows and columns from the centre of a map, in whole pixels."""
    rows, columns = (np.abs(2 * np.arange(n) - (n - 1)) // 2 for n in shape)
    return np.meshgrid(rows, columns, indexing="ij")


def _drawn(shape: tuple[int, int], share: float, rng: np.random.Generator) -> Floats:
    """Random ranks, below 1 for a share of the pixels; no two images of one pixel under the symmetries touch."""
    side = max(shape) // 2 + 1
    draw = rng.random((side, side)) / share
    draw = np.triu(draw) + np.triu(draw, 1).T
    row, column = np.indices(draw.shape)
    draw[(row < 1) | (column < 1) | (np.abs(row - column) < 2)] = 1
    return draw[_folded(shape)]


def _noise(shape: tuple[int, int], sizes: ArrayLike, rng: np.random.Generator) -> Floats:
    """Gaussian noise, its variance uniform up to a size squared, at some of the pixels, spread evenly over its law."""
    rank = _drawn(shape, NOISY, rng)
    chosen = rank < 1
    distinct, which = np.unique(rank[chosen], return_inverse=True)
    noise = np.zeros(shape)
    if len(distinct):
        law = np.sqrt(rng.random(20_000)) * np.abs(rng.standard_normal(20_000))
        law *= rng.choice(np.atleast_1d(np.asarray(sizes, np.float64)), len(law))
        spread = np.quantile(law, (np.arange(len(distinct)) + 0.5) / len(distinct))
        noise[chosen] = (rng.permutation(spread) * rng.choice([-1, 1], len(distinct)))[which]
    return noise


@dataclass(frozen=True)
class Levels:
    """A function of a number that is not negative, learned in ranges and interpolated between them.

    Each range has enough of the pixels that teach something: finer ones would hold no error at all by chance, and
    promise what nobody has seen.
    """

    at: Vector
    """The logarithms of the numbers where the function is known."""
    level: Vector

    @classmethod
    def of_means(cls, told: Vector, taught: Vector) -> Levels:
        """The mean of what is taught, rising with what is told, as if one more had been seen everywhere."""
        edges = _edges(told)
        count, total = (np.histogram(told, edges, weights=w)[0] for w in (None, taught))
        usual = taught.mean() if len(taught) else 0.0
        return cls(_centres(told, edges), rising((total + usual) / (count + 1), count))

    def __call__(self, told: Floats) -> Floats:
        return np.interp(_log(told), self.at, self.level)


def _edges(told: Vector) -> Vector:
    bins = int(np.clip(len(told) // ENOUGH, 1, MOST_BINS))
    inner = np.unique(np.quantile(told, np.linspace(0, 1, bins + 1)[1:-1])) if bins > 1 else np.empty(0)
    return np.concatenate([[-np.inf], inner, [np.inf]])


def _centres(told: Vector, edges: Vector) -> Vector:
    """The mean logarithm of the numbers in each range."""
    count, total = (np.histogram(told, edges, weights=w)[0] for w in (None, _log(told)))
    return np.maximum.accumulate(total / np.maximum(count, 1))


def _log(told: Floats) -> Floats:
    return np.log(np.maximum(told, np.finfo(np.float64).tiny))


def rising(values: Vector, mass: Vector) -> Vector:
    """The nearest rising sequence, by pooling neighbours that fall."""
    pools: list[list[float]] = []
    for value, weight in zip(values, mass, strict=True):
        pools.append([float(value), float(weight), 1])
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            value, weight, count = pools.pop()
            before = pools[-1]
            total = max(before[1] + weight, 1e-12)
            pools[-1] = [(before[0] * before[1] + value * weight) / total, total, before[2] + count]
    return np.concatenate([np.full(int(count), value) for value, _, count in pools])

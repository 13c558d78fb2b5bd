"""Noise at every pixel, as time-of-flight cameras have it: there is no clean value to keep, all take the coded one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates, percentile_filter

from sparsedepth.coding.noise import Stationary
from sparsedepth.parallel import map_in_threads
from sparsedepth.restore.aggregate import Coding, vote
from sparsedepth.restore.simulation import Levels
from sparsedepth.restore.tiling import Window
from sparsedepth.vocabulary import DepthMap, Floats, Vector

LEAST = 0.03
"""The deviation of the noise, in those of the map, from which a map is smoothed without being asked."""
FEW_OUTLIERS = 0.05
"""The share of the pixels up to which outliers are few."""
SPARSITY = 4.2
"""What a unit of code costs, in deviations of the noise."""
ROUGH = 5e-4
"""A low quantile of the differences in most blocks of a map from which it is as its sensor measured it."""
OUTLIER = 4.0
"""Deviations of the noise beyond which a pixel is no mere noise."""
BLOCK, QUANTILE = 6, 0.25
"""Where the noise is measured: a quantile of the differences in blocks of this side."""
FLATTEST = 20
"""The percentile of the blocks, from the flattest, that is taken for noise alone."""
ABOUT = 13
"""Blocks a side among which the flattest are sought, where noise differs from place to place."""
LEAST_PART = 0.3
"""Of the deviation at its depth, below which no place is believed to be."""
GROWTHS = np.geomspace(1 / 8, 8, 49)
"""Of the root of the deviation from one end of the depths to the other, of which the best is sought."""
SMALLEST = 1e-6
"""The deviation of a block that is perfectly flat."""
FEW = 12
"""Blocks that are too few to tell how noise depends on depth."""
ENOUGH = 4096
"""Blocks that tell it as well as more."""
ROUNDS = 32
GAUSSIAN = 0.262
"""That quantile, in the flattest fifth of the blocks, for Gaussian noise of deviation one."""
HIGH, TAIL = 0.75, 8.0
"""A high quantile of the differences, and the most that it may be of the low one: 4 for Gaussian noise."""
CLEARLY = 1.1
"""By what smoothing must take more than the noise amounts to for some of it to be called texture."""
AGAIN = 0.3
"""What is left of the deviation after coding once."""


def noise_deviation(depth: DepthMap) -> float:
    """The deviation of noise that is everywhere: from the second differences where the map is flattest.

    Differences across both axes cancel planes and straight edges; texture is not everywhere, noise is. A low quantile
    of them in each block of the map does not see outliers, of which even many leave some differences untouched.
    """
    blocks = _in_blocks(depth)
    known = blocks[np.isfinite(blocks)]
    return float(np.percentile(known, FLATTEST) / GAUSSIAN) if len(known) >= 4 else 0.0


def is_as_measured(depth: DepthMap) -> bool:
    """Whether a map is a little rough nearly everywhere: measured pixel by pixel, neither matched nor smoothed."""
    blocks = _in_blocks(depth)
    known = blocks[np.isfinite(blocks)]
    return len(known) >= 4 and bool(np.median(known) > ROUGH)


@dataclass(frozen=True)
class NoiseLevel:
    """The deviation of noise that is everywhere, as a function of depth and of the place.

    The root of the deviation is linear in depth between two ends, as it is of sensors that triangulate, in ranges; the
    same at both ends is the same everywhere. Where it differs from place to place beyond that, the flattest blocks
    about a pixel tell.
    """

    deviation: float
    """At the lower end."""
    ends: tuple[float, float] = (0.0, 1.0)
    growth: float = 1.0
    """From the lower end to the upper one, of the root."""

    @classmethod
    def of(cls, depth: DepthMap) -> NoiseLevel:
        """The curve with the flattest blocks of the map below it that lies nearest to all of them."""
        blocks, depths = _in_blocks(depth), _depths(depth)
        known = np.isfinite(blocks) & np.isfinite(depths)
        if known.sum() < FEW:
            return cls(noise_deviation(depth))
        some = np.flatnonzero(known)[:: -(-int(known.sum()) // ENOUGH)]
        blocks, depths = np.maximum(blocks.ravel()[some], SMALLEST), depths.ravel()[some]
        candidates = (cls(1.0, (float(depths.min()), float(depths.max())), float(growth)) for growth in GROWTHS)
        return min((_fitted(candidate, blocks, depths) for candidate in candidates), key=lambda fit: fit[0])[1]

    def at(self, depth: Floats) -> Floats:
        """At such depths, which may lie beyond the ends; that of the lower end where the depth is unknown."""
        low, high = self.ends
        along = np.clip((np.where(np.isfinite(depth), depth, low) - low) / max(high - low, 1e-12), 0, 1)
        return self.deviation * np.square(1 + (self.growth - 1) * along)

    def about(self, depth: DepthMap) -> DepthMap:
        """At each pixel of a map, or of what a window shows of it; at least a part of what its depth says."""
        relative = _in_blocks(depth) / (self.at(_depths(depth)) * GAUSSIAN)
        around = percentile_filter(np.where(np.isfinite(relative), relative, 1), FLATTEST, size=ABOUT, mode="reflect")
        rows, columns = ((np.arange(side) - BLOCK / 2) / BLOCK for side in depth.shape)
        places = np.stack(np.meshgrid(rows, columns, indexing="ij"))
        local = map_coordinates(around, places, order=1, mode="nearest")
        return (self.at(depth) * np.maximum(local, LEAST_PART)).astype(np.float32)


def _fitted(level: NoiseLevel, blocks: Vector, depths: Vector) -> tuple[float, NoiseLevel]:
    """A level scaled such that the flattest blocks lie below it, and how far all lie from it, as for quantiles."""
    above = np.log(blocks / level.at(depths))
    scale, share = float(np.percentile(above, FLATTEST)), FLATTEST / 100
    misfit = np.maximum(share * (above - scale), (share - 1) * (above - scale)).mean()
    return float(misfit), replace(level, deviation=float(np.exp(scale)) / GAUSSIAN)


def is_everywhere(depth: DepthMap, outliers: float) -> bool:
    """Whether there is noise worth smoothing at every pixel, beside such a share of outliers.

    Many outliers look like noise at some depths, but not in the flattest blocks of all; leaves do even there, but their
    differences are not Gaussian.
    """
    if outliers >= FEW_OUTLIERS:
        return noise_deviation(depth) > LEAST
    level = NoiseLevel.of(depth)
    known = depth[np.isfinite(depth)]
    worth = len(known) > 0 and np.square(level.at(known)).mean() > LEAST**2
    return bool(worth and not _is_texture(depth, level))


def _is_texture(depth: DepthMap, level: NoiseLevel) -> bool:
    """Whether even the flattest blocks with such noise have far larger differences than it has."""
    low, high, expected = _in_blocks(depth), _in_blocks(depth, HIGH), level.at(_depths(depth))
    flat = (low <= expected * GAUSSIAN) & (expected > LEAST)
    return bool(flat.any() and np.median(high[flat] / expected[flat]) > TAIL * GAUSSIAN)


def beyond(residual: Floats, depth: DepthMap, level: NoiseLevel) -> NDArray[np.bool_]:
    """Where a residual is no mere noise."""
    return np.abs(residual) > OUTLIER * level.about(depth)


def _depths(depth: DepthMap) -> Floats:
    """The median depth of each block, NaN where little is known."""
    return _quantile(_cut(depth[:-1, :-1]), 0.5)


def _in_blocks(depth: DepthMap, share: float = QUANTILE) -> Floats:
    """A low quantile, or another, of the crossed differences in each block, NaN where little is known."""
    crossed = np.abs(depth[1:, 1:] - depth[1:, :-1] - depth[:-1, 1:] + depth[:-1, :-1]) / 2
    return _quantile(_cut(crossed), share)


def _quantile(blocks: Floats, share: float) -> Floats:
    """Of the known pixels of each block, NaN where they are few."""
    known = np.isfinite(blocks).sum(axis=2)
    at = (share * known).astype(int)[..., None]
    value = np.take_along_axis(np.sort(blocks, axis=2), at, axis=2)[..., 0]
    return np.where(known > BLOCK**2 / 2, value, np.nan)


def _cut(values: Floats) -> Floats:
    """The pixels of each block; NaN where there is no room for one."""
    rows, columns = (max(side // BLOCK, 1) for side in values.shape)
    values = values[: rows * BLOCK, : columns * BLOCK]
    if values.size < rows * columns * BLOCK**2:
        return np.full((rows, columns, BLOCK**2), np.nan)
    return values.reshape(rows, BLOCK, columns, BLOCK).transpose(0, 2, 1, 3).reshape(rows, columns, -1)


@dataclass(frozen=True, eq=False)
class Coded:
    """What the codes make of a map with noise at every pixel."""

    depth: DepthMap
    smooth: DepthMap
    spread: Floats
    """The variance of the patches about it."""
    deviation: DepthMap
    """Of the noise."""

    @property
    def disagreement(self) -> Floats:
        """Of the patches, in variances of the noise."""
        return self.spread / np.square(self.deviation)

    @property
    def taken(self) -> Floats:
        """By smoothing, in deviations of the noise; NaN where nothing was measured."""
        return (self.depth - self.smooth) / self.deviation


@dataclass(frozen=True, eq=False)
class Share:
    """How much to take of what smoothing would take, by the disagreement of the patches: the rest is texture.

    Squared error is least with the mean of noise times taken over that of taken squared. The latter is the map's; the
    former its rehearsal's, where the noise is known.
    """

    gain: Levels
    taken: Levels

    @classmethod
    def of(cls, rehearsal: Sequence[tuple[Coded, Coded]]) -> Share:
        """Of parts of the map, and of the same with known noise on what was smoothed."""
        gain = (
            (again.disagreement, again.taken * (again.depth - once.smooth) / again.deviation)
            for once, again in rehearsal
        )
        return cls(_levels(gain), _levels((once.disagreement, np.square(once.taken)) for once, _ in rehearsal))

    def __call__(self, coded: Coded) -> Floats:
        told = coded.disagreement
        return np.clip(self.gain(told) / np.maximum(self.taken(told), np.finfo(np.float64).tiny), 0, 1)


@dataclass(frozen=True, eq=False)
class Smoother:
    """Smooths what a window shows of a map with noise at every pixel."""

    level: NoiseLevel
    coding: Coding
    share: Share | None = None
    variance: Levels | None = None
    """The squared error, by the disagreement of the patches."""

    def __call__(self, depth: DepthMap, window: Window, threads: int) -> tuple[Floats, Floats]:
        """The value of each pixel and its variance."""
        coded = self.code(depth, window, threads)
        return self._blended(coded), coded.spread if self.variance is None else self.variance(coded.spread)

    def code(self, depth: DepthMap, window: Window, threads: int) -> Coded:
        """Code a map, and the result again, as what is left is small."""
        noise = Stationary(1.0)
        coding = replace(self.coding, noise=noise, sparsity=SPARSITY, max_rounds=ROUNDS, calm_rounds=None, refit=True)
        local = self.level.about(depth)
        spread: Floats = np.zeros(depth.shape)
        smooth = depth
        for part in (1, AGAIN):
            votes = vote(smooth, coding, units=part * local, window=window, threads=threads)
            spread = spread + votes.spread
            smooth = votes.mean.astype(np.float32)
        return Coded(depth, smooth, spread, local)

    def rehearsed(self, parts: DepthMap, threads: int) -> Smoother:
        """Learn from parts of the map, without outliers: smooth, put the noise back, smooth again, see how it errs."""
        window = Window.on_all((parts.shape[1], parts.shape[2]))

        def rehearse(index: int) -> tuple[Coded, Coded]:
            once = self.code(parts[index], window, 1)
            noise = once.deviation * np.random.default_rng(index).standard_normal(window.whole)
            return once, self.code((once.smooth + noise).astype(np.float32), window, 1)

        coded = list(map_in_threads(rehearse, range(len(parts)), threads))
        careful = replace(self, share=Share.of(coded)) if _takes_texture([once for once, _ in coded]) else self
        error = ((again.spread, np.square(careful._blended(again) - once.smooth)) for once, again in coded)
        return replace(careful, variance=_levels(error))

    def _blended(self, coded: Coded) -> Floats:
        """Smooth where nothing was measured, and elsewhere as far as what is taken is noise."""
        share = 1.0 if self.share is None else self.share(coded)
        return np.where(np.isfinite(coded.depth), coded.depth - share * (coded.depth - coded.smooth), coded.smooth)


def _takes_texture(parts: Sequence[Coded]) -> bool:
    """Whether smoothing takes clearly more than the noise amounts to."""
    taken = sum(np.nansum(np.square(part.depth - part.smooth)) for part in parts)
    noise = sum(np.square(part.deviation)[np.isfinite(part.depth)].sum() for part in parts)
    return bool(taken > CLEARLY * noise)


def _levels(parts: Iterable[tuple[Floats, Floats]]) -> Levels:
    """What is taught by some parts of the map, by what is told, where something is taught."""
    known = [(told[np.isfinite(taught)], taught[np.isfinite(taught)]) for told, taught in parts]
    told, taught = map(np.concatenate, zip(*known, strict=True))
    return Levels.of_means(told, taught)

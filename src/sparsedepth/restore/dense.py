"""Noise at every pixel, as time-of-flight cameras have it: there is no clean value to keep, all take the coded one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import map_coordinates, percentile_filter

from sparsedepth.coding.noise import Stationary
from sparsedepth.restore.door import Window
from sparsedepth.restore.rehearsal import Levels
from sparsedepth.restore.votes import Coding, vote
from sparsedepth.vocabulary import DepthMap, Floats, Vector
from sparsedepth.workers import in_order

LEAST = 0.03
"""The deviation of the noise, in those of the map, from which a map is smoothed without being asked."""
SPARSITY = 4.2
"""What a unit of code costs, in deviations of the noise."""
OUTLIER = 4.0
"""Deviations of the noise beyond which a pixel is no mere noise."""
BLOCK, QUANTILE = 6, 0.25
"""Where the noise is measured: a quantile of the differences in blocks of this side."""
FLATTEST = 20
"""The percentile of the blocks, from the flattest, that is taken for noise alone."""
ABOUT = 13
"""Blocks a side among which the flattest are sought, where noise differs from place to place."""
LEAST_PART = 0.3
"""Of the deviation of the whole map, below which no place is believed to be."""
ROUNDS = 24
GAUSSIAN = 0.262
"""That quantile, in the flattest fifth of the blocks, for Gaussian noise of deviation one."""
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


def local_deviation(depth: DepthMap, deviation: float) -> DepthMap:
    """The same about each pixel, where it is not the same everywhere; at least a part of that of the whole map."""
    blocks = _in_blocks(depth)
    filled = np.where(np.isfinite(blocks), blocks, deviation * GAUSSIAN)
    around = percentile_filter(filled, FLATTEST, size=ABOUT, mode="reflect") / GAUSSIAN
    rows, columns = ((np.arange(side) - BLOCK / 2) / BLOCK for side in depth.shape)
    places = np.stack(np.meshgrid(rows, columns, indexing="ij"))
    local = map_coordinates(around, places, order=1, mode="nearest")
    return np.maximum(local, LEAST_PART * deviation).astype(np.float32)


def beyond(residual: Floats, depth: DepthMap, deviation: float) -> NDArray[np.bool_]:
    """Where a residual is no mere noise."""
    return np.abs(residual) > OUTLIER * local_deviation(depth, deviation)


def _in_blocks(depth: DepthMap) -> Floats:
    """A low quantile of the crossed differences in each block, NaN where little is known."""
    crossed = np.abs(depth[1:, 1:] - depth[1:, :-1] - depth[:-1, 1:] + depth[:-1, :-1]) / 2
    rows, columns = (max(side // BLOCK, 1) for side in crossed.shape)
    crossed = crossed[: rows * BLOCK, : columns * BLOCK]
    if crossed.size < rows * columns * BLOCK**2:
        return np.full((rows, columns), np.nan)
    blocks = crossed.reshape(rows, BLOCK, columns, BLOCK).transpose(0, 2, 1, 3).reshape(rows, columns, -1)
    known = np.isfinite(blocks).sum(axis=2)
    at = (QUANTILE * known).astype(int)[..., None]
    low = np.take_along_axis(np.sort(blocks, axis=2), at, axis=2)[..., 0]
    return np.where(known > BLOCK**2 / 2, low, np.nan)


@dataclass(frozen=True, eq=False)
class Smoother:
    """Smooths what a window shows of a map with noise at every pixel."""

    deviation: float
    coding: Coding
    share: float = 1.0
    """Of what smoothing would take: where it would take more than the noise amounts to, the rest is texture."""
    variance: Levels | None = None
    """The squared error, by the disagreement of the patches."""

    def __call__(self, depth: DepthMap, window: Window, threads: int) -> tuple[Floats, Floats]:
        """The coded value of each pixel, coded again as what is left is small, and its variance."""
        coding = replace(self.coding, noise=Stationary(1.0), sparsity=SPARSITY, max_rounds=ROUNDS, refit=True)
        local = local_deviation(depth, self.deviation)
        disagreement: Floats = np.zeros(depth.shape)
        smooth = depth
        for part in (1, AGAIN):
            votes = vote(smooth, coding, units=part * local, window=window, threads=threads)
            disagreement = disagreement + votes.spread
            smooth = votes.mean.astype(np.float32)
        value = np.where(np.isfinite(depth), depth - self.share * (depth - smooth), smooth)
        return value, disagreement if self.variance is None else self.variance(disagreement)

    def rehearsed(self, parts: DepthMap, threads: int) -> Smoother:
        """Learn from parts of the map, without outliers: smooth, put the noise back, smooth again, see how it errs."""
        window = Window.on_all((parts.shape[1], parts.shape[2]))
        smooth = np.stack(list(in_order(lambda part: self(part, window, 1)[0], parts, threads)))
        deviation = np.stack([local_deviation(part, self.deviation) for part in parts])
        known = np.isfinite(parts)
        taken, noise = (float(np.square(values[known]).sum()) for values in (parts - smooth, deviation))
        careful = replace(self, share=min(1.0, noise / max(taken, np.finfo(np.float64).tiny)))

        def errors(index: int) -> tuple[Vector, Vector]:
            noise = deviation[index] * np.random.default_rng(index).standard_normal(window.whole)
            again, told = careful((smooth[index] + noise).astype(np.float32), window, 1)
            known = np.isfinite(again)
            return told[known], np.square(again - smooth[index])[known]

        told, error = map(np.concatenate, zip(*in_order(errors, range(len(parts)), threads), strict=True))
        return replace(careful, variance=Levels.of_means(told, error))

"""Noise at every pixel, as time-of-flight cameras have it: there is no clean value to keep, all take the coded one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

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
GAUSSIAN = 0.262
"""That quantile, in the flattest fifth of the blocks, for Gaussian noise of deviation one."""
AGAIN = 0.3
"""What is left of the deviation after coding once."""


def noise_deviation(depth: DepthMap) -> float:
    """The deviation of noise that is everywhere: from the second differences where the map is flattest.

    Differences across both axes cancel planes and straight edges; texture is not everywhere, noise is. A low quantile
    of them in each block of the map does not see outliers, of which even many leave some differences untouched.
    """
    crossed = np.abs(depth[1:, 1:] - depth[1:, :-1] - depth[:-1, 1:] + depth[:-1, :-1]) / 2
    rows, columns = (side // BLOCK for side in crossed.shape)
    blocks = crossed[: rows * BLOCK, : columns * BLOCK].reshape(rows, BLOCK, columns, BLOCK)
    blocks = blocks.transpose(0, 2, 1, 3).reshape(-1, BLOCK * BLOCK)
    blocks = np.sort(blocks[np.isfinite(blocks).mean(axis=1) > 0.5], axis=1)
    if len(blocks) < 4:
        return 0.0
    known = np.isfinite(blocks).sum(axis=1)
    low = blocks[np.arange(len(blocks)), (QUANTILE * known).astype(int)]
    return float(np.percentile(low, 20) / GAUSSIAN)


@dataclass(frozen=True, eq=False)
class Smoother:
    """Smooths what a window shows of a map whose noise has one deviation everywhere."""

    deviation: float
    coding: Coding
    variance: Levels | None = None
    """The squared error, by the disagreement of the patches."""

    def __call__(self, depth: DepthMap, window: Window, threads: int) -> tuple[Floats, Floats]:
        """The coded value of each pixel, coded again as what is left is small, and its variance."""
        disagreement: Floats = np.zeros(depth.shape)
        for deviation in (self.deviation, AGAIN * self.deviation):
            coarse = replace(self.coding, noise=Stationary(1.0), sparsity=SPARSITY, unit=deviation, refit=True)
            votes = vote(depth, coarse, window=window, threads=threads)
            disagreement = disagreement + votes.spread
            depth = votes.mean.astype(np.float32)
        return depth, disagreement if self.variance is None else self.variance(disagreement)

    def rehearsed(self, parts: DepthMap, threads: int) -> Smoother:
        """Learn the variance on parts of the map: smooth one, put the noise back, smooth again, see how it errs."""

        def errors(index: int) -> tuple[Vector, Vector]:
            window = Window.on_all((parts.shape[1], parts.shape[2]))
            smooth, _ = self(parts[index], window, 1)
            noise = self.deviation * np.random.default_rng(index).standard_normal(smooth.shape)
            again, told = self((smooth + noise).astype(np.float32), window, 1)
            known = np.isfinite(again)
            return told[known], np.square(again - smooth)[known]

        told, error = map(np.concatenate, zip(*in_order(errors, range(len(parts)), threads), strict=True))
        return replace(self, variance=Levels.of_means(told, error))

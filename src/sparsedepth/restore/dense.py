"""Noise at every pixel, as time-of-flight cameras have it: there is no clean value to keep, all take the coded one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.ndimage import uniform_filter

from sparsedepth.coding.noise import Stationary
from sparsedepth.restore.door import Window
from sparsedepth.restore.votes import Coding, vote
from sparsedepth.vocabulary import DepthMap, Floats

LEAST = 0.1
"""The deviation of the noise, in those of the map, from which a map is smoothed without being asked."""
SPARSITY = 2.5
"""What a unit of code costs, in deviations of the noise."""
OUTLIER = 4.0
"""Deviations of the noise beyond which a pixel is no mere noise."""
LEFT = 0.3
"""What is left of the noise's deviation after coding, beside the disagreement of the patches."""


def noise_deviation(depth: DepthMap) -> float:
    """The deviation of noise that is everywhere: from the second differences where the map is flattest.

    Differences across both axes cancel planes and straight edges; texture is not everywhere, noise is.
    """
    crossed = np.abs(depth[1:, 1:] - depth[1:, :-1] - depth[:-1, 1:] + depth[:-1, :-1]) / 2
    known = np.isfinite(crossed)
    if known.sum() < 100:
        return 0.0
    seen = uniform_filter(known.astype(np.float64), 5)
    local = uniform_filter(np.where(known, crossed, 0.0), 5) / np.maximum(seen, 1e-6)
    gaussian = np.sqrt(2 / np.pi) * 0.9  # the mean of |x|, and how far below it the flattest fifth of windows lies
    return float(np.percentile(local[known], 20) / gaussian)


def smooth(depth: DepthMap, coding: Coding, deviation: float, window: Window, threads: int) -> tuple[Floats, Floats]:
    """The coded value of each pixel and its variance, for noise of one deviation everywhere."""
    coarse = replace(coding, noise=Stationary(1.0), sparsity=SPARSITY, unit=deviation)
    votes = vote(depth, coarse, window=window, threads=threads)
    return votes.mean, votes.spread + (LEFT * deviation) ** 2

"""What the codes and the neighbours say of each pixel, and how much it looks like noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsedepth.restore.door import Part
from sparsedepth.restore.votes import Coding, vote
from sparsedepth.vocabulary import DepthMap, Floats

RESOLUTION = 0.01
"""The deviation below which a difference between pixels means nothing."""
DOUBT = 8.0
"""How much the disagreement of the patches counts in the score."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the codes and the neighbours say of each pixel."""

    value: Floats
    """The average of the patches."""
    spread: Floats
    """Their variance."""
    residual: Floats
    """Measured less value; 0 where unknown."""
    score: Floats
    """How much the pixel looks like noise; 0 where unknown."""
    count: Floats
    """The votes; 0 = no patch knows anything."""


def gather(part: Part, coding: Coding, quantum: float, threads: int) -> Evidence:
    """Code a map, or what a window shows of it, and score its pixels."""
    depth, variance = part.depth, part.variance
    votes = vote(depth, coding, variance, window=part.window, threads=threads)
    residual = np.nan_to_num(depth - votes.mean)
    least = (
        RESOLUTION**2 + (0.3 * quantum) ** 2 + (0 if variance is None else np.where(np.isfinite(depth), variance, 1))
    )
    score = np.abs(residual) / np.sqrt(least + DOUBT * votes.spread) * loneliness(depth) / np.sqrt(least)
    return Evidence(votes.mean, votes.spread, residual, score, votes.count)


def loneliness(depth: DepthMap) -> Floats:
    """The mean distance of each pixel to the two nearest, in depth, of its eight neighbours; 0 where unknown."""
    framed = np.pad(depth, 1, constant_values=np.nan)
    rows, columns = depth.shape
    nearest = np.full((2, rows, columns), np.inf)
    for down in range(3):
        for right in range(3):
            if (down, right) != (1, 1):
                apart = np.abs(depth - framed[down : down + rows, right : right + columns])
                apart = np.where(np.isnan(apart), np.inf, apart)
                nearest[1] = np.minimum(nearest[1], np.maximum(nearest[0], apart))
                nearest[0] = np.minimum(nearest[0], apart)
    second = np.where(np.isfinite(nearest[1]), nearest[1], nearest[0])
    return np.where(np.isfinite(nearest[0]), (nearest[0] + second) / 2, 0)


def quantum_of(depth: DepthMap) -> float:
    """The step between the levels of a quantised map: a low percentile of its differences; 0 = it is not quantised."""
    steps = np.abs(np.concatenate([np.diff(depth, axis=axis).ravel() for axis in (0, 1)]))
    steps = steps[np.isfinite(steps)]
    level = steps <= 1e-6
    if not len(steps) or level.mean() < 0.2 or level.all():
        return 0.0
    return float(np.percentile(steps[~level], 20))

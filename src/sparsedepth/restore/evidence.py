"""What the codes and the neighbours say of each pixel, and how much it looks like noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import median_filter

from sparsedepth.restore.door import Part
from sparsedepth.restore.votes import Coding, vote
from sparsedepth.vocabulary import DepthMap, Floats

RESOLUTION = 0.01
"""The deviation below which a difference between pixels means nothing."""
DOUBT = 8.0
"""How much the disagreement of the patches counts in the score."""
REACH = 2
"""How far away neighbours are looked for, in pixels."""
SURROUNDINGS = 7
"""The side of the square in which texture is measured, in pixels."""


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
    texture: Floats
    """How large residuals usually are about the pixel."""
    count: Floats
    """The votes; 0 = no patch knows anything."""


def gather(part: Part, coding: Coding, quantum: float, threads: int) -> Evidence:
    """Code a map, or what a window shows of it, or a stack of maps, and score its pixels."""
    depth, variance = part.depth, part.variance
    votes = vote(depth, coding, variance, window=part.window, threads=threads)
    residual = np.nan_to_num(depth - votes.mean)
    least = (
        RESOLUTION**2 + (0.3 * quantum) ** 2 + (0 if variance is None else np.where(np.isfinite(depth), variance, 1))
    )
    score = np.abs(residual) / np.sqrt(least + DOUBT * votes.spread) * loneliness(depth) / np.sqrt(least)
    texture = median_filter(np.abs(residual).astype(np.float32), SURROUNDINGS, mode="reflect", axes=(-2, -1))
    return Evidence(votes.mean, votes.spread, residual, score, texture, votes.count)


def loneliness(depth: DepthMap) -> Floats:
    """The mean distance of each pixel to the two nearest, in depth, of its neighbours; 0 where unknown."""
    rows, columns = depth.shape[-2:]
    framed = np.full((*depth.shape[:-2], rows + 2 * REACH, columns + 2 * REACH), np.inf, depth.dtype)
    framed[..., REACH:-REACH, REACH:-REACH] = depth
    framed[np.isnan(framed)] = np.inf
    first, second = np.full_like(depth, np.inf), np.full_like(depth, np.inf)
    apart, larger = np.empty_like(depth), np.empty_like(depth)
    for down in range(2 * REACH + 1):
        for right in range(2 * REACH + 1):
            if (down, right) != (REACH, REACH):
                np.subtract(framed[..., down : down + rows, right : right + columns], depth, out=apart)
                np.abs(apart, out=apart)
                np.maximum(first, apart, out=larger)
                np.minimum(second, larger, out=second)
                np.minimum(first, apart, out=first)
    second = np.where(np.isfinite(second), second, first)
    return np.where(np.isfinite(first), (first + second) / 2, 0)


def quantum_of(depth: DepthMap) -> float:
    """The step between the levels of a quantised map: a low percentile of its differences; 0 = it is not quantised."""
    steps = np.abs(np.concatenate([np.diff(depth, axis=axis).ravel() for axis in (0, 1)]))
    steps = steps[np.isfinite(steps)]
    level = steps <= 1e-6
    if not len(steps) or level.mean() < 0.2 or level.all():
        return 0.0
    return float(np.percentile(steps[~level], 20))

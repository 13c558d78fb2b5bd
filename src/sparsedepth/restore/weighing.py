"""How much of the coded value to take at each score: the mixture of thresholds of least estimated squared error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsedepth.restore.evidence import Evidence
from sparsedepth.restore.rehearsal import Rehearsal
from sparsedepth.vocabulary import Floats, Vector

THRESHOLDS = np.geomspace(0.1, 1e5, 24)
IRRELEVANT = 0.02
"""A score so small that hardly anything is taken, whatever the mixture."""
EAGERNESS = 1.4
"""What correcting a clear outlier is worth over leaving it, beyond the estimate: it comes from few pixels."""
TOP = 0.5
"""The share of rehearsed noise that may lie below the score at which noise is counted: few pixels count badly."""
FEW = 30
"""Noisy pixels from whose sizes no law can be told."""
LEAST_COUNT = 2
"""A map with fewer noisy pixels than this is taken for clean."""


@dataclass(frozen=True)
class Weighing:
    """The weight of the coded value as a function of the score: a mixture of soft thresholds."""

    mixture: Vector
    share: float
    """Of the pixels that are noisy."""
    limit: float
    """The score beyond which hardly any others are found."""

    @classmethod
    def of_nothing(cls, share: float, limit: float) -> Weighing:
        """Measured values stay as they are."""
        return cls(np.zeros(len(THRESHOLDS)), share, limit)

    def __call__(self, score: Floats) -> Floats:
        weight = np.zeros(score.shape)
        for part, threshold in zip(self.mixture, THRESHOLDS, strict=True):
            if part > 0:
                weight += part * _soft(score, threshold)
        return weight


def weigh(evidence: Evidence, known: NDArray[np.bool_], rehearsal: Rehearsal, rehearsed: Evidence) -> Weighing:
    """The mixture of least estimated squared error.

    Let c_j be what threshold j takes from a pixel: its weight times its residual. Taking the mixture w of them leaves
    the mean squared error const - 2 w'b + w'Qw, with Q the mean of c c' over the map, and b the mean of noise times c,
    which is the share of noisy pixels times the same mean over the pixels of the rehearsal whose noise is known. Where
    there are but a few noisy pixels, their own sizes count, not those of the law.
    """
    added = rehearsal.noise != 0
    share, limit = noisy_share(evidence.score[known], rehearsed.score[added])
    if share * known.sum() < LEAST_COUNT:
        return Weighing.of_nothing(share, limit)

    def taken(told: Evidence, where: NDArray[np.bool_]) -> Floats:
        score, residual = told.score[where].astype(np.float32), told.residual[where].astype(np.float32)
        return np.stack([_soft(score, threshold) * residual for threshold in THRESHOLDS.astype(np.float32)])

    ours, theirs = taken(evidence, known & (evidence.score > IRRELEVANT)), taken(rehearsed, added)
    curvature = (ours @ ours.T).astype(np.float64) / known.sum()
    gain = EAGERNESS * share * (theirs @ rehearsal.noise[added]) / theirs.shape[1]
    beyond, rehearsed_beyond = evidence.score[known] > limit, rehearsed.score[added] > limit
    if beyond.sum() < FEW:
        present = np.square(evidence.residual[known][beyond]).sum() / known.sum()
        foretold = share * np.square(rehearsal.noise[added][rehearsed_beyond]).sum() / added.sum()
        gain *= max(present / max(foretold, 1e-12), 1)
    return Weighing(_least_on_simplex(curvature, gain), share, limit)


def noisy_share(scores: Vector, rehearsed: Vector) -> tuple[float, float]:
    """The share of noisy pixels, and the score beyond which there are hardly any others.

    It is an upper bound, tight as soon as some range of scores is reached by noise only.
    """
    if not len(rehearsed) or not len(scores):
        return 0.0, np.inf
    ordered, added = np.sort(scores), np.sort(rehearsed)
    limits = np.quantile(added, np.linspace(0, TOP, 60))
    above = (len(ordered) - np.searchsorted(ordered, limits, side="right") + 1) / len(ordered)
    seen = (len(added) - np.searchsorted(added, limits, side="right")) / len(added)
    bounds = above / np.maximum(seen, 1 / len(added))
    return float(min(1.0, bounds.min())), float(limits[bounds.argmin()])


def _soft(score: Floats, threshold: float) -> Floats:
    return 1 / (1 + np.square(threshold / np.maximum(score, 1e-12)))


def _least_on_simplex(curvature: Floats, gain: Vector, most: int = 1000) -> Vector:
    """Minimise w'Qw - 2 w'b over weights that are not negative and sum to one, moving weight between two at a time."""
    weights = np.full(len(gain), 1 / len(gain))
    slope = curvature @ weights - gain
    for _ in range(most):
        held = np.flatnonzero(weights > 0)
        to, source = int(slope.argmin()), int(held[slope[held].argmax()])
        bend = curvature[to, to] + curvature[source, source] - 2 * curvature[to, source]
        step = weights[source] if bend <= 0 else min(weights[source], (slope[source] - slope[to]) / bend)
        if to == source or step <= 1e-9:
            break
        weights[to] += step
        weights[source] = max(weights[source] - step, 0)
        slope += step * (curvature[:, to] - curvature[:, source])
    return weights

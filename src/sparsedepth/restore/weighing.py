"""How much of the coded value to take at each score: the mixture of thresholds of least estimated squared error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.restore.evidence import RESOLUTION, Evidence
from sparsedepth.restore.law import Law, smooth_limit
from sparsedepth.restore.rehearsal import Rehearsal
from sparsedepth.vocabulary import Floats, Vector

THRESHOLDS = np.geomspace(0.1, 1e5, 24)
IRRELEVANT = 0.02
"""A score so small that hardly anything is taken, whatever the mixture."""
EAGERNESS = (1.5, 1.5, 2.5)
"""By how much noise counts for more than was found, on each kind of pixels: what tells it comes from few pixels, fewest
on a rim, and missing it costs most."""
FEW = 30
"""Pixels that are too few: of the rehearsal, to weigh a kind of pixels; of the map, to follow a law."""
LEAST_COUNT = 1.9
"""A map with fewer noisy pixels than this is taken for clean: one that is found counts as two, but for rounding."""
SMOOTH = 0.5
"""The share of the pixels that are called smooth; the others are called rough."""


@dataclass(frozen=True, eq=False)
class Kind:
    """What was learned of pixels of one kind."""

    mixture: Vector
    """Of thresholds on the score."""

    def weight(self, score: Floats) -> Floats:
        weight = np.zeros(score.shape)
        for part, threshold in zip(self.mixture, THRESHOLDS, strict=True):
            if part > 0:
                weight += part * _soft(score, threshold)
        return weight


@dataclass(frozen=True, eq=False)
class Weighing:
    """The weight of the coded value as a function of the score, for each kind of pixels."""

    kinds: tuple[Kind, ...]
    """Smooth pixels, rough ones, and those on a rim."""
    limit: float
    """Of the texture, up to which a pixel of the map is smooth."""
    rehearsed_limit: float
    """The same for the rehearsal, which has more noise."""

    @property
    def takes_anything(self) -> bool:
        return any(kind.mixture.any() for kind in self.kinds)

    def weight(self, evidence: Evidence, *, rehearsed: bool = False) -> Floats:
        """What to take of the coded value at each pixel, of the map or of its rehearsal."""
        which = which_kind(evidence, self.rehearsed_limit if rehearsed else self.limit)
        weight = np.empty(evidence.score.shape)
        for number, kind in enumerate(self.kinds):
            weight[which == number] = kind.weight(evidence.score[which == number])
        return weight


def which_kind(evidence: Evidence, limit: float) -> NDArray[np.integer[Any]]:
    """0 = smooth, 1 = rough, 2 = on a rim, where things are cut off and slivers of them look like noise."""
    return np.where(evidence.rim, 2, evidence.texture > limit)


def weigh(
    evidence: Evidence,
    known: NDArray[np.bool_],
    rehearsal: Rehearsal,
    rehearsed: Evidence,
    law: Law,
    correct: bool = True,
) -> Weighing:
    """The mixtures of least estimated squared error; all of them nothing if the map is clean or not to be corrected."""
    limit = smooth_limit(evidence.texture[known], SMOOTH)
    rehearsed_limit = smooth_limit(rehearsed.texture[np.isfinite(rehearsal.depth)], SMOOTH)
    added = rehearsal.noise != 0
    correct = correct and law.share * known.sum() >= LEAST_COUNT

    def kind(ours: NDArray[np.bool_], theirs: NDArray[np.bool_], eagerness: float) -> Kind:
        theirs = added & theirs if (added & theirs).sum() >= FEW else added
        if not correct or not theirs.any() or not (known & ours).any():
            return Kind(np.zeros(len(THRESHOLDS)))
        of_map, of_rehearsal, noise = evidence.at(known & ours), rehearsed.at(theirs), rehearsal.noise[theirs]
        share = eagerness * law.share * _unforeseen(of_map, of_rehearsal, noise, law)
        return Kind(_mixture(of_map, of_rehearsal, noise, share))

    ours, theirs = which_kind(evidence, limit), which_kind(rehearsed, rehearsed_limit)
    kinds = (kind(ours == which, theirs == which, eager) for which, eager in enumerate(EAGERNESS))
    return Weighing(tuple(kinds), limit, rehearsed_limit)


def _unforeseen(of_map: Evidence, of_rehearsal: Evidence, noise: Vector, law: Law) -> float:
    """How much larger a few clear outliers are than the law foretells: then their own sizes count.

    Amid texture they could as well be more of it.
    """
    found = of_map.score > law.limit
    foretold = np.square(noise[of_rehearsal.score > law.limit]).sum() / len(noise)
    if not 0 < found.sum() < FEW or foretold == 0 or of_map.texture[found].max() > RESOLUTION:
        return 1.0
    return max(1.0, float(np.square(of_map.residual[found]).sum() / (law.share * len(found) * foretold)))


def _mixture(of_map: Evidence, of_rehearsal: Evidence, noise: Vector, share: float) -> Vector:
    """The mixture of thresholds of least estimated squared error.

    Let c_j be what threshold j takes from a pixel: its weight times its residual. Taking the mixture w of them leaves
    the mean squared error const - 2 w'b + w'Qw, with Q the mean of c c' over the map, and b the mean of noise times c,
    which is the share of noisy pixels times the same mean over the pixels of the rehearsal whose noise is known.
    """

    def taken(score: Vector, residual: Vector) -> Floats:
        score, residual = score.astype(np.float32), residual.astype(np.float32)
        return np.stack([_soft(score, threshold) * residual for threshold in THRESHOLDS.astype(np.float32)])

    relevant = of_map.score > IRRELEVANT
    theirs, ours = (
        taken(of_rehearsal.score, of_rehearsal.residual),
        taken(of_map.score[relevant], of_map.residual[relevant]),
    )
    curvature = (ours @ ours.T).astype(np.float64) / len(relevant)
    gain = share * (theirs @ noise) / len(noise)
    return _least_on_simplex(curvature, gain)


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

"""How much of the coded value to take at each pixel: by the chance that what was measured there is noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from sparsedepth.restore.classifier import odds
from sparsedepth.restore.noise_model import Law
from sparsedepth.restore.scores import RESOLUTION, Evidence
from sparsedepth.restore.tiling import Part
from sparsedepth.vocabulary import DepthMap, Floats

DOUBTFUL = 0.2
"""The score up to which a pixel is certainly clean."""
DISAGREEING, WRONG = 3.0, 5e-4
"""By what codes err, in variances of the patches, and the chance that they are wrong altogether."""
LEAST_COUNT = 1.9
"""A map with fewer noisy pixels than this is taken for clean: one that is found counts as two, but for rounding."""


@dataclass(frozen=True, eq=False)
class Weighed:
    """The pixels of a part, weighed."""

    chance: Floats
    """That a pixel is noisy; 0 where nothing was measured."""
    weight: Floats
    """Of the coded value; 1 where nothing was measured."""

    def blended(self, depth: DepthMap, evidence: Evidence) -> Floats:
        """Between the measured value and the coded one; NaN where nothing was measured."""
        return np.where(np.isfinite(depth), depth - self.weight * evidence.residual, np.nan)


@dataclass(frozen=True)
class Weighing:
    """How the pixels of a map are weighed whose noise follows a law."""

    law: Law
    quantum: float
    takes_anything: bool
    """Whether the map is to be corrected, and not clean."""

    @classmethod
    def of(cls, law: Law, n_pixels: int, quantum: float, correct: bool) -> Weighing:
        return cls(law, quantum, correct and law.share * n_pixels >= LEAST_COUNT)

    def __call__(self, part: Part, evidence: Evidence) -> Weighed:
        known = np.isfinite(part.depth)
        chance = np.zeros(evidence.score.shape)
        doubtful = evidence.score > DOUBTFUL
        chance[doubtful] = expit(odds(part, evidence, self.law, self.quantum, doubtful))
        weight = np.where(known, chance if self.takes_anything else 0.0, 1.0)
        if part.variance is not None:
            given = np.where(known, part.variance, 0)
            weight = np.where(known, 1 - (1 - weight) * (1 - _by_variance(evidence, given)), 1.0)
        return Weighed(chance, weight)


def _by_variance(evidence: Evidence, given: Floats) -> Floats:
    """How much of the coded value to take if what was measured has such a variance.

    By the variances of both; but codes may be wrong altogether, at a step say: if so, both differ by more than allowed.
    """
    coded = DISAGREEING * evidence.spread + RESOLUTION**2
    right, wrong = given + coded, given + 1
    odds_of_wrong = np.log(WRONG * np.sqrt(right / wrong)) + np.square(evidence.residual) * (1 / right - 1 / wrong) / 2
    return expit(-odds_of_wrong) * given / right

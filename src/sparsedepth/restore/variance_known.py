"""The squared error to expect at a known pixel.

A clean pixel has lost exactly what was taken from it. A noisy one errs by its noise if it was kept, and by what the
codes got wrong if it was corrected. How large that is follows from the texture about the pixel, the disagreement of its
patches, its chance of being noisy and what the rehearsal got wrong; how it follows was learned once, on many maps whose
truth is known (benchmarks/variance.py), because one map has too few errors to learn from.

Most of what kept pixels err by comes from a handful of impulses that happen to look like their surroundings. Nothing
tells those apart, so pixels of which about the same is expected share one variance, so many of them that one such
impulse does not break the promise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d
from scipy.special import expit, logit

from sparsedepth.restore.evidence import Evidence
from sparsedepth.restore.law import Law
from sparsedepth.restore.rehearsal import Levels
from sparsedepth.vocabulary import Floats, Vector

KEPT = np.array([1.637, 0.14, 0.525, 0.291, 0.138, 0.892, -1.253, -0.599, -0.39])
CORRECTED = np.array([13.672, 3.412, 0.839, 0.225, -0.02, 0.01, -0.699, 0.387, 2.269])
CLEAN = np.array([-0.323, -1.11, -0.83])
"""The weights of `signs_of_kept`, of `signs_of_corrected` and of `signs_of_clean`."""
SHARED = {"kept": 1.0, "corrected": 0.1}
"""The squared error, in variances of the map, that pixels of one promised variance are expected to have together."""
ENOUGH = 2**16
"""Pixels that tell how finely others can be told apart."""
SCORES = np.linspace(np.log(1e-6), np.log(1e6), 241)
WIDTH = 0.7
"""Over which scores are counted, in logarithms."""


@dataclass(frozen=True, eq=False)
class Told:
    """What a map and its rehearsal say of the errors to come."""

    chance: Levels
    """That a pixel is noisy, by its score."""
    share: float
    """Of noisy pixels."""
    limit: float
    """The score beyond which they were counted."""
    kept: float
    """The mean squared error of the noise that the rehearsal did not find."""
    corrected: float
    """The same of the noise that it found."""
    quantised: bool


@dataclass(frozen=True, eq=False)
class Steps:
    """A mean for each range of numbers."""

    begins: Vector
    mean: Vector

    @classmethod
    def of(cls, numbers: Vector, enough: float) -> Steps:
        """Ranges that hold about ``enough`` in sum, or everything."""
        if not len(numbers):
            return cls(np.zeros(1), np.zeros(1))
        rising = np.sort(numbers)
        total = np.cumsum(rising)
        which = np.minimum(total // enough, max(total[-1] // enough - 1, 0))
        begins = np.unique(rising[np.unique(which, return_index=True)[1]])
        which = np.searchsorted(begins, rising, side="right") - 1
        return cls(begins, np.bincount(which, rising) / np.bincount(which))

    def __call__(self, numbers: Floats) -> Floats:
        return self.mean[np.maximum(np.searchsorted(self.begins, numbers, side="right") - 1, 0)]


@dataclass(frozen=True, eq=False)
class Doubt:
    """The variance of the known pixels of any part of a map."""

    told: Told
    kept: Steps
    corrected: Steps

    @classmethod
    def of(
        cls, told: Told, evidence: Evidence, taken: Floats, known: NDArray[np.bool_], noisy: NDArray[np.bool_]
    ) -> Doubt:
        """Learn from a sample of the map how finely its pixels can be told apart."""
        few = np.flatnonzero(known)
        few = few[:: -(-len(few) // ENOUGH) or 1]
        noisy, part = noisy.ravel()[few], len(few) / max(int(known.sum()), 1)
        expected = expected_error(told, evidence.at(few), taken.ravel()[few], noisy)
        return cls(
            told,
            Steps.of(expected[~noisy], part * SHARED["kept"]),
            Steps.of(expected[noisy], part * SHARED["corrected"]),
        )

    def __call__(self, evidence: Evidence, taken: Floats, noisy: NDArray[np.bool_]) -> Floats:
        expected = expected_error(self.told, evidence, taken, noisy)
        doubt = self.kept(expected)
        doubt[noisy] = self.corrected(expected[noisy])
        return doubt


def tell(law: Law, scores: Vector, noisy: Vector, left: Vector, found: NDArray[np.bool_], quantum: float) -> Told:
    """From the scores of the map and of the noise of its rehearsal, and the squared errors ``left`` of that noise."""
    usual = float(left.mean()) if len(left) else 0.0

    def mean(some: Vector) -> float:
        """As if one more had been seen."""
        return (float(some.sum()) + usual) / (len(some) + 1)

    return Told(
        chance(noisy, scores, law.share), law.share, law.limit, mean(left[~found]), mean(left[found]), quantum > 0
    )


def chance(noisy: Vector, scores: Vector, share: float) -> Levels:
    """The chance that a score is that of a noisy pixel, where these are a share of all and have such scores.

    A score of 0 says that nothing is noisy: it is not counted.
    """

    def density(of: Vector) -> Vector:
        step = SCORES[1] - SCORES[0]
        edges = np.append(SCORES - step / 2, SCORES[-1] + step / 2)
        logs = np.clip(np.log(of[of > 0]), SCORES[0], SCORES[-1])
        return gaussian_filter1d(np.histogram(logs, edges)[0].astype(np.float64), WIDTH / step, mode="constant")

    foretold = density(noisy) * share * len(scores) / max(len(noisy), 1)
    there = np.maximum(density(scores), foretold)
    return Levels(SCORES, np.divide(foretold, there, out=np.ones(len(SCORES)), where=there > 0))


def expected_error(told: Told, evidence: Evidence, taken: Floats, noisy: NDArray[np.bool_]) -> Floats:
    """The mean squared error of pixels like each; ``taken`` is by how much the pixel was changed."""
    expected = np.square(taken)
    kept = ~noisy & (evidence.score > 0)
    theirs = evidence.at(kept)
    missed = expit(_weighed(KEPT, signs_of_kept(told, theirs)))
    expected[kept] += np.maximum(missed, clearly_left(told, theirs, taken[kept]))
    theirs = evidence.at(noisy)
    clean = expit(_weighed(CLEAN, signs_of_clean(told, theirs)))
    corrected = expit(_weighed(CORRECTED, signs_of_corrected(told, theirs)))
    expected[noisy] = clean * expected[noisy] + (1 - clean) * corrected
    return expected


def clearly_left(told: Told, evidence: Evidence, taken: Floats) -> Floats:
    """What is left of noise that was seen and kept nevertheless; 0 where none was seen."""
    left, seen = np.zeros(evidence.score.shape), evidence.score > told.limit
    left[seen] = told.chance(evidence.score[seen]) * np.square(evidence.residual - taken)[seen]
    return left


def signs_of_kept(told: Told, evidence: Evidence) -> list[Floats | float]:
    """What tells the error of a noisy pixel that was kept, and how likely it is to be noisy."""
    odds, level = _odds(told, evidence), float(told.quantised)
    of_map = [_share(told), _log(told.kept, 1e-5)]
    return [1.0, _texture(evidence), _spread(evidence), *of_map, odds, level, level * odds, _rim(evidence)]


def signs_of_corrected(told: Told, evidence: Evidence) -> list[Floats | float]:
    """What tells the error of a noisy pixel that was corrected."""
    texture, spread = _texture(evidence), _spread(evidence)
    squares = [texture * texture, texture * spread, spread * spread]
    return [1.0, texture, spread, *squares, _share(told), _log(told.corrected, 1e-5), _rim(evidence)]


def signs_of_clean(told: Told, evidence: Evidence) -> list[Floats | float]:
    """What tells that a pixel was corrected in vain."""
    return [1.0, _odds(told, evidence), _log(evidence.score, 1e-3)]


def _weighed(weights: Vector, signs: list[Floats | float]) -> Floats:
    return np.asarray(sum(weight * sign for weight, sign in zip(weights, signs, strict=True)))


def _odds(told: Told, evidence: Evidence) -> Floats:
    return logit(np.clip(told.chance(evidence.score), 1e-6, 0.999))


def _texture(evidence: Evidence) -> Floats:
    return _log(evidence.texture, 1e-3)


def _spread(evidence: Evidence) -> Floats:
    return _log(evidence.spread, 1e-6)


def _rim(evidence: Evidence) -> Floats:
    return evidence.rim.astype(np.float64)


def _share(told: Told) -> Floats:
    return _log(told.share, 1e-4)


def _log(values: Floats | float, least: float) -> Floats:
    return np.log(np.maximum(values, least))

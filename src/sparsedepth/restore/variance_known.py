"""The squared error to expect at a known pixel.

A pixel of which something was taken errs by that if it was clean, and by the rest of its residual if it was noisy. And
a noisy pixel errs by its noise if it was not suspected, and by what the codes got wrong if it was corrected. How large
that is follows from the texture about the pixel, the disagreement of its patches, its chance of being noisy
and the law of the map's noise; how it follows was learned once, on many maps whose truth is known
(benchmarks/variance.py), because one map has too few errors to learn from.

Most of what kept pixels err by comes from a handful of impulses that happen to look like their surroundings. Nothing
tells those apart, so pixels of which about the same is expected share one variance, so many of them that one such
impulse does not break the promise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from sparsedepth.restore.evidence import Evidence
from sparsedepth.restore.law import Law
from sparsedepth.restore.weighing import Weighed
from sparsedepth.vocabulary import Floats, Vector

KEPT = np.array([-1.097, 0.316, 0.449, 0.62, 0.388, 0.739, -1.731, -0.053, 1.774])
CORRECTED = np.array([7.344, 1.625, 0.938, 0.101, -0.058, 0.025, -0.279, -1.565, 1.5])
CLEAN = np.array([2.943, -0.89, -0.191])
"""The weights of `signs_of_kept`, of `signs_of_corrected` and of `signs_of_clean`."""
SHARED = {"kept": 1.0, "corrected": 0.1}
"""The squared error, in variances of the map, that pixels of one promised variance are expected to have together."""
ENOUGH = 2**16
"""Pixels that tell how finely others can be told apart."""


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

    law: Law
    quantised: bool
    kept: Steps
    corrected: Steps

    @classmethod
    def of(
        cls,
        law: Law,
        quantised: bool,
        evidence: Evidence,
        weighed: Weighed,
        known: NDArray[np.bool_],
        noisy: NDArray[np.bool_],
    ) -> Doubt:
        """Learn from a sample of the map how finely its pixels can be told apart."""
        few = np.flatnonzero(known)
        few = few[:: -(-len(few) // ENOUGH) or 1]
        noisy, part = noisy.ravel()[few], len(few) / max(int(known.sum()), 1)
        weighed = Weighed(weighed.chance.ravel()[few], weighed.weight.ravel()[few])
        expected = expected_error(law, quantised, evidence.at(few), weighed, noisy)
        return cls(
            law,
            quantised,
            Steps.of(expected[~noisy], part * SHARED["kept"]),
            Steps.of(expected[noisy], part * SHARED["corrected"]),
        )

    def __call__(self, evidence: Evidence, weighed: Weighed, noisy: NDArray[np.bool_]) -> Floats:
        expected = expected_error(self.law, self.quantised, evidence, weighed, noisy)
        doubt = self.kept(expected)
        doubt[noisy] = self.corrected(expected[noisy])
        return doubt


def expected_error(law: Law, quantised: bool, evidence: Evidence, weighed: Weighed, noisy: NDArray[np.bool_]) -> Floats:
    """The mean squared error of pixels like each."""
    expected = left_open(evidence, weighed)
    kept = ~noisy & (evidence.score > 0)
    expected[kept] += expit(_weighed(KEPT, signs_of_kept(law, quantised, evidence.at(kept), weighed.chance[kept])))
    theirs = evidence.at(noisy)
    clean = expit(_weighed(CLEAN, signs_of_clean(theirs, weighed.chance[noisy])))
    corrected = expit(_weighed(CORRECTED, signs_of_corrected(law, theirs)))
    expected[noisy] = clean * np.square(weighed.weight[noisy] * theirs.residual) + (1 - clean) * corrected
    return expected


def left_open(evidence: Evidence, weighed: Weighed) -> Floats:
    """What a blend errs by, if the coded value is right where the pixel is noisy."""
    chance, weight = weighed.chance, weighed.weight
    return (chance * np.square(1 - weight) + (1 - chance) * np.square(weight)) * np.square(evidence.residual)


def signs_of_kept(law: Law, quantised: bool, evidence: Evidence, chance: Floats) -> list[Floats | float]:
    """What tells the error of a noisy pixel that was not suspected, and how likely it is to be noisy."""
    odds, level = _odds(chance), float(quantised)
    about = [_texture(evidence), _spread(evidence), _score(evidence), _rim(evidence)]
    return [1.0, *about, _share(law), np.log(law.size), odds, level]


def signs_of_corrected(law: Law, evidence: Evidence) -> list[Floats | float]:
    """What tells the error of a noisy pixel that was corrected."""
    texture, spread = _texture(evidence), _spread(evidence)
    squares = [texture * texture, texture * spread, spread * spread]
    return [1.0, texture, spread, *squares, _share(law), np.log(law.size), _rim(evidence)]


def signs_of_clean(evidence: Evidence, chance: Floats) -> list[Floats | float]:
    """What tells that a pixel was corrected in vain."""
    return [1.0, _odds(chance), _score(evidence)]


def _weighed(weights: Vector, signs: list[Floats | float]) -> Floats:
    return np.asarray(sum(weight * sign for weight, sign in zip(weights, signs, strict=True)))


def _odds(chance: Floats) -> Floats:
    return logit(np.clip(chance, 1e-6, 1 - 1e-6))


def _score(evidence: Evidence) -> Floats:
    return _log(evidence.score, 1e-3)


def _texture(evidence: Evidence) -> Floats:
    return _log(evidence.texture, 1e-3)


def _spread(evidence: Evidence) -> Floats:
    return _log(evidence.spread, 1e-6)


def _rim(evidence: Evidence) -> Floats:
    return evidence.rim.astype(np.float64)


def _share(law: Law) -> Floats:
    return _log(law.share, 1e-4)


def _log(values: Floats | float, least: float) -> Floats:
    return np.log(np.maximum(values, least))

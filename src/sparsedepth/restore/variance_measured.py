"""The squared error to expect at a known pixel.

A noisy pixel that was not suspected has a value of its surroundings: it errs by no more than these differ among
themselves, and by next to nothing where they are level. So the range of the believed values about a pixel tells most of
what it may err by; the texture about it, the share and the size of the map's noise the rest. A pixel that was suspected
and kept errs by what the suspicion leaves open.

A pixel that was corrected errs by all that was taken if it was clean, and by what the codes got wrong otherwise. How
likely it was clean follows from its odds and its score, and from how undecided the map is as a whole: where many pixels
may or may not be noise, as amid leaves, those that look like noise are no noise more often.

How it all follows was learned once, on many maps whose truth is known (training/variance_measured.py), because one map
has too few errors to learn from; apart for maps that are quantised and that are not. Nearly half of the kept pixels
of a map usually err by nothing at all but for a few that nothing tells apart: the surest share one variance.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from sparsedepth.restore.noise_model import Law
from sparsedepth.restore.posterior import Weighed
from sparsedepth.restore.scores import Evidence
from sparsedepth.vocabulary import Floats, Vector

RANGES = np.log(np.geomspace(0.01, 2.56, 9))
"""The logarithms of ranges for which `Weights.missed` tells the error."""
LEVEL = 0.005
"""The range below which surroundings are as good as level."""
LARGEST = 2.0
"""The logarithm of the largest squared error of noise that was missed."""
SUREST = 0.4
"""The share of a map's kept pixels that have one variance."""
NO_SUSPECTS = 0.02, 0.2
"""How undecided a map without suspects is: these are added to what is undecided and to what is suspected."""
ENOUGH = 2**16
"""Pixels that tell what the surest ones are."""


@dataclass(frozen=True, eq=False)
class Weights:
    """What was learned on maps of one kind."""

    missed: Vector
    """The logarithm of the squared error at each of the `RANGES`, over share and size of the noise."""
    by: Vector
    """How that changes with the logarithms of texture and share."""
    seen: Vector
    """A kept suspect errs by what is left open, and by e to the first times that to the power of the second."""
    corrected: Vector
    """Of `signs_of_corrected`."""
    clean: Vector
    """Of `signs_of_clean`."""


QUANTISED = Weights(
    missed=np.array([-12.479, -10.4, -9.256, -7.883, -6.811, -5.493, -4.386, -3.998, -4.694]),
    by=np.array([0.363, 0.165]),
    seen=np.array([0.905, 0.604]),
    corrected=np.array([-0.061, 0.245, 0.393, -0.133, 1.504, 1.225, -0.285]),
    clean=np.array([6.863, -0.557, -0.774, 0.952]),
)
FINE = Weights(
    missed=np.array([-8.123, -6.769, -5.467, -4.352, -3.203, -2.084, -1.028, -0.605, -0.782]),
    by=np.array([1.142, 0.026]),
    seen=np.array([-1.358, 0.376]),
    corrected=np.array([3.008, 0.981, 0.45, -0.221, 3.08, 1.066, -0.419]),
    clean=np.array([5.574, -0.514, -0.534, 0.663]),
)


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The ranges of the believed values about each pixel, its own among them."""

    within_three: Floats
    within_five: Floats

    @classmethod
    def of(cls, believed: Floats) -> Surroundings:
        known = np.isfinite(believed)
        low, high = np.where(known, believed, np.inf), np.where(known, believed, -np.inf)
        ranges = []
        for _ in range(2):
            low, high = _of_neighbours(low, np.minimum), _of_neighbours(high, np.maximum)
            ranges.append(high - low)
        return cls(*ranges)

    def at(self, where: NDArray[np.bool_ | np.intp]) -> Surroundings:
        """Those of some pixels: of a mask, or of numbers."""
        numbers = np.flatnonzero(where) if where.dtype == bool else where
        return Surroundings(*(getattr(self, part.name).ravel()[numbers] for part in fields(self)))

    @property
    def close(self) -> Floats:
        """The logarithm of the range within three by three."""
        return np.log(np.maximum(self.within_three, 0) + LEVEL)

    @property
    def wide(self) -> Floats:
        """And within five by five."""
        return np.log(np.maximum(self.within_five, 0) + LEVEL)


@dataclass(frozen=True)
class Noise:
    """What is known of a map's noise."""

    law: Law
    quantised: bool
    undecided: float
    """The logarithm of how far its suspects may or may not be noise, in the mean."""

    @property
    def weights(self) -> Weights:
        return QUANTISED if self.quantised else FINE


@dataclass(frozen=True, eq=False)
class Doubt:
    """The variance of the known pixels of any part of a map."""

    noise: Noise
    limit: float
    """The expected error up to which kept pixels are among the surest."""
    least: float
    """The variance of those."""

    @property
    def law(self) -> Law:
        return self.noise.law

    @classmethod
    def of(
        cls,
        law: Law,
        quantised: bool,
        believed: Floats,
        evidence: Evidence,
        weighed: Weighed,
        noisy: NDArray[np.bool_],
    ) -> Doubt:
        """Learn from a sample of the map how undecided it is, and what its surest pixels are."""
        noise = Noise(law, quantised, undecided(weighed.chance))
        few = np.flatnonzero(np.isfinite(believed) & ~noisy)
        few = few[:: -(-len(few) // ENOUGH) or 1]
        weighed = Weighed(weighed.chance.ravel()[few], weighed.weight.ravel()[few])
        around = Surroundings.of(believed).at(few)
        return cls(noise, *surest(expected_error(noise, around, evidence.at(few), weighed, np.zeros(len(few), bool))))

    def __call__(self, believed: Floats, evidence: Evidence, weighed: Weighed, noisy: NDArray[np.bool_]) -> Floats:
        expected = expected_error(self.noise, Surroundings.of(believed), evidence, weighed, noisy)
        return np.where(~noisy & (expected <= self.limit), self.least, expected)


def undecided(chance: Floats) -> float:
    """From the chances of all pixels."""
    return float(np.log(((chance * (1 - chance)).sum() + NO_SUSPECTS[0]) / (chance.sum() + NO_SUSPECTS[1])))


def surest(expected: Vector) -> tuple[float, float]:
    """The limit of what the surest pixels are expected to err by, and their mean."""
    if not len(expected):
        return 0.0, 0.0
    limit = float(np.quantile(expected, SUREST, method="lower"))
    return limit, float(expected[expected <= limit].mean())


def expected_error(
    noise: Noise, around: Surroundings, evidence: Evidence, weighed: Weighed, noisy: NDArray[np.bool_]
) -> Floats:
    """The mean squared error of pixels like each."""
    weights, left = noise.weights, left_open(evidence, weighed)
    expected = missed(weights, noise.law, around.wide, log_texture(evidence))
    expected += np.where(weighed.chance > 0, seen(weights, left), left)
    if noisy.any():
        theirs, about, chance = evidence.at(noisy), around.at(noisy), weighed.chance[noisy]
        wrong = expit(weighted(weights.corrected, signs_of_corrected(noise.law, about, theirs)))
        clean = expit(weighted(weights.clean, signs_of_clean(noise.undecided, theirs, chance)))
        expected[noisy] = clean * np.square(weighed.weight[noisy] * theirs.residual) + (1 - clean) * wrong
    return expected


def missed(weights: Weights, law: Law, wide: Floats, texture: Floats) -> Floats:
    """What noise that was not suspected comes to."""
    share = _share(law)
    told = np.interp(wide, RANGES, weights.missed) + weights.by[0] * texture + weights.by[1] * share
    return np.exp(np.minimum(told + share - np.log(law.size), LARGEST))


def seen(weights: Weights, left: Floats) -> Floats:
    """What suspects that were kept err by: low chances are less certain than they look."""
    return left + np.exp(weights.seen[0]) * left ** weights.seen[1]


def left_open(evidence: Evidence, weighed: Weighed) -> Floats:
    """What a blend errs by, if the coded value is right where the pixel is noisy."""
    chance, weight = weighed.chance, weighed.weight
    return (chance * np.square(1 - weight) + (1 - chance) * np.square(weight)) * np.square(evidence.residual)


def signs_of_corrected(law: Law, around: Surroundings, evidence: Evidence) -> list[Floats | float]:
    """What tells the error of a noisy pixel that was corrected."""
    spread, rim = _log(evidence.spread, 1e-6), evidence.rim.astype(np.float64)
    return [1.0, log_texture(evidence), spread, _share(law), rim, around.close, around.wide]


def signs_of_clean(undecided: float, evidence: Evidence, chance: Floats) -> list[Floats | float]:
    """What tells that a pixel was corrected in vain."""
    return [1.0, logit(np.clip(chance, 1e-6, 1 - 1e-6)), _log(evidence.score, 1e-3), undecided]


def weighted(weights: Vector, signs: list[Floats | float]) -> Floats:
    return np.asarray(sum(weight * sign for weight, sign in zip(weights, signs, strict=True)))


def log_texture(evidence: Evidence) -> Floats:
    return _log(evidence.texture, 1e-3)


def _of_neighbours(values: Floats, extreme: np.ufunc) -> Floats:
    """The least, or the greatest, value within three by three."""
    for axis in (0, 1):
        along = np.moveaxis(values, axis, 0)
        found = along.copy()
        extreme(found[1:], along[:-1], out=found[1:])
        extreme(found[:-1], along[1:], out=found[:-1])
        values = np.moveaxis(found, 0, axis)
    return values


def _share(law: Law) -> Floats:
    return _log(law.share, 1e-4)


def _log(values: Floats | float, least: float) -> Floats:
    return np.log(np.maximum(values, least))

"""The default restoration: the map calibrates its own detector of noisy pixels.

1. **Code robustly.** Every patch is coded by the dictionary under a variance for each pixel with an exponential prior
   (Huber's loss): convex, so there is no start to choose. A pixel's value is the average of its patches, and their
   disagreement says how far it can be trusted.
2. **Score.** A noisy pixel is far from that value, measured by the disagreement, *and* far from its nearest neighbours
   in depth. The score is the product of the two.
3. **Rehearse.** Noise that we know is added to a few pixels of the map, some known pixels are hidden, and the two steps
   above are done again. The rehearsal shows what scores noisy pixels have on *this* map, with its texture and steps.
4. **Weigh.** Of all mixtures of thresholds on the score, take the one whose squared error, estimated without bias from
   the map and its rehearsal, is least. No parameter is left to turn.
5. **Blend** the measured value and the coded one by that weight, then fill the holes (`filling`). What the rehearsal
   got wrong, as a function of what it expected, is the variance.

Lengths are in deviations of the map. docs/decisions.md says what each choice is worth.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.coding.noise import Exponential
from sparsedepth.dictionary import Dictionary
from sparsedepth.restore import dense
from sparsedepth.restore.door import Part, RestorePart, Work, origins, too_wide
from sparsedepth.restore.evidence import RESOLUTION, Evidence, gather, quantum_of
from sparsedepth.restore.filling import Filled, trust_in_codes
from sparsedepth.restore.filling import fill as fill_holes
from sparsedepth.restore.rehearsal import Levels, Rehearsal, rehearse
from sparsedepth.restore.votes import Coding
from sparsedepth.restore.weighing import FEW, Weighing, noisy_share, weigh
from sparsedepth.vocabulary import Floats, InputError
from sparsedepth.workers import in_order

NOISE_FLOOR = 0.02
"""The deviation below which a misfit of the codes means nothing."""
SPARSITY = 1.2
"""What a unit of code costs, in noise floors."""
STRIDES = {"best": 1, "balanced": 2, "fast": 5}
"""Pixels between patches of eight; larger patches lie further apart in proportion."""
ROUNDS = {"best": 48, "balanced": 40, "fast": 24}
"""Iterations of the coding: more change nothing that can be measured."""
LOOK_CLEAN = 0.95
"""The share of the pixels kept as they are that nothing speaks against."""


def coding(dictionary: Dictionary | None, quality: str) -> Coding:
    """The robust coding of a quality."""
    if quality not in STRIDES:
        raise InputError(f"quality is {quality!r}; choose one of {', '.join(map(repr, STRIDES))}, or 'paper'")
    dictionary = dictionary or Dictionary.builtin("default")
    return Coding(
        dictionary,
        Exponential(1.0),
        SPARSITY,
        stride=max(1, STRIDES[quality] * min(dictionary.patch_shape) // 8),
        tolerance=0.0,
        max_rounds=ROUNDS[quality],
        unit=NOISE_FLOOR,
        free_mean=True,
        window=0.2,
    )


@dataclass(frozen=True, eq=False)
class Corrected:
    """The known pixels of a part as they are believed."""

    value: Floats
    """NaN where nothing was measured."""
    variance: Floats
    noisy: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Detector:
    """What a map taught of its noise: enough to correct any part of it."""

    quantum: float
    weighing: Weighing
    chance: Levels
    """That a pixel is noisy, by its score."""
    left: Levels
    """The squared error of a noisy pixel, by what is expected of it."""
    smoother: dense.Smoother | None
    """If there is noise at every pixel."""
    shared: float = 0.0
    """The least variance: what is to be expected of the many pixels that nothing speaks against, taken together."""

    def correct(self, part: Part, evidence: Evidence, threads: int) -> Corrected:
        known = np.isfinite(part.depth)
        weight = np.where(known, self.weighing(evidence.score), 1.0)
        if part.variance is not None:
            weight = 1 - (1 - weight) * _believed(evidence, np.where(known, part.variance, 0))
        value = np.where(known, part.depth - weight * evidence.residual, np.nan)
        variance = self.expected_error(evidence, weight)
        noisy = known & (weight > 0.5)
        if part.variance is not None:
            variance = np.maximum(variance, np.square(1 - weight) * np.where(known, part.variance, 0))
        elif self.smoother is not None:
            noisy &= np.abs(evidence.residual) > dense.OUTLIER * dense.local_deviation(
                part.depth, self.smoother.deviation
            )
            shown = np.where(noisy, value, part.depth).astype(np.float32)
            smoothed, variance = self.smoother(shown, part.window, threads)
            value = np.where(known, smoothed, np.nan)
        return Corrected(value, variance, noisy)

    def expected_error(self, evidence: Evidence, weight: Floats) -> Floats:
        """The squared error to expect at a known pixel: a clean one has lost what was taken from it."""
        chance = np.where(evidence.score > self.weighing.limit, 1.0, self.chance(evidence.score))
        lost = np.square(weight * evidence.residual)
        return np.maximum(chance * self.left(_misjudged(evidence, weight)) + (1 - chance) * lost, self.shared)

    def sharing(self, evidence: Evidence, known: NDArray[np.bool_]) -> Detector:
        """The errors of pixels that look clean are too few to tell such pixels apart: they share their mean."""
        weight = self.weighing(evidence.score)
        expected = np.sort(self.expected_error(evidence, weight)[known & (weight <= 0.5)])
        some = expected[: int(np.ceil(LOOK_CLEAN * len(expected)))]
        return replace(self, shared=float(some.mean()) if len(some) else 0.0)


def _misjudged(told: Evidence, weight: Floats) -> Floats:
    """The squared error of a noisy pixel, roughly: what was left of its noise, and the doubt in what replaced it."""
    return np.square((1 - weight) * told.residual) + np.square(weight) * (told.spread + RESOLUTION**2)


def _believed(evidence: Evidence, variance: Floats) -> Floats:
    """What a measurement of known variance still counts for beside the coded value."""
    coded = evidence.spread + RESOLUTION**2
    return coded / (coded + variance)


def _detector(
    sample: Part, evidence: Evidence, coding: Coding, quantum: float, correct: bool, threads: int
) -> tuple[Detector, Rehearsal]:
    known = np.isfinite(sample.depth)
    rehearsal, rehearsed = _rehearse(sample, evidence, known, coding, quantum, threads)
    weighing = weigh(evidence, known, rehearsal, rehearsed)
    if not correct:
        weighing = Weighing.of_nothing(weighing.share, weighing.limit)
    # pixels found noisy in the map itself teach nothing: what was measured there is not the truth
    true = rehearsal.sample(np.where(known, weighing(evidence.score), 1.0)) < 0.5
    added = (rehearsal.noise != 0) & true
    theirs = weighing(rehearsed.score)
    error = np.square(rehearsal.noise - theirs * rehearsed.residual)[added]
    left = Levels.of_means(_misjudged(rehearsed, theirs)[added], error)
    chance = Levels.of_shares(rehearsed.score[added], evidence.score[known], weighing.share)
    deviation = dense.noise_deviation(sample.depth) if correct and sample.variance is None else 0.0
    everywhere = deviation > dense.LEAST
    smoother = dense.Smoother(deviation, coding).rehearsed(rehearsal.truth, threads) if everywhere else None
    return Detector(quantum, weighing, chance, left, smoother).sharing(evidence, known), rehearsal


def _rehearse(
    sample: Part, evidence: Evidence, known: NDArray[np.bool_], coding: Coding, quantum: float, threads: int
) -> tuple[Rehearsal, Evidence]:
    """Rehearse with noise as large as the map's: its size is estimated once, where nothing but noise scores as high."""

    def at_size(amplitude: float) -> tuple[Rehearsal, Evidence]:
        rehearsal = rehearse(sample.depth, sample.variance, amplitude, np.random.default_rng(0))

        def told(index: int) -> Evidence:
            given = None if rehearsal.variance is None else rehearsal.variance[index]
            return gather(Part.of_all(rehearsal.depth[index], given), coding, quantum, 1)

        parts = in_order(told, range(len(rehearsal.depth)), threads)
        return rehearsal, Evidence(*(np.stack(values) for values in zip(*map(astuple, parts), strict=True)))

    first = at_size(1.0)
    size = _noise_size(evidence, known, *first)
    return first if 0.8 < size < 1.25 else at_size(size)


def _noise_size(evidence: Evidence, known: NDArray[np.bool_], rehearsal: Rehearsal, rehearsed: Evidence) -> float:
    """How much larger the map's noise is than the rehearsal's, where the score says that there is nothing but noise."""
    added = rehearsal.noise != 0
    _, limit = noisy_share(evidence.score[known], rehearsed.score[added])
    ours = np.abs(evidence.residual[known & (evidence.score > limit)])
    theirs = np.abs(rehearsed.residual[added & (rehearsed.score > limit)])
    if min(len(ours), len(theirs)) < FEW:
        return 1.0
    return float(np.clip(np.median(ours) / np.median(theirs), 0.25, 4.0))


@dataclass(frozen=True, eq=False)
class Filler:
    """What hidden pixels taught of filling holes."""

    trust: float
    """How far to go from the smoothest surface to the codes."""
    variance: Levels

    def fill(self, filled: Filled) -> tuple[Floats, Floats]:
        return filled.blend(self.trust), self.variance(filled.doubt)


def _filler(value: Floats, rehearsal: Rehearsal, coding: Coding, threads: int) -> Filler:
    """Learn to fill from known pixels, once corrected, that were hidden."""
    truth = rehearsal.sample(value)
    hidden = rehearsal.hidden & np.isfinite(truth)
    parts = in_order(lambda part: fill_holes(part, coding, 1), np.where(hidden, np.nan, truth), threads)
    filled = Filled(*(np.stack(values) for values in zip(*map(astuple, parts), strict=True)))
    trust = trust_in_codes(filled, truth, hidden)
    error = np.square(filled.blend(trust) - truth)[hidden]
    return Filler(trust, Levels.of_means(filled.doubt[hidden], error))


def restorer(work: Work, coding: Coding, *, correct: bool, fill: bool, second_pass: bool, threads: int) -> RestorePart:
    """How to correct the known pixels of any part of the map and fill the unknown ones, learned from a sample of it."""
    sample = work.sample()
    quantum = quantum_of(sample.depth)
    seen = gather(sample, coding, quantum, threads)
    detector, rehearsal = _detector(sample, seen, coding, quantum, correct, threads)

    @cache
    def filler() -> Filler:
        return _filler(detector.correct(sample, seen, threads).value, rehearsal, coding, threads)

    if work.huge and (fill or second_pass):
        filler()

    def restored(part: Part, threads: int) -> tuple[Floats, Floats, NDArray[np.integer[Any]]]:
        evidence = gather(part, coding, quantum, threads) if work.huge else seen
        known = np.isfinite(part.depth)
        corrected = detector.correct(part, evidence, threads)
        value, variance = corrected.value, corrected.variance
        refused = ~known & ((evidence.count == 0) | too_wide(~known, coding.dictionary.patch_shape) | (not fill))
        holes, again = ~known & ~refused, corrected.noisy & second_pass
        if (holes | again).any():
            shown = np.where(again, np.nan, value)
            filled, doubt = filler().fill(fill_holes(shown, coding, threads, refused, part.window))
            value, variance = np.where(holes | again, filled, value), np.where(holes, doubt, variance)
        return value, variance, origins(known, corrected.noisy, refused)

    return restored

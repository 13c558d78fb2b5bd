"""The default restoration: the map calibrates its own detector of noisy pixels.

1. **Code robustly.** Every patch is coded by the dictionary under a variance for each pixel with an exponential prior
   (Huber's loss): convex, so there is no start to choose. A pixel's value is the average of its patches, and their
   disagreement says how far it can be trusted.
2. **Score.** A noisy pixel is far from that value, measured by the disagreement, *and* far from its nearest neighbours
   in depth. The score is the product of the two.
3. **Rehearse.** Noise that we know is added to a few pixels of the map, some known pixels are hidden, and the two steps
   above are done again. The rehearsal shows what scores noisy pixels have on *this* map, with its texture and steps.
   The first one, with noise of many sizes, tells how much noise there is and how large it is (`law`); the second one
   has noise of that size.
4. **Weigh.** Of all mixtures of thresholds on the score, take the one whose squared error, estimated without bias from
   the map and its rehearsal, is least: for smooth pixels and for rough ones. No parameter is left to turn.
5. **Blend** the measured value and the coded one by that weight. Then code again, without the noise that had pulled the
   codes aside: noisy pixels take the new value. Then fill the holes (`filling`). What the rehearsal got wrong, as a
   function of what it expected, is the variance.

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
from sparsedepth.restore.filling import Filled, Trust, trust
from sparsedepth.restore.filling import fill as fill_holes
from sparsedepth.restore.law import MANY_SIZES, Law, estimate
from sparsedepth.restore.rehearsal import Levels, Rehearsal, rehearse
from sparsedepth.restore.votes import Coding, vote
from sparsedepth.restore.weighing import LEAST_COUNT, Weighing, weigh
from sparsedepth.vocabulary import Floats, InputError, Vector
from sparsedepth.workers import in_order

NOISE_FLOOR = 0.02
"""The deviation below which a misfit of the codes means nothing."""
SPARSITY = 1.2
"""What a unit of code costs, in noise floors."""
STRIDES = {"best": 1, "balanced": 2, "fast": 5}
"""Pixels between patches of eight; larger patches lie further apart in proportion."""
ROUNDS = {"best": 48, "balanced": 40, "fast": 24}
"""Iterations of the coding: more change nothing that can be measured."""
AGAIN = 1.0
"""What a unit of code costs when a corrected map is coded again, in noise floors."""
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

    coding: Coding
    weighing: Weighing
    trust: Vector
    """How far to go towards what noisy pixels are when coded again: smooth ones, rough ones."""
    left: Levels
    """The squared error of a noisy pixel, by what is expected of it."""
    smoother: dense.Smoother | None
    """If there is noise at every pixel."""
    shared: float = 0.0
    """The least variance: what is to be expected of the many pixels that nothing speaks against, taken together."""

    def correct(self, part: Part, evidence: Evidence, threads: int, step: Floats | None = None) -> Corrected:
        """``step`` is how coding again would change the part, if that is known."""
        known = np.isfinite(part.depth)
        weight = _weight(self.weighing, part, evidence)
        value = _blended(part, evidence, weight)
        noisy = known & (weight > 0.5)
        if self.smoother is not None:
            noisy &= np.abs(evidence.residual) > dense.OUTLIER * dense.local_deviation(
                part.depth, self.smoother.deviation
            )
            shown = np.where(noisy, value, part.depth).astype(np.float32)
            smoothed, variance = self.smoother(shown, part.window, threads)
            return Corrected(np.where(known, smoothed, np.nan), variance, noisy)
        if step is None:
            step = _coded_again(part, evidence, weight, self.coding, threads)
        variance = self.expected_error(evidence, weight)
        if part.variance is not None:
            variance = np.maximum(variance, np.square(1 - weight) * np.where(known, part.variance, 0))
        return Corrected(value + np.where(self.weighing.is_smooth(evidence), *self.trust) * step, variance, noisy)

    def expected_error(self, evidence: Evidence, weight: Floats) -> Floats:
        """The squared error to expect at a known pixel: a clean one has lost what was taken from it."""
        chance = self.weighing.chance(evidence)
        lost = np.square(weight * evidence.residual)
        return np.maximum(chance * self.left(_misjudged(evidence, weight)) + (1 - chance) * lost, self.shared)

    def sharing(self, evidence: Evidence, known: NDArray[np.bool_]) -> Detector:
        """The errors of pixels that look clean are too few to tell such pixels apart: they share their mean."""
        weight = self.weighing.weight(evidence)
        expected = np.sort(self.expected_error(evidence, weight)[known & (weight <= 0.5)])
        some = expected[: int(np.ceil(LOOK_CLEAN * len(expected)))]
        return replace(self, shared=float(some.mean()) if len(some) else 0.0)


def _weight(weighing: Weighing, part: Part, evidence: Evidence, *, rehearsed: bool = False) -> Floats:
    """Of the coded value at each pixel; 1 where nothing was measured."""
    known = np.isfinite(part.depth)
    weight = np.where(known, weighing.weight(evidence, rehearsed=rehearsed), 1.0)
    if part.variance is None:
        return weight
    coded = evidence.spread + RESOLUTION**2
    return 1 - (1 - weight) * coded / (coded + np.where(known, part.variance, 0))


def _blended(part: Part, evidence: Evidence, weight: Floats) -> Floats:
    """Between the measured value and the coded one; NaN where nothing was measured."""
    return np.where(np.isfinite(part.depth), part.depth - weight * evidence.residual, np.nan)


def _coded_again(part: Part, evidence: Evidence, weight: Floats, coding: Coding, threads: int) -> Floats:
    """How noisy pixels change when they are coded again, now that no noise pulls the codes aside."""
    wanted = np.isfinite(part.depth) & (weight > 0.5) & (np.abs(evidence.residual) > NOISE_FLOOR)
    hardly_overlap = 2 * coding.stride > min(coding.dictionary.patch_shape)
    if hardly_overlap or not wanted.any():
        return np.zeros(part.depth.shape)
    value = _blended(part, evidence, weight).astype(np.float32)
    again = replace(coding, sparsity=AGAIN, stride=coding.stride + 1)
    votes = vote(value, again, part.variance, only=wanted, window=part.window, threads=threads)
    return np.where(wanted & (votes.count > 0), votes.mean - value, 0)


def _misjudged(told: Evidence, weight: Floats) -> Floats:
    """The squared error of a noisy pixel, roughly: what was left of its noise, and the doubt in what replaced it."""
    return np.square((1 - weight) * told.residual) + np.square(weight) * (told.spread + RESOLUTION**2)


def _detector(
    sample: Part, evidence: Evidence, coding: Coding, quantum: float, correct: bool, threads: int
) -> tuple[Detector, Rehearsal, Floats]:
    """The detector, the last rehearsal, and how coding the sample again changes it."""
    known = np.isfinite(sample.depth)
    law, rehearsal, rehearsed = _rehearse(sample, evidence, known, coding, quantum, threads, correct=correct)
    weighing = weigh(evidence, known, rehearsal, rehearsed, law, correct)
    weight = _weight(weighing, sample, evidence)
    deviation = dense.noise_deviation(sample.depth) if correct and sample.variance is None else 0.0
    everywhere = deviation > dense.LEAST
    smoother = dense.Smoother(deviation, coding).rehearsed(rehearsal.truth, threads) if everywhere else None

    def again(part: Part, told: Evidence, weight: Floats) -> Floats:
        return np.zeros(part.depth.shape) if smoother else _coded_again(part, told, weight, coding, threads)

    theirs = _weight(weighing, rehearsal.shown, rehearsed, rehearsed=True)
    step, their_step = again(sample, evidence, weight), again(rehearsal.shown, rehearsed, theirs)
    added = rehearsal.noise != 0
    smooth, their_smooth = weighing.is_smooth(evidence), weighing.is_smooth(rehearsed, rehearsed=True)
    trust = np.array(
        [
            _trust((weight * evidence.residual)[ours], step[ours], rehearsal.noise[others], their_step[others], law)
            for ours, others in ((known & smooth, added & their_smooth), (known & ~smooth, added & ~their_smooth))
        ]
    )
    # pixels found noisy in the map itself teach nothing: what was measured there is not the truth
    added &= rehearsal.sample(weight) < 0.5
    left_over = rehearsal.noise - theirs * rehearsed.residual + np.where(their_smooth, *trust) * their_step
    left = Levels.of_means(_misjudged(rehearsed, theirs)[added], np.square(left_over)[added])
    return Detector(coding, weighing, trust, left, smoother).sharing(evidence, known), rehearsal, step


def _trust(taken: Vector, step: Vector, noise: Vector, their_step: Vector, law: Law) -> float:
    """How far to go on: the share of a step of least estimated squared error, as in `weighing`.

    A pixel from which c was taken and to which a step s is added errs by noise - c + s; the mean of noise times s is
    told by the rehearsal.
    """
    energy = float(step @ step)
    if energy == 0 or not len(noise):
        return 0.0
    wanted = float(taken @ step) - law.share * len(step) * float(noise @ their_step) / len(noise)
    return float(np.clip(wanted / energy, 0, 1))


def _rehearse(
    sample: Part,
    evidence: Evidence,
    known: NDArray[np.bool_],
    coding: Coding,
    quantum: float,
    threads: int,
    *,
    correct: bool = True,
) -> tuple[Law, Rehearsal, Evidence]:
    """Rehearse with noise of many sizes, which tells the law of the map's noise; to correct it, again with that law."""

    def of(sizes: float | Vector, seed: int) -> tuple[Rehearsal, Evidence]:
        rehearsal = rehearse(sample.depth, sample.variance, sizes, np.random.default_rng(seed))
        return rehearsal, gather(rehearsal.shown, coding, quantum, threads)

    first = of(MANY_SIZES, 0)
    law = estimate(evidence, known, *first)
    return law, *(of(law.size, 1) if correct and law.share * known.sum() >= LEAST_COUNT else first)


@dataclass(frozen=True, eq=False)
class Filler:
    """What hidden pixels taught of filling holes."""

    trust: Trust
    variance: Levels

    def fill(self, filled: Filled) -> tuple[Floats, Floats]:
        return filled.blend(self.trust), self.variance(filled.doubt)


def _filler(value: Floats, rehearsal: Rehearsal, coding: Coding, threads: int) -> Filler:
    """Learn to fill from known pixels, once corrected, that were hidden."""
    truth = rehearsal.sample(value)
    hidden = rehearsal.hidden & np.isfinite(truth)
    parts = in_order(lambda part: fill_holes(part, coding, 1), np.where(hidden, np.nan, truth), threads)
    filled = Filled(*(np.stack(values) for values in zip(*map(astuple, parts), strict=True)))
    trusted = trust(filled, truth, hidden)
    error = np.square(filled.blend(trusted) - truth)[hidden]
    return Filler(trusted, Levels.of_means(filled.doubt[hidden], error))


def restorer(work: Work, coding: Coding, *, correct: bool, fill: bool, second_pass: bool, threads: int) -> RestorePart:
    """How to correct the known pixels of any part of the map and fill the unknown ones, learned from a sample of it."""
    sample = work.sample()
    quantum = quantum_of(sample.depth)
    seen = gather(sample, coding, quantum, threads)
    detector, rehearsal, step = _detector(sample, seen, coding, quantum, correct, threads)

    @cache
    def corrected_sample() -> Corrected:
        return detector.correct(sample, seen, threads, step)

    @cache
    def filler() -> Filler:
        return _filler(corrected_sample().value, rehearsal, coding, threads)

    if work.huge and (fill or second_pass):
        filler()

    def restored(part: Part, threads: int) -> tuple[Floats, Floats, NDArray[np.integer[Any]]]:
        evidence = gather(part, coding, quantum, threads) if work.huge else seen
        known = np.isfinite(part.depth)
        corrected = detector.correct(part, evidence, threads) if work.huge else corrected_sample()
        value, variance = corrected.value, corrected.variance
        refused = ~known & ((evidence.count == 0) | too_wide(~known, coding.dictionary.patch_shape) | (not fill))
        holes, again = ~known & ~refused, corrected.noisy & second_pass
        if (holes | again).any():
            shown = np.where(again, np.nan, value)
            filled, doubt = filler().fill(fill_holes(shown, coding, threads, refused, part.window))
            value, variance = np.where(holes | again, filled, value), np.where(holes, doubt, variance)
        return value, variance, origins(known, corrected.noisy, refused)

    return restored

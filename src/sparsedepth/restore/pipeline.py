"""The default restoration: the map calibrates its own detector of noisy pixels.

1. **Code robustly.** Every patch is coded by the dictionary under a variance for each pixel with an exponential prior
   (Huber's loss): convex, so there is no start to choose. A pixel's value is the average of its patches, and their
   disagreement says how far it can be trusted.
2. **Score.** A noisy pixel is far from that value, measured by the disagreement, *and* far from its nearest neighbours
   in depth. The score is the product of the two.
3. **Rehearse.** Noise that we know, of many sizes, is added to a few pixels of the map, some known pixels are hidden,
   and the two steps above are done again. The rehearsal shows what scores noisy pixels have on *this* map, with its
   texture and steps, and so how many of its pixels are noisy and how large their noise is (`law`).
4. **Weigh.** Under that law, the score and other signs of a pixel tell the chance that it is noise (`suspicion`). How
   they tell it was learned once, on other maps. No parameter is left to turn. A map that has hardly more of it than
   sensors leave single returns is clean.
5. **Blend** the measured value and the coded one by that chance.
6. **Look again.** Noise had pulled the codes aside: the map is coded as it is believed now, and suspects are scored,
   weighed and blended anew; where there is much noise, once more.

Outliers that keep together look like things to all of this, not like noise: `islands` tells such blots beforehand, if
the map has them at all, and they are holes from then on; so are pixels that are `stuck` at an end of the map's range.
Mixtures of near and far beside steps are returned to a side beforehand, if the map has them (`flying`).

Then holes are filled (`filling`). The same chances tell, with what was learned on other maps, the variance
(`variance_known`); what the rehearsal filled wrongly, that of filled pixels (`variance_filled`).

Lengths are in deviations of the map. docs/decisions.md says what each choice is worth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.coding.noise import Exponential
from sparsedepth.dictionary import Dictionary
from sparsedepth.parallel import map_in_threads
from sparsedepth.restore import dense
from sparsedepth.restore.aggregate import Coding
from sparsedepth.restore.clusters import Blots
from sparsedepth.restore.flying import Flying
from sparsedepth.restore.inpainting import Filled, Trust, trust
from sparsedepth.restore.inpainting import fill as fill_holes
from sparsedepth.restore.noise_model import MANY_SIZES, Law, estimate
from sparsedepth.restore.posterior import Weighed, Weighing
from sparsedepth.restore.scores import Evidence, gather, look_again, quantum_of
from sparsedepth.restore.simulation import Rehearsal, rehearse
from sparsedepth.restore.stuck import Stuck
from sparsedepth.restore.tiling import Part, RestorePart, Work, origins, too_wide
from sparsedepth.restore.variance_filled import Scattered, expected_error, keep_together
from sparsedepth.restore.variance_measured import Doubt
from sparsedepth.vocabulary import DepthMap, Floats, InputError

NOISE_FLOOR = 0.02
"""The deviation below which a misfit of the codes means nothing."""
SPARSITY = 1.2
"""What a unit of code costs, in noise floors."""
STRIDES = {"best": 1, "balanced": 2, "fast": 5}
"""Pixels between patches of eight; larger patches lie further apart in proportion."""
ROUNDS = {"best": 32, "balanced": 24, "fast": 16}
"""Iterations of the coding: more are worth little, because there is a second look."""
FEWER = 8
"""Iterations less for calm patches."""
FAIR = 1 / 3
"""The share of the noisy pixels which the law foretells that has to be found: texture has high scores, too."""
OWN = 3e-3
"""The share of the pixels of a map as a sensor measured it that may look like noise and is the map's own."""
MUCH = 0.1
"""The share of noisy pixels from which suspects are looked at three times."""


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
        calm_rounds=ROUNDS[quality] - FEWER,
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
class Sight:
    """How the pixels of a part are looked at."""

    coding: Coding
    weighing: Weighing
    more: int = 0
    """Looks after the first."""

    def __call__(self, part: Part, threads: int, first: Evidence | None = None) -> tuple[Evidence, Weighed]:
        """What all looks show, the first of which may have been taken before."""
        evidence = gather(part, self.coding, self.weighing.quantum, threads) if first is None else first
        weighed = self.weighing(part, evidence)
        for _ in range(self.more):
            believed = weighed.blended(part.depth, evidence)
            evidence = look_again(part, evidence, believed, self.coding, self.weighing.quantum, threads)
            weighed = self.weighing(part, evidence)
        return evidence, weighed


@dataclass(frozen=True, eq=False)
class Detector:
    """What a map taught of its noise: enough to correct any part of it."""

    sight: Sight
    doubt: Doubt
    smoother: dense.Smoother | None
    """If there is noise at every pixel."""

    def correct(self, part: Part, evidence: Evidence, weighed: Weighed, threads: int) -> Corrected:
        known = np.isfinite(part.depth)
        value = weighed.blended(part.depth, evidence)
        noisy = known & (weighed.weight > 0.5)
        if self.smoother is not None:
            noisy &= dense.beyond(evidence.residual, part.depth, self.smoother.level)
            shown = np.where(noisy, value, part.depth).astype(np.float32)
            smoothed, variance = self.smoother(shown, part.window, threads)
            doubt = np.where(noisy, self.doubt(value, evidence, weighed, noisy), 0)
            return Corrected(np.where(known, smoothed, np.nan), np.maximum(variance, doubt), noisy)
        variance = self.doubt(value, evidence, weighed, noisy)
        if part.variance is not None:
            variance = np.maximum(variance, np.square(1 - weighed.weight) * np.where(known, part.variance, 0))
        return Corrected(value, variance, noisy)


def _detector(
    sample: Part, first: Evidence, coding: Coding, quantum: float, correct: bool, threads: int
) -> tuple[Detector, Evidence, Weighed, Rehearsal]:
    """The detector, what it sees of the sample at last, and the rehearsal."""
    known = np.isfinite(sample.depth)
    rehearsal = rehearse(sample.depth, sample.variance, MANY_SIZES, np.random.default_rng(0))
    law = estimate(first, known, rehearsal, gather(rehearsal.shown, coding, quantum, threads))
    everywhere = correct and sample.variance is None and dense.is_everywhere(sample.depth, law.share)
    weighing = Weighing.of(law, int(known.sum()), quantum, correct)
    once = everywhere or not weighing.takes_anything or not coding.overlapping
    sight = Sight(coding, weighing, 0 if once else 1 + (law.share > MUCH))
    seen, weighed = sight(sample, threads, first)
    if weighing.takes_anything and not everywhere and _is_clean(sample.depth, law, float(weighed.chance[known].mean())):
        sight = Sight(coding, replace(weighing, takes_anything=False))
        seen, weighed = sight(sample, threads, first)
    noisy = known & (weighed.weight > 0.5)
    smoother = None
    if everywhere:
        level = dense.NoiseLevel.of(sample.depth)
        outlier = noisy & dense.beyond(seen.residual, sample.depth, level)
        without = np.where(outlier, weighed.blended(sample.depth, seen), sample.depth).astype(np.float32)
        smoother = dense.Smoother(level, coding).rehearsed(rehearsal.sample(without), threads)
    doubt = Doubt.of(law, quantum > 0, weighed.blended(sample.depth, seen), seen, weighed, noisy)
    return Detector(sight, doubt, smoother), seen, weighed, rehearsal


def _is_clean(depth: DepthMap, law: Law, found: float) -> bool:
    """Whether a map has no noise where such a share of its pixels looks like noise: too few for that of the law, or no
    more than sensors themselves leave single returns."""
    return found < FAIR * law.share or (min(found, law.share) < OWN and dense.is_as_measured(depth))


@dataclass(frozen=True, eq=False)
class Lesson:
    """What known pixels that were hidden teach of filling holes."""

    answers: Filled
    truth: Floats
    hidden: NDArray[np.bool_]
    holes: NDArray[np.bool_]
    """Of the map."""
    patch_shape: tuple[int, int]

    @cached_property
    def trust(self) -> Trust:
        return trust(self.answers, self.truth, self.hidden)

    @cached_property
    def doubt(self) -> Callable[[Floats, NDArray[np.bool_]], Floats]:
        """The squared error of the unknown pixels of a filled map."""
        if keep_together(self.holes, too_wide(self.holes, self.patch_shape)):
            return expected_error
        answers = self.answers.blend(self.trust)
        return Scattered.of(answers, self.answers.unknown, self.hidden, np.square(answers - self.truth))


def _lesson(value: Floats, rehearsal: Rehearsal, coding: Coding, threads: int) -> Lesson:
    """Hide some known pixels, once corrected, and fill them."""
    truth = rehearsal.sample(value)
    hidden = rehearsal.hidden & np.isfinite(truth)
    parts = map_in_threads(lambda part: fill_holes(part, coding, 1), np.where(hidden, np.nan, truth), threads)
    filled = Filled(*(np.stack(values) for values in zip(*map(astuple, parts), strict=True)))
    return Lesson(filled, truth, hidden, np.isnan(value), coding.dictionary.patch_shape)


def restorer(work: Work, coding: Coding, *, correct: bool, fill: bool, second_pass: bool, threads: int) -> RestorePart:
    """How to correct the known pixels of any part of the map and fill the unknown ones, learned from a sample of it."""
    sample = work.sample()
    stuck = Stuck.of(sample.depth) if correct else Stuck()
    sample, _ = stuck.hidden(sample)
    quantum = quantum_of(sample.depth)
    blots = Blots.of(sample.depth, quantum) if correct else Blots()
    sample, _ = blots.hidden(sample)
    flying = Flying.of(sample.depth, quantum) if correct else Flying()
    settled = flying.settled(sample)
    sample = settled[0]
    first_look = gather(sample, coding, quantum, threads)
    detector, seen, weighed, rehearsal = _detector(sample, first_look, coding, quantum, correct, threads)

    @cache
    def corrected_sample() -> Corrected:
        return detector.correct(sample, seen, weighed, threads)

    @cache
    def lesson() -> Lesson:
        return _lesson(corrected_sample().value, rehearsal, coding, threads)

    if work.huge and (fill or second_pass or blots.steps or stuck.values):
        _ = lesson().trust, lesson().doubt  # once, and not by every thread

    def restored(part: Part, threads: int) -> tuple[Floats, Floats, NDArray[np.integer[Any]]]:
        measured = np.isfinite(part.depth)
        part, lost = stuck.hidden(part)
        part, blot = blots.hidden(part)
        part, flew, mixed = flying.settled(part) if work.huge else settled
        evidence, found = detector.sight(part, threads) if work.huge else (seen, weighed)
        known = np.isfinite(part.depth)
        corrected = detector.correct(part, evidence, found, threads) if work.huge else corrected_sample()
        value, variance = corrected.value, np.maximum(corrected.variance, mixed) + blots.missed
        refused = ~measured & ((evidence.count == 0) | too_wide(~measured, coding.dictionary.patch_shape) | (not fill))
        holes, again = ~known & ~refused, corrected.noisy & second_pass
        if (holes | again).any():
            shown = np.where(again, np.nan, value)
            filled = fill_holes(shown, coding, threads, refused, part.window).blend(lesson().trust)
            value = np.where(holes | again, filled, value)
            if holes.any():
                variance = np.where(holes, lesson().doubt(filled, np.isnan(shown)), variance)
        return value, variance, origins(measured, corrected.noisy | lost | blot | flew, refused)

    return restored

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

from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from sparsedepth.coding.noise import Exponential
from sparsedepth.dictionary import Dictionary
from sparsedepth.restore import dense
from sparsedepth.restore import outward as rings
from sparsedepth.restore.door import Work, too_wide
from sparsedepth.restore.filling import Filled, trust_in_codes
from sparsedepth.restore.filling import fill as fill_holes
from sparsedepth.restore.rehearsal import Bins, Rehearsal, rehearse, rising
from sparsedepth.restore.votes import Coding, vote
from sparsedepth.vocabulary import DepthMap, Floats, InputError, Origin, Restoration, Vector
from sparsedepth.workers import in_order

NOISE_FLOOR = 0.02
"""The deviation below which a misfit of the codes means nothing."""
SPARSITY = 1.2
"""What a unit of code costs, in noise floors."""
STRIDES = {"best": 1, "balanced": 2, "fast": 5}
"""Pixels between patches of eight; larger patches lie further apart in proportion."""
ROUNDS = {"best": 48, "balanced": 40, "fast": 24}
"""Iterations of the coding: more change nothing that can be measured."""
RESOLUTION = 0.01
"""The deviation below which a difference between pixels means nothing."""
DOUBT = 8.0
"""How much the disagreement of the patches counts in the score."""
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
    count: Floats
    """The votes; 0 = no patch knows anything."""


def gather(depth: DepthMap, coding: Coding, variance: DepthMap | None, quantum: float, threads: int) -> Evidence:
    """Code a map and score its pixels."""
    votes = vote(depth, coding, variance, threads=threads)
    residual = np.nan_to_num(depth - votes.mean)
    least = (
        RESOLUTION**2 + (0.3 * quantum) ** 2 + (0 if variance is None else np.where(np.isfinite(depth), variance, 1))
    )
    score = np.abs(residual) / np.sqrt(least + DOUBT * votes.spread) * loneliness(depth) / np.sqrt(least)
    return Evidence(votes.mean, votes.spread, residual, score, votes.count)


def loneliness(depth: DepthMap) -> Floats:
    """The mean distance of each pixel to the two nearest, in depth, of its eight neighbours; 0 where unknown."""
    framed = np.pad(depth, 1, constant_values=np.nan)
    rows, columns = depth.shape
    nearest = np.full((2, rows, columns), np.inf)
    for down in range(3):
        for right in range(3):
            if (down, right) != (1, 1):
                apart = np.abs(depth - framed[down : down + rows, right : right + columns])
                apart = np.where(np.isnan(apart), np.inf, apart)
                nearest[1] = np.minimum(nearest[1], np.maximum(nearest[0], apart))
                nearest[0] = np.minimum(nearest[0], apart)
    second = np.where(np.isfinite(nearest[1]), nearest[1], nearest[0])
    return np.where(np.isfinite(nearest[0]), (nearest[0] + second) / 2, 0)


def quantum_of(depth: DepthMap) -> float:
    """The step between the levels of a quantised map: a low percentile of its differences; 0 = it is not quantised."""
    steps = np.abs(np.concatenate([np.diff(depth, axis=axis).ravel() for axis in (0, 1)]))
    steps = steps[np.isfinite(steps)]
    level = steps <= 1e-6
    if not len(steps) or level.mean() < 0.2 or level.all():
        return 0.0
    return float(np.percentile(steps[~level], 20))


@dataclass(frozen=True)
class Weighing:
    """The weight of the coded value as a function of the score: a mixture of soft thresholds."""

    mixture: Vector
    share: float
    """Of the pixels that are noisy."""

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
        return Weighing(np.zeros(len(THRESHOLDS)), share)

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
    return Weighing(_least_on_simplex(curvature, gain), share)


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


def _rehearse(
    work: Work, evidence: Evidence, known: NDArray[np.bool_], coding: Coding, quantum: float, threads: int
) -> tuple[Rehearsal, Evidence]:
    """Rehearse with noise as large as the map's: its size is estimated once, where nothing but noise scores as high."""

    def at_size(amplitude: float) -> tuple[Rehearsal, Evidence]:
        rehearsal = rehearse(work.depth, work.variance, amplitude, np.random.default_rng(0))

        def told(part: int) -> Evidence:
            given = None if rehearsal.variance is None else rehearsal.variance[part]
            return gather(rehearsal.depth[part], coding, given, quantum, 1)

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
    return float(np.clip(np.median(ours) / np.median(theirs), 0.4, 1.6))


def _kept_variance(
    evidence: Evidence,
    known: NDArray[np.bool_],
    weight: Floats,
    weighing: Weighing,
    rehearsal: Rehearsal,
    rehearsed: Evidence,
) -> Floats:
    """The squared error to expect at each pixel, as the rehearsal teaches it.

    A pixel is compared with those of about equal expectations. It is noisy with the probability that counting says, and
    then errs as the rehearsed noise did; otherwise it errs by what was taken from such pixels. Pixels found noisy in
    the map itself teach nothing: what was measured there is not the truth.
    """
    true = rehearsal.sample(np.where(known, weight, 1.0)) < 0.5
    added = (rehearsal.noise != 0) & true
    theirs = weighing(rehearsed.score)
    told, expected = _expected(rehearsed, theirs)[added], _expected(evidence, weight)
    bins = Bins.of(told)
    ours = bins.count(expected[known])
    share = EAGERNESS * weighing.share * bins.count(told) / max(added.sum(), 1)
    noisy = np.minimum(1, share * known.sum() / np.maximum(ours, 1))
    left = bins.mean(told, np.square(rehearsal.noise - theirs * rehearsed.residual)[added])
    taken = bins.median(expected[known], np.square(weight * evidence.residual)[known])
    return bins.look_up(expected, rising(noisy * left + (1 - noisy) * taken, ours))


def _believed(evidence: Evidence, variance: Floats) -> Floats:
    """What a measurement of known variance still counts for beside the coded value."""
    coded = evidence.spread + RESOLUTION**2
    return coded / (coded + variance)


def _expected(told: Evidence, weight: Floats) -> Floats:
    """Where a pixel errs: its weight is between all and nothing, or its patches disagree on what replaces it."""
    return weight * (1 - weight) * np.square(told.residual) + np.square(weight) * told.spread


def _fill(
    corrected: DepthMap, refused: NDArray[np.bool_], coding: Coding, rehearsal: Rehearsal, threads: int
) -> tuple[Floats, Floats]:
    """The corrected map with its holes filled, and the variance of what was filled, both learned from hidden pixels."""
    ours = fill_holes(corrected, coding, threads, refused)
    truth = rehearsal.sample(corrected)
    hidden = rehearsal.hidden & np.isfinite(truth)
    parts = in_order(lambda part: fill_holes(part, coding, 1), np.where(hidden, np.nan, truth), threads)
    theirs = Filled(*(np.stack(values) for values in zip(*map(astuple, parts), strict=True)))
    trust = trust_in_codes(theirs, truth, hidden)
    error = np.square(theirs.blend(trust) - truth)[hidden]
    bins = Bins.of(theirs.doubt[hidden])
    levels = rising(bins.mean(theirs.doubt[hidden], error), bins.count(theirs.doubt[hidden]))
    return ours.blend(trust), bins.look_up(ours.doubt, levels)


def restore(
    work: Work, coding: Coding, *, correct: bool, fill: bool, outward: bool, second_pass: bool, threads: int
) -> Restoration:
    """Correct the known pixels and fill the unknown ones, as asked."""
    depth, known = work.depth, np.isfinite(work.depth)
    quantum = quantum_of(depth)
    evidence = gather(depth, coding, work.variance, quantum, threads)
    rehearsal, rehearsed = _rehearse(work, evidence, known, coding, quantum, threads)
    weighing = weigh(evidence, known, rehearsal, rehearsed)
    weight = np.where(known, weighing(evidence.score) if correct else 0.0, 1.0)
    if correct and work.variance is not None:
        weight = 1 - (1 - weight) * _believed(evidence, np.where(known, work.variance, 0))
    noisy = known & (weight > 0.5)
    value = np.where(known, depth - weight * evidence.residual, np.nan)
    variance = _kept_variance(evidence, known, weight, weighing, rehearsal, rehearsed)
    deviation = dense.noise_deviation(depth)
    if correct and work.variance is None and deviation > dense.LEAST:
        noisy &= np.abs(evidence.residual) > dense.OUTLIER * deviation
        shown = np.where(noisy, value, depth).astype(np.float32)
        smoothed, left = dense.smooth(shown, coding, deviation, threads)
        value, variance = np.where(known, smoothed, value), np.where(known, left, variance)
    if work.variance is not None:
        variance = np.maximum(variance, np.square(1 - weight) * np.where(known, work.variance, 0))
    refused = ~known & ((evidence.count == 0) | too_wide(~known, coding.dictionary.patch_shape) | (not fill))
    holes = ~known & ~refused
    again = noisy & second_pass
    if (holes | again).any():
        shown = np.where(again, np.nan, value)
        filled, doubt = _fill(shown, refused, coding, rehearsal, threads)
        value, variance = np.where(holes | again, filled, value), np.where(holes, doubt, variance)
    origin = np.select([refused, ~known, noisy], [Origin.REFUSED, Origin.FILLED, Origin.CORRECTED], Origin.MEASURED)
    if outward and fill and refused.any():
        value, variance, origin = rings.fill(value, variance, origin, coding, threads)
    return work.back(value, variance, origin)

"""Scores of the stream experiment: error and honesty against age, ghosts, flicker, slow change, turning cameras."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparsedepth.data.simulated_streams import START_FRAMES
from sparsedepth.vocabulary import Floats, Origin
from sparsedepth_experiments._sensors_scores import GAUSSIAN_MEDIAN
from sparsedepth_experiments._streams_methods import (
    LIMIT,
    RAW,
    Parameters,
    Restore,
    Step,
    Steps,
    methods_for,
    single,
    single_live,
    streamed,
)
from sparsedepth_experiments._streams_runs import WRONG_SIGMAS, Run
from sparsedepth_experiments.ablation import rmse_99

AGE_BINS = ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 1000))
"""Ages of pixels whose calibration is shown, from and to."""
SPARE = 6
"""Only every so many frames of slow change are restored one by one: their error does not depend on time."""


@dataclass(frozen=True)
class AgeScore:
    """Results after so many frames, one number a run.

    Parameters
    ----------
    left
        Error over that of the raw frames.
    honesty
        Median of squared error over variance, over 0.455; empty = the method gives no variance.
    filled, wrong
        Fraction of the missing pixels that have a depth, and of those with a reference that are wrong.
    """

    left: list[float] = field(default_factory=list)
    honesty: list[float] = field(default_factory=list)
    filled: list[float] = field(default_factory=list)
    wrong: list[float] = field(default_factory=list)


Ages = dict[str, dict[int, AgeScore]]
"""method -> number of frames -> score."""


def score_ages(runs: Sequence[Run], parameters: Parameters) -> Ages:
    """Score all methods against the number of frames."""
    found: Ages = {}
    for name, restore in methods_for(runs, parameters).items():
        by = found[name] = {}
        for run in runs:
            steps, raw = restore(run, run.judged), run.raw
            for k in run.judged:
                _add(by.setdefault(k + 1, AgeScore()), run, k, steps[k], raw)
        found[name] = dict(sorted(by.items()))
    return found


def _add(score: AgeScore, run: Run, k: int, step: Step, raw: float) -> None:
    frame, reference = run.frames[k], run.references[k]
    score.left.append(reference.left(step.depth, frame) / raw)
    if step.variance is not None:
        score.honesty.append(reference.honesty(step.depth, step.variance, np.isfinite(frame)))
    missing = ~np.isfinite(frame)
    filled = missing & np.isfinite(step.depth)
    score.filled.append(_fraction(filled, missing))
    score.wrong.append(_fraction(filled & reference.wrong(step.depth), filled & np.isfinite(reference.depth)))


def _fraction(part: np.ndarray, whole: np.ndarray) -> float:
    return float(part.sum() / max(1, whole.sum()))


def honesty_of_pixels(runs: Sequence[Run], known: bool) -> list[float | None]:
    """Compute the honesty of pixels by their own age, in the bins of `AGE_BINS`, over all frames of all runs."""
    ratios: list[list[Floats]] = [[] for _ in AGE_BINS]
    for run in runs:
        for k, step in streamed(run, known=known).items():
            assert step.variance is not None
            assert step.age is not None
            ratio = (step.depth - run.references[k].depth) ** 2 / step.variance
            for place, (low, high) in enumerate(AGE_BINS):
                where = (step.age >= low) & (step.age <= high) & np.isfinite(ratio) & np.isfinite(run.frames[k])
                ratios[place].append(ratio[where])
    joined = [np.concatenate(each) for each in ratios]
    return [float(np.median(each)) / GAUSSIAN_MEDIAN if each.size else None for each in joined]


@dataclass(frozen=True)
class ObjectScore:
    """Results while an object passes.

    Parameters
    ----------
    uncovered
        Error of the pixels that were uncovered two frames before, over the raw one.
    ghosts
        Fraction of these pixels that are wrong.
    moving
        Median error of the pixels of the object itself, over the raw one.
    misplaced
        Fraction of these pixels that are wrong.
    shadow
        Number of pixels in the shadow of the object that have a depth; of streams, those that are remembered.
    wrong
        Number of those that are wrong.
    flicker
        Error of the difference of successive frames at static pixels, over the raw one.
    deviation
        Median over static pixels of their standard deviation over the last ten frames, over the raw one.
    """

    uncovered: float
    ghosts: float
    moving: float
    misplaced: float
    shadow: int
    wrong: int
    flicker: float
    deviation: float


def score_object(runs: Sequence[Run], parameters: Parameters) -> dict[str, ObjectScore]:
    """Score all methods while an object passes."""
    methods = methods_for(runs, parameters)
    raw = [methods[RAW](run, ()) for run in runs]
    return {
        name: _object_score(runs, [restore(run, range(len(run.frames))) for run in runs], raw)
        for name, restore in methods.items()
    }


def _object_score(runs: Sequence[Run], ours: Sequence[Steps], raw: Sequence[Steps]) -> ObjectScore:
    pairs, bare = (list(zip(runs, steps, strict=True)) for steps in (ours, raw))
    errors = np.concatenate([_uncovered(run, steps) for run, steps in pairs])
    shown = [_shadow(run, steps) for run, steps in pairs]
    return ObjectScore(
        rmse_99(errors) / rmse_99(np.concatenate([_uncovered(run, steps) for run, steps in bare])),
        float((np.abs(errors) > WRONG_SIGMAS).mean()),
        _ratio(_on_object, np.median, pairs, bare),
        float((np.concatenate([_on_object(run, steps) for run, steps in pairs]) > WRONG_SIGMAS).mean()),
        sum(given for given, _ in shown),
        sum(wrong for _, wrong in shown),
        *(_ratio(_flicker, rmse_99, pairs, bare), _ratio(_deviation, np.nanmedian, pairs, bare)),
    )


def _uncovered(run: Run, steps: Steps) -> Floats:
    """Collect the errors of pixels in the third frame in which nothing covers them."""
    found = []
    for k in range(START_FRAMES + 3, len(run.frames)):
        covered = [run.details[k - back].moving_mask for back in (3, 2, 1, 0)]
        free = covered[0] & ~covered[1] & ~covered[2] & ~covered[3]
        errors = ((steps[k].depth - run.details[k].truth) / run.details[k].std)[free]
        found.append(errors[np.isfinite(errors)])
    return np.concatenate(found)


def _on_object(run: Run, steps: Steps) -> Floats:
    """Collect the sizes of the errors of the pixels of the object that the camera measures, in standard deviations."""
    found = [
        run.references[k].errors(steps[k].depth, np.where(frame.moving_mask, run.frames[k], np.nan))
        for k, frame in enumerate(run.details)
    ]
    return np.abs(np.concatenate(found))


def _shadow(run: Run, steps: Steps) -> tuple[int, int]:
    """Count the pixels in the shadow that are remembered or filtered, and the wrong ones among them."""
    given = wrong = 0
    for k, frame in enumerate(run.details):
        known = frame.shadow_mask & np.isfinite(steps[k].depth)
        known = known if steps[k].origin is None else known & (steps[k].origin == Origin.REMEMBERED)
        given += int(known.sum())
        wrong += int((known & run.references[k].wrong(steps[k].depth)).sum())
    return given, wrong


def _still(run: Run) -> np.ndarray:
    return ~np.any([frame.moving_mask for frame in run.details], axis=0)


def _flicker(run: Run, steps: Steps) -> Floats:
    """Collect differences of successive frames at pixels that nothing ever covers, in standard deviations."""
    still = _still(run)
    pairs = range(len(run.frames) // 2, len(run.frames))
    return np.concatenate([((steps[k].depth - steps[k - 1].depth) / run.details[k].std)[still] for k in pairs])


def _deviation(run: Run, steps: Steps) -> Floats:
    """Compute the standard deviation over the last ten frames of static pixels that all of them have."""
    last = np.stack([steps[k].depth for k in range(len(run.frames) - 10, len(run.frames))])
    return (last.std(0) / run.details[-1].std)[_still(run)]


Pairs = Sequence[tuple[Run, Steps]]


def _ratio(of: Callable[[Run, Steps], Floats], mean: Callable[[Floats], Any], ours: Pairs, raw: Pairs) -> float:
    mine, bare = (float(mean(np.concatenate([of(run, steps) for run, steps in pairs]))) for pairs in (ours, raw))
    return mine / bare


@dataclass(frozen=True)
class SlowScore:
    """Results in a region that changes slowly: over all changing frames, and in the worst of them."""

    left: float
    worst: float
    honesty: float | None = None
    extreme: float | None = None
    """Honesty of the frame that is farthest from 1."""


def score_slow(runs: Sequence[Run], parameters: Parameters) -> dict[str, SlowScore]:
    """Score all methods in regions that change slowly."""
    found = {}
    methods = methods_for(runs, parameters)
    del methods[LIMIT]  # earlier frames see another surface
    for name, restore in methods.items():
        scores = [_slow_of_run(run, restore) for run in runs]
        honest = [each for _, _, ratios in scores for each in ratios]
        left = np.concatenate([each for each, _, _ in scores])
        raw = np.concatenate([each for _, each, _ in scores])
        found[name] = SlowScore(
            float(np.sqrt(np.mean(left**2) / np.mean(raw**2))),
            float(max(left / raw)),
            float(np.median(honest)) if honest else None,
            float(max(honest, key=lambda ratio: abs(np.log(ratio)))) if honest else None,
        )
    return found


def _slow_of_run(run: Run, restore: Restore) -> tuple[Floats, Floats, list[float]]:
    """Compute errors, raw errors and honesty of the changing frames."""
    frames = list(range(START_FRAMES + 1, len(run.frames)))
    frames = frames[::SPARE] if restore is single else frames
    steps, disc = restore(run, frames), run.details[0].moving_mask
    left, raw, honest = [], [], []
    for k in frames:
        std, truth, step = run.details[k].std, run.details[k].truth, steps[k]
        left.append(rmse_99(((step.depth - truth) / std)[disc]))
        raw.append(rmse_99(((run.frames[k] - truth) / std)[disc]))
        if step.variance is not None:
            honest.append(run.references[k].honesty(step.depth, step.variance, disc))
    return np.array(left), np.array(raw), honest


@dataclass(frozen=True)
class TurnScore:
    """Results of a camera without poses that stops and turns, over single frames of the same live path."""

    mean: float
    worst: float
    of_denoise: float
    """Mean error over that of `denoise`."""
    lost: float
    """Fraction of the frames that were lost."""


def score_turning(run: Run, intrinsics: bool) -> TurnScore:
    """Score a stream without poses."""
    frames = range(1, len(run.frames))
    steps, alone = streamed(run, posed=False, intrinsics=intrinsics), single_live(run, frames)
    few = list(frames)[::SPARE]
    denoised = single(run, few)
    ratios = [_error(run, steps, k) / _error(run, alone, k) for k in frames]
    of_denoise = [_error(run, steps, k) / _error(run, denoised, k) for k in few]
    lost = np.mean([steps[k].state == "lost" for k in frames])
    return TurnScore(float(np.mean(ratios)), max(ratios), float(np.mean(of_denoise)), float(lost))


def _error(run: Run, steps: Steps, k: int) -> float:
    return run.references[k].left(steps[k].depth, run.frames[k])

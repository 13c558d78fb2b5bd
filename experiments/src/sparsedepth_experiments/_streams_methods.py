"""Methods of the stream experiment: ours, single frames, filters over time, and the mean of warped frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.ndimage import map_coordinates

from sparsedepth.streams import Intrinsics, Stream
from sparsedepth.vocabulary import DepthMap, Floats
from sparsedepth_experiments._cache import ARRAYS, Stored, cached, restoration_version
from sparsedepth_experiments._sensors_methods import restored
from sparsedepth_experiments._streams_runs import TRIM_SIGMAS, Run

RAW, OURS, BLIND, ALIGNED = "raw", "Stream", "Stream, unknown sensor", "Stream, no poses"
SINGLE, MEAN, EXPONENTIAL, LIMIT = (
    "denoise, single frames",
    "running mean",
    "exponential filter",
    "mean of warped frames",
)
PERSISTENCE_FRAMES = 3
"""Frames for which the exponential filter keeps a pixel that is missing; camera SDKs have such an option."""
WINDOWS = (2, 3, 5, 10, 1000)
"""Lengths of the running mean; the last one is all frames."""
WEIGHTS, THRESHOLDS = (0.1, 0.2, 0.4, 0.6), (2.0, 4.0, 8.0)
"""Of the exponential filter: weight of the new frame, and the largest change, in standard deviations."""
TUNING_STEP_PX = 3
"""Distance of the pixels that choose the parameters; the filters treat every pixel alone."""


class Step(NamedTuple):
    """The result of one frame; all (height, width)."""

    depth: DepthMap
    variance: Floats | None = None
    age: np.ndarray | None = None
    """Number of measurements in each pixel."""
    state: str = ""
    origin: np.ndarray | None = None


Steps = Mapping[int, Step]
"""Results by the index of the frame."""


def streamed(run: Run, *, known: bool = True, posed: bool = True, intrinsics: bool = True) -> Steps:
    """Restore all frames by a stream.

    Parameters
    ----------
    run
        The frames.
    known
        Whether the stream is given the sensor.
    posed, intrinsics
        Whether it is given poses and intrinsics of a camera that moves.
    """
    camera = Intrinsics(*run.intrinsics) if intrinsics and run.poses else None
    stream, steps = Stream(run.sensor if known else None, camera, unit="mm"), {}
    for k, frame in enumerate(run.frames):
        result = stream.push(frame, pose=run.poses[k] if posed and camera else None)
        steps[k] = Step(result.depth, result.variance, stream.age, stream.state, result.origin)
    return steps


def single(run: Run, needed: Sequence[int]) -> Steps:
    """Restore frames one by one by `denoise`, which knows the sensor."""

    def make(k: int) -> Step:
        def arrays() -> dict[str, np.ndarray]:
            result = restored(run.frames[k], run.sensor)
            return {"depth": result.depth, "variance": result.variance}

        name = f"a frame of a stream under {run.sensor}"
        found = cached(Stored(name, restoration_version(), [np.asarray(run.frames[k])], ARRAYS), arrays)
        return Step(found["depth"], found["variance"])

    return {k: make(k) for k in needed}


def single_live(run: Run, needed: Sequence[int]) -> Steps:
    """Restore frames one by one by a new stream each."""
    return {k: Step(Stream(run.sensor, unit="mm").push(run.frames[k]).depth) for k in needed}


def running_mean(run: Run, window: float) -> Iterator[DepthMap]:
    """Yield the mean of the last frames at each pixel, however the camera moves."""
    total, count = np.zeros(np.shape(run.frames[0])), np.zeros(np.shape(run.frames[0]))
    for k, frame in enumerate(run.frames):
        total, count = total + np.nan_to_num(frame), count + np.isfinite(frame)
        if k >= window:
            gone = run.frames[k - int(window)]
            total, count = total - np.nan_to_num(gone), count - np.isfinite(gone)
        yield np.where(count > 0, total / np.maximum(count, 1), np.nan)


def exponential(run: Run, weight: float, threshold: float) -> Iterator[DepthMap]:
    """Yield an exponential mean that starts anew where a frame differs by more than a threshold."""
    mean, missed = np.full(np.shape(run.frames[0]), np.nan), np.zeros(np.shape(run.frames[0]), int)
    for frame in run.frames:
        known = np.isfinite(frame)
        near = np.abs(frame - mean) <= threshold * run.std_of(np.where(known, frame, 1.0))
        missed = np.where(known, 0, missed + 1)
        mean = np.where(near, weight * frame + (1 - weight) * mean, np.where(known, frame, mean))
        mean = np.where(missed > PERSISTENCE_FRAMES, np.nan, mean)
        yield mean


@dataclass(frozen=True)
class TimeFilter:
    """A filter over time, and the parameters that are tried."""

    restore: Callable[..., Iterator[DepthMap]]
    grid: tuple[tuple[float, ...], ...]

    def best(self, runs: Sequence[Run]) -> tuple[float, ...]:
        """Choose the parameters with the least mean error over all frames that have a reference."""
        few = [run.thinned(TUNING_STEP_PX) for run in runs]
        return min(self.grid, key=lambda values: np.mean([self._error(run, values) for run in few]))

    def steps(self, run: Run, values: tuple[float, ...]) -> Steps:
        """Filter all frames."""
        return {k: Step(depth) for k, depth in enumerate(self.restore(run, *values))}

    def _error(self, run: Run, values: tuple[float, ...]) -> float:
        found = enumerate(self.restore(run, *values))
        left = [run.references[k].left(depth, run.frames[k]) for k, depth in found if k in run.references]
        return float(np.mean(left))


TIME_FILTERS = {
    MEAN: TimeFilter(running_mean, tuple((float(window),) for window in WINDOWS)),
    EXPONENTIAL: TimeFilter(exponential, tuple(product(WEIGHTS, THRESHOLDS))),
}


def warped_means(run: Run, needed: Sequence[int]) -> Steps:
    """Average this and all earlier frames where they see the same surface: the limit, which the reference shows.

    The reference tells where each pixel lies in the earlier frames, and what is seen there.
    """
    return {k: Step(_warped_mean(run, k)) for k in needed}


def _warped_mean(run: Run, last: int) -> DepthMap:
    reference = run.references[last]
    offsets = [(run.frames[last] - reference.depth) / reference.std]
    offsets += [_offsets(run, earlier, last) for earlier in range(last)]
    stack = np.stack([np.where(np.abs(each) <= TRIM_SIGMAS, each, np.nan) for each in offsets])
    count = np.isfinite(stack).sum(0)
    mean = np.where(count > 0, np.nansum(stack, 0) / np.maximum(count, 1), np.nan)
    return reference.depth + reference.std * mean


def _offsets(run: Run, earlier: int, last: int) -> Floats:
    """Compute how far an earlier frame lies from the reference of the last one, in standard deviations."""
    reference = run.references[last]
    if not run.poses:
        return (run.frames[earlier] - reference.depth) / reference.std
    columns, rows, depth = _seen_from(run, reference.depth, np.linalg.inv(run.poses[earlier]) @ run.poses[last])
    places = np.nan_to_num(np.stack([rows, columns]), nan=-9.0)
    measured = map_coordinates(np.asarray(run.frames[earlier], float), places, order=1, cval=np.nan)
    offsets = (measured - depth) / run.std_of(depth)
    return offsets - _smooth_part(offsets) if run.drifts else offsets


def _seen_from(run: Run, depth: DepthMap, motion: Floats) -> tuple[Floats, Floats, Floats]:
    """Project the pixels of a map in mm to another camera: columns, rows and depths there."""
    fx, fy, cx, cy = run.intrinsics
    down, across = np.mgrid[: depth.shape[0], : depth.shape[1]]
    points = np.stack([(across - cx) / fx * depth, (down - cy) / fy * depth, depth])
    x, y, z = np.tensordot(motion[:3, :3], points, 1) + 1000 * motion[:3, 3].reshape(3, 1, 1)
    return fx * x / z + cx, fy * y / z + cy, z


def _smooth_part(offsets: Floats) -> Floats:
    """Fit a quadratic in rows and columns to offsets that are no outliers."""
    down, across = np.mgrid[-1 : 1 : offsets.shape[0] * 1j, -1 : 1 : offsets.shape[1] * 1j]
    terms = np.stack([np.ones_like(down), down, across, down**2, down * across, across**2])
    near, fitted = np.isfinite(offsets), np.zeros_like(offsets)
    for _ in range(3):
        known = near & (np.abs(offsets - fitted) <= TRIM_SIGMAS)
        factors = np.linalg.lstsq(terms[:, known].T, offsets[known], rcond=None)[0]
        fitted = np.tensordot(factors, terms, 1)
    return fitted


Restore = Callable[[Run, Sequence[int]], Steps]
"""(run, indices that are needed at least) -> steps."""


Parameters = Mapping[str, tuple[float, ...]]
"""Parameters of the filters over time."""


def best_parameters(runs: Sequence[Run]) -> Parameters:
    """Choose the parameters of the filters over time that suit some runs best, by the truth."""
    return {name: each.best(runs) for name, each in TIME_FILTERS.items()}


def methods_for(runs: Sequence[Run], parameters: Parameters) -> dict[str, Restore]:
    """List all methods that suit some runs."""
    found: dict[str, Restore] = {
        RAW: lambda run, needed: {k: Step(run.frames[k]) for k in range(len(run.frames))},
        OURS: lambda run, needed: streamed(run),
        BLIND: lambda run, needed: streamed(run, known=False),
    }
    if any(run.poses for run in runs):
        found[ALIGNED] = lambda run, needed: streamed(run, posed=False)
    filters: dict[str, Restore] = {
        name: lambda run, needed, name=name: TIME_FILTERS[name].steps(run, parameters[name]) for name in TIME_FILTERS
    }
    return {**found, SINGLE: single, **filters, LIMIT: warped_means}

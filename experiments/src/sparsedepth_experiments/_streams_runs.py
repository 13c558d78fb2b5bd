"""Runs of the stream experiment: successive frames of a camera, with references where there are any."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from warnings import catch_warnings, simplefilter

import numpy as np

from sparsedepth.data.sensor_frames import SENSORS, intrinsics, measured_std, pose, sensor_frames, sequence
from sparsedepth.data.simulated_streams import StreamFrame, StreamScene
from sparsedepth.sensors import Sensor
from sparsedepth.vocabulary import DepthMap, Floats
from sparsedepth_experiments._sensors_scores import GAUSSIAN_MEDIAN
from sparsedepth_experiments.ablation import rmse_99

KINECT, AIMS, CUP, TOF = SENSORS
AGES = (1, 3, 5, 10, 20, 30)
"""Numbers of frames after which a result is judged."""
RUN_FRAMES = 10
"""Frames of a run of a recorded static camera."""
KINECT_TARGETS = (240, 260)
"""Frames of the Kinect sequence that have a reference and enough frames before them."""
TRIM_SIGMAS = 4.0
"""Farther from their median, frames do not count in a mean."""
WRONG_SIGMAS = 5.0
"""A pixel that is farther from the truth is wrong, in standard deviations of the sensor."""


@dataclass(frozen=True, eq=False)
class Reference:
    """What a frame should show, its standard error, and the standard deviation of the sensor, all in mm."""

    depth: Floats
    error: Floats
    std: Floats

    def errors(self, depth: DepthMap, seen: DepthMap) -> Floats:
        """Compute the errors of the pixels that ``seen`` has, in standard deviations of the sensor."""
        return ((depth - self.depth) / self.std)[np.isfinite(depth - self.depth) & np.isfinite(seen)]

    def left(self, depth: DepthMap, seen: DepthMap) -> float:
        """Compute the 99 % RMSE, the standard error of the reference taken off."""
        known = np.isfinite(depth - self.depth) & np.isfinite(seen)
        own = float(np.mean((self.error / self.std)[known] ** 2))
        return float(np.sqrt(max(rmse_99(self.errors(depth, seen)) ** 2 - own, 0.0)))

    def honesty(self, depth: DepthMap, variance: Floats, where: np.ndarray) -> float:
        """Compute the median of squared error over variance, over that of a Gaussian."""
        known = np.isfinite(depth - self.depth) & where
        ratio = (depth - self.depth)[known] ** 2 / (variance + self.error**2)[known]
        return float(np.median(ratio)) / GAUSSIAN_MEDIAN if ratio.size else float("nan")

    def wrong(self, depth: DepthMap) -> np.ndarray:
        """Find the pixels that are wrong."""
        return np.abs(depth - self.depth) > WRONG_SIGMAS * self.std


@dataclass(frozen=True, eq=False)
class Run:
    """Successive frames of a camera.

    Parameters
    ----------
    frames
        Maps in mm; NaN = missing.
    references
        By the index of the frame.
    sensor
        What is known of the camera, in mm.
    std_of
        Standard deviation of the camera at some depths, both in mm.
    intrinsics
        fx, fy, cx, cy in pixels.
    poses
        Camera to world, (4, 4), in metres; empty = the camera stands still.
    drifts
        Whether the poses drift, as those of recordings do.
    details
        Frames of a simulated stream with what moves in them.
    """

    frames: Sequence[DepthMap]
    references: Mapping[int, Reference]
    sensor: Sensor
    std_of: Callable[[Floats], Floats]
    intrinsics: tuple[float, float, float, float]
    poses: Sequence[Floats] = ()
    drifts: bool = False
    details: Sequence[StreamFrame] = field(default=())

    @property
    def judged(self) -> list[int]:
        """Indices of frames whose results are judged by their age."""
        return [age - 1 for age in AGES if age - 1 in self.references]

    @property
    def raw(self) -> float:
        """Mean error of the frames as they are."""
        return float(np.mean([each.left(self.frames[k], self.frames[k]) for k, each in self.references.items()]))

    def thinned(self, step: int) -> Run:
        """Return every ``step``-th pixel of the frames and references; intrinsics and details do not fit it."""
        every = slice(None, None, step), slice(None, None, step)
        references = {
            k: Reference(each.depth[every], each.error[every], each.std[every]) for k, each in self.references.items()
        }
        return replace(self, frames=[frame[every] for frame in self.frames], references=references)


def recorded_runs() -> dict[str, list[Run]]:
    """Load the runs of real cameras by name."""
    return {
        "Kinect v1, poses": [_kinect(target, age) for target in KINECT_TARGETS for age in AGES if age <= RUN_FRAMES],
        "RealSense (cup), static": _cup(),
        "time of flight, static": _time_of_flight(),
    }


def _kinect(target: int, age: int) -> Run:
    """Load the last distinct frames up to one with a reference, which has seen some of them."""
    frames, found = sequence(KINECT), {frame.number: frame for frame in sensor_frames(KINECT)}[target]
    numbers = distinct(frames, target)[-age:]
    std_of = partial(measured_std, KINECT)
    return Run(
        [frames[number] for number in numbers],
        {len(numbers) - 1: Reference(found.reference, found.standard_error, std_of(found.reference))},
        Sensor.preset("kinect_v1"),
        std_of,
        intrinsics(KINECT),
        [pose(KINECT, number) / np.array([1, 1, 1, 1000.0]) for number in numbers],
        drifts=True,
    )


def _cup() -> list[Run]:
    """Take the first frames; the reference is the mean of all later ones. Later on, a person moves."""
    frames, sensor = list(sequence(CUP).values()), replace(Sensor.preset("realsense_d455"), pattern=0.0)
    return [_static(CUP, sensor, frames, range(RUN_FRAMES), 8)]


def _time_of_flight() -> list[Run]:
    """Cut the ten frames into halves; the reference of each is the mean of the other."""
    frames = [frame.depth for frame in sensor_frames(TOF)]
    return [_static(TOF, Sensor.preset("pico_zense"), frames, part, 4) for part in (range(5), range(5, 10))]


def _static(camera: str, sensor: Sensor, frames: Sequence[DepthMap], part: range, least: int) -> Run:
    std_of, others = partial(measured_std, camera), [frame for k, frame in enumerate(frames) if k not in part]
    reference = mean_reference(others, std_of, least)
    shown = [frames[k] for k in part]
    return Run(shown, dict.fromkeys(range(len(shown)), reference), sensor, std_of, intrinsics(camera))


def mean_reference(frames: Sequence[DepthMap], std_of: Callable[[Floats], Floats], least: int) -> Reference:
    """Average frames into a reference: at least so many of each pixel, and a small standard error."""
    mean, count, stack = trimmed_mean(np.stack(frames), std_of)
    mean = np.where(count >= least, mean, np.nan)
    std, n = std_of(mean), np.maximum(count, 1)
    own = np.sqrt(np.nansum((stack - mean) ** 2, 0) / np.maximum(count - 1, 1) / n)
    error, most = (own, std / 3) if least > 5 else (std / np.sqrt(n), std)  # few frames do not show their spread
    return Reference(np.where(error < most, mean, np.nan), error, std)


def trimmed_mean(stack: Floats, std_of: Callable[[Floats], Floats]) -> tuple[Floats, Floats, Floats]:
    """Average (frames, height, width) without what is far from the median; return mean, counts and what counted."""
    with catch_warnings():
        simplefilter("ignore", RuntimeWarning)  # pixels that no frame has
        median = np.nanmedian(stack, 0)
    kept = np.where(np.abs(stack - median) <= TRIM_SIGMAS * std_of(median), stack, np.nan)
    count = np.isfinite(kept).sum(0)
    return np.where(count > 0, np.nansum(kept, 0) / np.maximum(count, 1), np.nan), count, kept


def distinct(frames: Mapping[int, DepthMap], last: int) -> list[int]:
    """List the numbers of the frames up to the last one that do not repeat the frame before."""
    numbers = [number for number in sorted(frames) if number <= last]
    pairs = zip([None, *numbers], numbers, strict=False)
    return [
        number
        for before, number in pairs
        if before is None or not np.array_equal(frames[before], frames[number], equal_nan=True)
    ]


def simulated_run(scene: StreamScene, frames: Sequence[StreamFrame], moves: bool = False) -> Run:
    """Return the run of a simulated stream, with the truth as the reference of every frame."""
    return Run(
        [frame.depth for frame in frames],
        {k: Reference(frame.truth, np.zeros_like(frame.truth), frame.std) for k, frame in enumerate(frames)},
        scene.sensor,
        scene.sensor.std,
        scene.intrinsics,
        [frame.pose for frame in frames] if moves else (),
        details=frames,
    )

"""Judged frames of the sensor experiment, and the methods: filters tuned on the truth, and the sensor-aware one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from sparsedepth.baselines import bilateral, median, nl_means, tv_l2
from sparsedepth.data.rooms import room
from sparsedepth.data.sensor_frames import (
    SENSORS,
    intrinsics,
    measured_std,
    pose,
    sensor_frames,
    sequence,
)
from sparsedepth.data.simulated_sensors import OPTICS, SIMULATED, simulated_frame, with_impulses
from sparsedepth.restore import denoise
from sparsedepth.sensors import Sensor
from sparsedepth.vocabulary import DepthMap, Floats, Restoration
from sparsedepth_experiments.ablation import rmse_99

PRESETS: dict[str, str] = dict(zip(SENSORS, SIMULATED, strict=True))
"""Presets of the real cameras, which are in the same order."""
TUNING_STEP = 3
"""Every so many frames choose the parameters of the filters."""
WIDE_PX = 5.0
"""Distance of a wide bilateral filter; the other one has 2 pixels."""


@dataclass(frozen=True, eq=False)
class JudgedFrame:
    """A frame with its reference and the standard deviation of the sensor, all in mm; NaN = missing."""

    number: int
    depth: DepthMap
    reference: DepthMap
    std: Floats

    def error(self, restored: DepthMap) -> Floats:
        """Compute the errors of the measured pixels that have a reference, in standard deviations of the sensor."""
        judged = np.isfinite(self.depth) & np.isfinite(self.reference)
        return ((restored - self.reference) / self.std)[judged].astype(float)


@dataclass(frozen=True, eq=False)
class Camera:
    """The judged frames of one camera, and what is known of it.

    Parameters
    ----------
    name
        Name in tables.
    frames
        Judged frames.
    preset
        Name of its preset.
    intrinsics
        fx, fy, cx, cy in pixels.
    calibrated
        Sensor for each frame by its number, estimated from other frames; empty = there are none.
    """

    name: str
    frames: Sequence[JudgedFrame]
    preset: str
    intrinsics: tuple[float, float, float, float]
    calibrated: Mapping[int, Sensor] = field(default_factory=dict)

    def modes(self) -> dict[str, Callable[[JudgedFrame], Sensor | None]]:
        """List what the method may know; None = nothing but the frame."""
        preset = Sensor.preset(self.preset)
        known: dict[str, Callable[[JudgedFrame], Sensor | None]] = {
            "blind": lambda frame: None,
            "preset": lambda frame: preset,
        }
        if self.calibrated:
            known["calibrated"] = lambda frame: self.calibrated[frame.number]
        return known


def restored(depth: DepthMap, sensor: Sensor | None) -> Restoration:
    """Restore a frame in mm under the noise of its sensor; None = estimate it from the frame."""
    return denoise(depth, sensor=sensor or "auto", unit="mm", quality="fast", threads=1)


def real_cameras() -> list[Camera]:
    """Load the real frames that have a reference, with calibrations on other frames."""
    return [_real_camera(sensor) for sensor in SENSORS]


def _real_camera(sensor: str) -> Camera:
    frames = [
        JudgedFrame(found.number, found.depth, found.reference, measured_std(sensor, found.reference))
        for found in sensor_frames(sensor)
    ]
    return Camera(sensor, frames, PRESETS[sensor], intrinsics(sensor), _calibrated(sensor, frames))


def _calibrated(sensor: str, frames: Sequence[JudgedFrame]) -> dict[int, Sensor]:
    """Estimate a sensor from frames that are not judged with it; there are none for a camera without a sequence.

    Kinect and cup: every second frame of the sequence that is not judged. Time of flight, which has ten frames in all:
    each half of them judges the sensor of the other half.
    """
    if sensor == "tof_pico_zense":
        halves = [frames[::2], frames[1::2]]
        found = [Sensor.estimate([frame.depth for frame in half], unit="mm") for half in halves]
        return {frame.number: found[1 - k] for k, half in enumerate(halves) for frame in half}
    if sensor == "realsense_d4xx_aims":
        return {}
    judged = {frame.number for frame in frames}
    others = {number: depth for number, depth in list(sequence(sensor).items())[::2] if number not in judged}
    moving = sensor == "kinect_v1_7scenes"
    estimated = Sensor.estimate(
        list(others.values()),
        unit="mm",
        poses=[pose(sensor, number) for number in others] if moving else None,
        intrinsics=intrinsics(sensor) if moving else None,
    )
    return dict.fromkeys(judged, estimated)


def simulated_camera(name: str, impulses: float, scenes: int, side: int | None = None) -> Camera:
    """Simulate frames of rooms; ``side`` cuts squares of so many pixels from their corners."""
    frames = []
    for number in range(scenes):
        truth = room(*OPTICS[name].range_mm, np.random.default_rng([number, 1]))[-side if side else 0 :, :side]
        frame = with_impulses(
            simulated_frame(name, truth, np.random.default_rng([number, 2])), impulses, np.random.default_rng(number)
        )
        frames.append(JudgedFrame(number, frame.depth, frame.truth, frame.std))
    focal = OPTICS[name].focal_px
    height, width = frames[0].depth.shape
    return Camera(name, frames, name, (focal, focal, width / 2, height / 2))


@dataclass(frozen=True)
class Filter:
    """A filter with its parameter, in mm or pixels, and the values that are tried."""

    restore: Callable[[DepthMap, float], DepthMap]
    grid: tuple[float, ...]

    def best(self, frames: Sequence[JudgedFrame]) -> float:
        """Choose the parameter with the least error over some frames."""
        return min(self.grid, key=lambda value: pooled_error(self.errors(frames, value)))

    def errors(self, frames: Sequence[JudgedFrame], parameter: float) -> list[Floats]:
        """Compute the errors of each frame."""
        return [frame.error(self.restore(frame.depth, parameter)) for frame in frames]


def _on_inverse(restore: Callable[[DepthMap, float], DepthMap]) -> Callable[[DepthMap, float], DepthMap]:
    """Apply a filter to inverse depths, scaled so that lengths at the median depth stay."""

    def applied(depth: DepthMap, parameter: float) -> DepthMap:
        scale = float(np.nanmedian(depth)) ** 2
        return scale / np.maximum(restore(scale / depth.astype(float), parameter), 1e-9)

    return applied


_STRENGTHS = tuple(float(value) for value in np.geomspace(5, 3200, 12))
FILTERS = {
    "median": Filter(lambda depth, size: median(depth, int(size)), (3, 5, 7, 9, 11, 13)),
    "bilateral": Filter(bilateral, _STRENGTHS),
    f"bilateral, {WIDE_PX:g} px": Filter(partial(bilateral, distance=WIDE_PX), _STRENGTHS[::2]),
    "TV-L2": Filter(tv_l2, _STRENGTHS),
    "TV-L2 on 1/z": Filter(_on_inverse(tv_l2), _STRENGTHS),
    "NL-means": Filter(nl_means, _STRENGTHS),
}


def pooled_error(errors: Sequence[Floats]) -> float:
    """Compute the 99 % RMSE over the pixels of all frames."""
    return rmse_99(np.concatenate(list(errors)))


def mean_error(errors: Sequence[Floats]) -> float:
    """Compute the mean over the frames of their 99 % RMSE."""
    return float(np.mean([rmse_99(each) for each in errors]))

"""What a sensor's law of noise changes: real frames restored without and with it, beside their references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from sparsedepth.data.sensor_frames import SENSORS, measured_std, sensor_frames
from sparsedepth.markdown import table
from sparsedepth.restore import denoise
from sparsedepth.sensors import Sensor
from sparsedepth.vocabulary import DepthMap
from sparsedepth_experiments._cache import cached_arrays, restoration_version
from sparsedepth_experiments._sensors_methods import PRESETS

FRAMES, SIDE = 3, 128
RAW, PAPER, PAPER_WITH, OURS, OURS_WITH = (
    "as measured",
    "ns-SC Φ1",
    "ns-SC Φ1, the sensor's variance",
    "denoise",
    "denoise, the sensor's law",
)


@dataclass(frozen=True, eq=False)
class Window:
    """The part of a frame with most of its reference, in mm."""

    sensor: str
    depth: DepthMap
    reference: DepthMap

    @property
    def variance(self) -> DepthMap:
        """The measured variance at these depths."""
        return np.square(measured_std(self.sensor, self.depth)).astype(np.float32)


METHODS: dict[str, Callable[[Window], DepthMap]] = {
    RAW: lambda w: w.depth,
    PAPER: lambda w: _as_paper(w),
    PAPER_WITH: lambda w: _as_paper(w, variance=w.variance),
    OURS: lambda w: denoise(w.depth, fill=False, threads=1).depth,
    OURS_WITH: lambda w: (
        denoise(w.depth, sensor=Sensor.preset(PRESETS[w.sensor]), unit="mm", fill=False, threads=1).depth
    ),
}


def _as_paper(window: Window, variance: DepthMap | None = None) -> DepthMap:
    return denoise(window.depth, dictionary="phi1", method="paper", variance=variance, fill=False, threads=1).depth


def windows(sensor: str, frames: int = FRAMES, side: int = SIDE) -> list[Window]:
    """Cut a window from each of the first frames of a sensor."""
    return [_window(sensor, f.depth, f.reference, side) for f in islice(sensor_frames(sensor), frames)]


def _window(sensor: str, depth: DepthMap, reference: DepthMap, side: int) -> Window:
    """Cut where most pixels have a reference and a measurement, on a grid of half a side."""
    known = np.isfinite(depth) & np.isfinite(reference)
    corners = [
        (top, left)
        for top in range(0, depth.shape[0] - side + 1, side // 2)
        for left in range(0, depth.shape[1] - side + 1, side // 2)
    ]
    top, left = max(corners, key=lambda c: int(known[c[0] : c[0] + side, c[1] : c[1] + side].sum()))
    rows, columns = slice(top, top + side), slice(left, left + side)
    return Window(sensor, depth[rows, columns], reference[rows, columns])


Errors = dict[str, dict[str, list[float]]]
"""sensor -> method -> (median error, RMSE) in mm, means over windows."""


def errors(chosen: Sequence[Window]) -> Errors:
    """Measure every method on windows, on the pixels that were measured and have a reference."""
    found: dict[str, dict[str, list[list[float]]]] = {}
    for window in chosen:
        for name in METHODS:
            error = np.abs(_restored(window, name) - window.reference)[np.isfinite(window.depth)]
            error = error[np.isfinite(error)].astype(np.float64)
            scores = [float(np.median(error)), float(np.sqrt(np.mean(error**2)))]
            found.setdefault(window.sensor, {}).setdefault(name, []).append(scores)
    return {s: {name: np.mean(v, axis=0).round(2).tolist() for name, v in by.items()} for s, by in found.items()}


def _restored(window: Window, name: str) -> DepthMap:
    """Restore a window, unless the result is cached."""
    version = restoration_version("default", "phi1")
    made = cached_arrays(
        f"{name}, {window.sensor}",
        version,
        [window.depth, window.variance],
        lambda: {"depth": METHODS[name](window)},
    )
    return made["depth"]


def section(found: Errors) -> list[str]:
    """Format the part of the page."""
    if not found:
        return []
    rows = [[f"`{s}`", *(f"{by[name][0]:.1f} / {by[name][1]:.1f}" for name in METHODS)] for s, by in found.items()]
    return [
        "## What the sensor's law changes",
        table(["median error / RMSE, mm", *METHODS], rows),
        f"Windows of {SIDE}x{SIDE} pixels of the first {FRAMES} frames of each sensor, where most of the reference is "
        "known; pixels that were measured. The variance of `ns-SC` is the sensor's at that depth, measured on "
        "recordings of the same data set; `denoise` takes the preset. These are development frames: "
        "[Sensors](sensors.md) measures the laws with care.",
    ]


def all_windows() -> list[Window]:
    return [window for sensor in SENSORS for window in windows(sensor)]

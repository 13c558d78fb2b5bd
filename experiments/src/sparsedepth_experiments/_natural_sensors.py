"""What a sensor's law of noise changes: real frames restored without and with it, beside their references."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np

from sparsedepth.data.sensor_frames import SENSORS, measured_std, sensor_frames
from sparsedepth.markdown import table
from sparsedepth.sensors import Sensor
from sparsedepth.vocabulary import DepthMap
from sparsedepth_experiments._methods import Method, Outcome, denoised
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


METHODS = (RAW, PAPER, PAPER_WITH, OURS, OURS_WITH)


def window_methods(window: Window) -> list[Method]:
    """List what is compared on a window."""
    as_paper = partial(denoised, dictionary="phi1", method="paper", fill=False)
    sensor = Sensor.preset(PRESETS[window.sensor])
    return [
        Method(RAW, lambda depth, _: Outcome(depth)),
        as_paper(PAPER),
        as_paper(PAPER_WITH, variance=window.variance),
        denoised(OURS, fill=False),
        denoised(OURS_WITH, sensor=sensor, unit="mm", fill=False),
    ]


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


def errors_of(window: Window, restored: DepthMap) -> tuple[float, float]:
    """Compute median error and RMSE on the pixels that were measured and have a reference."""
    error = np.abs(restored - window.reference)[np.isfinite(window.depth)]
    error = error[np.isfinite(error)].astype(np.float64)
    return float(np.median(error)), float(np.sqrt(np.mean(error**2)))


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

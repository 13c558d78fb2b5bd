"""Measure sensor models on real frames with references, on simulated sensors and on clean maps.

``python benchmarks/sensors.py all`` needs SPARSEDEPTH_DATA. It prints, for each sensor, the error left as a fraction of
the raw one, the honesty of the variance, its coverage and its deciles. "tuning", the default, and "check" in place of
"all" measure a part of the frames.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sparsedepth.data import middlebury, range_scans
from sparsedepth.data.rooms import room
from sparsedepth.data.sensor_frames import SENSORS, intrinsics, measured_std, pose, sensor_frames, sequence
from sparsedepth.sensors import Correlation, PowerLaw, Sensor, blind, smooth
from sparsedepth.sensors.simulate import simulate

Restore = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""A frame -> values and variances."""

TUNING = {
    "kinect_v1_7scenes": (40, 85, 120, 205, 240),
    "realsense_d4xx_aims": (88, 92, 96),
    "realsense_d4xx_cup": (14, 23, 32, 41, 50),
    "tof_pico_zense": (0, 1, 2, 3, 4),
}
"""Frames that settings are chosen on; the others are looked at rarely."""
MEDIAN = 0.455
"""Median of a squared standard normal number."""


@dataclass(frozen=True)
class Frame:
    """A frame, its reference, and the standard deviation of the sensor, in mm; NaN = missing."""

    sensor: str
    number: int
    depth: np.ndarray
    reference: np.ndarray
    std: np.ndarray


@dataclass(frozen=True)
class Score:
    """Error left, honesty and coverage of one frame."""

    raw: float
    left: float
    honesty: float
    within: float
    deciles: np.ndarray
    seconds: float
    changed: float


def frames(part: str = "tuning") -> list[Frame]:
    """Load the frames of all sensors: the part "tuning", "check" or "all"."""
    return [
        Frame(sensor, found.number, found.depth, found.reference, measured_std(sensor, found.reference))
        for sensor in SENSORS
        for found in sensor_frames(sensor)
        if part == "all" or (found.number in TUNING[sensor]) == (part == "tuning")
    ]


def rmse99(error: np.ndarray) -> float:
    """Compute the root mean square of the 99 % smallest errors."""
    squares = np.sort(error.ravel() ** 2)
    return float(np.sqrt(squares[: int(np.ceil(0.99 * len(squares)))].mean()))


def score(frame: Frame, restore: Restore) -> Score:
    """Measure one restoration of one frame."""
    start = time.process_time()
    value, variance = restore(frame.depth)
    seconds = time.process_time() - start
    judged = np.isfinite(frame.reference) & np.isfinite(frame.depth)
    before, after = ((m - frame.reference)[judged] / frame.std[judged] for m in (frame.depth, value))
    ratio = (value - frame.reference)[judged] ** 2 / variance[judged]
    order = np.argsort(variance[judged], kind="stable")
    deciles = np.array([np.median(part) / MEDIAN for part in np.array_split(ratio[order], 10)])
    changed = float((value != frame.depth)[judged].mean())
    return Score(
        rmse99(before),
        rmse99(after),
        float(np.median(ratio)) / MEDIAN,
        float((ratio < 4).mean()),
        deciles,
        seconds,
        changed,
    )


def table(name: str, part: list[Frame], restore: Callable[[Frame], tuple[np.ndarray, np.ndarray]]) -> None:
    """Print the scores of each sensor, means over its frames."""
    for sensor in dict.fromkeys(frame.sensor for frame in part):
        mine = [frame for frame in part if frame.sensor == sensor]
        got = [score(f, lambda _, f=f: restore(f)) for f in mine]
        left = np.mean([s.left for s in got]) / np.mean([s.raw for s in got])
        honesty = [s.honesty for s in got]
        deciles = np.exp(np.mean([np.log(s.deciles) for s in got], axis=0))
        print(
            f"{name:10s} {sensor:24s} left {left:.3f} error {np.mean([s.left for s in got]):.3f}  "
            f"honesty {np.median(honesty):.2f} ({min(honesty):.2f}-{max(honesty):.2f})  "
            f"within {np.mean([s.within for s in got]):.3f}  deciles {' '.join(f'{d:.2f}' for d in deciles)}"
            f"  {np.mean([s.seconds for s in got]):.2f} s",
            flush=True,
        )


def blindly(frame: Frame) -> tuple[np.ndarray, np.ndarray]:
    """Restore a frame with nothing but the frame; a clean map comes back as it is, with the variance of rounding."""
    sensor = blind.estimate(frame.depth)
    if sensor is None:
        return frame.depth, np.full(frame.depth.shape, 1e-12)
    return smooth.smooth(frame.depth, sensor)


PRESETS = {
    "kinect_v1_7scenes": "kinect_v1",
    "realsense_d4xx_aims": "realsense_d435",
    "realsense_d4xx_cup": "realsense_d455",
    "tof_pico_zense": "pico_zense",
}
"""Presets of the sensors of data/sensors."""


def calibrated() -> dict[str, Sensor]:
    """Estimate the sensors from frames: sequences, with poses for Kinect; no sequence of aims, hence its preset."""
    found = {"realsense_d4xx_aims": Sensor.preset("realsense_d435")}
    cup, kinect = (sequence(sensor) for sensor in ("realsense_d4xx_cup", "kinect_v1_7scenes"))
    found["realsense_d4xx_cup"] = Sensor.estimate(list(cup.values())[::2], unit="mm")
    zense = [frame.depth for frame in sensor_frames("tof_pico_zense")]
    found["tof_pico_zense"] = Sensor.estimate(zense[5:], unit="mm")
    found["kinect_v1_7scenes"] = Sensor.estimate(
        list(kinect.values())[::2],
        unit="mm",
        poses=[pose("kinect_v1_7scenes", number) for number in list(kinect)[::2]],
        intrinsics=intrinsics("kinect_v1_7scenes"),
    )
    return found


SIMULATED = {
    "kinect_v1": (900.0, 3000.0),
    "realsense_d435": (700.0, 4000.0),
    "realsense_d455": (500.0, 3500.0),
    "pico_zense": (680.0, 1300.0),
    "white": (800.0, 3000.0),
    "white, constant": (800.0, 3000.0),
    "near structured light": (300.0, 900.0),
}
"""Simulated sensors and the depths of their scenes, mm."""
OTHERS = {
    "white": Sensor(name="white", unit="mm", noise=PowerLaw(factor=2e-6), step=PowerLaw(constant=1.0), domain="1/z"),
    "white, constant": Sensor(name="white, constant", unit="mm", noise=PowerLaw(constant=4.0)),
    "near structured light": Sensor(
        unit="mm",
        noise=PowerLaw(factor=8e-7),
        step=PowerLaw(constant=0.1),
        correlation=Correlation(3.0, 2.0, 1.2, 0.3),
        domain="1/z",
    ),
}


def simulated(impulses: float = 0.0, scenes: int = 2) -> list[Frame]:
    """Simulate frames of all sensors, with impulses at a fraction of the pixels."""
    found = []
    for name, (near, far) in SIMULATED.items():
        sensor = replace(OTHERS[name] if name in OTHERS else Sensor.preset(name), outliers=0.0)
        for number in range(scenes):
            rng = np.random.default_rng([number, len(name)])
            truth = room(near, far, rng)
            depth = simulate(truth, sensor, rng)[0]
            hit = np.random.default_rng(number).random(depth.shape) < impulses
            depth = np.where(hit, np.random.default_rng(7).uniform(near, far, depth.shape), depth)
            found.append(Frame(name, number, depth, truth, sensor.std(truth)))
    return found


def lattice(frame: Frame, zoom: float = 1.64) -> Frame:
    """Scatter a frame on a finer grid, as a registration to a colour camera does; 37 % of the pixels are valid."""
    height, width = frame.depth.shape
    rows, columns = (np.round(np.arange(size) * zoom).astype(int) for size in (height, width))
    found = []
    for values in (frame.depth, frame.reference, frame.std):
        out = np.full((rows[-1] + 1, columns[-1] + 1), np.nan)
        out[np.ix_(rows, columns)] = values
        found.append(out)
    return Frame(frame.sensor, frame.number, *found)


def clean_maps() -> dict[str, np.ndarray]:
    """Load maps without dense noise of a camera: disparities of Middlebury and laser scans."""
    found = {f"middlebury {year} {n}": m for year in (2005, 2006) for n, m in enumerate(middlebury.disparities(year))}
    return found | {f"laser {name}": range_scans.scan(name) for name in range_scans.SCANS}


def controls() -> None:
    """Print which clean maps are called noisy, with the evidence."""
    for name, values in clean_maps().items():
        found = blind.diagnose(values)
        told = "no windows" if found is None else f"over step {found.over_step:.2f} evidence {found.evidence:.2f}"
        if found is not None and found.noisy:
            print(f"called noisy: {name}: {told}, std {np.median(found.sensor.std(values[np.isfinite(values)])):.3g}")


def main() -> None:
    """Run all measurements on the part of the frames that is asked for."""
    part = sys.argv[1] if len(sys.argv) > 1 else "tuning"
    real = frames(part)
    table("blind", real, blindly)
    known = calibrated()
    table("calibrated", real, lambda f: smooth.smooth(f.depth, known[f.sensor]))
    table("preset", real, lambda f: smooth.smooth(f.depth, Sensor.preset(PRESETS[f.sensor])))
    table("lattice", [lattice(f) for f in real[::3]], blindly)
    for impulses in (0.0, 0.01, 0.05):
        table(f"+{impulses:.0%}", simulated(impulses), blindly)
    controls()


if __name__ == "__main__":
    main()

"""Measure streams on recorded sequences and on simulated ones.

``python benchmarks/streams.py`` needs SPARSEDEPTH_DATA for the recorded part. What is measured:

* Error left: RMS of (result - reference) in standard deviations of the sensor at that depth, the largest 1 % left out.
  The squared standard error of the reference, in the same units, is taken off the mean square. It is divided by the
  same number of the raw frames. Only pixels that the raw frame measures are judged.
* Honesty: median of error^2 / (variance + squared standard error of the reference), over 0.455; 1 = honest.
* RealSense, static (`cup`): ten frames; reference: trimmed mean of the 21 frames after them, which the stream never
  sees. It is the mean of the sensor, so the fixed pattern is no error here: the preset is used without its pattern.
  The raw error is the mean of the ten frames.
* Time of flight: five of ten frames; reference: trimmed mean of the other five. Both halves are tried.
* Kinect: the last distinct frames before frames 240 and 260, with their poses; the references of the data folder, which
  contain some of these frames. "aligned": without poses. The raw error is that of the last frame.
* Simulated: a room by three sensors, 240 x 320. "uncovered": error over raw of pixels two frames after a ball has
  passed. "shadow": remembered pixels in its shadow that are wrong by more than 5 standard deviations. "flicker":
  standard deviation of the difference of successive frames, over the raw one. "slow": error over raw, and the median
  honesty, in a disc that approaches by so many standard deviations a frame, from the first changed frame on. "turning":
  error over that of single frames ("live" quality) of a camera without poses, with and without intrinsics.
* Time: CPU seconds a VGA frame, all in, the first frames and the estimate of the sensor included, and over those of
  ``cv2.bilateralFilter(d=9)`` in the same run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sparsedepth import Intrinsics, Origin, Restoration, Sensor, Stream
from sparsedepth.data.posed_rooms import BALLS_M, room_view, turned
from sparsedepth.data.sensor_frames import intrinsics, measured_std, pose, sensor_frames, sequence
from sparsedepth.sensors import PowerLaw
from sparsedepth.sensors.simulate import correlated_noise, simulate

MEDIAN = 0.455
"""Median of a squared standard normal number."""
KINECT, CUP, TOF = "kinect_v1_7scenes", "realsense_d4xx_cup", "tof_pico_zense"
SIMULATED = {
    "kinect_v1": Sensor.preset("kinect_v1"),
    "realsense_d455": replace(Sensor.preset("realsense_d455"), pattern=0.0),
    "time of flight": replace(Sensor.preset("pico_zense"), noise=PowerLaw(factor=1.5e-5), farthest=5000.0),
}
CAMERA, SHAPE = (285.0, 285.0, 159.5, 119.5), (240, 320)


class Reference:
    """A reference, its standard error, and the standard deviation of the sensor, all in mm."""

    def __init__(self, sensor: str, depth: np.ndarray, error: np.ndarray) -> None:
        self.depth, self.error, self.std = depth, error, measured_std(sensor, depth)

    @classmethod
    def mean_of(cls, sensor: str, frames: list[np.ndarray], least: int) -> Reference:
        """Average frames without what is farther than four standard deviations from their median."""
        stack = np.stack(frames)
        median = np.nanmedian(stack, 0)
        stack[~(np.abs(stack - median) <= 4 * measured_std(sensor, median))] = np.nan
        count = np.isfinite(stack).sum(0)
        mean = np.where(count >= least, np.nansum(stack, 0) / np.maximum(count, 1), np.nan)
        own = np.sqrt(np.nansum((stack - mean) ** 2, 0) / np.maximum(count - 1, 1) / np.maximum(count, 1))
        usual = measured_std(sensor, mean) / np.sqrt(np.maximum(count, 1))
        found = cls(sensor, mean, own if least > 5 else usual)
        found.depth = np.where(found.error < found.std / (3 if least > 5 else 1), mean, np.nan)
        return found

    def left(self, depth: np.ndarray, seen: np.ndarray) -> float:
        """Compute the error left."""
        known = np.isfinite(depth - self.depth) & np.isfinite(seen)
        size = np.sort(((depth - self.depth) / self.std)[known] ** 2)
        own = float(np.mean((self.error / self.std)[known] ** 2))
        return float(np.sqrt(max(size[: int(0.99 * len(size))].mean() - own, 0.0)))

    def honesty(self, result: Restoration, seen: np.ndarray) -> float:
        known = np.isfinite(result.depth - self.depth) & np.isfinite(seen)
        ratio = (result.depth - self.depth)[known] ** 2 / (result.variance + self.error**2)[known]
        return float(np.median(ratio)) / MEDIAN


def distinct(frames: dict[int, np.ndarray], last: int) -> list[int]:
    """List the numbers of the frames up to the last one that do not repeat the frame before."""
    numbers = [number for number in sorted(frames) if number <= last]
    return [
        number
        for before, number in zip([None, *numbers], numbers, strict=False)
        if before is None or not np.array_equal(frames[before], frames[number], equal_nan=True)
    ]


def print_ages(name: str, ages: dict[int, tuple[float, float]]) -> None:
    print(
        f"{name:38}", "  ".join(f"{age}: {left:.2f} ({honest:.2f})" for age, (left, honest) in ages.items()), flush=True
    )


def static(name: str, sensor: Sensor | None, frames: list[np.ndarray], reference: Reference) -> None:
    raw = float(np.mean([reference.left(frame, frame) for frame in frames]))
    results = list(Stream(sensor, unit="mm").each(frames))
    print_ages(
        name,
        {
            number + 1: (
                reference.left(results[number].depth, frames[number]) / raw,
                reference.honesty(results[number], frames[number]),
            )
            for number in (0, 2, 4, 6, 9)
            if number < len(frames)
        },
    )


def recorded() -> None:
    """Print the error left and the honesty against the number of frames."""
    print("error left (honesty) by number of frames")
    cup, tof = list(sequence(CUP).values()), [frame.depth for frame in sensor_frames(TOF)]
    far = Reference.mean_of(CUP, cup[10:], 8)
    for name, sensor in (("preset", replace(Sensor.preset("realsense_d455"), pattern=0.0)), ("unknown sensor", None)):
        static(f"RealSense, static, {name}", sensor, cup[:10], far)
    for name, sensor in (("preset", Sensor.preset("pico_zense")), ("unknown sensor", None)):
        for part in (slice(0, 5), slice(5, 10)):
            others = tof[5:] if part.start == 0 else tof[:5]
            static(f"time of flight, {name}", sensor, tof[part], Reference.mean_of(TOF, others, 4))
    for target in (240, 260):
        for name, sensor, posed in (
            ("poses, preset", "kinect_v1", True),
            ("poses, unknown sensor", None, True),
            ("aligned, preset", "kinect_v1", False),
        ):
            print_ages(f"Kinect {target}, {name}", kinect(target, sensor, posed))


def kinect(target: int, sensor: str | None, posed: bool) -> dict[int, tuple[float, float]]:
    frames, found = sequence(KINECT), {frame.number: frame for frame in sensor_frames(KINECT)}[target]
    reference, numbers = Reference(KINECT, found.reference, found.standard_error), distinct(frames, target)
    ages = {}
    for age in (1, 3, 5, 10):
        stream, result = Stream(sensor, Intrinsics(*intrinsics(KINECT)), unit="mm"), None
        for number in numbers[-age:]:
            place = pose(KINECT, number) / np.array([1, 1, 1, 1000.0]) if posed else None
            result = stream.push(frames[number], pose=place)
        assert result is not None
        last = frames[numbers[-1]]
        ages[age] = (reference.left(result.depth, last) / reference.left(last, last), reference.honesty(result, last))
    return ages


class Simulation:
    """A camera that takes frames of scenes in mm, with noise that is correlated in time."""

    def __init__(self, sensor: Sensor) -> None:
        self.sensor, self.rng, self.noise = sensor, np.random.default_rng(0), None

    def __call__(self, scene: np.ndarray) -> np.ndarray:
        fresh, rho = correlated_noise(scene.shape, self.sensor.correlation, self.rng), self.sensor.temporal
        self.noise = fresh if self.noise is None else rho * self.noise + np.sqrt(1 - rho**2) * fresh
        moved = scene / np.maximum(1 - self.noise * self.sensor.noise(scene) / scene, 0.2)
        silent = replace(self.sensor, noise=PowerLaw(), pattern=0.0, nearest=0.0, farthest=np.inf)
        return simulate(moved, silent, self.rng)[0]


def rms(errors: np.ndarray) -> float:
    """Compute the RMS without the largest 1 %."""
    size = np.sort(errors[np.isfinite(errors)] ** 2)
    return float(np.sqrt(size[: max(1, int(0.99 * len(size)))].mean()))


def moving_ball(sensor: Sensor) -> str:
    camera, stream = Simulation(sensor), Stream(sensor, unit="mm")
    empty = 1000 * room_view(np.eye(4), CAMERA, SHAPE)
    still = np.zeros(SHAPE, bool)
    still[150:, :100] = True
    covered, left, raw, wrong, holes, flicker, before = [], [], [], 0, 0, [], None
    for number in range(30):
        ball = (-1.0 + 0.1 * max(number - 10, 0), 0.0, 1.2, 0.25)
        view = 1000 * room_view(np.eye(4), CAMERA, SHAPE, (*BALLS_M, ball))
        frame, std, object_ = camera(view), sensor.std(view), view < empty - 10
        shadow = np.pad(object_, ((0, 0), (8, 0)))[:, :-8] & ~object_
        frame[shadow] = np.nan
        result = stream.push(frame)
        covered.append(object_ | shadow)
        if number > 13:
            uncovered = covered[-4] & ~covered[-3] & ~covered[-2] & ~covered[-1]
            left.append(((result.depth - view) / std)[uncovered])
            raw.append(((frame - view) / std)[uncovered])
            remembered = (result.origin == Origin.REMEMBERED) & shadow
            wrong += int((np.abs(result.depth - view) / std > 5)[remembered].sum())
            holes += int(shadow.sum())
        if before is not None and number > 15:
            flicker.append(rms((result.depth - before[0])[still]) / rms((frame - before[1])[still]))
        before = result.depth, frame
    uncovered_ratio = rms(np.concatenate(left)) / rms(np.concatenate(raw))
    return f"uncovered {uncovered_ratio:.2f}, shadow {wrong} of {holes}, flicker {np.median(flicker):.2f}"


def slow(sensor: Sensor, speed: float) -> str:
    camera, stream = Simulation(sensor), Stream(sensor, unit="mm")
    scene = 1000 * room_view(np.eye(4), CAMERA, SHAPE)
    rows, columns = np.mgrid[: SHAPE[0], : SHAPE[1]]
    disc = np.hypot(rows - 120, columns - 160) < 50
    left, raw, honest = [], [], []
    for number in range(36):
        view = scene - np.where(disc, speed * max(number - 12, 0) * sensor.std(scene), 0)
        frame = camera(view)
        result = stream.push(frame)
        if number > 12:
            left.append(rms(((result.depth - view) / sensor.std(view))[disc]))
            raw.append(rms(((frame - view) / sensor.std(view))[disc]))
            honest.append(np.median(((result.depth - view) ** 2 / result.variance)[disc]) / MEDIAN)
    ratio = np.sqrt(np.mean(np.square(left)) / np.mean(np.square(raw)))
    return f"slow {speed}: {ratio:.2f} ({np.median(honest):.2f})"


def turning(sensor: Sensor, camera: Intrinsics | None) -> float:
    take, stream, ratios = Simulation(sensor), Stream(sensor, camera, unit="mm"), []
    for number in range(20):
        view = 1000 * room_view(turned(0.01 * number, (0.01 * number, 0.0, 0.0)), CAMERA, SHAPE)
        frame, std = take(view), sensor.std(view)
        single = Stream(sensor, unit="mm").push(frame)
        ratios.append(rms((stream.push(frame).depth - view) / std) / rms((single.depth - view) / std))
    return max(ratios[3:])


def simulated() -> None:
    """Print the laws of moving objects, slow change and moving cameras."""
    for name, sensor in SIMULATED.items():
        print(f"{name}: {moving_ball(sensor)}", *(slow(sensor, speed) for speed in (0.2, 0.5, 1.0)), sep="; ")
        known, unknown = turning(sensor, Intrinsics(*CAMERA)), turning(sensor, None)
        print(f"{name}: turning, worst over single frames: aligned {known:.2f}, without intrinsics {unknown:.2f}")


def timed() -> None:
    """Print CPU seconds a frame of VGA, and over those of OpenCV's bilateral filter."""
    frames = sequence(KINECT)
    numbers = distinct(frames, max(frames))
    poses = {number: pose(KINECT, number) / np.array([1, 1, 1, 1000.0]) for number in numbers}
    camera, bilateral = Intrinsics(*intrinsics(KINECT)), seconds_of_bilateral(frames[numbers[0]])
    for name, stream, posed in (
        ("poses, preset", Stream("kinect_v1", camera, unit="mm"), True),
        ("poses, unknown sensor", Stream(None, camera, unit="mm"), True),
        ("aligned, preset", Stream("kinect_v1", camera, unit="mm"), False),
        ("taken for static, preset", Stream("kinect_v1", unit="mm"), False),
    ):
        start = time.process_time()
        for number in numbers:
            stream.push(frames[number], pose=poses[number] if posed else None)
        spent = (time.process_time() - start) / len(numbers)
        over = "" if bilateral is None else f", {spent / bilateral:.1f} times the bilateral filter"
        print(f"{name:28} {spent:.3f} CPU s a frame{over}")


def seconds_of_bilateral(depth: np.ndarray) -> float | None:
    try:
        import cv2
    except ImportError:
        return None
    cv2.setNumThreads(1)
    values, start = np.nan_to_num(depth).astype(np.float32), time.process_time()
    for _ in range(20):
        cv2.bilateralFilter(values, 9, 30.0, 4.0)
    return (time.process_time() - start) / 20


def main(parts: Iterator[str]) -> None:
    for part in parts:
        {"recorded": recorded, "simulated": simulated, "time": timed}[part]()


if __name__ == "__main__":
    main(iter(sys.argv[1:] or ("recorded", "simulated", "time")))

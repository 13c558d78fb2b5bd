"""Fill held-out holes of real depth frames. ``python benchmarks/sensor_holes.py`` needs SPARSEDEPTH_DATA.

For each sensor and each side it prints the errors of filled pixels, the share in mid-air, and the calibration of the
variance. Then come the CPU seconds of a frame, and the share of the real holes that is refused. ``--codes`` adds
`denoise` by sparse codes, as for a map without noise.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from sparsedepth import denoise
from sparsedepth.data import data_set
from sparsedepth.data.sensor_frames import INVALID_CODES, SENSORS, sensor_frames
from sparsedepth.files import read_array
from sparsedepth.holes import fill
from sparsedepth.sensors import Sensor, smooth

PRESETS: dict[str, str] = dict(
    zip(SENSORS, ("kinect_v1", "realsense_d435", "realsense_d455", "pico_zense"), strict=True)
)
"""Presets of the sensors of data/sensors."""
STEP_MM = 200.0
"""Steps of the scene beside which bands are held out."""
LEFT_PX = 3
"""Pixels of the far side that stay visible behind a held-out band."""
BLOCK_PX = 24
"""Length of a held-out band along its edge."""
MEDIAN = 0.455
"""Median of a squared standard normal number."""

Filler = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
"""(smoothed frame, its variance) -> (values, variances, refused pixels)."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Pixels that were held out, their truth, and the depth of the near side; NaN where there is no step."""

    where: np.ndarray
    truth: np.ndarray
    near: np.ndarray


def frames(sensor: str) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield number, depth and reference, in mm, of the frames of a sensor and of every eighth one of its sequence.

    Frames of the sequence have no reference: it is NaN.
    """
    for frame in sensor_frames(sensor):
        yield frame.number, frame.depth, frame.reference
    for path in sorted(data_set("sensors", sensor).glob("sequence/*_depth.png"))[::8]:
        depth = np.asarray(read_array(path), np.float32)
        missing = np.full(depth.shape, np.nan, np.float32)
        yield int(path.name.split("_")[0]), np.where(np.isin(depth, INVALID_CODES), missing, depth), missing


def shadow_widths(depth: np.ndarray) -> np.ndarray:
    """Measure the lengths of holes along rows whose two ends differ by more than `STEP_MM`, up to 48 px."""
    filled = np.where(np.isfinite(depth), depth, 0.0)
    edges = np.diff(np.pad(np.isnan(depth).astype(np.int8), ((0, 0), (1, 1))), axis=1)
    (rows, starts), stops = np.nonzero(edges == 1), np.nonzero(edges == -1)[1]
    inside = (starts > 0) & (stops < depth.shape[1])
    rows, starts, stops = rows[inside], starts[inside], stops[inside]
    step = np.abs(filled[rows, starts - 1] - filled[rows, stops]) > STEP_MM
    widths = (stops - starts)[step]
    return widths[(widths >= 2) & (widths <= 48)]


def hold_out_shadows(depth: np.ndarray, truth: np.ndarray, number: int) -> HeldOut:
    """Hide known background beside steps, as a shadow on that side would.

    A step is a pair of valid pixels, at most 2 px apart along a row, that differ by more than `STEP_MM`. Edges are cut
    into blocks of `BLOCK_PX` rows; half of them are used. Each gets the width of one real shadow of the frame. The
    pixels of the far side are hidden from the edge on over that width. A band ends before the first pixel that is
    missing, or that differs from the one before by more than `STEP_MM` / 4. It also ends where the sensor's standard
    deviation exceeds `STEP_MM` / 8. The last `LEFT_PX` pixels before such an end stay visible: a shadow has a far side.
    Frames of odd number are treated along columns instead. Truth is the smoothed frame before hiding.
    """
    rng = np.random.default_rng(number)
    widths = shadow_widths(depth)
    widths = widths if len(widths) else np.array([4, 8, 12])
    where, near = np.zeros(depth.shape, bool), np.full(depth.shape, np.nan)
    views = [part.T if number % 2 else part for part in (depth, truth, where, near)]
    for flip in (1, -1):
        _hide_rows([part[:, ::flip] for part in views], widths, rng)
    return HeldOut(where, np.where(np.isfinite(near), truth, np.nan), near)


def _hide_rows(views: list[np.ndarray], widths: np.ndarray, rng: np.random.Generator) -> None:
    """Hide bands to the right of steps whose near side is on the left, in place."""
    depth, truth, where, near = views
    height, width = depth.shape
    chosen = rng.choice(widths, (height // BLOCK_PX + 1, width // BLOCK_PX + 1))
    used = rng.random(chosen.shape) < 0.5
    for gap in (1, 2):
        step = depth[:, gap:] - depth[:, :-gap] > STEP_MM
        for row, column in zip(*np.nonzero(step), strict=True):
            block, first = (row // BLOCK_PX, column // BLOCK_PX), column + gap
            values = truth[row, first : first + chosen[block] + LEFT_PX]
            broken = ~(np.abs(np.diff(values)) < STEP_MM / 4)
            length = (int(np.argmax(broken)) + 1 if broken.any() else len(values)) - LEFT_PX
            if used[block] and length > 0 and not where[row, first : first + length].any():
                near[row, first : first + length] = depth[row, column]
                where[row, first : first + length] = True


def hold_out_pieces(depth: np.ndarray, truth: np.ndarray, number: int) -> HeldOut:
    """Hide 60 discs of 3 to 20 px radius anywhere in the frame; what is valid below them is the truth."""
    rng = np.random.default_rng(number)
    rows, columns = np.indices(depth.shape)
    where = np.zeros(depth.shape, bool)
    for _ in range(60):
        row, column, radius = rng.integers(depth.shape[0]), rng.integers(depth.shape[1]), rng.uniform(3, 20)
        where |= (rows - row) ** 2 + (columns - column) ** 2 < radius**2
    return HeldOut(where & np.isfinite(truth), truth, np.full(depth.shape, np.nan))


def ours(side: str) -> Filler:
    """Return the filling of `sparsedepth.holes` by a side."""

    def filler(value: np.ndarray, variance: np.ndarray):
        got = fill(value, variance, side)  # pyright: ignore[reportArgumentType]
        return got.value, got.variance, got.refused

    return filler


def by_codes(value: np.ndarray, variance: np.ndarray):
    """Fill by `denoise` as it is without a sensor."""
    got = denoise(value.astype(np.float32), sensor="clean", fill="surface", holes="all")
    return got.depth, got.variance, ~np.isfinite(got.depth)


@dataclass(eq=False)
class Tally:
    """Errors of one filler on the held-out pixels of all frames of a sensor, in parts."""

    errors: list[np.ndarray] = field(default_factory=list)
    ratios: list[np.ndarray] = field(default_factory=list)
    variances: list[np.ndarray] = field(default_factory=list)
    in_air: list[np.ndarray] = field(default_factory=list)
    refused: list[np.ndarray] = field(default_factory=list)
    refused_holes: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, got: tuple[np.ndarray, np.ndarray, np.ndarray], held_out: HeldOut, reference: np.ndarray) -> None:
        """Add a filled frame. Calibration is judged by the reference, whose noise is independent, where it is known."""
        value, variance, refused = got
        judged = held_out.where & ~refused
        known = judged & np.isfinite(reference)
        truth, near = held_out.truth[judged], held_out.near[judged]
        place = (value[judged] - near) / (truth - near)
        self.errors.append(value[judged] - truth)
        self.ratios.append((value - reference)[known] ** 2 / variance[known])
        self.variances.append(variance[known])
        self.in_air.append(((place > 0.2) & (place < 0.8))[np.isfinite(near)])
        self.refused.append(refused[held_out.where])

    def line(self) -> str:
        """Summarise: RMS and median error, share in mid-air, honesty, coverage of two deviations, share refused."""
        error, ratio, variance, air, refused = (
            np.concatenate(part) for part in (self.errors, self.ratios, self.variances, self.in_air, self.refused)
        )
        parts = np.array_split(ratio[np.argsort(variance, kind="stable")], 10)
        deciles = " ".join(f"{np.median(part) / MEDIAN:.2f}" for part in parts if len(part))
        return (
            f"n {len(error):6d}  RMS {np.sqrt(np.mean(error**2)):6.1f}  median {np.median(np.abs(error)):5.1f}  "
            f"mid-air {air.mean() if air.size else np.nan:.3f}  honesty {np.median(ratio) / MEDIAN:.2f}  within two "
            f"{(ratio < 4).mean():.3f}  refused {refused.mean():.3f}  deciles {deciles}  "
            f"{np.mean(self.seconds):.3f} s  refused of real holes {np.mean(self.refused_holes):.3f} "
            f"(most {max(self.refused_holes):.3f})"
        )


def measure(sensor: str, fillers: dict[str, Filler], hide: Callable[..., HeldOut], every: int = 1) -> dict[str, Tally]:
    """Hide pixels of all frames of a sensor, smooth what is left, and fill it.

    Errors are those against the smoothed frame before hiding, of pixels that are not refused. A pixel is in mid-air if
    it lies between 20 and 80 % of the way from the near side to the truth. Honesty is the median of error^2 / variance
    over its Gaussian value; the error is that against the reference then.
    """
    model, tallies = Sensor.preset(PRESETS[sensor]), {name: Tally() for name in fillers}
    for number, depth, reference in list(frames(sensor))[::every]:
        truth, noise = smooth.smooth(depth, model)
        held_out = hide(depth, np.where(noise < (STEP_MM / 8) ** 2, truth, np.nan), number)
        value, variance = smooth.smooth(np.where(held_out.where, np.nan, depth), model)
        for name, filler in fillers.items():
            start = time.process_time()
            got = filler(value, variance)
            tallies[name].seconds.append(time.process_time() - start)
            tallies[name].refused_holes.append(float(got[2][np.isnan(depth)].mean()))
            tallies[name].add(got, held_out, reference)
    return tallies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--codes", action="store_true")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--sides", nargs="*", default=["background", "nearest", "surface"])
    parser.add_argument("--sensors", nargs="*", default=SENSORS)
    chosen = parser.parse_args()
    fillers = {side: ours(side) for side in chosen.sides} | ({"codes": by_codes} if chosen.codes else {})
    for sensor in chosen.sensors:
        for hide in (hold_out_shadows, hold_out_pieces):
            for name, tally in measure(sensor, fillers, hide, chosen.every).items():
                print(f"{name:10s} {hide.__name__[9:]:7s} {sensor:20s} {tally.line()}", flush=True)


if __name__ == "__main__":
    main()

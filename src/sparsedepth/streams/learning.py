"""Learn the noise of an unknown sensor from the innovations of a stream."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsedepth.sensors import PowerLaw, Sensor, TableLaw, blind
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.vocabulary import Floats, Unit

CLIP, CLIPPED_SQUARE = 4.0, 0.9205
"""Largest square of a standard normal number that counts, and the mean of all then (textbook)."""
SCALE_STEPS = 8
"""Steps of the robust scale; each halves its error or better."""
ASSUMED_STD = 0.003
"""Standard deviation over depth of a sensor that one frame does not show; the mean of cameras at 1 to 2 m."""
SOURCE = "estimated from {} frames of a stream"
MIN_PIXELS_A_BIN = 200
"""Fewest pixels of a bin of depth (set by hand)."""
LEAST_SETTLED = 0.2
"""Least fraction of the known pixels that nothing has moved at (set by hand)."""
LARGEST_TEMPORAL = 0.6
"""Largest temporal correlation that is believed (set by hand)."""


def first_guess(depth: Floats, unit: Unit) -> Sensor:
    """Estimate a sensor from one frame (height, width), NaN = missing; one without visible noise gets little."""
    found = blind.diagnose(depth)
    if found is not None:
        return replace(found.sensor, unit=unit)
    middle = float(np.nanmedian(depth)) if np.isfinite(depth).any() else 1.0
    law = PowerLaw(factor=ASSUMED_STD / middle)
    return Sensor(name="assumed", unit=unit, noise=law, domain="1/z", sources={"noise": "assumed"})


def learned(
    sensor: Sensor, depth: Floats, squares: Floats, successive: Floats, frames: int, settings: StreamSettings
) -> Sensor:
    """Correct the noise of a sensor by innovations.

    Parameters
    ----------
    sensor
        The record so far.
    depth
        Depths of some pixels before the frame, flat.
    squares
        Squared innovations over their predicted variances there; NaN = none.
    successive
        Squared differences of successive frames over twice the predicted variance of one.
    frames
        Number of frames so far.
    settings
        Bins.

    Returns
    -------
    The record, with a table of noise against depth.
    """
    known = np.isfinite(squares)
    parts = _bins(depth[known], settings)
    if not parts:
        return sensor
    depths = np.array([np.median(depth[known][part]) for part in parts], float)
    ratio = np.clip([_scale(squares[known][part]) for part in parts], 1e-4, 1e4)
    rounding = np.square(sensor.step(depths)) / 12
    total = ratio * (np.square(sensor.noise(depths)) + rounding)
    noise = np.sqrt(np.maximum(total - rounding, 0.01 * total))
    source = SOURCE.format(frames)
    return replace(
        sensor,
        name=source,
        noise=_table(depths, noise),
        temporal=_temporal(successive[known], ratio, sensor, frames),
        sources={**sensor.sources, "noise": source, "temporal": source},
    )


def settled(count: Floats, frames: int) -> np.ndarray:
    """Find the pixels that show noise alone: nothing has moved there in the last half of the frames.

    Parameters
    ----------
    count
        Number of measurements in the mean of each pixel, flat.
    frames
        Number of frames so far.

    Returns
    -------
    True where noise can be learned; everywhere known if such pixels are few.
    """
    old = count >= frames // 2
    return old if old.sum() >= LEAST_SETTLED * (count > 0).sum() else count > 0


def _bins(depth: Floats, settings: StreamSettings) -> list[np.ndarray]:
    """Return the numbers of the pixels of rising bins of depth, each far wider than the noise."""
    if depth.size == 0:
        return []
    first, last = np.log(np.quantile(depth, [0.005, 0.995]))
    number = int(np.clip((last - first) / np.log(settings.learn_ratio), 1, settings.learn_bins))
    bins = np.digitize(np.log(depth), np.linspace(first, last, number + 1)[1:-1])
    parts = [np.flatnonzero(bins == each) for each in range(number)]
    return [part for part in parts if len(part) >= MIN_PIXELS_A_BIN]


def _table(depths: Floats, noise: Floats) -> TableLaw:
    """Return a table that goes on beyond its ends as z^2."""
    ends = np.array([depths[0] / 4, depths[-1] * 4])
    beyond = noise[[0, -1]] * np.square(ends / depths[[0, -1]])
    every = np.concatenate([ends[:1], depths, ends[1:]])
    return TableLaw(tuple(every), tuple(np.concatenate([beyond[:1], noise, beyond[1:]])))


def _temporal(successive: Floats, ratio: Floats, sensor: Sensor, frames: int) -> float:
    """Estimate the correlation of successive frames: their differences show less than all noise."""
    if frames < 8:
        return sensor.temporal
    shown = _scale(successive[np.isfinite(successive)]) / float(np.median(ratio))
    return float(np.clip(1 - shown, 0.0, LARGEST_TEMPORAL))


def _scale(squares: Floats) -> float:
    """Estimate the mean of squares without outliers: a mean, not a median, since quantised differences are often 0."""
    scale = max(float(squares.mean()), 1e-12)
    for _ in range(SCALE_STEPS):
        scale *= max(float(np.minimum(squares / scale, CLIP).mean()) / CLIPPED_SQUARE, 1e-3)
    return scale

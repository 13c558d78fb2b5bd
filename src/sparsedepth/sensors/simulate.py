"""Simulate the frames of a sensor from its record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from sparsedepth.sensors.laws import Correlation, Law, PowerLaw
from sparsedepth.sensors.record import Sensor
from sparsedepth.vocabulary import DepthMap, Floats, InputError


def simulate(depth: DepthMap, sensor: Sensor, rng: np.random.Generator, frames: int = 1) -> Floats:
    """Simulate frames of a static scene as a sensor delivers them.

    Parameters
    ----------
    depth
        True depths (height, width) in the unit of the sensor; NaN = missing.
    sensor
        The record of the sensor.
    rng
        Source of randomness.
    frames
        Number of consecutive frames.

    Returns
    -------
    (frames, height, width), quantised; depths beyond the range of the sensor become NaN.

    Examples
    --------
    >>> scene = np.full((32, 32), 1000.0)
    >>> stack = simulate(scene, Sensor.preset("kinect_v1"), np.random.default_rng(0), frames=2)
    >>> stack.shape, len(np.unique(stack)) < 20
    ((2, 32, 32), True)
    """
    truth = np.asarray(depth, float)
    if truth.ndim != 2:
        raise InputError(f"the scene has shape {truth.shape}; give one map of (height, width)")
    in_range = (truth >= sensor.nearest) & (truth <= sensor.farthest)
    truth = np.where(in_range, truth, np.nan)
    pattern = sensor.pattern * correlated_noise(truth.shape, sensor.correlation, rng)
    noise = _in_time(truth.shape, sensor, rng, frames)
    measured = np.stack([_moved(truth, sensor, frame + pattern) for frame in noise])
    return quantised(_with_outliers(measured, sensor, rng), sensor.step)


def simulate_each(scenes: Iterable[DepthMap], sensor: Sensor, rng: np.random.Generator) -> Iterator[Floats]:
    """Simulate the frames of a scene that may move, one after the other.

    Parameters
    ----------
    scenes
        True depths (height, width) of each frame, in the unit of the sensor; NaN = missing. They may have no end.
    sensor
        The record of the sensor.
    rng
        Source of randomness.

    Yields
    ------
    (height, width), quantised; depths beyond the range of the sensor become NaN. The fixed pattern stays.

    Examples
    --------
    >>> scenes = (np.full((32, 32), depth) for depth in (1000.0, 1010.0))
    >>> len(list(simulate_each(scenes, Sensor.preset("kinect_v1"), np.random.default_rng(0))))
    2
    """
    pattern: Floats | None = None
    noise = np.zeros(())
    for scene in scenes:
        truth = np.where((scene >= sensor.nearest) & (scene <= sensor.farthest), scene, np.nan)
        fresh = correlated_noise(truth.shape, sensor.correlation, rng)
        if pattern is None:
            pattern, noise = sensor.pattern * correlated_noise(truth.shape, sensor.correlation, rng), fresh
        else:
            noise = sensor.temporal * noise + np.sqrt(1 - sensor.temporal**2) * fresh
        yield quantised(_with_outliers(_moved(truth, sensor, noise + pattern), sensor, rng), sensor.step)


def correlated_noise(shape: tuple[int, int], correlation: Correlation, rng: np.random.Generator) -> Floats:
    """Draw Gaussian noise of variance one with a given correlation, by its spectrum.

    Parameters
    ----------
    shape
        Height and width in pixels.
    correlation
        Correlation against distance.
    rng
        Source of randomness.

    Returns
    -------
    (height, width) of standard normal numbers.
    """
    reach = int(np.ceil(6 * max(correlation.along_rows, correlation.along_columns))) + 1
    height, width = (size + reach for size in shape)
    rows, columns = (np.minimum(np.arange(size), size - np.arange(size)) for size in (height, width))
    spectrum = np.maximum(np.fft.rfft2(correlation(rows[:, None], columns[None, :])).real, 0.0)
    drawn = np.fft.irfft2(np.fft.rfft2(rng.standard_normal((height, width))) * np.sqrt(spectrum), s=(height, width))
    return drawn[: shape[0], : shape[1]]


def quantised(depth: Floats, step: Law) -> Floats:
    """Round depths to the codes of a sensor.

    Parameters
    ----------
    depth
        Depths of any shape.
    step
        Distance between adjacent codes against depth; the zero law leaves depths unchanged.

    Returns
    -------
    Depths at codes; where the law is quadratic, codes are uniform in inverse depth.
    """
    if isinstance(step, PowerLaw) and step.constant == step.factor == 0:
        return depth
    if isinstance(step, PowerLaw) and step.factor == 0:
        return np.round(depth / step.constant) * step.constant
    known = depth[np.isfinite(depth) & (depth > 0)]
    if known.size == 0:
        return depth
    knots = np.geomspace(known.min() * 0.99, known.max() * 1.01, 4096)
    codes = _integral(1 / step(knots), knots)
    return np.interp(np.round(np.interp(depth, knots, codes)), codes, knots)


def _integral(values: Floats, knots: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.diff(knots) * (values[1:] + values[:-1]) / 2)])


def _in_time(shape: tuple[int, int], sensor: Sensor, rng: np.random.Generator, frames: int) -> list[Floats]:
    """Draw noise of variance one for each frame, an autoregression of first order."""
    drawn = [correlated_noise(shape, sensor.correlation, rng)]
    for _ in range(frames - 1):
        fresh = correlated_noise(shape, sensor.correlation, rng)
        drawn.append(sensor.temporal * drawn[-1] + np.sqrt(1 - sensor.temporal**2) * fresh)
    return drawn


def _moved(truth: Floats, sensor: Sensor, noise: Floats) -> Floats:
    """Add noise in the domain where it is stationary."""
    std = sensor.noise(truth)
    if sensor.domain == "1/z":
        return truth / np.maximum(1 - noise * std / truth, 0.2)
    return truth * np.exp(noise * std / truth) if sensor.domain == "log z" else truth + noise * std


def _with_outliers(measured: Floats, sensor: Sensor, rng: np.random.Generator) -> Floats:
    """Replace a fraction of the pixels by depths anywhere between the nearest and the farthest measured one."""
    if sensor.outliers == 0 or sensor.outlier_kind == "none" or not np.isfinite(measured).any():
        return measured
    hit: NDArray[np.bool_] = rng.random(measured.shape) < sensor.outliers
    anywhere = rng.uniform(np.nanmin(measured), np.nanmax(measured), measured.shape)
    return np.where(hit & np.isfinite(measured), anywhere, measured)

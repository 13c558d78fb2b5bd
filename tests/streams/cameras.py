"""Simulated cameras for the laws of streams."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsedepth.sensors import Correlation, PowerLaw, Sensor
from sparsedepth.sensors.simulate import simulate

SIMPLE = Sensor(unit="mm", noise=PowerLaw(constant=5.0), domain="z")
"""White noise of 5 mm."""
STEREO = Sensor(
    unit="mm",
    noise=PowerLaw(factor=2.6e-6),
    step=PowerLaw(factor=1e-6),
    correlation=Correlation(5.0, 4.0, 1.6, 0.04),
    temporal=0.1,
    domain="1/z",
)
"""Correlated noise in disparity."""
MEDIAN = 0.455
"""Median of a squared standard normal number."""


class Camera:
    """Takes frames of scenes in mm, each with noise of its own."""

    def __init__(self, sensor: Sensor = SIMPLE, seed: int = 0) -> None:
        self.sensor = replace(sensor, temporal=0.0)
        self.rng = np.random.default_rng(seed)

    def __call__(self, scene: np.ndarray) -> np.ndarray:
        return simulate(scene, self.sensor, self.rng)[0]


def wall(shape: tuple[int, int] = (96, 128)) -> np.ndarray:
    """A slanted wall, about 1.2 m away."""
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    return 1200.0 + 0.5 * columns + 0.3 * rows


def error(result, scene, sensor, where=None) -> float:
    """RMS error in standard deviations of the sensor, the worst 1 % left out."""
    found = np.abs((result - scene) / sensor.std(scene))[... if where is None else where]
    found = np.sort(found[np.isfinite(found)].ravel())
    return float(np.sqrt(np.mean(found[: int(0.99 * len(found))] ** 2)))


def honesty(result, scene, where=None) -> float:
    """Median of error^2 / variance over that of a Gaussian; 1 = honest."""
    ratio = ((result.depth - scene) ** 2 / result.variance)[... if where is None else where]
    return float(np.median(ratio[np.isfinite(ratio)])) / MEDIAN

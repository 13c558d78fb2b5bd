"""Scores of the sensor experiment: error left, calibration of the variance, holes, CPU time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsedepth.sensors import Sensor
from sparsedepth.vocabulary import Floats, Origin
from sparsedepth_experiments._sensors_methods import (
    FILTERS,
    TUNING_STEP,
    Camera,
    JudgedFrame,
    mean_error,
    pooled_error,
    restored,
)

GAUSSIAN_MEDIAN = 0.455
"""Median of a squared standard normal number."""
DECILES = 10


@dataclass(frozen=True)
class Error:
    """Error of a method: over the pixels of all frames, and the mean of the frames."""

    pooled: float
    mean: float
    parameter: float | None = None

    @classmethod
    def of(cls, errors: Sequence[Floats], parameter: float | None = None) -> Error:
        """Compute both errors."""
        return cls(pooled_error(errors), mean_error(errors), parameter)


@dataclass(frozen=True)
class Score:
    """Result of the sensor-aware method in one mode on the frames of one camera.

    Parameters
    ----------
    error
        Error left, in standard deviations of the sensor.
    ratio
        Median of squared error over variance, over 0.455; 1 = calibrated.
    within
        Fraction of the pixels within two predicted standard deviations.
    deciles
        The ratio in tenths of the pixels, smallest variance first.
    filled, refused
        Fractions of the missing pixels.
    seconds
        CPU seconds a frame, the estimate of the sensor included.
    """

    error: Error
    ratio: float
    within: float
    deciles: tuple[float, ...]
    filled: float
    refused: float
    seconds: float


def error_of_raw(camera: Camera) -> Error:
    """Compute the error of the frames as they are."""
    return Error.of([frame.error(frame.depth) for frame in camera.frames])


def errors_of_filters(camera: Camera) -> dict[str, Error]:
    """Compute the errors of the filters, with the parameters that suit every third frame best."""
    found = {}
    for name, each in FILTERS.items():
        parameter = each.best(camera.frames[::TUNING_STEP])
        found[name] = Error.of(each.errors(camera.frames, parameter), parameter)
    return found


def score(camera: Camera, sensor_of: Callable[[JudgedFrame], Sensor | None]) -> Score:
    """Restore all frames of a camera and compare with their references."""
    errors, squares, variances, origins, seconds = [], [], [], [], []
    for frame in camera.frames:
        sensor, start = sensor_of(frame), time.process_time()
        result = restored(frame.depth, sensor)
        seconds.append(time.process_time() - start)
        judged = np.isfinite(frame.depth) & np.isfinite(frame.reference)
        errors.append(frame.error(result.depth))
        squares.append(((result.depth - frame.reference)[judged] ** 2).astype(float))
        variances.append(result.variance[judged].astype(float))
        origins.append(result.origin[np.isnan(frame.depth)])
    ratio, variance, origin = np.concatenate(squares), np.concatenate(variances), np.concatenate(origins)
    ratio = ratio / variance
    tenths = np.array_split(ratio[np.argsort(variance, kind="stable")], DECILES)
    return Score(
        Error.of(errors),
        float(np.median(ratio)) / GAUSSIAN_MEDIAN,
        float((ratio < 4).mean()),
        tuple(float(np.median(tenth)) / GAUSSIAN_MEDIAN for tenth in tenths),
        _fraction(origin, Origin.FILLED),
        _fraction(origin, Origin.REFUSED),
        float(np.mean(seconds)),
    )


def _fraction(origins: NDArray[np.uint8], origin: Origin) -> float:
    """Compute the fraction of pixels of one origin; 0 where there are none."""
    return float((origins == origin).mean()) if origins.size else 0.0

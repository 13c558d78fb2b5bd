"""Calibrate a sensor from several frames, with the evidence: errors of the record, and what was not measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparsedepth.sensors import blind
from sparsedepth.sensors.estimate import Measurement, binned_std, measure, sensor_of, unbiased_errors
from sparsedepth.sensors.record import Sensor
from sparsedepth.sensors.settings import DEFAULT, SensorSettings
from sparsedepth.sensors.windows import N_TERMS, fit_windows
from sparsedepth.vocabulary import DepthMap, Floats, Unit

POINTS = 40
"""Bins of depth that show the standard deviation."""
TRIMMED_EFFICIENCY = 0.63
"""Efficiency of the standard deviation of the smallest 80 % of Gaussian errors (derived from `error_fraction`)."""
FILTERED_BINS = 2.2
"""Variance of one normal number over that of the median of three (textbook): adjacent bins are filtered so."""
NARROW_RANGE = 1.3
"""Farthest over nearest depth below which frames do not show how noise grows."""
FINE_STEP = 0.05
"""Step over the standard deviation below which no quantisation is seen; continuous white noise shows 0.035."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Measured quantities behind the record of a sensor; lengths are in its unit.

    Parameters
    ----------
    n_frames, n_pixels
        Distinct frames, and pixels that enough of them measure.
    moving
        Whether the camera moved.
    nearest, farthest, median
        Depths of the scene: 1 % quantile, 99 % quantile and median.
    depths, stds
        (n,), standard deviation over time, quantisation included, against depth.
    autocorrelation
        (2, lags), along rows and along columns; lags in pixels from zero.
    step_depths, steps
        (m,), observed steps against depth, of several frames.
    pattern
        (height, width), deviation of the mean frame from smooth surfaces in standard deviations of the noise. NaN
        where the surface is not smooth, and everywhere if the camera moved.
    effective_samples
        Independent samples behind the standard deviation at the median depth.
    """

    n_frames: int
    n_pixels: int
    moving: bool
    nearest: float
    farthest: float
    median: float
    depths: Floats
    stds: Floats
    autocorrelation: Floats
    step_depths: Floats
    steps: Floats
    pattern: DepthMap
    effective_samples: float


@dataclass(frozen=True, eq=False)
class Calibration:
    """The record of a sensor and the evidence for it.

    Parameters
    ----------
    sensor
        The record, equal to that of `Sensor.estimate`.
    evidence
        The measured quantities.
    """

    sensor: Sensor
    evidence: Evidence

    def temporal_std(self, depth: Floats | float) -> Floats:
        """Compute the standard deviation over time, which has no fixed pattern, of the record.

        Parameters
        ----------
        depth
            Depths in the unit of the sensor; any shape.

        Returns
        -------
        Standard deviations in the same unit, of the same shape.
        """
        return np.hypot(self.sensor.noise(depth), self.sensor.step(depth) / blind.ROUNDING)

    @property
    def standard_error(self) -> float:
        """Standard error of the standard deviation at the median depth, in the unit of the sensor."""
        samples = TRIMMED_EFFICIENCY * self.evidence.effective_samples
        return float(self.temporal_std(self.evidence.median) / np.sqrt(2 * max(samples, 1.0)))

    @property
    def scatter(self) -> float:
        """Relative deviation of the measured standard deviations from the record, over all bins of depth."""
        ratio = np.log(self.evidence.stds / self.temporal_std(self.evidence.depths))
        return float(np.sqrt(np.mean(np.clip(ratio, -1.0, 1.0) ** 2)))

    @property
    def not_measured(self) -> list[str]:
        """Properties of the sensor that the frames cannot show, each with the reason."""
        seen, missing = self.evidence, []
        if seen.moving:
            missing.append("the fixed pattern (the camera moved)")
            missing.append("the errors of the poses (they count as noise)")
        elif not np.isfinite(seen.pattern).any():
            missing.append("the fixed pattern (the scene has no smooth surfaces)")
        if seen.farthest < NARROW_RANGE * seen.nearest:
            missing.append("the growth of the noise with depth (the scene has nearly one depth)")
        if (self.sensor.step(seen.depths) < FINE_STEP * self.temporal_std(seen.depths)).all():
            missing.append("the quantisation (the steps are far below the noise)")
        missing.append(f"errors that are smooth over more than {DEFAULT.window_px} pixels, such as those of the lens")
        return missing

    def summary(self) -> str:
        """Describe the errors of the record in sentences.

        Returns
        -------
        Text with the number of frames and pixels, the depths, the standard error, and what was not measured.

        Examples
        --------
        >>> wall = 1000.0 + np.random.default_rng(0).normal(0.0, 5.0, (6, 64, 96))
        >>> calibrate(wall, unit="mm").summary().split(";")[0]
        '6 frames with 6144 pixels from 994.9 to 1005 mm'
        """
        seen, unit = self.evidence, self.sensor.unit and f" {self.sensor.unit}"
        std = float(self.temporal_std(seen.median))
        return (
            f"{seen.n_frames} frames with {seen.n_pixels} pixels from {seen.nearest:.4g} to {seen.farthest:.4g}{unit}; "
            f"the standard deviation at the median depth of {seen.median:.4g}{unit} is {std:.3g}{unit}, with a "
            f"statistical error of {self.standard_error:.1g}{unit} ({self.standard_error / std:.1%}); surfaces of one "
            f"depth differ by {self.scatter:.0%}. "
            f"Not measured: {'; '.join(self.not_measured)}."
        )


def calibrate(
    frames: Sequence[DepthMap] | Floats,
    *,
    unit: Unit = "",
    name: str = "",
    poses: Sequence[Floats] | None = None,
    intrinsics: tuple[float, float, float, float] | None = None,
    settings: SensorSettings = DEFAULT,
) -> Calibration:
    """Estimate the record of a sensor from at least five frames, and keep the evidence.

    Parameters
    ----------
    frames
        Maps (height, width) of one scene, positive, in one unit; NaN = missing. Repeated frames are left out.
    unit, name
        Unit of the maps, and a name for the record.
    poses
        Camera-to-world matrices (4, 4) of a moving camera, in the unit of the maps; None = a static camera.
    intrinsics
        (fx, fy, cx, cy) in pixels; wanted with poses.
    settings
        Thresholds of the estimate.

    Returns
    -------
    The record, equal to that of `Sensor.estimate`, with the evidence.

    Raises
    ------
    InputError
        If there are fewer than five distinct frames, or if they cannot show one static scene.

    Examples
    --------
    >>> wall = 1000.0 + np.random.default_rng(0).normal(0.0, 5.0, (6, 64, 96))
    >>> found = calibrate(wall, unit="mm")
    >>> round(float(found.sensor.noise(1000.0))), found.standard_error < 0.2
    (5, True)
    """
    found = measure(frames, poses, intrinsics, settings)
    sensor = sensor_of(found, unit=unit, name=name, settings=settings)
    return Calibration(sensor, _evidence(found, sensor, frames, settings))


def _evidence(
    found: Measurement, sensor: Sensor, frames: Sequence[DepthMap] | Floats, settings: SensorSettings
) -> Evidence:
    known = found.mean[np.isfinite(found.mean)]
    nearest, median, farthest = (float(depth) for depth in np.quantile(known, [0.01, 0.5, 0.99]))
    depths, stds = binned_std(unbiased_errors(found.stack, found.mean), found.mean, POINTS, settings)
    step_depths, steps = _steps(frames, settings)
    return Evidence(
        n_frames=len(found.stack),
        n_pixels=known.size,
        moving=found.moving,
        nearest=nearest,
        farthest=farthest,
        median=median,
        depths=depths,
        stds=stds,
        autocorrelation=found.autocorrelation,
        step_depths=step_depths,
        steps=steps,
        pattern=_pattern_map(found, sensor, settings),
        effective_samples=_effective_samples(found, sensor, settings),
    )


def _effective_samples(found: Measurement, sensor: Sensor, settings: SensorSettings) -> float:
    """Count the independent samples of a bin of depth and its neighbours.

    The variance of a mean square of correlated Gaussian noise grows by the sum of the squared correlations.
    """
    height, width = found.mean.shape[0], found.mean.shape[1]
    rows, columns = np.arange(1 - height, height)[:, None], np.arange(1 - width, width)[None, :]
    pairs = (1 - np.abs(rows) / height) * (1 - np.abs(columns) / width)
    in_space = float((pairs * sensor.correlation(rows, columns) ** 2).sum())
    in_time = (1 + sensor.temporal**2) / (1 - sensor.temporal**2)
    count = np.isfinite(found.stack).sum() - np.isfinite(found.mean).sum()  # each pixel has lost its mean
    return float(FILTERED_BINS * count / settings.error_bins / (in_space * in_time))


def _steps(frames: Sequence[DepthMap] | Floats, settings: SensorSettings) -> tuple[Floats, Floats]:
    """Measure the steps of several frames, as they came."""
    every = max(1, len(frames) // settings.inflation_frames)
    maps = [np.asarray(frame, float) for frame in frames[::every]]
    laws = [blind.step_law(np.where(depth > 0, depth, np.nan), settings) for depth in maps]
    tables = [law for law in laws if law is not None]
    return (
        np.concatenate([law.depths for law in tables] or [np.zeros(0)]),
        np.concatenate([law.lengths for law in tables] or [np.zeros(0)]),
    )


def _pattern_map(found: Measurement, sensor: Sensor, settings: SensorSettings) -> DepthMap:
    """Compute the deviations of the mean frame from smooth surfaces, window by window, over the noise."""
    side, picture = settings.window_px, np.full(found.mean.shape, np.nan)
    height, width = found.mean.shape[0], found.mean.shape[1]
    if found.moving:
        return picture
    for top in range(0, height - side + 1, side):
        for left in range(0, width - side + 1, side):
            window = slice(top, top + side), slice(left, left + side)
            depth = found.mean[window]
            picture[window] = _deviation(1 / depth, settings) * -(depth**2) / sensor.noise(depth)
    return picture


def _deviation(inverse: Floats, settings: SensorSettings) -> Floats:
    """Compute the deviation of one window from a quadratic surface, in its own unit; NaN where it does not fit."""
    fits = fit_windows(inverse, settings)
    if len(fits.std) == 0:
        return np.full(inverse.shape, np.nan)
    residual, inlier = fits.residual[0].reshape(inverse.shape), fits.inlier[0].reshape(inverse.shape)
    own = np.sqrt((residual[inlier] ** 2).sum() / max(inlier.sum() - N_TERMS, 1))
    return np.where(inlier, residual * fits.std[0] / max(own, 1e-12), np.nan)

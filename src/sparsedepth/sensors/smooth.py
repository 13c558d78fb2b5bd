"""Smooth a frame as far as the noise of its sensor allows, with the variance that is left."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from sparsedepth.sensors.cells import cell_side, first_of_cells, mean_of_cells, spread_cells
from sparsedepth.sensors.filters import filled, slopes, tilted_bilateral, total_variation
from sparsedepth.sensors.laws import Correlation
from sparsedepth.sensors.outliers import find_outliers
from sparsedepth.sensors.record import Sensor
from sparsedepth.sensors.settings import DEFAULT, SensorSettings
from sparsedepth.sensors.variance import squared_residual, variance_ratio
from sparsedepth.sensors.windows import visible_fraction
from sparsedepth.vocabulary import DepthMap, Floats, InputError

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Scale:
    """Depth counted in standard deviations: u = integral dz / sigma(z), the domain where noise is stationary."""

    depths: Floats
    counts: Floats

    @classmethod
    def of(cls, depth: DepthMap, sensor: Sensor, fraction: float, wider: float = 1.0) -> Scale:
        """Build the scale for the depths of a map, and for ``wider`` ones by a ratio.

        A ``fraction`` of the standard deviation is one unit.
        """
        known = depth[depth > 0] if (depth > 0).any() else np.ones(1)
        knots = np.geomspace(known.min() * 0.98 / wider, known.max() * 1.02 * wider, 1024 if wider == 1 else 4096)
        std = sensor.std(knots)
        if not (std > 0).all():
            raise InputError("the sensor has no noise at some depth of the frame; give it noise or a step there")
        density = 1 / (fraction * std)
        counts = np.concatenate([[0.0], np.cumsum(np.diff(knots) * (density[1:] + density[:-1]) / 2)])
        return cls(knots, counts)

    def count(self, depth: Floats) -> Floats:
        """Convert depths to counts; NaN stays NaN."""
        return np.interp(depth, self.depths, self.counts).astype(np.float32)

    def depth(self, count: Floats) -> Floats:
        """Convert counts to depths."""
        return np.interp(count, self.counts, self.depths)


def smooth(
    depth: DepthMap, sensor: Sensor, outlier_mask: Mask | None = None, settings: SensorSettings = DEFAULT
) -> tuple[Floats, Floats]:
    """Smooth a frame under the noise of its sensor.

    Parameters
    ----------
    depth
        (height, width), positive, in the unit of the sensor; NaN = missing.
    sensor
        Noise, correlation and quantisation.
    outlier_mask
        (height, width), true where a pixel must not be believed; None = find them.
    settings
        Scales of the filter.

    Returns
    -------
    value
        (height, width), float64; NaN where the depth is NaN. Outliers follow their surroundings.
    variance
        (height, width), in squared units of the map: noise, quantisation, bias of smoothing and outliers; inf where
        the depth is NaN.

    Examples
    --------
    >>> from sparsedepth.sensors.laws import PowerLaw
    >>> rng = np.random.default_rng(0)
    >>> noisy = 1000.0 + rng.normal(0.0, 5.0, (64, 64))
    >>> value, variance = smooth(noisy, Sensor(unit="mm", noise=PowerLaw(constant=5.0)))
    >>> bool(np.std(value) < 1.5), bool(np.sqrt(np.median(variance)) < 3)
    (True, True)
    """
    smoothed = Smoother.fit(depth, sensor, settings, outlier_mask).of_sample
    return smoothed.value, smoothed.variance


@dataclass(frozen=True, eq=False)
class Smoothed:
    """A smoothed frame, (height, width)."""

    value: Floats
    """NaN where the frame is."""
    variance: Floats
    """Infinite where the frame is NaN."""
    outlier: Mask


@dataclass(frozen=True)
class Usual:
    """Medians over a sample of a frame; NaN = not measured yet."""

    residual: float = float("nan")
    """Of squared residuals."""
    ratio: float = float("nan")
    """Of the variance after smoothing over that before."""


@dataclass(frozen=True, eq=False)
class Smoother:
    """Smooths all parts of a frame alike, by what was measured on a sample of it."""

    sensor: Sensor
    settings: SensorSettings
    scale: Scale
    fraction: float
    """Fraction of the standard deviation that is one unit of the scale."""
    cell: int
    """Side of the cells of a lattice; 1 = a dense frame."""
    usual: Usual
    of_sample: Smoothed

    @classmethod
    def fit(
        cls,
        sample: DepthMap,
        sensor: Sensor,
        settings: SensorSettings = DEFAULT,
        outlier_mask: Mask | None = None,
        wider: float = 1.0,
    ) -> Smoother:
        """Smooth a sample, and keep what is usual in it.

        Parameters are those of `smooth`; other parts may have depths that are ``wider`` by a ratio.
        """
        values = _checked(sample, settings)
        cell = cell_side(np.isfinite(values), settings)
        fraction = max(visible_fraction(sensor.correlation.scaled(1 / cell), settings), settings.min_visible)
        scale = Scale.of(values, sensor, fraction, wider)
        fitted = cls(sensor, settings, scale, fraction, cell, Usual(), _nothing(values))
        smoothed, usual = fitted._smooth(values, outlier_mask)
        return replace(fitted, usual=usual, of_sample=smoothed)

    def __call__(self, depth: DepthMap) -> Smoothed:
        """Smooth another part of the frame."""
        return self._smooth(_checked(depth, self.settings), None)[0]

    def _smooth(self, values: Floats, outlier_mask: Mask | None) -> tuple[Smoothed, Usual]:
        valid = np.isfinite(values)
        if not valid.any():
            return _nothing(values), self.usual
        hidden = None if outlier_mask is None else np.asarray(outlier_mask, bool) & valid
        never = np.zeros(values.shape, bool)
        if self.cell > self.settings.largest_cell_px:
            return self._in_depths(values, np.ones(values.shape), valid, never), self.usual
        if self.cell > 1:
            return self._smooth_cells(values, valid, (never if hidden is None else hidden) | (values <= 0))
        counted = self.scale.count(values)
        outlier = (find_outliers(counted, self.settings) if hidden is None else hidden) | (values <= 0)
        smoothed, ratio, usual = self._smooth_counts(counted, outlier, self.sensor.correlation)
        return self._in_depths(self.scale.depth(smoothed), ratio, valid, outlier), usual

    def _smooth_counts(self, counted: Floats, outlier: Mask, correlation: Correlation) -> tuple[Floats, Floats, Usual]:
        """Smooth values in standard deviations; return them with the ratio of the variance after to that before."""
        settings, used = self.settings, np.isfinite(counted) & ~outlier
        if not used.any():
            used, outlier = np.isfinite(counted), np.zeros_like(outlier)
        complete = filled(counted, used, settings.outlier_sigmas)
        pilot = total_variation(complete, settings.tv_weight, settings.tv_iterations)
        smoothed, samples = tilted_bilateral(counted, pilot, used, settings)
        around = squared_residual(counted - smoothed, used, settings)
        usual = self.usual if self.usual.residual > 0 else Usual(max(float(np.median(around[used])), 1e-6))
        excess = around / usual.residual
        ratio = variance_ratio(counted - smoothed, excess, samples, used, correlation, settings)
        ratio = self.sensor.inflation * ratio
        usual = usual if usual.ratio > 0 else replace(usual, ratio=float(np.median(ratio[used])))
        step = _step_around(pilot) * self.fraction**2
        return smoothed, np.where(outlier, settings.outlier_ratio * np.maximum(ratio, usual.ratio) + step, ratio), usual

    def _in_depths(self, value: Floats, ratio: Floats, valid: Mask, outlier: Mask) -> Smoothed:
        """Return values and variances in the unit of the map; no variance falls below that of rounding."""
        at = np.where(valid, value, 1.0)
        variance = np.maximum(ratio * self.sensor.std(at) ** 2, self.sensor.step(at) ** 2 / 12)
        return Smoothed(np.where(valid, value, np.nan), np.where(valid, variance, np.inf), outlier & valid)

    def _smooth_cells(self, values: Floats, valid: Mask, hidden: Mask) -> tuple[Smoothed, Usual]:
        """Smooth a lattice of valid pixels in cells: average those of a cell that agree, and smooth the averages.

        Pixels are moved to the centre of their cell along the slope of the surface, and back. A pixel that disagrees
        with the first one of its cell or with the result, across a step of the scene, keeps its value.
        """
        settings, cell, shape = self.settings, self.cell, values.shape
        counted = np.where(hidden, np.float32(np.nan), self.scale.count(values))
        rise = _rise_within_cells(counted, cell, settings)
        level = counted - rise
        agrees = np.abs(level - spread_cells(first_of_cells(level, cell), cell, shape)) <= settings.outlier_sigmas
        means = mean_of_cells(np.where(agrees, level, np.nan), cell).astype(np.float32)
        correlation = self.sensor.correlation.scaled(1 / cell)
        lonely = find_outliers(means, settings)
        smoothed, ratio, usual = self._smooth_counts(means, lonely, correlation)
        smoothed, ratio, lonely = (spread_cells(part, cell, shape) for part in (smoothed, ratio, lonely))
        agrees &= (np.abs(level - smoothed) <= settings.outlier_sigmas) | lonely
        value = np.where(agrees | hidden, self.scale.depth(smoothed + rise), values)
        ratio = np.where(hidden, settings.outlier_ratio * ratio, np.where(agrees, ratio, 1.0))
        return self._in_depths(value, ratio, valid, hidden | (lonely & agrees)), usual


def _checked(depth: DepthMap, settings: SensorSettings) -> Floats:
    """Return a frame as float64, NaN where it is not finite; refuse one with many depths that are not positive."""
    values = np.asarray(depth, float)
    if values.ndim != 2:
        raise InputError(f"the frame has shape {values.shape}; give one map of (height, width)")
    values = np.where(np.isfinite(values), values, np.nan)
    known = np.isfinite(values)
    if (values[known] <= 0).sum() > settings.most_nonpositive * known.sum():
        raise InputError(f"the frame holds depths down to {values[known].min():g}; give positive ones, NaN = missing")
    return values


def _nothing(values: Floats) -> Smoothed:
    return Smoothed(np.full(values.shape, np.nan), np.full(values.shape, np.inf), np.zeros(values.shape, bool))


def _rise_within_cells(counted: Floats, cell: int, settings: SensorSettings) -> Floats:
    """Compute the rise of the surface from the centre of its cell to each pixel."""
    first = first_of_cells(counted, cell)
    pilot = total_variation(filled(first, np.isfinite(first)), settings.tv_weight, settings.tv_iterations)
    steeper = replace(settings, slope_limit=cell * settings.slope_limit, slope_clip=cell * settings.slope_clip)
    down, across = (spread_cells(slope, cell, counted.shape) for slope in slopes(pilot, steeper))
    place = [(np.arange(size) % cell - (cell - 1) / 2) / cell for size in counted.shape]
    return (down * place[0][:, None] + across * place[1][None, :]).astype(np.float32)


def _step_around(pilot: Floats) -> Floats:
    """Compute the squared half range of the pilot in 3 x 3 pixels."""
    return ((ndimage.maximum_filter(pilot, 3) - ndimage.minimum_filter(pilot, 3)) / 2) ** 2

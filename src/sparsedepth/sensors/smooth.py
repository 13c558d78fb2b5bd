"""Smooth a frame as far as the noise of its sensor allows, with the variance that is left."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from sparsedepth.sensors.cells import cell_side, first_of_cells, mean_of_cells, spread_cells
from sparsedepth.sensors.filters import filled, slopes, tilted_bilateral, total_variation
from sparsedepth.sensors.outliers import find_outliers
from sparsedepth.sensors.record import Sensor
from sparsedepth.sensors.settings import DEFAULT, SensorSettings
from sparsedepth.sensors.variance import variance_ratio
from sparsedepth.sensors.windows import visible_fraction
from sparsedepth.vocabulary import DepthMap, Floats, InputError

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Scale:
    """Depth counted in standard deviations: u = integral dz / sigma(z), the domain where noise is stationary."""

    depths: Floats
    counts: Floats

    @classmethod
    def of(cls, depth: DepthMap, sensor: Sensor, fraction: float) -> Scale:
        """Build the scale for the depths of a map; ``fraction`` of the standard deviation is one unit."""
        known = depth[np.isfinite(depth)]
        knots = np.geomspace(known.min() * 0.98, known.max() * 1.02, 1024)
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
    values = np.asarray(depth, float)
    if values.ndim != 2:
        raise InputError(f"the frame has shape {values.shape}; give one map of (height, width)")
    valid = np.isfinite(values)
    values = np.where(valid, values, np.nan)
    if not valid.any():
        return np.full(values.shape, np.nan), np.full(values.shape, np.inf)
    if values[valid].min() <= 0:
        raise InputError(f"the frame holds depths down to {values[valid].min():g}; give positive ones, NaN = missing")
    cell = cell_side(valid, settings)
    mask = None if outlier_mask is None else np.asarray(outlier_mask, bool)
    if cell > settings.largest_cell_px:
        return _in_depths(values, np.ones(values.shape), valid, sensor)
    if cell > 1:
        return _smoothed_cells(values, valid, sensor, mask, cell, settings)
    return _smoothed(values, valid, sensor, mask, settings)


def _smoothed(
    values: Floats, valid: Mask, sensor: Sensor, outlier_mask: Mask | None, settings: SensorSettings
) -> tuple[Floats, Floats]:
    """Smooth a dense frame."""
    fraction = max(visible_fraction(sensor.correlation, settings), settings.min_visible)
    scale = Scale.of(values, sensor, fraction)
    counted = scale.count(values)
    outlier = find_outliers(counted, settings) if outlier_mask is None else outlier_mask & valid
    smoothed, ratio = _smoothed_counts(counted, outlier, sensor, fraction, settings)
    return _in_depths(scale.depth(smoothed), ratio, valid, sensor)


def _smoothed_counts(
    counted: Floats, outlier: Mask, sensor: Sensor, fraction: float, settings: SensorSettings
) -> tuple[Floats, Floats]:
    """Smooth values in standard deviations; return them with the ratio of the variance after to that before."""
    used = np.isfinite(counted) & ~outlier
    if not used.any():
        used, outlier = np.isfinite(counted), np.zeros_like(outlier)
    pilot = total_variation(filled(counted, used, settings.outlier_sigmas), settings.tv_weight, settings.tv_iterations)
    smoothed, samples = tilted_bilateral(counted, pilot, used, settings)
    ratio = sensor.inflation * variance_ratio(counted, smoothed, samples, used, sensor.correlation, settings)
    replaced = settings.outlier_ratio * np.maximum(ratio, np.median(ratio[used])) + _step_around(pilot) * fraction**2
    return smoothed, np.where(outlier, replaced, ratio)


def _in_depths(value: Floats, ratio: Floats, valid: Mask, sensor: Sensor) -> tuple[Floats, Floats]:
    """Return values and variances in the unit of the map; no variance falls below that of rounding."""
    at = np.where(valid, value, 1.0)
    variance = np.maximum(ratio * sensor.std(at) ** 2, sensor.step(at) ** 2 / 12)
    return np.where(valid, value, np.nan), np.where(valid, variance, np.inf)


def _smoothed_cells(
    values: Floats, valid: Mask, sensor: Sensor, outlier_mask: Mask | None, cell: int, settings: SensorSettings
) -> tuple[Floats, Floats]:
    """Smooth a lattice of valid pixels in cells: average those of a cell that agree, and smooth the averages.

    Pixels are moved to the centre of their cell along the slope of the surface, and back. A pixel that disagrees with
    the first one of its cell or with the result, across a step of the scene, keeps its value.
    """
    shrunk = replace(sensor, correlation=sensor.correlation.scaled(1 / cell))
    fraction = max(visible_fraction(shrunk.correlation, settings), settings.min_visible)
    scale = Scale.of(values, sensor, fraction)
    hidden = np.zeros_like(valid) if outlier_mask is None else outlier_mask & valid
    counted = np.where(hidden, np.float32(np.nan), scale.count(values))
    rise = _rise_within_cells(counted, cell, settings)
    level = counted - rise
    agrees = np.abs(level - spread_cells(first_of_cells(level, cell), cell, values.shape)) <= settings.outlier_sigmas
    means = mean_of_cells(np.where(agrees, level, np.nan), cell).astype(np.float32)
    outlier = find_outliers(means, settings)
    smoothed, ratio = _smoothed_counts(means, outlier, shrunk, fraction, settings)
    smoothed, ratio, outlier = (spread_cells(part, cell, values.shape) for part in (smoothed, ratio, outlier))
    agrees &= (np.abs(level - smoothed) <= settings.outlier_sigmas) | outlier
    value = np.where(agrees | hidden, scale.depth(smoothed + rise), values)
    ratio = np.where(hidden, settings.outlier_ratio * ratio, np.where(agrees, ratio, 1.0))
    return _in_depths(value, ratio, valid, sensor)


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

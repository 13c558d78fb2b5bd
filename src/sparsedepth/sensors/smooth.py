"""Smooth a frame as far as the noise of its sensor allows, with the variance that is left."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from sparsedepth.sensors.cells import cell_side, first_of_cells, mean_of_cells, spread_cells
from sparsedepth.sensors.record import Correlation, Sensor
from sparsedepth.sensors.settings import DEFAULT, SensorSettings
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
    >>> from sparsedepth.sensors.record import PowerLaw
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


def find_outliers(counted: Floats, settings: SensorSettings = DEFAULT) -> Mask:
    """Find pixels that nearly none of their 24 neighbours support and that continue no line.

    Parameters
    ----------
    counted
        (height, width) in standard deviations of the noise; NaN = missing.
    settings
        Distance within which pixels support each other, and the least fraction that must.

    Returns
    -------
    (height, width), true at outliers.
    """
    limit = np.float32(settings.outlier_sigmas)
    padded = np.pad(counted, 2, constant_values=np.nan)
    support, neighbours = (np.zeros(counted.shape, np.uint8) for _ in range(2))
    for rows, columns in _half_offsets(2, 1):
        for side in (_shifted(padded, rows, columns), _shifted(padded, -rows, -columns)):
            away = side - counted
            support += np.abs(away, out=away) < limit
            neighbours += np.isfinite(side)
    lonely = np.isfinite(counted) & (support < np.float32(settings.outlier_support) * neighbours)
    return lonely & ~_on_line(padded, limit)


def _on_line(padded: Floats, limit: np.float32) -> Mask:
    """Find pixels in the middle of two opposite neighbours, at both distances in one of four directions.

    A steep surface, or one of few pixels, has few neighbours of equal depth, but continues along some line.
    """
    centre = _shifted(padded, 0, 0)
    found = np.zeros(centre.shape, bool)
    for rows, columns in _half_offsets(1, 1):
        along = np.ones(centre.shape, bool)
        for distance in (1, 2):
            ahead, behind = (_shifted(padded, sign * distance * rows, sign * distance * columns) for sign in (1, -1))
            along &= np.abs((ahead + behind) * np.float32(0.5) - centre) < limit
        found |= along
    return found


def _shifted(padded: Floats, rows: int, columns: int) -> Floats:
    """Return the view of a map, padded by two, whose pixels lie so many rows and columns ahead."""
    height, width = padded.shape
    return padded[2 + rows : height - 2 + rows, 2 + columns : width - 2 + columns]


def filled(values: Floats, used: Mask, limit: float = np.inf) -> Floats:
    """Fill pixels that are not used: by the median of at least three adjacent used ones, or by the nearest used one.

    Parameters
    ----------
    values
        (height, width).
    used
        (height, width), true where a value may be used.
    limit
        Largest difference of two values that may be averaged.

    Returns
    -------
    (height, width), finite.
    """
    if used.all():
        return values
    index = ndimage.distance_transform_edt(~used, return_distances=False, return_indices=True)
    complete = values[tuple(np.asarray(index))]
    rows, columns = np.nonzero(~used)
    padded = np.pad(np.where(used, values, np.float32(np.nan)), 1, constant_values=np.nan)
    around = [(down, across) for down in range(3) for across in range(3) if (down, across) != (1, 1)]
    nearby = np.sort(np.stack([padded[rows + down, columns + across] for down, across in around], axis=1), axis=1)
    count = np.isfinite(nearby).sum(1)
    enough = count >= 3
    low, high = ((nearby[np.arange(len(rows)), np.maximum(number, 0)]) for number in ((count - 1) // 2, count // 2))
    nearest = complete[rows, columns]
    middle = np.where(high - low < limit, (low + high) / 2, np.where(nearest - low < high - nearest, low, high))
    complete[rows[enough], columns[enough]] = middle[enough]
    return complete


def total_variation(values: Floats, weight: float, iterations: int) -> Floats:
    """Minimise ``|p - values|^2 / 2 + weight * TV(p)`` by the fast gradient projection of Beck and Teboulle.

    Parameters
    ----------
    values
        (height, width), finite.
    weight
        In the unit of the values.
    iterations
        Number of steps.

    Returns
    -------
    (height, width), float32.
    """
    data = values.astype(np.float32)
    across, down = np.zeros_like(data), np.zeros_like(data)
    ahead_across, ahead_down, momentum = across, down, 1.0
    for _ in range(iterations):
        primal = data + np.float32(weight) * _divergence(ahead_across, ahead_down)
        new_across, new_down = ahead_across.copy(), ahead_down.copy()
        primal *= np.float32(1 / (8 * weight))
        new_across[:, :-1] += np.diff(primal, axis=1)
        new_down[:-1] += np.diff(primal, axis=0)
        norm = np.maximum(np.sqrt(new_across * new_across + new_down * new_down), np.float32(1))
        new_across /= norm
        new_down /= norm
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        push = np.float32((momentum - 1) / following)
        ahead_across = new_across + push * (new_across - across)
        ahead_down = new_down + push * (new_down - down)
        across, down, momentum = new_across, new_down, following
    return data + np.float32(weight) * _divergence(across, down)


def _divergence(across: Floats, down: Floats) -> Floats:
    total = across + down
    total[:, 1:] -= across[:, :-1]
    total[1:] -= down[:-1]
    return total


def slopes(pilot: Floats, settings: SensorSettings = DEFAULT) -> tuple[Floats, Floats]:
    """Estimate the slope of the surface along columns and rows, without the steps of the scene.

    Parameters
    ----------
    pilot
        (height, width), smooth.
    settings
        Size of the window and largest slope.

    Returns
    -------
    Slopes a pixel along columns (down) and along rows (across).
    """
    rises = [ndimage.sobel(pilot, axis) * np.float32(1 / 8) for axis in (0, 1)]
    widest = np.float32(settings.slope_clip)
    first = [_blurred(np.clip(rise, -widest, widest), settings.slope_px) for rise in rises]
    limit = np.float32(settings.slope_limit)
    near = [np.abs(rise - mean) < limit for rise, mean in zip(rises, first, strict=True)]
    gentle = (near[0] & near[1]).astype(np.float32)
    total = _blurred(gentle, settings.slope_px) + np.float32(1e-6)
    down, across = (_blurred(rise * gentle, settings.slope_px) / total for rise in rises)
    return down, across


def tilted_bilateral(
    counted: Floats, pilot: Floats, used: Mask, settings: SensorSettings = DEFAULT
) -> tuple[Floats, Floats]:
    """Average pixels of the same tilted surface, on a grid wider than the correlation of the noise.

    Parameters
    ----------
    counted
        (height, width), noisy values in standard deviations.
    pilot
        (height, width), a smooth version that decides which pixels belong together.
    used
        (height, width), true where a value may be averaged.
    settings
        Grid and widths.

    Returns
    -------
    The averages, and the number of samples ``(sum w)^2 / sum w^2`` in each.
    """
    down, across = slopes(pilot, settings)
    weight = used.astype(np.float32)
    total, squares = weight.copy(), weight.copy()
    shown = np.where(used, counted, np.float32(0))
    sums = shown.copy()
    for rows, columns, spatial in _grid(settings):
        first, second = _pair(pilot.shape, rows, columns)
        rise = (down[first] + down[second]) * np.float32(rows / 2) + (across[first] + across[second]) * np.float32(
            columns / 2
        )
        away = pilot[second] - pilot[first]
        away -= rise
        away *= away
        away *= np.float32(-0.5 / settings.range_sigmas**2)
        kernel = np.exp(away, out=away)
        kernel *= np.float32(spatial)
        for target, source, sign in ((first, second, -1), (second, first, 1)):
            part = kernel * weight[source]
            total[target] += part
            sums[target] += part * (shown[source] + np.float32(sign) * rise)
            part *= part
            squares[target] += part
    lonely = total < 1e-3
    smoothed = np.where(lonely, pilot, sums / np.where(lonely, np.float32(1), total))
    return smoothed, np.where(lonely, 1.0, total**2 / np.where(lonely, np.float32(1), squares))


def _grid(settings: SensorSettings) -> list[tuple[int, int, float]]:
    """List half of the offsets with their spatial weights: a wide grid, and the adjacent pixels."""
    wide = [
        (rows, columns, float(np.exp(-0.5 * (rows**2 + columns**2) / settings.spatial_px**2)))
        for rows, columns in _half_offsets(settings.reach_px, settings.stride_px)
    ]
    return wide + [(rows, columns, settings.near_weight) for rows, columns in _half_offsets(1, 1)]


def _half_offsets(reach: int, stride: int) -> list[tuple[int, int]]:
    """List one of each two opposite offsets (rows, columns) within a square."""
    steps = range(-reach, reach + 1, stride)
    return [(rows, columns) for rows in steps for columns in steps if (rows, columns) > (0, 0)]


def _pair(shape: tuple[int, ...], rows: int, columns: int) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Return the slices of the pixels that have a partner at an offset, and of the partners."""
    height, width = shape
    first = slice(0, max(height - rows, 0)), slice(max(0, -columns), max(width - max(0, columns), 0))
    second = slice(min(rows, height), height), slice(min(max(0, columns), width), max(width + min(0, columns), 0))
    return first, second


def _blurred(values: Floats, std_px: float) -> Floats:
    return ndimage.gaussian_filter(values, std_px, truncate=3.0)


def variance_ratio(
    counted: Floats,
    smoothed: Floats,
    samples: Floats,
    used: Mask,
    correlation: Correlation,
    settings: SensorSettings = DEFAULT,
) -> Floats:
    """Predict the variance after smoothing as a ratio of that before.

    White noise falls with the number of samples. Correlated noise falls as the mean correlation within their area, and
    a part of it is too long to fall. Where residuals are larger than usual, structure was smoothed too. A pixel far
    from its smoothed value is an outlier or a small structure, with some probability.

    Parameters
    ----------
    counted, smoothed
        (height, width), before and after, in standard deviations that windows show.
    samples
        (height, width), number of samples averaged.
    used
        (height, width), true where a value was averaged.
    correlation
        Spatial correlation of the noise.
    settings
        Fraction of unseen noise, window of residuals.

    Returns
    -------
    (height, width).
    """
    kept = mean_correlation(samples, correlation, settings)
    correlated = np.maximum(kept, _unseen(correlation, settings))
    ratio = settings.bias + correlation.white / samples + (1 - correlation.white) * correlated
    around = _squared_residual(counted - smoothed, used, settings)
    usual = max(float(np.median(around[used])), 1e-6)
    excess = np.clip(around / usual, settings.least_excess, settings.largest_excess) ** settings.excess_power
    doubtful = np.where(used, np.maximum((counted - smoothed) ** 2 - settings.misfit_from**2, 0), 0)
    return np.minimum(ratio * excess, settings.largest_ratio) + settings.misfit * doubtful


def _squared_residual(residual: Floats, used: Mask, settings: SensorSettings) -> Floats:
    """Average squared residuals around each pixel, without the part that adjacent pixels do not share."""
    share = used.astype(np.float32)
    clipped = np.where(used, np.clip(residual, -3, 3), 0).astype(np.float32)
    if settings.detail_px > 0:
        clipped = _blurred(clipped, settings.detail_px) / np.maximum(
            _blurred(share, settings.detail_px), np.float32(0.05)
        )
    total = np.maximum(_blurred(share, settings.residual_px), np.float32(1e-3))
    return _blurred(clipped * clipped * share, settings.residual_px) / total


def mean_correlation(samples: Floats, correlation: Correlation, settings: SensorSettings = DEFAULT) -> Floats:
    """Compute the mean correlation of two samples of a Gaussian window, by the number of samples on the grid.

    Parameters
    ----------
    samples
        Number of samples; each stands for one cell of the grid.
    correlation
        Spatial correlation; its white part is left out.
    settings
        Stride of the grid.

    Returns
    -------
    Mean correlations, in the shape of the samples.
    """
    variances = np.geomspace(0.05, 4000.0, 64)
    distance = (np.arange(400) + 0.5) * 0.25
    shape = np.exp(-((distance / _length(correlation)) ** correlation.exponent))
    density = distance * np.exp(-(distance**2) / (2 * variances[:, None]))
    means = (density * shape).sum(1) / np.maximum(density.sum(1), 1e-300)
    area = settings.stride_px**2 * samples
    return np.interp(2 * area / (4 * np.pi), variances, means)


def _length(correlation: Correlation) -> float:
    return max(float(np.sqrt(correlation.along_rows * correlation.along_columns)), 0.2)


def _unseen(correlation: Correlation, settings: SensorSettings) -> float:
    """Predict the fraction of correlated noise that is longer than any window: the longer, the longer its tail."""
    ramp = (_length(correlation) - settings.unseen_from_px) / (settings.unseen_to_px - settings.unseen_from_px)
    return settings.unseen * float(np.clip(ramp, 0.0, 1.0))


def _step_around(pilot: Floats) -> Floats:
    """Compute the squared half range of the pilot in 3 x 3 pixels."""
    return ((ndimage.maximum_filter(pilot, 3) - ndimage.minimum_filter(pilot, 3)) / 2) ** 2

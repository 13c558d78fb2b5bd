"""Estimate the sensor of one frame from nothing but the frame."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sparsedepth.sensors.cells import cell_side
from sparsedepth.sensors.differences import white_std
from sparsedepth.sensors.laws import Correlation, TableLaw
from sparsedepth.sensors.record import Domain, Sensor
from sparsedepth.sensors.settings import DEFAULT, SensorSettings
from sparsedepth.sensors.windows import WindowFits, estimate_correlation, fit_windows, visible_fraction
from sparsedepth.vocabulary import DepthMap, Floats, InputError

ROUNDING = np.sqrt(12.0)
"""A step over the standard deviation of its rounding (textbook)."""


@dataclass(frozen=True)
class Diagnosis:
    """Evidence of dense noise in one frame.

    Parameters
    ----------
    sensor
        The estimated sensor, whether or not the noise is certain.
    windows
        Number of windows that show noise.
    explained
        Fraction of the dense windows that a surface explains.
    over_step
        Residuals of the quietest windows, in standard deviations of rounding.
    sharpness
        Sharpness of the floor of residuals: the ratio of their 10 % to their 40 % quantile.
    evidence
        Sharpness times the largest fraction of windows with about the same residuals; 1 = the same everywhere.
    white
        White noise, by differences of adjacent pixels, over all noise at the median depth; NaN = not measured, since
        other evidence is against dense noise.
    noisy
        Whether the frame has dense noise.
    visible
        Whether nearly all windows show more than rounding.
    """

    sensor: Sensor
    windows: int
    explained: float
    over_step: float
    sharpness: float
    evidence: float
    white: float
    noisy: bool
    visible: bool

    @property
    def law(self) -> TableLaw:
        """Standard deviation of one measurement against depth, at the knots of noise and step."""
        laws = (self.sensor.noise, self.sensor.step)
        depths = np.unique(np.concatenate([law.depths for law in laws if isinstance(law, TableLaw)]))
        return TableLaw(tuple(depths), tuple(self.sensor.std(depths)))


def estimate(depth: DepthMap, settings: SensorSettings = DEFAULT) -> Sensor | None:
    """Estimate the sensor of a frame; None = a map without dense noise.

    Noise has a sharp floor: nearly all windows show at least that much. The residuals of clean maps spread down to
    their rounding, or to zero.

    Parameters
    ----------
    depth
        (height, width) in any unit; NaN = missing. Impulses and holes are allowed.
    settings
        Thresholds.

    Returns
    -------
    The record in the unit of the map, or None.

    Examples
    --------
    >>> from sparsedepth.sensors.laws import PowerLaw
    >>> from sparsedepth.sensors.simulate import simulate
    >>> rows, columns = np.mgrid[:128, :160]
    >>> wall = 1000.0 + 2.0 * columns + rows
    >>> estimate(wall) is None
    True
    >>> truth = Sensor(unit="mm", noise=PowerLaw(constant=5.0), correlation=Correlation(2.0, 2.0))
    >>> sensor = estimate(simulate(wall, truth, np.random.default_rng(0))[0])
    >>> sensor is not None and 4 < float(sensor.std(1200.0)) < 6
    True
    """
    found = diagnose(depth, settings)
    return found.sensor if found is not None and found.noisy else None


def diagnose(depth: DepthMap, settings: SensorSettings = DEFAULT) -> Diagnosis | None:
    """Measure the noise of a frame and the evidence for it; None = too few windows to see any.

    Parameters
    ----------
    depth
        (height, width) in any unit; NaN = missing.
    settings
        Thresholds.

    Returns
    -------
    The estimated sensor with the evidence.
    """
    values = np.asarray(depth, float)
    if values.ndim != 2:
        raise InputError(f"the frame has shape {values.shape}; give one map of (height, width)")
    positive = (values > 0) & (values < np.inf)
    known = values[positive]
    if known.size < (1 - settings.most_nonpositive) * np.isfinite(values).sum() or known.size == 0:
        return None
    values = np.where(positive, values, np.nan)
    settings = _for_cells(settings, cell_side(positive, settings))
    with np.errstate(over="ignore"):
        inverse = 1 / values
    fits = fit_windows(inverse, settings)
    step = step_law(values, settings)
    if len(fits.std) < settings.min_windows or step is None:
        return None
    found = _diagnosed(fits, step, float(known.min()), float(known.max()), settings)
    if not found.noisy:
        return found
    white = white_std(values, settings) / float(found.sensor.std(np.median(known)))
    return replace(found, white=white, noisy=found.noisy and _is_sharp(found, white, settings))


def _for_cells(settings: SensorSettings, cell: int) -> SensorSettings:
    """Enlarge the windows for a lattice of valid pixels, so that they show as much of the scene as those of a frame."""
    return replace(
        settings,
        window_px=settings.window_px * cell,
        window_stride_px=settings.window_stride_px * cell,
        fit_pixels=settings.fit_pixels * cell**2,
        correlation_lags=settings.correlation_lags * cell,
    )


def _diagnosed(
    fits: WindowFits, step: TableLaw, nearest: float, farthest: float, settings: SensorSettings
) -> Diagnosis:
    centre = 1 / fits.level
    std = np.maximum(fits.std * centre**2, 1e-9 * centre)
    law = _visible_law(centre, std, step, nearest, farthest, settings)
    relative = std / law(centre)
    over_step = float(np.quantile(std / (step(centre) / ROUNDING), 0.1))
    sharpness = float(np.quantile(relative, 0.1) / np.quantile(relative, 0.4))
    evidence = sharpness * _concentration(relative, settings)
    visible = over_step >= settings.noisy_over_step
    noisy = visible and evidence >= settings.noisy_evidence
    quiet = (relative > 0.5) & (relative < 1.3)
    correlation = (
        Correlation() if quiet.sum() < 4 or not visible else estimate_correlation(fits.chosen(quiet), settings)
    )
    fraction = max(visible_fraction(correlation, settings), settings.min_visible)
    depths = np.array(law.depths)
    total = np.array(law.lengths) / fraction
    noise = np.sqrt(np.maximum(total**2 - step(depths) ** 2 / ROUNDING**2, (0.1 * total) ** 2))
    sensor = Sensor(
        name="estimated from one frame",
        noise=TableLaw(tuple(depths), tuple(noise)),
        step=step,
        correlation=correlation,
        domain=domain_of(TableLaw(tuple(depths[1:-1]), tuple(total[1:-1]))),
        sources=dict.fromkeys(("noise", "step", "correlation", "domain"), "estimated from one frame"),
    )
    return Diagnosis(sensor, len(std), len(std) / fits.tried, over_step, sharpness, evidence, np.nan, noisy, visible)


def _is_sharp(found: Diagnosis, white: float, settings: SensorSettings) -> bool:
    """Tell whether the floor of the residuals is as sharp as the number of windows and the white noise ask for."""
    if found.explained < settings.noisy_explained:
        return False
    if found.windows < settings.noisy_windows:
        sharp = found.evidence >= settings.few_windows_evidence and found.over_step >= settings.few_windows_over_step
        return white < settings.white_ratio and sharp
    return white < settings.white_ratio or found.evidence >= settings.white_evidence


def _concentration(relative: Floats, settings: SensorSettings) -> float:
    """Compute the largest fraction of windows whose residuals are equal within a factor."""
    ordered = np.sort(relative)
    ahead = np.searchsorted(ordered, settings.noisy_factor * ordered, side="right")
    return float((ahead - np.arange(len(ordered))).max() / len(ordered))


def step_law(depth: DepthMap, settings: SensorSettings = DEFAULT) -> TableLaw | None:
    """Estimate the quantisation step against depth; None = nearly no two values differ.

    The smallest differences of successive valid pixels are one step. Values that are far rarer than those around them
    are impulses, and left out. A continuous map has ever smaller differences, and hence a step far below its noise.

    Parameters
    ----------
    depth
        (height, width), positive; NaN = missing.
    settings
        Quantile and bins.

    Returns
    -------
    The step at the median depths of bins.
    """
    found = step_points(depth, settings)
    if found is None or min(found[0]) <= 0:
        return None
    return TableLaw(tuple(found[0]), tuple(found[1]))


def step_points(depth: DepthMap, settings: SensorSettings = DEFAULT) -> tuple[Floats, Floats] | None:
    """Measure the quantisation step at rising depths of any sign; None = nearly no two values differ.

    Parameters
    ----------
    depth
        (height, width); NaN = missing.
    settings
        Quantile and bins.

    Returns
    -------
    Median depths of bins, and the steps there.
    """
    depth = _some_rows(depth, settings.step_sample_pixels)
    values = _frequent(depth[np.isfinite(depth)].astype(float), settings)
    gaps, at = np.abs(np.diff(values)), np.maximum(values[1:], values[:-1])
    at, gaps = at[gaps > 0], gaps[gaps > 0]
    bins = max(1, min(settings.step_bins, len(at) // settings.step_pixels))
    if len(at) < settings.step_pixels:
        return None
    parts = _ranked_parts(at, bins)
    depths = np.array([np.median(at[part]) for part in parts])
    steps = np.array([np.quantile(gaps[part], settings.step_quantile) for part in parts])
    rising = np.concatenate([[True], np.diff(depths) > 0])
    return depths[rising], steps[rising]


def _ranked_parts(values: Floats, parts: int) -> list[NDArray[np.intp]]:
    """Split values by rank into parts of about the same size; of equal values, the first ones rank lower."""
    order = np.argsort(values)
    found = np.array_split(order, parts)
    for cut in np.cumsum([len(part) for part in found[:-1]]):
        ends = [np.searchsorted(values, values[order[cut]], side, sorter=order) for side in ("left", "right")]
        order[slice(*ends)] = np.sort(order[slice(*ends)])
    return found


def _some_rows(depth: DepthMap, pixels: int) -> DepthMap:
    """Keep rows at equal distances from both ends, with about a given number of pixels."""
    every = max(1, 2 * depth.size // pixels)
    if depth.size <= pixels or every >= len(depth):
        return depth
    from_one_end = np.arange(0, len(depth), every)
    return depth[np.union1d(from_one_end, len(depth) - 1 - from_one_end)]


def _frequent(values: Floats, settings: SensorSettings) -> Floats:
    """Keep the values that are about as frequent as those near them."""
    ordered = np.sort(values)
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(values)])
    counts = np.diff(starts, append=len(values))
    if len(counts) == 0 or counts.min() >= settings.frequent_ratio * counts.max():
        return values
    pixels, squares = (np.concatenate([[0.0], np.cumsum(part)]) for part in (counts, counts.astype(float) ** 2))
    middle, reach = (pixels[1:] + pixels[:-1]) / 2, settings.frequent_part * len(values)
    number = np.repeat(np.arange(len(counts)), counts)
    first = number[np.maximum(np.floor(middle - reach), 0).astype(np.intp)]
    last = number[np.minimum(np.ceil(middle + reach), len(values)).astype(np.intp) - 1] + 1
    usual = (squares[last] - squares[first]) / (pixels[last] - pixels[first])
    kept = np.empty(len(values), bool)
    kept[np.argsort(values)] = (counts >= settings.frequent_ratio * usual)[number]
    return values[kept]


def _visible_law(
    centre: Floats, std: Floats, step: TableLaw, nearest: float, farthest: float, settings: SensorSettings
) -> TableLaw:
    """Estimate the level that windows show against depth: a running quantile, never falling, never below rounding.

    Few windows at a depth lean on the law of all, sigma ~ z^2; beyond the windows that law alone holds.
    """
    place, height = np.log(centre), np.log(std / centre**2)
    order = np.argsort(height)
    everywhere = np.quantile(height, settings.visible_quantile)
    first, last = np.quantile(place, [0.01, 0.99])
    knots = np.unique(np.linspace(first, last, settings.depth_knots))
    weight = np.exp(-0.5 * ((place[order][None, :] - knots[:, None]) / settings.depth_kernel) ** 2)
    mass = weight.sum(1)
    running = np.cumsum(weight, axis=1) / mass[:, None]
    number = np.minimum((running < settings.visible_quantile).sum(1), len(place) - 1)
    local = (mass * height[order][number] + settings.prior_windows * everywhere) / (mass + settings.prior_windows)
    level = np.maximum.accumulate(local + 2 * knots)
    ends = np.log([min(nearest, np.exp(first)) * 0.99, max(farthest, np.exp(last)) * 1.01])
    level = np.concatenate([[level[0] + 2 * (ends[0] - knots[0])], level, [level[-1] + 2 * (ends[1] - knots[-1])]])
    depths = np.exp(np.concatenate([ends[:1], knots, ends[1:]]))
    return TableLaw(tuple(depths), tuple(np.maximum(np.exp(level), step(depths) / ROUNDING)))


def domain_of(law: TableLaw) -> Domain:
    """Choose the domain in which noise is stationary by the slope of its law in logarithms.

    Examples
    --------
    >>> domain_of(TableLaw((500.0, 1000.0, 2000.0), (1.0, 4.0, 16.0)))
    '1/z'
    """
    x, y = np.log(law.depths), np.log(law.lengths)
    slope = float(np.polyfit(x, y, 1)[0]) if np.ptp(x) > 0.1 else 2.0
    choices: tuple[Domain, ...] = ("z", "log z", "1/z")
    return choices[int(np.clip(np.round(slope), 0, 2))]

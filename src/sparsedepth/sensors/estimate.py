"""Estimate the record of a sensor from several frames: of a static camera, or of a moving one with poses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import ndimage

from sparsedepth.sensors import blind
from sparsedepth.sensors.laws import Correlation, Law, PowerLaw, TableLaw
from sparsedepth.sensors.record import Sensor
from sparsedepth.sensors.settings import DEFAULT, GAUSSIAN_MEDIAN, MAD_TO_STD, SensorSettings
from sparsedepth.sensors.smooth import smooth
from sparsedepth.sensors.views import stacked_views
from sparsedepth.sensors.windows import correlation_of, correlation_start, fit_windows, visible_fraction
from sparsedepth.vocabulary import DepthMap, Floats, InputError, Unit

SOURCE = "estimated from {} frames"


def estimate(
    frames: Sequence[DepthMap] | Floats,
    *,
    unit: Unit = "",
    name: str = "",
    poses: Sequence[Floats] | None = None,
    intrinsics: tuple[float, float, float, float] | None = None,
    settings: SensorSettings = DEFAULT,
) -> Sensor:
    """Estimate the record of a sensor from at least five frames.

    Parameters
    ----------
    frames, unit, name, poses, intrinsics, settings
        As `sparsedepth.sensors.calibrate` takes them.

    Returns
    -------
    The record; its ``inflation`` is measured by smoothing frames and comparing with the mean of the others.

    Raises
    ------
    InputError
        If there are fewer than five distinct frames, or if they cannot show one static scene.

    Examples
    --------
    >>> from sparsedepth.sensors.simulate import simulate
    >>> wall = 1000.0 + 2.0 * np.mgrid[:64, :96][1]
    >>> truth = Sensor(unit="mm", noise=PowerLaw(constant=5.0))
    >>> sensor = estimate(simulate(wall, truth, np.random.default_rng(0), frames=6), unit="mm")
    >>> round(float(sensor.std(1100.0)))
    5
    """
    measured = measure(frames, poses, intrinsics, settings)
    return sensor_of(measured, unit=unit, name=name, settings=settings)


@dataclass(frozen=True, eq=False)
class Measurement:
    """Several frames of a static scene, and the noise that they show over time.

    Parameters
    ----------
    stack
        (frames, height, width), distinct frames in one view; NaN where pixels are missing or move.
    mean
        (height, width), trimmed mean over time.
    total
        Standard deviation over time against depth, quantisation included.
    residual
        (frames, height, width), deviations from the mean in standard deviations.
    autocorrelation
        (2, lags), of the residuals along rows and along columns; lags in pixels from zero.
    moving
        Whether the camera moved.
    """

    stack: Floats
    mean: Floats
    total: TableLaw
    residual: Floats
    autocorrelation: Floats
    moving: bool


def measure(
    frames: Sequence[DepthMap] | Floats,
    poses: Sequence[Floats] | None,
    intrinsics: tuple[float, float, float, float] | None,
    settings: SensorSettings,
) -> Measurement:
    """Measure the noise of frames over time; parameters and errors are those of `estimate`."""
    stack = _measured_often(stacked_views(frames, poses, intrinsics, settings), settings)
    mean = _trimmed_mean(stack, settings)
    _require_static(stack, mean, poses is not None, settings)
    stack = _without_motion(stack, settings)
    mean = _trimmed_mean(stack, settings)
    total = _noise_law(stack, mean, settings)
    residual = (stack - mean) / total(np.where(np.isfinite(mean), mean, 1.0))
    return Measurement(stack, mean, total, residual, _autocorrelation(residual, settings), poses is not None)


def sensor_of(found: Measurement, *, unit: Unit = "", name: str = "", settings: SensorSettings = DEFAULT) -> Sensor:
    """Fit the record of a sensor to what frames show; parameters are those of `estimate`."""
    as_taken = found.stack[len(found.stack) // 2 if found.moving else 0]  # other views of a moving camera are warped
    step = blind.step_law(as_taken, settings) or PowerLaw()
    sensor = Sensor(
        name=name,
        unit=unit,
        noise=_without_step(found.total, step, settings),
        step=step,
        correlation=_correlation(found.autocorrelation, settings),
        temporal=_temporal(found.residual, settings),
        outliers=float((np.abs(found.residual[np.isfinite(found.residual)]) > settings.outlier_sigmas).mean()),
        outlier_kind="mixed",
        domain=blind.domain_of(found.total),
        nearest=float(np.nanmin(found.mean)) * (1 - settings.range_margin),
        farthest=float(np.nanmax(found.mean)) * (1 + settings.range_margin),
    )
    pattern = 0.0 if found.moving else _pattern(found.mean, sensor, len(found.stack), settings)
    sensor = replace(sensor, pattern=pattern)
    sensor = replace(sensor, inflation=_inflation(found.stack, sensor, settings))
    fields = ("noise", "step", "correlation", "temporal", "pattern", "outliers", "domain", "nearest", "inflation")
    return replace(sensor, sources=dict.fromkeys(fields, SOURCE.format(len(found.stack))))


def _measured_often(stack: Floats, settings: SensorSettings) -> Floats:
    """Remove pixels that few frames measure; refuse frames that share nearly none."""
    known = np.isfinite(stack).sum(0) >= settings.least_frames
    if known.mean() < settings.least_overlap:
        raise InputError(
            f"only {known.mean():.1%} of the pixels are measured in {settings.least_frames} frames; "
            "give frames of one scene"
        )
    return np.where(known, stack, np.nan)


def _trimmed_mean(stack: Floats, settings: SensorSettings) -> Floats:
    """Compute the mean over time without what is farther than three robust standard deviations from the median."""
    with np.errstate(all="ignore"):
        median = _median(stack)
        spread = np.maximum(MAD_TO_STD * _median(np.abs(stack - median)), 1e-6 * median)
        kept = np.abs(stack - median) <= np.maximum(settings.clip_sigmas * spread, settings.trim_depth * median)
        return np.where(kept, stack, 0).sum(0) / np.where(kept.any(0), kept.sum(0), np.nan)


def _median(stack: Floats) -> Floats:
    """Compute the median over time of what is known; NaN where nothing is."""
    ordered = np.sort(stack, axis=0)
    count = np.isfinite(stack).sum(0)
    low, high = (
        np.take_along_axis(ordered, np.maximum(number, 0)[None], 0)[0] for number in ((count - 1) // 2, count // 2)
    )
    return np.where(count > 0, (low + high) / 2, np.nan)


def _noise_law(stack: Floats, mean: Floats, settings: SensorSettings) -> TableLaw:
    """Estimate the standard deviation over time against depth."""
    return _law_of_errors(unbiased_errors(stack, mean), mean, settings)


def unbiased_errors(stack: Floats, mean: Floats) -> Floats:
    """Compute the deviations from the mean over time, scaled to the variance of the noise."""
    count = np.isfinite(stack).sum(0)
    return (stack - mean) * np.sqrt(count / np.maximum(count - 1, 1))


def _law_of_errors(errors: Floats, mean: Floats, settings: SensorSettings) -> TableLaw:
    """Estimate the standard deviation of errors in bins of depth; what moves at one depth is a peak of one bin."""
    depths, stds = binned_std(errors, mean, settings.error_bins, settings)
    stds = np.maximum(stds, 1e-6 * depths)
    stds = depths**2 * ndimage.median_filter(stds / depths**2, 3, mode="nearest")
    rising = np.concatenate([[True], np.diff(depths) > 1e-6 * depths[:-1]])
    return TableLaw(tuple(depths[rising]), tuple(stds[rising]))


def binned_std(errors: Floats, mean: Floats, bins: int, settings: SensorSettings) -> tuple[Floats, Floats]:
    """Compute median depths and robust standard deviations of errors, in bins of as many errors each."""
    known = np.isfinite(errors)
    at, size = np.broadcast_to(mean, errors.shape)[known], np.abs(errors[known])
    parts = np.array_split(np.argsort(at, kind="stable"), bins)
    return np.array([np.median(at[part]) for part in parts]), np.array([_std(size[part], settings) for part in parts])


def _std(error: Floats, settings: SensorSettings) -> float:
    """Compute a robust standard deviation: that of Gaussian noise whose smallest errors are as large as these."""
    smallest = np.sort(error)[: max(1, int(settings.error_fraction * len(error)))]
    return float(np.sqrt(np.mean(smallest**2)) / settings.error_fraction_std)


def _without_motion(stack: Floats, settings: SensorSettings) -> Floats:
    """Remove pixels that change over time far more than most at their depth: what moves before a static camera."""
    mean = _trimmed_mean(stack, settings)
    law = _noise_law(stack, mean, settings)
    own = MAD_TO_STD * _median(np.abs(stack - mean))
    usual = law(np.where(np.isfinite(mean), mean, 1.0))
    still = (own <= settings.moving_ratio * usual) & (np.abs(_drift(stack, usual)) <= settings.pixel_drift)
    return np.where(still, stack, np.nan)


def _drift(stack: Floats, std: Floats) -> Floats:
    """Compute the difference of the means of the first and the second half of time, in its standard deviations."""
    half = len(stack) // 2
    counts = [np.isfinite(part).sum(0) for part in (stack[:half], stack[half:])]
    sums = [np.nansum(part, 0) for part in (stack[:half], stack[half:])]
    first, second = (np.where(n > 0, total / np.maximum(n, 1), np.nan) for total, n in zip(sums, counts, strict=True))
    return (first - second) / (std * np.sqrt(1 / np.maximum(counts[0], 1) + 1 / np.maximum(counts[1], 1)))


def _require_static(stack: Floats, mean: Floats, moving: bool, settings: SensorSettings) -> None:
    """Refuse frames whose halves in time disagree, at most pixels, beyond the noise between consecutive frames."""
    between = _law_of_errors(np.diff(stack, axis=0) / np.sqrt(2), mean, settings)
    drift = _drift(stack, between(np.where(np.isfinite(mean), mean, 1.0)))
    known = np.isfinite(drift)
    typical = float(np.median(np.abs(drift[known]))) * MAD_TO_STD if known.any() else 0.0
    if typical > settings.most_drift:
        cause = "the poses do not fit" if moving else "the camera or the scene moves"
        raise InputError(
            f"the first and the second half of the frames differ by {typical:.1f} times their noise: {cause}; "
            "give frames of a camera on a tripod, or one pose a frame"
        )


def _without_step(total: TableLaw, step: Law, settings: SensorSettings) -> TableLaw:
    depths, stds = np.array(total.depths), np.array(total.lengths)
    rounding = step(depths) ** 2 / 12
    return TableLaw(total.depths, tuple(np.sqrt(np.maximum(stds**2 - rounding, (settings.least_noise * stds) ** 2))))


def _autocorrelation(residual: Floats, settings: SensorSettings) -> Floats:
    """Compute the autocorrelation of residuals over time, along rows and along columns."""
    lags = settings.correlation_lags
    sums, counts = (np.zeros((2, lags)) for _ in range(2))
    for frame in residual[:: max(1, len(residual) // settings.correlation_frames)]:
        known = np.isfinite(frame)
        values = np.where(known, np.clip(frame, -settings.clip_sigmas, settings.clip_sigmas), 0)
        for lag in range(lags):
            pairs = ((values[:, : values.shape[1] - lag], values[:, lag:]), (values[: len(values) - lag], values[lag:]))
            masks = ((known[:, : known.shape[1] - lag], known[:, lag:]), (known[: len(known) - lag], known[lag:]))
            for axis in range(2):
                sums[axis, lag] += float((pairs[axis][0] * pairs[axis][1]).sum())
                counts[axis, lag] += int((masks[axis][0] & masks[axis][1]).sum())
    return (sums / np.maximum(counts, 1)) / (sums[:, :1] / np.maximum(counts[:, :1], 1))


def _correlation(seen: Floats, settings: SensorSettings) -> Correlation:
    """Fit the correlation of pixels to the autocorrelation of residuals."""
    from scipy.optimize import least_squares  # slow to import

    lag = np.arange(1.0, seen.shape[1])

    def misfit(numbers: Floats) -> Floats:
        found = correlation_of(numbers)
        return np.concatenate([found(0.0, lag), found(lag, 0.0)]) - seen[:, 1:].ravel()

    shortest, longest = np.log(settings.shortest_correlation_px), np.log(settings.longest_correlation_px)
    lowest = [shortest, shortest, settings.frames_exponent, 0.0]
    highest = [longest, longest, 2.0, settings.largest_white]
    return correlation_of(least_squares(misfit, correlation_start(settings), bounds=(lowest, highest)).x)


def _temporal(residual: Floats, settings: SensorSettings) -> float:
    """Compute the correlation of consecutive frames, without the bias that the common mean brings."""
    clipped = np.clip(residual, -settings.clip_sigmas, settings.clip_sigmas)
    product, square = clipped[1:] * clipped[:-1], clipped**2
    raw = float(np.nanmean(product) / np.nanmean(square))
    return float(np.clip((raw + 1 / len(residual)) / (1 - 1 / len(residual)), 0.0, settings.largest_temporal))


def _pattern(mean: Floats, sensor: Sensor, n_frames: int, settings: SensorSettings) -> float:
    """Estimate the fixed pattern from windows of the mean frame, where surfaces are smooth; 0 = none is visible."""
    fits = fit_windows(1 / mean, settings)
    if len(fits.std) < settings.min_windows:
        return 0.0
    centre = 1 / fits.level
    fraction = visible_fraction(sensor.correlation, settings)
    relative = fits.std * centre**2 / (fraction * sensor.noise(centre))
    level, floor = np.quantile(relative, [settings.visible_quantile, settings.floor_quantile])
    left = (1 + sensor.temporal) / (1 - sensor.temporal) / n_frames
    if floor < settings.pattern_sharpness * level:
        return 0.0
    return float(np.clip(np.sqrt(max(level**2 - left, 0.0)), 0.0, settings.largest_pattern))


def _inflation(stack: Floats, sensor: Sensor, settings: SensorSettings) -> float:
    """Measure the variance after smoothing over the predicted one, against the mean of the other frames.

    The mean has the fixed pattern, a smoothed frame has lost most of it: the pattern counts as an error, once. The
    noise of the mean is added to the prediction, which draws the ratio towards one where there are few frames.
    """
    memory = (1 + sensor.temporal) / (1 - sensor.temporal)
    found = []
    for number in np.unique(np.linspace(0, len(stack) - 1, settings.inflation_frames).astype(int)):
        others = np.delete(stack, number, axis=0)
        reference, count = _trimmed_mean(others, settings), np.isfinite(others).sum(0)
        value, variance = smooth(stack[number], sensor, settings=settings)
        judged = np.isfinite(value - reference) & (count >= settings.inflation_least)
        left = sensor.noise(reference[judged]) ** 2 * memory / count[judged]
        ratio = (value - reference)[judged] ** 2 / (variance[judged] + left)
        found.append(float(np.median(ratio)) / GAUSSIAN_MEDIAN)
    return float(np.clip(np.median(found), settings.least_inflation, settings.largest_inflation))

"""Estimate the record of a sensor from several frames: of a static camera, or of a moving one with poses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import ndimage
from scipy.optimize import least_squares

from sparsedepth.sensors import blind
from sparsedepth.sensors.record import Correlation, Law, PowerLaw, Sensor, TableLaw
from sparsedepth.sensors.settings import DEFAULT, SensorSettings
from sparsedepth.sensors.smooth import smooth
from sparsedepth.sensors.windows import MAD_TO_STD, fit_windows, visible_fraction
from sparsedepth.vocabulary import DepthMap, Floats, InputError, Unit

LEAST_FRAMES = 5
GAUSSIAN_MEDIAN = 0.455
"""Median of a squared standard normal number (textbook)."""
MOST_DRIFT = 3.0
"""Difference of both halves of time, in standard deviations of noise that has no memory, that most pixels may have."""
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
    frames
        Maps (height, width) of one scene, positive, in one unit; NaN = missing. Repeated frames are left out.
    unit, name
        Unit of the maps, and a name for the record.
    poses
        Camera-to-world matrices (4, 4) of a moving camera, in the unit of the maps; None = a static camera.
    intrinsics
        (fx, fy, cx, cy) in pixels; wanted with poses.
    settings
        Thresholds of the single-frame estimate and of the smoothing.

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
    stack = _stacked(frames, poses, intrinsics)
    known = np.isfinite(stack).sum(0) >= LEAST_FRAMES
    if known.mean() < 0.02:
        raise InputError(
            f"only {known.mean():.1%} of the pixels are measured in {LEAST_FRAMES} frames; give frames of one scene"
        )
    stack = np.where(known, stack, np.nan)
    mean = _trimmed_mean(stack)
    _require_static(stack, mean, poses is not None)
    stack = _without_motion(stack)
    mean = _trimmed_mean(stack)
    total = _noise_law(stack, mean)
    residual = (stack - mean) / total(np.where(np.isfinite(mean), mean, 1.0))
    step = blind.step_law(stack[0], settings) or PowerLaw()
    sensor = Sensor(
        name=name,
        unit=unit,
        noise=_without_step(total, step),
        step=step,
        correlation=_correlation(residual, settings),
        temporal=_temporal(residual),
        outliers=float((np.abs(residual[np.isfinite(residual)]) > settings.outlier_sigmas).mean()),
        outlier_kind="mixed",
        domain=blind.domain_of(total),
        nearest=float(np.nanmin(mean)) * 0.9,
        farthest=float(np.nanmax(mean)) * 1.1,
    )
    sensor = replace(sensor, pattern=0.0 if poses is not None else _pattern(mean, sensor, len(stack), settings))
    sensor = replace(sensor, inflation=_inflation(stack, sensor, settings))
    fields = ("noise", "step", "correlation", "temporal", "pattern", "outliers", "domain", "nearest", "inflation")
    return replace(sensor, sources=dict.fromkeys(fields, SOURCE.format(len(stack))))


def _stacked(frames: Sequence[DepthMap] | Floats, poses: Sequence[Floats] | None, intrinsics: tuple | None) -> Floats:
    """Check frames, leave out repeated ones, and bring them to the view of the middle one."""
    maps = [np.asarray(frame, float) for frame in frames]
    if not maps or any(frame.ndim != 2 or frame.shape != maps[0].shape for frame in maps):
        raise InputError("the frames must be maps (height, width) of one shape; give a list of them")
    if poses is not None and (len(poses) != len(maps) or intrinsics is None):
        raise InputError(f"{len(maps)} frames came with {len(poses)} poses; give one each, and intrinsics")
    numbers = [0] + [n for n in range(1, len(maps)) if not np.array_equal(maps[n], maps[n - 1], equal_nan=True)]
    if len(numbers) < LEAST_FRAMES:
        raise InputError(f"{len(numbers)} distinct frames came; give at least {LEAST_FRAMES} of one scene")
    maps = [np.where(frame > 0, frame, np.nan) for frame in (maps[n] for n in numbers)]
    if poses is None or intrinsics is None:
        return np.stack(maps)
    matrices = [np.asarray(poses[n], float) for n in numbers]
    middle = len(maps) // 2
    views = [
        frame if n == middle else warped(frame, np.linalg.inv(matrices[middle]) @ matrices[n], intrinsics)
        for n, frame in enumerate(maps)
    ]
    return _aligned(np.stack(views), middle)


def warped(depth: DepthMap, motion: Floats, intrinsics: tuple[float, float, float, float]) -> Floats:
    """Show a map as a camera elsewhere sees it; the nearest of several surfaces counts.

    Parameters
    ----------
    depth
        (height, width).
    motion
        (4, 4), from the camera of the map to the other one.
    intrinsics
        (fx, fy, cx, cy) in pixels, of both.

    Returns
    -------
    (height, width); NaN where nothing falls.
    """
    fx, fy, cx, cy = intrinsics
    rows, columns = np.nonzero(np.isfinite(depth))
    z = depth[rows, columns]
    points = np.stack([(columns - cx) * z / fx, (rows - cy) * z / fy, z, np.ones_like(z)])
    x, y, far = (motion @ points)[:3]
    front = far > 0
    x, y, far = x[front], y[front], far[front]
    column, row = np.round(x / far * fx + cx).astype(int), np.round(y / far * fy + cy).astype(int)
    inside = (row >= 0) & (row < depth.shape[0]) & (column >= 0) & (column < depth.shape[1])
    view = np.full(depth.shape, np.inf)
    np.minimum.at(view, (row[inside], column[inside]), far[inside])
    return np.where(np.isinf(view), np.nan, view)


def _aligned(stack: Floats, middle: int) -> Floats:
    """Remove the smooth disagreement of each view with the middle one, in inverse depth: error of the poses."""
    height, width = stack.shape[1:]
    y, x = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    inverse = 1 / stack
    terms = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y, inverse[middle] / np.nanmedian(inverse[middle])], -1)
    for n in range(len(stack)):
        both = np.isfinite(inverse[n] - inverse[middle])
        if n == middle or both.sum() < 1000:
            continue
        design, gap = terms[both], (inverse[n] - inverse[middle])[both]
        inverse[n] = inverse[n] - np.nan_to_num(terms) @ _huber(design[::4], gap[::4])
        far = np.abs(inverse[n] - inverse[middle]) > 8 * MAD_TO_STD * np.median(np.abs(gap - np.median(gap)))
        inverse[n][far | ~both] = np.nan
    with np.errstate(divide="ignore"):
        return np.where(inverse > 0, 1 / inverse, np.nan)


def _huber(design: Floats, values: Floats) -> Floats:
    """Fit a linear model by iteratively reweighted least squares with Huber's weights."""
    weight, found = np.ones(len(values)), np.zeros(design.shape[1])
    for _ in range(6):
        found = np.linalg.lstsq(design * weight[:, None], values * weight, rcond=None)[0]
        residual = np.abs(values - design @ found)
        scale = max(MAD_TO_STD * float(np.median(residual)), 1e-300)
        weight = np.sqrt(np.minimum(1.0, 1.345 * scale / np.maximum(residual, 1e-300)))
    return found


def _trimmed_mean(stack: Floats) -> Floats:
    """Compute the mean over time without what is farther than three robust standard deviations from the median."""
    with np.errstate(all="ignore"):
        median = _median(stack)
        spread = np.maximum(MAD_TO_STD * _median(np.abs(stack - median)), 1e-6 * median)
        kept = np.abs(stack - median) <= np.maximum(3 * spread, 1e-3 * median)
        return np.where(kept, stack, 0).sum(0) / np.where(kept.any(0), kept.sum(0), np.nan)


def _median(stack: Floats) -> Floats:
    """Compute the median over time of what is known; NaN where nothing is."""
    ordered = np.sort(stack, axis=0)
    count = np.isfinite(stack).sum(0)
    low, high = (
        np.take_along_axis(ordered, np.maximum(number, 0)[None], 0)[0] for number in ((count - 1) // 2, count // 2)
    )
    return np.where(count > 0, (low + high) / 2, np.nan)


def _noise_law(stack: Floats, mean: Floats) -> TableLaw:
    """Estimate the standard deviation over time against depth."""
    count = np.isfinite(stack).sum(0)
    return _law_of_errors((stack - mean) * np.sqrt(count / np.maximum(count - 1, 1)), mean)


def _law_of_errors(errors: Floats, mean: Floats, bins: int = 14) -> TableLaw:
    """Estimate the standard deviation of errors in bins of depth; what moves at one depth is a peak of one bin."""
    known = np.isfinite(errors)
    at, size = np.broadcast_to(mean, errors.shape)[known], np.abs(errors[known])
    parts = np.array_split(np.argsort(at, kind="stable"), bins)
    depths = np.array([np.median(at[part]) for part in parts])
    stds = np.array([_std(size[part]) for part in parts])
    stds = np.maximum(stds, 1e-6 * depths)
    stds = depths**2 * ndimage.median_filter(stds / depths**2, 3, mode="nearest")
    rising = np.concatenate([[True], np.diff(depths) > 1e-6 * depths[:-1]])
    return TableLaw(tuple(depths[rising]), tuple(stds[rising]))


def _std(error: Floats) -> float:
    """Compute the standard deviation of Gaussian noise whose 80 % smallest errors are these: a robust one."""
    smallest = np.sort(error)[: max(1, int(0.8 * len(error)))]
    return float(np.sqrt(np.mean(smallest**2)) / 0.6616)


def _without_motion(stack: Floats) -> Floats:
    """Remove pixels that change over time far more than most at their depth: what moves before a static camera."""
    mean = _trimmed_mean(stack)
    law = _noise_law(stack, mean)
    own = MAD_TO_STD * _median(np.abs(stack - mean))
    usual = law(np.where(np.isfinite(mean), mean, 1.0))
    return np.where((own <= 3 * usual) & (np.abs(_drift(stack, usual)) <= 5), stack, np.nan)


def _drift(stack: Floats, std: Floats) -> Floats:
    """Compute the difference of the means of the first and the second half of time, in its standard deviations."""
    half = len(stack) // 2
    counts = [np.isfinite(part).sum(0) for part in (stack[:half], stack[half:])]
    sums = [np.nansum(part, 0) for part in (stack[:half], stack[half:])]
    first, second = (np.where(n > 0, total / np.maximum(n, 1), np.nan) for total, n in zip(sums, counts, strict=True))
    return (first - second) / (std * np.sqrt(1 / np.maximum(counts[0], 1) + 1 / np.maximum(counts[1], 1)))


def _require_static(stack: Floats, mean: Floats, moving: bool) -> None:
    """Refuse frames whose halves in time disagree, at most pixels, beyond the noise between consecutive frames."""
    between = _law_of_errors(np.diff(stack, axis=0) / np.sqrt(2), mean)
    drift = _drift(stack, between(np.where(np.isfinite(mean), mean, 1.0)))
    known = np.isfinite(drift)
    typical = float(np.median(np.abs(drift[known]))) * MAD_TO_STD if known.any() else 0.0
    if typical > MOST_DRIFT:
        cause = "the poses do not fit" if moving else "the camera or the scene moves"
        raise InputError(
            f"the first and the second half of the frames differ by {typical:.1f} times their noise: {cause}; "
            "give frames of a camera on a tripod, or one pose a frame"
        )


def _without_step(total: TableLaw, step: Law) -> TableLaw:
    depths, stds = np.array(total.depths), np.array(total.lengths)
    rounding = step(depths) ** 2 / 12
    return TableLaw(total.depths, tuple(np.sqrt(np.maximum(stds**2 - rounding, (0.1 * stds) ** 2))))


def _correlation(residual: Floats, settings: SensorSettings) -> Correlation:
    """Fit the correlation of pixels to that of residuals over time."""
    lags = settings.correlation_lags
    sums, counts = (np.zeros((2, lags)) for _ in range(2))
    for frame in residual[:: max(1, len(residual) // 8)]:
        known = np.isfinite(frame)
        values = np.where(known, np.clip(frame, -3, 3), 0)
        for lag in range(lags):
            pairs = ((values[:, : values.shape[1] - lag], values[:, lag:]), (values[: len(values) - lag], values[lag:]))
            masks = ((known[:, : known.shape[1] - lag], known[:, lag:]), (known[: len(known) - lag], known[lag:]))
            for axis in range(2):
                sums[axis, lag] += float((pairs[axis][0] * pairs[axis][1]).sum())
                counts[axis, lag] += int((masks[axis][0] & masks[axis][1]).sum())
    seen = (sums / np.maximum(counts, 1)) / (sums[:, :1] / np.maximum(counts[:, :1], 1))
    lag = np.arange(1.0, lags)

    def misfit(numbers: Floats) -> Floats:
        found = Correlation(np.exp(numbers[0]), np.exp(numbers[1]), numbers[2], numbers[3])
        return np.concatenate([found(0.0, lag), found(lag, 0.0)]) - seen[:, 1:].ravel()

    lowest, highest = [np.log(0.3), np.log(0.3), 0.7, 0.0], [np.log(32.0), np.log(32.0), 2.0, 0.95]
    best = least_squares(misfit, [np.log(4.0), np.log(4.0), 1.3, 0.1], bounds=(lowest, highest)).x
    return Correlation(float(np.exp(best[0])), float(np.exp(best[1])), float(best[2]), float(best[3]))


def _temporal(residual: Floats) -> float:
    """Compute the correlation of consecutive frames, without the bias that the common mean brings."""
    clipped = np.clip(residual, -3, 3)
    product, square = clipped[1:] * clipped[:-1], clipped**2
    raw = float(np.nanmean(product) / np.nanmean(square))
    return float(np.clip((raw + 1 / len(residual)) / (1 - 1 / len(residual)), 0.0, 0.9))


def _pattern(mean: Floats, sensor: Sensor, n_frames: int, settings: SensorSettings) -> float:
    """Estimate the fixed pattern from windows of the mean frame, where surfaces are smooth; 0 = none is visible."""
    fits = fit_windows(1 / mean, settings)
    if len(fits.std) < settings.min_windows:
        return 0.0
    centre = 1 / fits.level
    fraction = visible_fraction(sensor.correlation, settings)
    relative = fits.std * centre**2 / (fraction * sensor.noise(centre))
    level, floor = np.quantile(relative, [settings.visible_quantile, 0.1])
    left = (1 + sensor.temporal) / (1 - sensor.temporal) / n_frames
    if floor < settings.pattern_sharpness * level:
        return 0.0
    return float(np.clip(np.sqrt(max(level**2 - left, 0.0)), 0.0, 2.0))


def _inflation(stack: Floats, sensor: Sensor, settings: SensorSettings) -> float:
    """Measure the variance after smoothing over the predicted one, against the mean of the other frames.

    The mean has the fixed pattern, a smoothed frame has lost most of it: the pattern counts as an error, once. The
    noise of the mean is added to the prediction, which draws the ratio towards one where there are few frames.
    """
    memory = (1 + sensor.temporal) / (1 - sensor.temporal)
    found = []
    for number in np.unique(np.linspace(0, len(stack) - 1, 3).astype(int)):
        others = np.delete(stack, number, axis=0)
        reference, count = _trimmed_mean(others), np.isfinite(others).sum(0)
        value, variance = smooth(stack[number], sensor, settings=settings)
        judged = np.isfinite(value - reference) & (count >= 3)
        left = sensor.noise(reference[judged]) ** 2 * memory / count[judged]
        ratio = (value - reference)[judged] ** 2 / (variance[judged] + left)
        found.append(float(np.median(ratio)) / GAUSSIAN_MEDIAN)
    return float(np.clip(np.median(found), 0.2, 5.0))

"""Filters of a frame counted in standard deviations: filling, total variation and a tilted bilateral filter."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from sparsedepth.kernels import sensor_filters as kernels
from sparsedepth.sensors.settings import DEFAULT, SensorSettings
from sparsedepth.vocabulary import Floats

Mask = NDArray[np.bool_]


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
    data = np.ascontiguousarray(values, np.float32)
    scratch = np.zeros(4 * data.size + 4 * data.shape[1], np.float32)
    smooth = np.empty_like(data)
    pushes = np.array(list(_pushes(iterations)), np.float32)
    kernels.variation(*data.shape, data, weight, iterations, pushes, scratch, smooth)
    return smooth


def _pushes(iterations: int) -> Iterator[float]:
    """Yield how far each step goes ahead of its result."""
    momentum = 1.0
    for _ in range(iterations):
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        yield (momentum - 1) / following
        momentum = following


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
    pilot = np.ascontiguousarray(pilot, np.float32)
    rises = [np.empty_like(pilot), np.empty_like(pilot)]
    kernels.rises(*pilot.shape, pilot, *rises)
    widest = np.float32(settings.slope_clip)
    first = [blurred(np.clip(rise, -widest, widest), settings.slope_px) for rise in rises]
    limit = np.float32(settings.slope_limit)
    near = [np.abs(rise - mean) < limit for rise, mean in zip(rises, first, strict=True)]
    gentle = (near[0] & near[1]).astype(np.float32)
    total = blurred(gentle, settings.slope_px) + np.float32(1e-6)
    down, across = (blurred(rise * gentle, settings.slope_px) / total for rise in rises)
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
    pilot = np.ascontiguousarray(pilot, np.float32)
    down, across = slopes(pilot, settings)
    weight = np.ascontiguousarray(used, np.float32)
    shown = np.ascontiguousarray(np.where(used, counted, 0), np.float32)
    (height, width), (total, sums, squares) = pilot.shape, np.empty((3, *pilot.shape), np.float32)
    offsets, spatial = _grid(settings)
    compared = (pilot, down, across, weight, shown, offsets, spatial, len(spatial), -0.5 / settings.range_sigmas**2)
    kernels.tilted(height, width, 0, height, *compared, total, sums, squares)
    lonely = total < 1e-3
    smoothed = np.where(lonely, pilot, sums / np.where(lonely, np.float32(1), total))
    return smoothed, np.where(lonely, 1.0, total**2 / np.where(lonely, np.float32(1), squares))


def _grid(settings: SensorSettings) -> tuple[NDArray[np.int64], Floats]:
    """List the offsets (rows, columns) with their spatial weights: a wide grid, and the adjacent pixels."""
    wide = np.array(half_offsets(settings.reach_px, settings.stride_px)).reshape(-1, 2)
    near = np.array(half_offsets(1, 1))
    fall = np.exp(-0.5 * (wide**2).sum(1) / settings.spatial_px**2)
    half = np.concatenate([wide, near]).astype(np.int64)
    weights = np.concatenate([fall, np.full(len(near), settings.near_weight)]).astype(np.float32)
    return np.concatenate([half, -half]), np.concatenate([weights, weights])


def half_offsets(reach: int, stride: int) -> list[tuple[int, int]]:
    """List one of each two opposite offsets (rows, columns) within a square."""
    steps = range(-reach, reach + 1, stride)
    return [(rows, columns) for rows in steps for columns in steps if (rows, columns) > (0, 0)]


def shifted(padded: Floats, rows: int, columns: int, margin: int) -> Floats:
    """Return the view of a map, padded by a margin, shifted by rows and columns."""
    height, width = padded.shape
    return padded[margin + rows : height - margin + rows, margin + columns : width - margin + columns]


def blurred(values: Floats, std_px: float) -> Floats:
    """Blur a map by a Gaussian kernel of three standard deviations; it is reflected at its borders.

    Parameters
    ----------
    values
        (height, width).
    std_px
        Standard deviation, in pixels.

    Returns
    -------
    (height, width), float32.
    """
    values = np.ascontiguousarray(values, np.float32)
    weights = np.exp(-0.5 * (np.arange(int(3 * std_px + 0.5) + 1) / std_px) ** 2)
    weights /= 2 * weights.sum() - weights[0]
    radius, result = len(weights) - 1, np.empty_like(values)
    scratch = np.empty(2 * (values.shape[1] + radius), np.float32)
    kernels.blur(*values.shape, radius, weights.astype(np.float32), values, scratch, result)
    return result

"""Filters of a frame counted in standard deviations: filling, total variation and a tilted bilateral filter."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

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
        for rows, columns in half_offsets(settings.reach_px, settings.stride_px)
    ]
    return wide + [(rows, columns, settings.near_weight) for rows, columns in half_offsets(1, 1)]


def half_offsets(reach: int, stride: int) -> list[tuple[int, int]]:
    """List one of each two opposite offsets (rows, columns) within a square."""
    steps = range(-reach, reach + 1, stride)
    return [(rows, columns) for rows in steps for columns in steps if (rows, columns) > (0, 0)]


def shifted(padded: Floats, rows: int, columns: int, margin: int) -> Floats:
    """Return the view of a map, padded by a margin, shifted by rows and columns."""
    height, width = padded.shape
    return padded[margin + rows : height - margin + rows, margin + columns : width - margin + columns]


def _pair(shape: tuple[int, ...], rows: int, columns: int) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Return the slices of the pixels that have a partner at an offset, and of the partners."""
    height, width = shape
    first = slice(0, max(height - rows, 0)), slice(max(0, -columns), max(width - max(0, columns), 0))
    second = slice(min(rows, height), height), slice(min(max(0, columns), width), max(width + min(0, columns), 0))
    return first, second


def blurred(values: Floats, std_px: float) -> Floats:
    return ndimage.gaussian_filter(values, std_px, truncate=3.0)

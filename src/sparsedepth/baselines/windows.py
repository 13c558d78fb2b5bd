"""Baselines that use the neighbours of each pixel: medians, non-local means, the bilateral filter."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import uniform_filter

from sparsedepth.baselines.maps import as_result, map_of, radius_of, require_at_least_zero
from sparsedepth.vocabulary import DepthMap, Floats, InputError

STRIP_VALUES = 1 << 22
"""Neighbours that are sorted at once, which bounds the memory a large map needs."""


def median(depth: ArrayLike, size: int = 3) -> DepthMap:
    """Compute the median of the valid pixels in a size x size window; windows are cut at the border.

    Parameters
    ----------
    depth
        (height, width) in any unit; NaN = missing.
    size
        Side of the window in pixels, odd.

    Returns
    -------
    DepthMap
        The smoothed map, of the same type; what is missing stays so.

    Examples
    --------
    >>> median([[1.0, 1.0, 1.0], [1.0, 9.0, np.nan], [1.0, 1.0, 1.0]])
    array([[ 1.,  1.,  1.],
           [ 1.,  1., nan],
           [ 1.,  1.,  1.]])
    """
    values = map_of(depth)
    return as_result(values, _by_strips(_middle, values, radius_of("size", size)))


def switching_median(depth: ArrayLike, threshold: float, size: int = 3) -> DepthMap:
    """Replace pixels that differ from their neighbours by more than the threshold by the window's median.

    The difference of a pixel is the mean of the smaller half of its absolute differences to its neighbours
    (rank-ordered absolute differences, ROAD), in units of the map. A pixel at an edge has similar neighbours on its
    own side, and stays.

    Parameters
    ----------
    depth
        (height, width) in any unit; NaN = missing.
    threshold
        Largest difference of a pixel that stays; 0 = `median`, infinite = the identity.
    size
        Side of the window in pixels, odd.

    Returns
    -------
    DepthMap
        The smoothed map, of the same type; what is missing stays so.

    Examples
    --------
    >>> switching_median([[1.0, 1.1, 1.0], [1.1, 9.0, 1.1], [1.0, 1.1, 1.0]], threshold=1.0)[1]
    array([1.1, 1.1, 1.1])
    """
    values = map_of(depth)
    require_at_least_zero("the threshold", threshold)
    radius = radius_of("size", size)
    suspect = _by_strips(_nearer_half, values, radius) > threshold
    return as_result(values, np.where(suspect, _by_strips(_middle, values, radius), values))


def nl_means(depth: ArrayLike, strength: float, patch: int = 3, distance: int = 3) -> DepthMap:
    """Smooth by non-local means (Buades): each pixel is the mean of pixels with similar neighbourhoods.

    The pixel itself has the largest weight among the others. The defaults did best on Middlebury 2005.

    This is not scikit-image's function. The windows of its fast mode lie half a pixel off their centre, so a flipped
    map gives another result. A pixel's own weight of 1 keeps impulses.

    Parameters
    ----------
    depth
        (height, width) in any unit; NaN = missing.
    strength
        Root mean square difference of neighbourhoods with weight exp(-1), in units of the map; 0 changes nothing.
    patch
        Side of a neighbourhood, in pixels.
    distance
        Search radius, in pixels.

    Returns
    -------
    DepthMap
        The smoothed map, of the same type; what is missing stays so.

    Examples
    --------
    >>> nl_means([[1.0, 1.0, 1.0, 1.2]], strength=1.0).max() < 1.2
    np.True_
    """
    return _non_local(depth, strength, patch, distance, _weighted_mean)


def nl_means_median(depth: ArrayLike, strength: float, patch: int = 3, distance: int = 3) -> DepthMap:
    """Smooth by non-local medians: each pixel is the weighted median of pixels with similar neighbourhoods.

    The weights are those of `nl_means`; impulses among the look-alikes then leave no trace.

    Parameters
    ----------
    depth
        (height, width) in any unit; NaN = missing.
    strength, patch, distance
        As for `nl_means`.

    Returns
    -------
    DepthMap
        The smoothed map, of the same type; what is missing stays so.

    Examples
    --------
    >>> nl_means_median([[1.0, 1.0, 9.0, 1.0]], strength=100.0)
    array([[1., 1., 1., 1.]])
    """
    return _non_local(depth, strength, patch, distance, _weighted_median)


def bilateral(depth: ArrayLike, strength: float, distance: float = 2.0) -> DepthMap:
    """Smooth by the bilateral filter: a mean over near pixels of similar value.

    Parameters
    ----------
    depth
        (height, width) in any unit; NaN = missing.
    strength
        Standard deviation of the Gaussian weights in value, in units of the map; 0 changes nothing.
    distance
        Standard deviation of the weights in space, in pixels.

    Returns
    -------
    DepthMap
        The smoothed map, of the same type; what is missing stays so.

    Examples
    --------
    >>> bilateral([[1.0, 1.2, 9.0]], strength=0.5).round(1)
    array([[1.1, 1.1, 9. ]])
    """
    values = map_of(depth)
    require_at_least_zero("the strength", strength)
    if not distance > 0:
        raise InputError(f"the distance is {distance!r}; it must be a positive number of pixels")
    if strength == 0:
        return values.copy()
    radius = math.ceil(3 * distance)
    total, weights = np.zeros(values.shape), np.zeros(values.shape)
    for (dy, dx), neighbour in _shifted(np.pad(values.astype(np.float64), radius, constant_values=np.nan), radius):
        change = neighbour - values
        near = math.exp(-(dy**2 + dx**2) / (2 * distance**2))
        weight = near * np.exp(-(np.where(np.isnan(change), np.inf, change / strength) ** 2) / 2)
        total += weight * np.where(np.isnan(change), 0, change)
        weights += weight
    return as_result(values, values + total / np.where(weights > 0, weights, 1))


def _non_local(
    depth: ArrayLike, strength: float, patch: int, distance: int, average: Callable[[Floats, Floats], Floats]
) -> DepthMap:
    """Average the pixels with similar neighbourhoods by weight, some rows at a time."""
    values = map_of(depth)
    require_at_least_zero("the strength", strength)
    radius = radius_of("patch", patch)
    if strength == 0:
        return values.copy()

    def strip(padded: Floats, margin: int) -> Floats:
        return average(*_look_alikes(padded, margin, strength, radius, distance))

    return as_result(values, _by_strips(strip, values, distance + radius, (2 * distance + 1) ** 2))


def _look_alikes(padded: Floats, margin: int, strength: float, radius: int, distance: int) -> tuple[Floats, Floats]:
    """Compute values and weights (height, width, n) of the search window's pixels; NaN has value and weight 0."""
    known = ~np.isnan(padded)
    values = np.where(known, padded, 0)
    inner, side = (slice(margin, -margin),) * 2, 2 * radius + 1
    stack, weights = [], []
    for (dy, dx), neighbour in _shifted(values, distance, margin):
        other_known, other = (np.roll(array, (-dy, -dx), (0, 1)) for array in (known, values))
        both = known & other_known
        squares, share = (
            uniform_filter(array, side, mode="constant")[inner]
            for array in (np.where(both, (values - other) ** 2, 0), both.astype(np.float64))
        )
        apart = np.maximum(squares, 0) / np.maximum(share, 0.5 / side**2)
        stack.append(neighbour)
        weights.append(np.where(other_known[inner] & ((dy, dx) != (0, 0)), np.exp(-apart / strength**2), 0))
    alike = np.stack(weights, axis=-1)
    most = alike.max(axis=-1)
    alike[..., len(weights) // 2] = np.where(known[inner], np.where(most > 0, most, 1), 0)
    return np.stack(stack, axis=-1), alike


def _weighted_mean(values: Floats, weights: Floats) -> Floats:
    """Average along the last axis; 0 where there is no weight."""
    total = weights.sum(axis=-1)
    return (weights * values).sum(axis=-1) / np.where(total > 0, total, 1)


def _weighted_median(values: Floats, weights: Floats) -> Floats:
    """Find the value along the last axis at which half the weight is reached, the mean of two at a tie."""
    order = np.argsort(values, axis=-1)
    ranked = np.take_along_axis(values, order, axis=-1)
    below = np.take_along_axis(weights, order, axis=-1).cumsum(axis=-1)
    half = below[..., -1:] / 2
    tie = 1e-12 * half
    last = values.shape[-1] - 1
    places = ((below < half - tie).sum(axis=-1), (below <= half + tie).sum(axis=-1))
    low, high = (np.take_along_axis(ranked, np.minimum(i, last)[..., None], axis=-1)[..., 0] for i in places)
    return _between(low, high)


def _between(low: Floats, high: Floats) -> Floats:
    return np.where(low == high, low, low / 2 + high / 2)


def _middle(padded: Floats, radius: int) -> Floats:
    """Compute the median of the valid values in each window, NaN where there is none."""
    ranked = np.sort(np.stack([window for _, window in _shifted(padded, radius)]), axis=0)
    count = (~np.isnan(ranked)).sum(axis=0)
    low, high = (np.take_along_axis(ranked, i[None], axis=0)[0] for i in (np.maximum(count - 1, 0) // 2, count // 2))
    return _between(low, high)


def _nearer_half(padded: Floats, radius: int) -> Floats:
    """Average the smaller half of absolute differences to the valid neighbours; 0 where there is none."""
    windows = dict(_shifted(padded, radius))
    centre = windows.pop((0, 0))
    if not windows:
        return np.zeros_like(centre)
    ranked = np.sort(np.stack([np.abs(window - centre) for window in windows.values()]), axis=0)
    half = ((~np.isnan(ranked)).sum(axis=0) + 1) // 2
    total = np.nancumsum(ranked, axis=0)
    return np.where(
        half > 0, np.take_along_axis(total, np.maximum(half - 1, 0)[None], axis=0)[0] / np.maximum(half, 1), 0
    )


def _shifted(padded: Floats, radius: int, margin: int | None = None) -> Iterator[tuple[tuple[int, int], Floats]]:
    """Shift the map to each neighbour within a radius, without the padding."""
    margin = radius if margin is None else margin
    height, width = (side - 2 * margin for side in padded.shape)
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            yield (dy, dx), padded[margin + dy : margin + dy + height, margin + dx : margin + dx + width]


def _by_strips(
    work: Callable[[Floats, int], Floats], values: DepthMap, margin: int, n_neighbours: int | None = None
) -> Floats:
    """Process some rows of a map at a time: ``work`` gets them with a margin around, NaN outside the map."""
    padded = np.pad(values.astype(np.float64), margin, constant_values=np.nan)
    n_neighbours = (2 * margin + 1) ** 2 if n_neighbours is None else n_neighbours
    rows = max(1, STRIP_VALUES // (n_neighbours * values.shape[1]))
    strips = (padded[top : min(top + rows, len(values)) + 2 * margin] for top in range(0, len(values), rows))
    return np.concatenate([work(strip, margin) for strip in strips])

"""Pixels that one view shows and the other does not: found by matching both ways, filled from what lies behind."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter

from sparsedepth.vocabulary import DepthMap, Floats

Mask = NDArray[np.bool_]

CHUNK = 1 << 13
"""Pixels whose histograms are held at once, which bounds the memory a large map needs."""


def disagreement(left: DepthMap, right: DepthMap) -> Floats:
    """How far the two views' disparities are apart at a match, in pixels; infinite where it lies outside the view.

    ``right`` is the right view's map: it shows at x what the left view shows at x + disparity.
    """
    width = left.shape[1]
    place = np.rint(np.arange(width) - left).astype(np.intp)
    inside = (place >= 0) & (place < width)
    back = np.take_along_axis(right, np.clip(place, 0, width - 1), axis=1)
    return np.where(inside, np.abs(back - left), np.float32(np.inf))


def fill_background(disparity: DepthMap, bad: Mask) -> DepthMap:
    """Each bad pixel takes the smaller disparity of the nearest good ones in its row: what is hidden lies behind.

    A row without good pixels takes that of the nearest row with some; a map without any stays as it is.
    """
    if bad.all():
        return disparity.copy()
    good_rows = np.flatnonzero(~bad.all(axis=1))
    nearest = good_rows[np.abs(np.arange(len(bad))[:, None] - good_rows).argmin(axis=1)]
    values, unknown = disparity[nearest], bad[nearest]
    columns = np.arange(values.shape[1])
    before = np.maximum.accumulate(np.where(unknown, -1, columns), axis=1)
    after = np.minimum.accumulate(np.where(unknown, len(columns), columns)[:, ::-1], axis=1)[:, ::-1]
    from_left, from_right = (
        np.where((place >= 0) & (place < len(columns)), _at(values, place), np.inf) for place in (before, after)
    )
    return np.where(bad, np.minimum(from_left, from_right), disparity).astype(disparity.dtype)


def _at(values: Floats, columns: NDArray[np.intp]) -> Floats:
    return np.take_along_axis(values, np.clip(columns, 0, values.shape[1] - 1), axis=1)


def weighted_median(
    disparity: DepthMap,
    guide: Floats,
    where: Mask,
    *,
    trust: Floats | None = None,
    radius: int = 9,
    colour: float = 25.5,
    bins_per_pixel: int = 2,
) -> DepthMap:
    """The median of a window in which pixels count as their colours are alike, at some pixels of a map.

    A neighbour counts exp(-c**2 / (2 colour**2)), c the distance of colours in ``guide`` (height, width, channels),
    times its ``trust``. Disparities, which are not negative, are rounded to bins; sums run in a fixed order, so that
    equal inputs give equal bits.
    """
    result = disparity.copy()
    bins = np.rint(disparity * bins_per_pixel).astype(np.intp)
    edge = ((radius, radius), (radius, radius))
    padded_bins = np.pad(bins, edge).ravel()
    far = np.pad(guide / (np.sqrt(2) * colour), (*edge, (0, 0)), constant_values=1e4).astype(np.float32)
    planes = far.transpose(2, 0, 1).reshape(far.shape[2], -1)
    share = np.pad(np.ones_like(disparity) if trust is None else trust, edge).astype(np.float32).ravel()
    rows, columns = np.nonzero(where)
    stride = disparity.shape[1] + 2 * radius
    places = (rows + radius) * stride + columns + radius
    for begin in range(0, len(places), CHUNK):
        part = slice(begin, begin + CHUNK)
        found = _median_bins(padded_bins, planes, share, places[part], stride, radius, int(bins.max()) + 1)
        known = found >= 0
        result[rows[part][known], columns[part][known]] = found[known] / bins_per_pixel
    return result


def _median_bins(
    bins: NDArray[np.intp],
    planes: Floats,
    share: Floats,
    places: NDArray[np.intp],
    stride: int,
    radius: int,
    n_bins: int,
) -> NDArray[np.intp]:
    """The bin at which half the weight is reached, -1 where nothing has any weight."""
    histogram = np.zeros(len(places) * n_bins, np.float32)
    starts = np.arange(len(places)) * n_bins
    own = planes[:, places]
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            there = places + (dy * stride + dx)
            apart = sum((mine - plane[there]) ** 2 for mine, plane in zip(own, planes, strict=True))
            histogram[starts + bins[there]] += share[there] * np.exp(-np.asarray(apart, np.float32))
    weight = histogram.reshape(len(places), n_bins).cumsum(axis=1, dtype=np.float64)
    found = (weight < weight[:, -1:] / 2).sum(axis=1)
    return np.where(weight[:, -1] > 0, found, -1)


def smooth(disparity: DepthMap, size: int = 5) -> DepthMap:
    """The median of a window; the map's edge goes on."""
    return median_filter(disparity, size=size, mode="nearest")

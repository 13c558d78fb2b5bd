"""Occlusions: pixels that one view shows and the other does not, found by a left-right check and filled."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import median_filter

from sparsedepth.components import connected_components
from sparsedepth.neighbourhood import Neighbours, local_range
from sparsedepth.vocabulary import DepthMap, Floats

Mask = NDArray[np.bool_]

PIXELS_PER_CHUNK = 1 << 13
"""Pixels whose histograms are held at once, which bounds the memory a large map needs."""

FAR_COLOUR = 1e4
"""Colours beyond the border, in units of the median's colour scale: so unlike any that they have no weight."""


def lr_difference(left: DepthMap, right: DepthMap) -> Floats:
    """Measure by how much the disparities of both views differ at each match, in pixels.

    ``right`` is the right view's map: it shows at x what the left view shows at x + disparity. Matches outside of the
    right view differ by infinity.
    """
    width = left.shape[1]
    place = np.rint(np.arange(width) - left).astype(np.intp)
    inside = (place >= 0) & (place < width)
    back = np.take_along_axis(right, np.clip(place, 0, width - 1), axis=1)
    return np.where(inside, np.abs(back - left), np.float32(np.inf))


def speckles(disparity: DepthMap, min_px: int, max_step: float = 1.0) -> Mask:
    """Find connected components of fewer than ``min_px`` pixels, whose neighbours differ by at most a step."""
    component = connected_components(disparity, max_step)
    return np.bincount(component.ravel())[component] < min_px


def fill_background(disparity: DepthMap, bad: Mask, guide: Floats | None = None) -> DepthMap:
    """Fill each bad pixel with the smaller disparity of the nearest good ones in its row: the background.

    With a ``guide`` (height, width, channels), the surfaces of those two go on with the slope that they have among
    the good pixels around them. A row without good pixels takes that of the nearest row with some; a map without any
    stays as it is.
    """
    if bad.all():
        return disparity.copy()
    good_rows = np.flatnonzero(~bad.all(axis=1))
    nearest = good_rows[np.abs(np.arange(len(bad))[:, None] - good_rows).argmin(axis=1)]
    values, unknown = disparity[nearest], bad[nearest]
    columns = np.arange(values.shape[1])
    before = np.maximum.accumulate(np.where(unknown, -1, columns), axis=1)
    after = np.minimum.accumulate(np.where(unknown, len(columns), columns)[:, ::-1], axis=1)[:, ::-1]
    level, slope = values, np.zeros_like(values)
    if guide is not None:
        level, slope = _surfaces(values, unknown, guide[nearest])
    sides = []
    for place in (before, after):
        there = np.clip(place, 0, len(columns) - 1)
        reached = _at(level, there) + _at(slope, there) * (columns - there)
        sides.append(np.where(place == there, np.maximum(reached, 0), np.inf))
    return np.where(bad, np.minimum(*sides), disparity).astype(disparity.dtype)


def _at(values: Floats, columns: NDArray[np.intp]) -> Floats:
    return np.take_along_axis(values, columns, axis=1)


SLOPE_RADIUS_PX = 12
SLOPE_STEPS_PX = range(-SLOPE_RADIUS_PX, SLOPE_RADIUS_PX + 1, 2)
"""Rows and columns around a pixel that its slope is estimated from."""
COLOUR_SCALE, LEVEL_SCALE_PX = 20.0, 0.7
"""Standard deviations of the colours (0..255) and the disparities that belong to one surface; of the latter at
distance zero, and a tenth more with every pixel of distance."""
SLOPE_PRIOR_PX2, MAX_SLOPE = 250.0, 0.35
"""Ridge penalty of the slope, in squared pixels; largest slope, in pixels of disparity per pixel."""


def _surfaces(disparity: DepthMap, bad: Mask, guide: Floats) -> tuple[DepthMap, DepthMap]:
    """Fit a plane to what is similar to each good pixel next to a bad one; return level and slope along the row.

    By ridge regression; elsewhere the map itself, and no slope.
    """
    adjacent = np.zeros_like(bad)
    adjacent[:, 1:] |= bad[:, :-1]
    adjacent[:, :-1] |= bad[:, 1:]
    rows, columns = np.nonzero(adjacent & ~bad)
    level, slope = disparity.astype(np.float64), np.zeros(disparity.shape)
    offsets = np.array(list(product(SLOPE_STEPS_PX, SLOPE_STEPS_PX)))
    neighbours = Neighbours.at(disparity.shape, (rows, columns), offsets)
    here = neighbours.centre
    values, good = neighbours.pad(level, 0), neighbours.pad(~bad, 0)
    colours = [neighbours.pad(guide[..., k] / (np.sqrt(2) * COLOUR_SCALE), 0) for k in range(guide.shape[2])]
    squares, sides = np.zeros((len(here), 3, 3)), np.zeros((len(here), 3))
    squares[:, [0, 1, 2], [0, 1, 2]] = 1e-3, SLOPE_PRIOR_PX2, SLOPE_PRIOR_PX2
    for shift, (dy, dx) in zip(neighbours.shift, offsets.tolist(), strict=True):
        there, terms = here + shift, np.array([1.0, dx, dy])
        away = values[there] - values[here]
        unlike = sum((plane[there] - plane[here]) ** 2 for plane in colours)
        unlike += (away / (LEVEL_SCALE_PX * (1 + 0.1 * np.hypot(dx, dy)))) ** 2 / 2
        weight = good[there] * np.exp(-unlike)
        squares += weight[:, None, None] * np.outer(terms, terms)
        sides += (weight * away)[:, None] * terms
    planes = np.linalg.solve(squares, sides[..., None])[..., 0]
    level[rows, columns] += planes[:, 0]
    slope[rows, columns] = np.clip(planes[:, 1], -MAX_SLOPE, MAX_SLOPE)
    return level, slope


def weighted_median(
    disparity: DepthMap,
    guide: Floats,
    where: Mask,
    *,
    trust: Floats | None = None,
    radius: int = 9,
    every: int = 1,
    colour: float = 25.5,
    bins_per_pixel: int = 2,
) -> DepthMap:
    """Replace some pixels by a median of their window in which pixels count by similarity of colour.

    Of the window's rows and columns one in ``every`` is looked at. A neighbour counts exp(-c**2 / (2 colour**2)), c the
    distance of colours in ``guide`` (height, width, channels), times its ``trust``. Disparities, none negative,
    are rounded to bins; sums run in a fixed order, so that equal inputs give equal bits.
    """
    result = disparity.copy()
    bins = np.rint(disparity * bins_per_pixel).astype(np.intp)
    rows, columns = np.nonzero(where)
    steps = range(-(radius // every) * every, radius + 1, every)
    neighbours = Neighbours.at(disparity.shape, (rows, columns), np.array(list(product(steps, steps))))
    padded_bins = neighbours.pad(bins, 0)
    share = neighbours.pad(np.ones_like(disparity) if trust is None else trust, 0).astype(np.float32)
    scaled = np.moveaxis(guide / (np.sqrt(2) * colour), -1, 0)
    planes = np.stack([neighbours.pad(plane, FAR_COLOUR) for plane in scaled]).astype(np.float32)
    for begin in range(0, len(rows), PIXELS_PER_CHUNK):
        part = slice(begin, begin + PIXELS_PER_CHUNK)
        places = neighbours.centre[part]
        found = _median_bins(padded_bins, planes, share, places, neighbours.shift, int(bins.max()) + 1)
        known = found >= 0
        result[rows[part][known], columns[part][known]] = found[known] / bins_per_pixel
    return result


def _median_bins(
    bins: NDArray[np.intp],
    planes: Floats,
    share: Floats,
    places: NDArray[np.intp],
    shifts: Iterable[int],
    n_bins: int,
) -> NDArray[np.intp]:
    """Find the bin at which half the weight is reached, -1 where there is no weight."""
    histogram = np.zeros(len(places) * n_bins, np.float32)
    starts = np.arange(len(places)) * n_bins
    own = planes[:, places]
    for shift in shifts:
        there = places + shift
        apart = sum((mine - plane[there]) ** 2 for mine, plane in zip(own, planes, strict=True))
        histogram[starts + bins[there]] += share[there] * np.exp(-np.asarray(apart, np.float32))
    weight = histogram.reshape(len(places), n_bins).cumsum(axis=1, dtype=np.float64)
    found = (weight < weight[:, -1:] / 2).sum(axis=1)
    return np.where(weight[:, -1] > 0, found, -1)


def near_edges(disparity: DepthMap, radius: int, step: float = 1.0) -> Mask:
    """Find the pixels within a window of which disparities differ by more than a step."""
    lowest, highest = local_range(disparity, radius)
    return highest - lowest > step


def smooth(disparity: DepthMap, size: int = 5) -> DepthMap:
    """Apply a median filter; the map's edge is repeated."""
    return median_filter(disparity, size=size, mode="nearest")

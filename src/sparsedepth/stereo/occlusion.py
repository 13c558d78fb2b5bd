"""Occlusions: pixels that one view shows and the other does not, found in one map or in two, and filled."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from sparsedepth.kernels import fusion, stereo_fill, stereo_median
from sparsedepth.stereo.rows import Bytes
from sparsedepth.stereo.team import in_bands
from sparsedepth.vocabulary import DepthMap, Floats

Mask = NDArray[np.bool_]

SLOPE_RADIUS_PX, SLOPE_STRIDE_PX = 12, 2
"""The window around a pixel that its slope is estimated from, and the step between the pixels that are looked at."""
COLOUR_SCALE, LEVEL_SCALE_PX, LEVEL_GROWTH = 20.0, 0.7, 0.1
"""Standard deviations of the colours (0..255) and of the disparities of one surface. That of disparities holds at
distance zero; the third number is the fraction by which it grows a pixel."""
SLOPE_PRIOR_PX2, MAX_SLOPE = 250.0, 0.35
"""Ridge penalty of the slope, in squared pixels; largest slope, in pixels of disparity per pixel."""
BINS_PER_PX = 2
"""Weighted medians are rounded to such fractions of a pixel."""
ONE_WEIGHT = 1 << 16
"""Weights of a median are whole numbers; this one is that of equal colours."""
COLOUR_STD = 10.0
"""Scale of colour differences (0..255) in the medians that fill occlusions and sharpen edges. It and the window below
were chosen on Middlebury 2005 and 2006 in two sizes."""
FILL_RADIUS_PX, FILL_STRIDE_PX = 15, 2
"""The window of the median that fills occlusions, and the step between the pixels it looks at."""


def hidden_pixels(disparity: DepthMap) -> Mask:
    """Find the pixels of the left view that the right one does not show, if a map is true.

    A nearer pixel lands within half a pixel of it in the right view and hides it. Or it lands to the left of the right
    view.
    """
    given = _floats(disparity)
    height, width = given.shape
    # The costs of a map whose hidden pixels cost 1 and whose bends cost nothing.
    maps, seen, unseen = (
        np.stack([given, given]),
        np.zeros((2, height, width), np.float32),
        np.ones((2, height, width), np.float32),
    )
    flat = np.zeros((height, max(width - 2, 0)), np.float32), np.zeros((max(height - 2, 0), width), np.float32)
    rooms = np.zeros(given.shape, np.uint8), np.empty_like(given), np.empty(3 * width + 2, np.int32)
    costs = np.empty(given.shape)
    fusion.costs(height, width, maps, seen, unseen, *flat, 1.0, *rooms, costs)
    return (costs > 0) | (np.arange(width) < given)


def lr_difference(left: DepthMap, right: DepthMap, threads: int = 1) -> Floats:
    """Measure by how much the disparities of both views differ at each match, in pixels.

    ``right`` is the right view's map: it shows at x what the left view shows at x + disparity. Matches outside of the
    right view differ by infinity.
    """
    ours, theirs = _floats(left), _floats(right)
    difference = np.empty_like(ours)
    height, width = ours.shape
    in_bands(lambda a, b: stereo_fill.lr_difference(a, b, width, ours, theirs, difference), height, threads)
    return difference


def speckles(disparity: DepthMap, min_px: int, max_step: float = 1.0) -> Mask:
    """Find connected components of fewer than ``min_px`` pixels, whose neighbours differ by at most a step."""
    given = _floats(disparity)
    small, room = np.empty(given.shape, np.bool_), np.empty((2, *given.shape), np.int32)
    stereo_fill.speckles(*given.shape, given, min_px, max_step, *room, small.view(np.uint8))
    return small


def fill_background(disparity: DepthMap, bad: Mask, guide: Bytes | None = None, threads: int = 1) -> DepthMap:
    """Fill each bad pixel with the smaller disparity of the nearest good ones in its row: the background.

    With a ``guide`` (height, channels, width), the surfaces of those two go on with the slope that they have among
    the good pixels around them. A row without good pixels takes that of the nearest row with some; a map without any
    stays as it is.
    """
    given = _floats(disparity)
    if bad.all():
        return given.copy()
    source, good_rows = np.arange(len(bad), dtype=np.int64), np.flatnonzero(~bad.all(axis=1))
    if len(good_rows) < len(bad):
        source = good_rows[np.abs(source[:, None] - good_rows).argmin(axis=1)].astype(np.int64)
    holes = np.ascontiguousarray(bad).view(np.uint8)
    level, slope = given, np.zeros_like(given)
    if guide is not None:
        level, slope = _surfaces(given, holes, guide, threads)
    filled = np.empty_like(given)
    parts = source, given, holes, level, slope, filled
    in_bands(lambda a, b: stereo_fill.background(a, b, given.shape[1], *parts), len(given), threads)
    return filled


def fill_along_colours(disparity: DepthMap, bad: Mask, guide: Bytes, threads: int = 1) -> DepthMap:
    """Fill bad pixels from the background, then take the median of what has their colour around them.

    ``guide`` is the left view as `rows.byte_rows` returns it.
    """
    background = fill_background(disparity, bad, guide, threads)
    window = {"radius": FILL_RADIUS_PX, "every": FILL_STRIDE_PX, "colour": COLOUR_STD}
    return weighted_median(background, guide, bad, threads=threads, **window)


def _surfaces(disparity: DepthMap, bad: Bytes, guide: Bytes, threads: int) -> tuple[DepthMap, DepthMap]:
    """Fit a plane to what is similar to each good pixel next to a bad one; return level and slope along the row.

    By ridge regression; elsewhere the map itself, and no slope.
    """
    offsets = np.arange(-SLOPE_RADIUS_PX, SLOPE_RADIUS_PX + 1, SLOPE_STRIDE_PX)
    far = np.hypot(*np.meshgrid(offsets, offsets))
    reach = (1 / (LEVEL_SCALE_PX * (1 + LEVEL_GROWTH * far))).astype(np.float32)
    settings = SLOPE_RADIUS_PX, SLOPE_STRIDE_PX, reach, 0.5 / COLOUR_SCALE**2, SLOPE_PRIOR_PX2, MAX_SLOPE
    level, slope = np.empty_like(disparity), np.empty_like(disparity)
    sizes = *disparity.shape, guide.shape[1]
    in_bands(
        lambda a, b: stereo_fill.surfaces(a, b, *sizes, disparity, bad, guide, *settings, level, slope),
        len(disparity),
        threads,
    )
    return level, slope


def weighted_median(
    disparity: DepthMap,
    guide: Bytes,
    where: Mask,
    *,
    radius: int = 9,
    every: int = 1,
    colour: float = 25.5,
    threads: int = 1,
) -> DepthMap:
    """Replace some pixels by a median of their window in which pixels count by similarity of colour.

    Of the window's rows and columns one in ``every`` is looked at. A neighbour counts exp(-c**2 / (2 colour**2)), c the
    distance of colours in ``guide`` (height, channels, width). Disparities, none negative, are rounded to bins.
    """
    given = _floats(disparity)
    bins = np.rint(given * BINS_PER_PX).astype(np.int32)
    weights, medians = _weights(colour), np.empty_like(given)
    sizes = *given.shape, guide.shape[1], radius // every * every, every
    mask, n_bins = np.ascontiguousarray(where).view(np.uint8), int(bins.max()) + 1

    def work(begin: int, end: int) -> None:
        histogram = np.zeros(n_bins, np.uint32)
        parts = guide, mask, given, bins, 1 / BINS_PER_PX, weights, len(weights), histogram, medians
        stereo_median.weighted_median(begin, end, *sizes, *parts)

    in_bands(work, len(given), threads)
    return medians


@cache
def _weights(colour: float) -> NDArray[np.uint32]:
    """Tabulate the weights of squared colour distances, as long as they are not zero."""
    largest = int(2 * colour**2 * np.log(2 * ONE_WEIGHT)) + 1
    return np.rint(ONE_WEIGHT * np.exp(-np.arange(largest) / (2 * colour**2))).astype(np.uint32)


def near_edges(disparity: DepthMap, radius: int, step: float = 1.0, threads: int = 1) -> Mask:
    """Find the pixels within a window of which disparities differ by more than a step."""
    given = _floats(disparity)
    near = np.empty(given.shape, np.bool_)

    def work(begin: int, end: int) -> None:
        room = np.empty((2, given.shape[1]), np.float32)
        stereo_median.near_edges(begin, end, *given.shape, radius, step, given, *room, near.view(np.uint8))

    in_bands(work, len(given), threads)
    return near


def smooth(disparity: DepthMap, threads: int = 1) -> DepthMap:
    """Apply a median filter of 3 x 3 pixels; the map's edge is repeated."""
    given = _floats(disparity)
    medians = np.empty_like(given)

    def work(begin: int, end: int) -> None:
        room = np.empty(3 * (given.shape[1] + 2), np.float32)
        stereo_median.median(begin, end, *given.shape, given, room, medians)

    in_bands(work, len(given), threads)
    return medians


def _floats(values: DepthMap) -> DepthMap:
    return np.ascontiguousarray(values, np.float32)

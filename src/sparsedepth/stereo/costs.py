"""Costs of matching a pixel with the other view at any real disparity; a cost is built once for a pair.

Between pixels the right view is interpolated linearly. Where a match lies outside it, the view's edge goes on, or, if
``outside`` is given, that is the cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from sparsedepth.stereo.ad_census import AdCensus
from sparsedepth.vocabulary import DepthMap, Floats, StereoPair, UnaryCost

Cost = Callable[[StereoPair], UnaryCost]

LOG_2 = float(np.log(2))


def squared(pair: StereoPair, *, outside: float | None = None) -> UnaryCost:
    """Build the squared difference of the views (Eq. 9), the mean over channels."""
    left, right = _planes(pair.left), _planes(pair.right)

    def cost(disparity: DepthMap) -> Floats:
        return _mean((ours - theirs) ** 2 for ours, theirs in zip(left, _moved(right, disparity), strict=True))

    return _within(cost, outside)


def birchfield_tomasi(pair: StereoPair, *, truncation: float = 20.0, outside: float | None = None) -> UnaryCost:
    """Build the truncated squared distance to the other view's values within half a pixel; the mean over channels.

    Insensitive to where a view was sampled (Birchfield & Tomasi 1998), as Boykov's graph cuts use it.
    """
    left, right = _planes(pair.left), _planes(pair.right)
    still = np.zeros(pair.shape, np.float32)
    around_left = [_moved(left, still + step) for step in (-0.5, 0.0, 0.5)]
    lowest, highest = np.minimum.reduce(around_left), np.maximum.reduce(around_left)

    def cost(disparity: DepthMap) -> Floats:
        around = [_moved(right, np.asarray(disparity) + step) for step in (-0.5, 0.0, 0.5)]
        apart = np.minimum(
            _beyond(left, np.minimum.reduce(around), np.maximum.reduce(around)), _beyond(around[1], lowest, highest)
        )
        return _mean(np.minimum(plane, np.float32(truncation)) ** 2 for plane in apart)

    return _within(cost, outside)


def photo_consistency(pair: StereoPair, *, spread: float = 30.0, outside: float | None = LOG_2) -> UnaryCost:
    """Build log 2 - log(1 + exp(-s / spread)) of the squared difference s: from 0 to log 2.

    That of second-order stereo (Woodford et al. 2009); a match outside the other view costs the most.
    """
    difference = squared(pair)

    def cost(disparity: DepthMap) -> Floats:
        return np.float32(LOG_2) - np.log1p(np.exp(difference(disparity) / np.float32(-spread)))

    return _within(cost, outside)


def ad_census(
    pair: StereoPair, *, colour_scale: float = 30.0, census_scale: float = 15.0, outside: float | None = None
) -> UnaryCost:
    """Build AD-census: colour difference and Hamming distance of census words, each as 1 - exp(-x / scale).

    The census word of a pixel says which of the 62 around it are darker (Mei et al. 2011). Between whole disparities
    the cost is linear.
    """
    return _within(AdCensus.of(pair, colour_scale, census_scale), outside)


COSTS: dict[str, Cost] = {
    "squared": squared,
    "birchfield_tomasi": birchfield_tomasi,
    "ad_census": ad_census,
    "photo_consistency": photo_consistency,
}


def sample(unary: UnaryCost, pair: StereoPair, labels: Iterable[float]) -> Floats:
    """Sample the cost of each pixel at each label, (labels, height, width), float32."""
    levels = list(labels)
    volume = np.empty((len(levels), *pair.shape), np.float32)
    for plane, level in zip(volume, levels, strict=True):
        plane[:] = unary(np.full(pair.shape, level, np.float32))
    return volume


def _planes(view: Floats) -> Floats:
    """Arrange a view as (channels, height, width), so that sums over channels are sums of planes."""
    return np.ascontiguousarray(view.transpose(2, 0, 1))


def _mean(planes: Iterable[Floats]) -> Floats:
    total, count = 0.0, 0
    for plane in planes:
        total, count = total + plane, count + 1
    return np.asarray(total if count == 1 else total / np.float32(count))


def _beyond(value: Floats, lowest: Floats, highest: Floats) -> Floats:
    """Measure how far a value is outside an interval."""
    return np.maximum(np.maximum(value - highest, lowest - value), 0)


def _within(cost: UnaryCost, outside: float | None) -> UnaryCost:
    """Replace the cost of matches outside the other view."""
    if outside is None:
        return cost

    def bounded(disparity: DepthMap) -> Floats:
        columns = np.arange(np.shape(disparity)[1])
        place = columns - np.asarray(disparity)
        return np.where((place < 0) | (place > len(columns) - 1), np.float32(outside), cost(disparity))

    return bounded


def _moved(planes: Floats, disparity: DepthMap) -> Floats:
    """Sample each plane at x - disparity."""
    return sum(weight * theirs for weight, theirs in _neighbours(planes, disparity))  # type: ignore[return-value]


def _neighbours(planes: NDArray, disparity: DepthMap) -> list[tuple[Floats | np.float32, NDArray]]:
    """Find the pixels on both sides of x - disparity, with their linear weights.

    A map of one number, of which cost volumes are made, needs slices only, and but one if the number is whole.
    """
    disparity = np.asarray(disparity, np.float32)
    if (disparity == disparity[0, 0]).all():
        whole = np.ceil(disparity[0, 0])
        share = whole - disparity[0, 0]
        ends = (1 - share, int(whole)), (share, int(whole) - 1)
        return [(weight, _slid(planes, steps)) for weight, steps in ends if weight > 0]
    width = planes.shape[-1]
    place = np.clip(np.arange(width, dtype=np.float32) - disparity, 0, width - 1)
    below = np.floor(place)
    share, columns = place - below, below.astype(np.intp)
    return [(1 - share, _picked(planes, columns)), (share, _picked(planes, np.minimum(columns + 1, width - 1)))]


def _slid(planes: NDArray, steps: int) -> NDArray:
    """Shift the planes to the right by whole pixels; the edge is repeated."""
    width = planes.shape[-1]
    steps = max(min(steps, width - 1), 1 - width)
    moved = np.empty_like(planes)
    if steps >= 0:
        moved[..., steps:], moved[..., :steps] = planes[..., : width - steps], planes[..., :1]
    else:
        moved[..., :steps], moved[..., steps:] = planes[..., -steps:], planes[..., -1:]
    return moved


def _picked(planes: NDArray, columns: NDArray[np.intp]) -> NDArray:
    height, width = columns.shape
    places = (columns + width * np.arange(height)[:, None]).ravel()
    return planes.reshape(*planes.shape[:-2], -1)[..., places].reshape(*planes.shape[:-2], height, width)

"""The expected squared error of a disparity, by a log-linear model of what the views and the map say against it.

Matched and filled pixels have their own coefficients, fitted to the squared errors on Middlebury 2005 and 2006 in five
sizes (``models/stereo_variance``, refitted by training/stereo_variance.py, which also tests ranges that it was not
fitted to). What is unknown is at most as uncertain as a number somewhere in the range. docs/results/stereo.md has areas
under sparsification curves and calibrations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from sparsedepth.fitted import load_fitted
from sparsedepth.missing import distance_to_valid
from sparsedepth.neighbourhood import box_mean, local_variance
from sparsedepth.parallel import Once
from sparsedepth.ranks import quantile
from sparsedepth.stereo.team import at_once, in_bands
from sparsedepth.vocabulary import DepthMap, Floats

WINDOW_PX, WIDE_WINDOW_PX = 5, 15
"""Sides of the squares in which disparities and costs are averaged; chosen on Middlebury 2005."""
NEAR_SHARE_PX, WIDE_SHARE_PX = 9, 31
"""Sides of the squares in which unmatched pixels are counted."""
MAX_MOVE_PX = 20.0
"""Disparities that filling and smoothing changed by more are no worse."""
ROUNDING_VARIANCE = 1 / 12
"""Of brightness in whole numbers."""
BEND_MEDIAN = 6 * 0.6745
"""The median of absolute second differences, along rows and columns, of normal noise of deviation 1."""
FEATURES = (
    "constant",
    "log_spread",
    "log_wide_spread",
    "match_cost",
    "wide_match_cost",
    "log_moved",
    "log_distance",
    "unmatched_near",
    "unmatched_wide",
    "log_texture",
    "relative_disparity",
    "log_range",
    "log_detail",
)
"""What the coefficients belong to."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Features that predict the variance of a map; all maps are (height, width)."""

    left: Floats
    """The left view, (height, width, channels)."""
    max_disparity: int
    disparity: DepthMap
    """In pixels, without holes."""
    solved: DepthMap
    """The disparities as the solver gave them."""
    match_cost: Floats
    """The AD-census cost of each disparity."""
    unmatched: NDArray[np.bool_]
    """The pixels that were filled, not matched."""


def disparity_variance(evidence: Evidence, threads: int = 1) -> DepthMap:
    """Estimate the squared error of each disparity.

    Returns
    -------
    ndarray of float32, shape (height, width)
        The variance, in squared pixels, at most that of a number somewhere in the range.
    """
    matched, filled = weights().astype(np.float32)
    height, width = evidence.disparity.shape
    columns = [
        np.broadcast_to(np.asarray(column, np.float32), (height, width)) for column in features(evidence, threads)
    ]
    variance = np.empty((height, width), np.float32)

    def work(begin: int, end: int) -> None:
        band = [column[begin:end] for column in columns]
        exponent = np.where(evidence.unmatched[begin:end], _weighted(filled, band), _weighted(matched, band))
        variance[begin:end] = bounded(np.exp(exponent), evidence.max_disparity)

    in_bands(work, height, threads)
    return variance


def _weighted(coefficients: Floats, columns: list[Floats]) -> Floats:
    """Add up columns, each times its coefficient."""
    total = np.zeros(columns[0].shape, np.float32)
    for coefficient, column in zip(coefficients, columns, strict=True):
        total += coefficient * column
    return total


def weights() -> Floats:
    """Load the coefficients of the `FEATURES`, (2, features): of matched and of filled pixels."""
    return load_fitted("stereo_variance").arrays["weights"]


def bounded(variance: Floats, max_disparity: int) -> Floats:
    """Bound variances by that of a number somewhere in the range, smoothly.

    >>> bounded(np.array([0.01, 1e6]), 59).round(2).tolist()
    [0.01, 299.91]
    """
    most = np.float32((max_disparity + 1) ** 2 / 12)
    return variance * (most / (most + variance))


def features(evidence: Evidence, threads: int = 1) -> list[Floats | float]:
    """Compute the `FEATURES` of each pixel, whose weighted sum is the logarithm of the variance."""
    unmatched, grey = evidence.unmatched.astype(np.float32), Once(lambda: _grey(evidence.left))
    tasks: list[Callable[[], Floats | float]] = [
        lambda: 1.0,
        lambda: _log(0.05 + _spread(evidence, WINDOW_PX)),
        lambda: _log(0.05 + _spread(evidence, WIDE_WINDOW_PX)),
        lambda: box_mean(evidence.match_cost, WINDOW_PX),
        lambda: box_mean(evidence.match_cost, WIDE_WINDOW_PX),
        lambda: _log(0.05 + _moved(evidence) ** 2),
        lambda: np.log1p(_distance(evidence.unmatched)),
        lambda: box_mean(unmatched, NEAR_SHARE_PX),
        lambda: box_mean(unmatched, WIDE_SHARE_PX),
        lambda: np.log1p(box_mean(_gradient(grey()), WINDOW_PX)),
        lambda: evidence.disparity / np.float32(evidence.max_disparity),
        lambda: float(np.log(evidence.max_disparity)),
        lambda: float(np.log(ROUNDING_VARIANCE + detail_variance(grey()))),
    ]
    return at_once(tasks, threads)


def _spread(evidence: Evidence, side: int) -> Floats:
    return local_variance(evidence.disparity, side)


def _moved(evidence: Evidence) -> Floats:
    return np.minimum(np.abs(evidence.disparity - evidence.solved), MAX_MOVE_PX)


def _log(values: Floats) -> Floats:
    return np.log(values.astype(np.float32))


def _distance(unmatched: NDArray[np.bool_]) -> Floats:
    """Measure how far each unmatched pixel is from a matched one, in rows or columns, whichever are more."""
    if unmatched.all():
        return np.full(unmatched.shape, max(unmatched.shape), np.float32)
    return distance_to_valid(unmatched).astype(np.float32)


def _gradient(grey: Floats) -> Floats:
    """Compute how much the brightness of each pixel differs from that of its left neighbour."""
    return np.abs(np.diff(grey, axis=1, prepend=grey[:, :1]))


def _grey(view: Floats) -> Floats:
    channels = (view[..., channel] for channel in range(view.shape[2]))
    return reduce(np.add, channels) * np.float32(1 / view.shape[2])


def detail_variance(grey: Floats) -> float:
    """Estimate the variance of the finest detail of a picture, noise included, by the median of second differences.

    The mask is that of Immerkær (1996). One row in three is looked at.

    >>> round(detail_variance(np.random.default_rng(0).normal(100, 4, (200, 200))), 1)
    16.5
    """
    across = np.diff(grey, 2, axis=1)
    bends = across[:-2:3] - 2 * across[1:-1:3] + across[2::3]
    return (quantile(np.abs(bends), 0.5, n=bends.size) / BEND_MEDIAN) ** 2 if bends.size else 0.0

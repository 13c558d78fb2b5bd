"""Whether variances are right: against errors, as an order of pixels, and scores against true outliers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsedepth.checks import LARGEST
from sparsedepth.metrics.compared import depths, real
from sparsedepth.vocabulary import InputError, Vector


@dataclass(frozen=True)
class Calibration:
    """Squared errors against predicted variances, in bins from the most to the least certain pixels.

    Parameters
    ----------
    ratio
        Mean of squared error / variance in each bin: 1 = calibrated, above 1 = the variance is too small.
    variance, squared_error
        Means of the predicted variances and of the squared errors in each bin, in squared units of the map.
    count
        Pixels of each bin.
    of_one
        How much of each ratio a single pixel makes, at most: 1 = that pixel alone makes it.

    Examples
    --------
    >>> calibration([1.0, -1.0, 2.0, -2.0], [1.0, 1.0, 2.0, 2.0], bins=2).ratio
    array([1., 2.])
    """

    ratio: Vector
    variance: Vector
    squared_error: Vector
    count: NDArray[np.int_]
    of_one: Vector

    @property
    def overall(self) -> float:
        """The mean of squared error / variance over all pixels."""
        return float((self.ratio * self.count).sum() / self.count.sum())


def calibration(error: ArrayLike, variance: ArrayLike, bins: int = 10) -> Calibration:
    """Compare squared errors with variances, in bins of about equally many pixels.

    Equal variances share a bin, so there are fewer bins where many are equal. Pixels whose error is NaN or whose
    variance is NaN or infinite do not count.

    Parameters
    ----------
    error
        Errors of pixels, of any shape.
    variance
        Predicted variances of the same shape, in squared units of the errors.
    bins
        Most bins.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> calibration([1.0, -1.0, 2.0, -2.0], [1.0, 1.0, 2.0, 2.0]).overall
    1.5
    """
    squared, predicted = _valid_pairs(error, variance)
    if (predicted <= 0).any():
        raise InputError(f"{int((predicted <= 0).sum())} variances are not positive; give positive ones")
    if bins < 1:
        raise InputError(f"bins is {bins}; it must be at least 1")
    edges = np.unique(np.quantile(predicted, np.arange(1, bins) / bins, method="inverted_cdf"))
    which = np.searchsorted(edges, predicted, side="left")
    count = np.bincount(which, minlength=len(edges) + 1)
    filled = count > 0
    with np.errstate(over="ignore"):  # an error over almost no variance: infinitely too sure
        squared_over_predicted = squared / predicted
    ratio, mean_variance, mean_squared = (
        np.bincount(which, values, minlength=len(count))[filled] / count[filled]
        for values in (squared_over_predicted, predicted, squared)
    )
    largest = np.zeros(len(count))
    np.maximum.at(largest, which, squared_over_predicted)
    total = ratio * count[filled]
    of_one = np.divide(largest[filled], total, out=np.zeros(len(total)), where=(total > 0) & np.isfinite(total))
    return Calibration(ratio, mean_variance, mean_squared, count[filled], of_one)


@dataclass(frozen=True)
class Sparsification:
    """The error of the remaining pixels as the least certain ones are removed, over the error of all.

    Parameters
    ----------
    share
        Fraction of the pixels that are left out, 0 up to but not 1.
    by_variance, by_error
        RMSE of the rest over that of all, in the order of variances and of errors: the best that any order can do.
    area
        Between the two curves (AUSE): 0 = the variance orders pixels as their true errors do.

    Examples
    --------
    >>> sparsification([0.0, 1.0, 2.0], [0.1, 0.2, 0.3], steps=3).by_variance.round(2)
    array([1.  , 0.55, 0.  ])
    """

    share: Vector
    by_variance: Vector
    by_error: Vector
    area: float


def sparsification(error: ArrayLike, variance: ArrayLike, steps: int = 100) -> Sparsification:
    """Remove the pixels of largest variance step by step, and measure the RMSE of the rest.

    Equal variances leave in random order: the curve is the mean over all orders of the squared error. Pixels whose
    error or variance is NaN do not count; an infinite variance leaves first.

    Parameters
    ----------
    error, variance
        As for `calibration`.
    steps
        Points of the curves.

    Returns
    -------
    Sparsification

    Examples
    --------
    >>> sparsification([0.0, 1.0, 2.0], [0.1, 0.2, 0.3]).area
    0.0
    """
    squared, predicted = _valid_pairs(error, variance, keep_infinite=True)
    share = np.arange(steps) / steps
    left = len(squared) - np.floor(share * len(squared)).astype(int)
    by_variance, by_error = (_rest(squared, order, left) for order in (predicted, squared))
    area = float(np.trapezoid(by_variance - by_error, share))
    return Sparsification(share, by_variance, by_error, area)


def average_precision(score: ArrayLike, is_outlier: ArrayLike) -> float:
    """Compute the area under the precision-recall curve of outliers ranked by a score, largest first.

    Pixels of equal score are called together. An uninformative score earns the share of outliers.

    Parameters
    ----------
    score
        Number of each pixel, of any shape; larger = more likely an outlier.
    is_outlier
        Whether it is one, of the same shape.

    Returns
    -------
    float
        1 = all outliers come first.

    Examples
    --------
    >>> average_precision([0.9, 0.1, 0.8], [True, False, True])
    1.0
    """
    score, is_outlier = real(score).ravel(), np.asarray(is_outlier).ravel()
    if score.shape != is_outlier.shape or is_outlier.dtype != bool:
        raise InputError(
            f"{score.size} scores came with {is_outlier.size} marks of {is_outlier.dtype}; give one bool a score"
        )
    if np.isnan(score).any() or not is_outlier.any():
        raise InputError("average precision needs a score for every pixel and at least one true outlier")
    order = np.argsort(-score, kind="stable")
    last_of_ties = np.append(score[order][1:] != score[order][:-1], True)
    hits = is_outlier[order].cumsum()[last_of_ties]
    called = np.flatnonzero(last_of_ties) + 1
    return float((np.diff(hits, prepend=0) * hits / called).sum() / hits[-1])


def _valid_pairs(error: ArrayLike, variance: ArrayLike, *, keep_infinite: bool = False) -> tuple[Vector, Vector]:
    """Select squared errors and variances of the pixels that have both."""
    error, variance = depths(error), real(variance)
    if ((np.abs(variance) > LARGEST**2) & np.isfinite(variance)).any():
        raise InputError(f"variances are beyond {LARGEST**2:g}; give inf where nothing is known")
    if error.shape != variance.shape:
        raise InputError(f"errors of shape {error.shape} came with variances of shape {variance.shape}")
    both = ~np.isnan(error) & ~np.isnan(variance) & (keep_infinite | np.isfinite(variance))
    if not both.any():
        raise InputError("no pixel has both an error and a variance; there is nothing to compare")
    return error[both] ** 2, variance[both]


def _rest(squared: Vector, order: Vector, left: NDArray[np.int_]) -> Vector:
    """Compute the RMSE of the first n pixels of an order, for all n, over the RMSE of all."""
    _, group = np.unique(order, return_inverse=True)
    expected = (np.bincount(group, squared) / np.bincount(group))[group]
    total = expected[np.argsort(order, kind="stable")].cumsum()
    if total[-1] == 0:
        return np.zeros(len(left))
    return np.sqrt(total[left - 1] / left / (total[-1] / len(squared)))

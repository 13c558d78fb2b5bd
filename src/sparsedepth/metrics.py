"""Metrics of restored maps: errors, calibration of variances, and the best parameter of a competitor.

Pixels whose truth is NaN never count. A NaN in the estimate where the truth is known is an error. ``missing="ignore"``
leaves those pixels out. Where pixels are counted, ``missing="bad"`` counts them as bad.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsedepth.checks import LARGEST, as_floats
from sparsedepth.vocabulary import DepthMap, Floats, InputError, Vector

Missing = Literal["raise", "ignore"]
MissingPixel = Literal["raise", "ignore", "bad"]


def psnr(estimate: ArrayLike, truth: ArrayLike, peak: float | None = None, *, missing: Missing = "raise") -> float:
    """Compute the peak signal-to-noise ratio in decibels; infinite where nothing differs.

    ``peak`` is the range of the truth unless given, so units do not matter.

    >>> psnr([[0.0, 1.0]], [[0.0, 1.1]]) > 20
    True
    """
    if peak is None:
        known = _known(truth)
        peak = float(known.max() - known.min())
    if not peak > 0:
        raise InputError(f"the peak is {peak!r}, as of a flat map; give one that means something, in the map's units")
    error = rmse(estimate, truth, missing=missing)
    return float(20 * np.log10(peak / error)) if error > 0 else float("inf")


def rmse(estimate: ArrayLike, truth: ArrayLike, *, missing: Missing = "raise") -> float:
    """Compute the root of the mean squared error, in units of the map."""
    return float(np.sqrt(np.mean(_errors(estimate, truth, missing) ** 2)))


def mae(estimate: ArrayLike, truth: ArrayLike, *, missing: Missing = "raise") -> float:
    """Compute the mean absolute error, in units of the map."""
    return float(np.abs(_errors(estimate, truth, missing)).mean())


def bad_pixels(estimate: ArrayLike, truth: ArrayLike, threshold: float, *, missing: MissingPixel = "raise") -> float:
    """Compute the fraction of pixels with errors beyond ``threshold``, in units of the map."""
    return float(_bad(_errors(estimate, truth, missing), threshold).mean())


@dataclass(frozen=True)
class FixedAndBroken:
    """The effect of a change, in fractions of the evaluated pixels: bad after = bad before - fixed + broken."""

    bad_before: float
    bad_after: float
    fixed: float
    broken: float


def fixed_and_broken(
    before: ArrayLike, after: ArrayLike, truth: ArrayLike, threshold: float, *, missing: MissingPixel = "raise"
) -> FixedAndBroken:
    """Compute which fractions of the pixels became good and bad: an average hides one behind the other."""
    if missing == "ignore":
        unknown = np.isnan(_real(before)) | np.isnan(_real(after))
        truth = np.where(unknown, np.nan, _real(truth))
    was, is_now = (_bad(_errors(estimate, truth, missing), threshold) for estimate in (before, after))
    return FixedAndBroken(
        float(was.mean()), float(is_now.mean()), float((was & ~is_now).mean()), float((~was & is_now).mean())
    )


@dataclass(frozen=True)
class Calibration:
    """Squared errors against predicted variances, in bins from the most to the least certain pixels."""

    ratio: Vector
    """Mean of squared error / variance in each bin: 1 = calibrated, above 1 = the variance is too small."""
    variance: Vector
    """The mean of the predicted variances in each bin."""
    squared_error: Vector
    count: NDArray[np.int_]
    of_one: Vector
    """How much of each ratio a single pixel makes, at most: 1 = that pixel alone makes it."""

    @property
    def overall(self) -> float:
        """The mean of squared error / variance over all pixels."""
        return float((self.ratio * self.count).sum() / self.count.sum())


def calibration(error: ArrayLike, variance: ArrayLike, bins: int = 10) -> Calibration:
    """Compare squared errors with variances, in bins of about equally many pixels.

    Equal variances share a bin, so there are fewer bins where many are equal. Pixels whose error is NaN or whose
    variance is NaN or infinite do not count.
    """
    squared, predicted = _valid_pairs(error, variance)
    if (predicted <= 0).any():
        raise InputError(f"{int((predicted <= 0).sum())} variances are not positive; no error can be held against them")
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
    """The error of the remaining pixels as the least certain ones are removed, over the error of all."""

    share: Vector
    """How many pixels are left out, 0 up to but not 1."""
    by_variance: Vector
    by_error: Vector
    """The best that any order of pixels can do."""
    area: float
    """Between the two curves (AUSE): 0 = the variance orders pixels as their true errors do."""


def sparsification(error: ArrayLike, variance: ArrayLike, steps: int = 100) -> Sparsification:
    """Remove the pixels of largest variance step by step, and measure the RMSE of the rest.

    Equal variances leave in random order: the curve is the mean over all orders of the squared error. Pixels whose
    error or variance is NaN do not count; an infinite variance leaves first.
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
    """
    score, is_outlier = _real(score).ravel(), np.asarray(is_outlier).ravel()
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


@dataclass(frozen=True)
class Best:
    """The result of a method at its best parameter."""

    result: DepthMap
    parameter: float
    score: float
    at_end: bool
    """Whether the parameter is the first or the last of the grid, so that a wider grid might do better."""


def oracle(
    method: Callable[[DepthMap, Any], DepthMap],
    grid: Iterable[Any],
    noisy: DepthMap,
    truth: DepthMap,
    score: Callable[[DepthMap, DepthMap], float] = psnr,
) -> Best:
    """Find the result of ``method(noisy, parameter)`` that is nearest to the truth: a bound on tuning.

    The largest score wins, the earlier parameter on a tie.
    """
    parameters = list(grid)
    if not parameters:
        raise InputError("the grid holds no parameter to try")
    results = [method(noisy, parameter) for parameter in parameters]
    scores = [score(result, truth) for result in results]
    best = int(np.argmax(scores))
    return Best(results[best], parameters[best], scores[best], best in (0, len(parameters) - 1))


def _real(values: ArrayLike) -> Floats:
    """Convert to float64, NaN where masked; infinities pass, because a variance may be infinite."""
    return as_floats("what is compared", values).astype(np.float64)


def _depths(values: ArrayLike) -> Floats:
    array = _real(values)
    if (np.abs(array) > LARGEST).any():
        raise InputError(f"what is compared is infinite or beyond {LARGEST:g} somewhere; mark unknown pixels with NaN")
    return array


def _known(truth: ArrayLike) -> Vector:
    values = _depths(truth)
    known = values[~np.isnan(values)]
    if not known.size:
        raise InputError("the truth is unknown at every pixel; there is nothing to compare with")
    return known


def _errors(estimate: ArrayLike, truth: ArrayLike, missing: MissingPixel) -> Vector:
    """Subtract the truth where it is known; infinite where missing pixels are bad."""
    estimate, truth = _depths(estimate), _depths(truth)
    if estimate.shape != truth.shape:
        raise InputError(f"the estimate has shape {estimate.shape} but the truth {truth.shape}; compare like with like")
    if missing not in ("raise", "ignore", "bad"):
        raise InputError(f"missing={missing!r}; choose 'raise', 'ignore' or, where pixels are counted, 'bad'")
    _known(truth)
    known = ~np.isnan(truth)
    error = estimate[known] - truth[known]
    absent = np.isnan(error)
    if not absent.any():
        return error
    if missing == "bad":
        return np.where(absent, np.inf, error)
    if missing == "raise" or absent.all():
        raise InputError(
            f"{int(absent.sum())} of {error.size} pixels whose truth is known are NaN in the estimate; "
            "fill them, or pass missing='ignore' to leave them out"
        )
    return error[~absent]


def _bad(error: Vector, threshold: float) -> NDArray[np.bool_]:
    if not threshold >= 0:
        raise InputError(f"the threshold is {threshold!r}; it must be zero or more, in units of the map")
    return np.abs(error) > threshold


def _valid_pairs(error: ArrayLike, variance: ArrayLike, *, keep_infinite: bool = False) -> tuple[Vector, Vector]:
    """Select squared errors and variances of the pixels that have both."""
    error, variance = _depths(error), _real(variance)
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

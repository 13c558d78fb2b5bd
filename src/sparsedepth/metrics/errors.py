"""Errors of a map against its truth, and the best parameter of a competitor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sparsedepth.metrics.compared import Missing, MissingPixel, errors_of, is_bad, known_values, real
from sparsedepth.vocabulary import DepthMap, InputError

Parameter = TypeVar("Parameter", bound=float)


def psnr(estimate: ArrayLike, truth: ArrayLike, peak: float | None = None, *, missing: Missing = "raise") -> float:
    """Compute the peak signal-to-noise ratio in decibels; infinite where nothing differs.

    Parameters
    ----------
    estimate, truth
        (height, width) in one unit; NaN in the truth = unknown, and does not count.
    peak
        Range of values; None = that of the truth, so units do not matter.
    missing
        What a NaN in the estimate is where the truth is known: "raise" refuses it, "ignore" leaves the pixel out.

    Returns
    -------
    float
        Decibels; larger is better.

    Examples
    --------
    >>> psnr([[0.0, 1.0]], [[0.0, 1.1]]) > 20
    True
    """
    if peak is None:
        known = known_values(truth)
        peak = float(known.max() - known.min())
    if not peak > 0:
        raise InputError(f"the peak is {peak!r}, as of a flat map; give a positive one, in units of the map")
    error = rmse(estimate, truth, missing=missing)
    return float(20 * np.log10(peak / error)) if error > 0 else float("inf")


def rmse(estimate: ArrayLike, truth: ArrayLike, *, missing: Missing = "raise") -> float:
    """Compute the root of the mean squared error.

    Parameters
    ----------
    estimate, truth
        (height, width) in one unit; NaN in the truth = unknown, and does not count.
    missing
        What a NaN in the estimate is where the truth is known: "raise" refuses it, "ignore" leaves the pixel out.

    Returns
    -------
    float
        In units of the map.

    Examples
    --------
    >>> rmse([[1.0, 2.0]], [[1.5, 2.5]])
    0.5
    """
    return float(np.sqrt(np.mean(errors_of(estimate, truth, missing) ** 2)))


def mae(estimate: ArrayLike, truth: ArrayLike, *, missing: Missing = "raise") -> float:
    """Compute the mean absolute error.

    Parameters
    ----------
    estimate, truth
        (height, width) in one unit; NaN in the truth = unknown, and does not count.
    missing
        What a NaN in the estimate is where the truth is known: "raise" refuses it, "ignore" leaves the pixel out.

    Returns
    -------
    float
        In units of the map.

    Examples
    --------
    >>> mae([[1.0, 2.0]], [[1.5, 2.0]])
    0.25
    """
    return float(np.abs(errors_of(estimate, truth, missing)).mean())


def bad_pixels(estimate: ArrayLike, truth: ArrayLike, threshold: float, *, missing: MissingPixel = "raise") -> float:
    """Compute the fraction of pixels with errors beyond a threshold.

    Parameters
    ----------
    estimate, truth
        (height, width) in one unit; NaN in the truth = unknown, and does not count.
    threshold
        Largest error of a good pixel, in units of the map.
    missing
        What a NaN in the estimate is where the truth is known: "raise" refuses it, "ignore" leaves the pixel out, and
        "bad" counts it as bad.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> bad_pixels([[7.0, 9.0]], [[7.5, 7.0]], threshold=1.0)
    0.5
    """
    return float(is_bad(errors_of(estimate, truth, missing), threshold).mean())


@dataclass(frozen=True)
class FixedAndBroken:
    """The effect of a change, in fractions of the evaluated pixels: bad after = bad before - fixed + broken.

    Parameters
    ----------
    bad_before, bad_after
        Bad pixels of each map.
    fixed, broken
        Pixels that became good, and bad.

    Examples
    --------
    >>> FixedAndBroken(bad_before=0.3, bad_after=0.2, fixed=0.15, broken=0.05).fixed
    0.15
    """

    bad_before: float
    bad_after: float
    fixed: float
    broken: float


def fixed_and_broken(
    before: ArrayLike, after: ArrayLike, truth: ArrayLike, threshold: float, *, missing: MissingPixel = "raise"
) -> FixedAndBroken:
    """Compute which fractions of the pixels became good and bad: an average hides one behind the other.

    Parameters
    ----------
    before, after, truth
        (height, width) in one unit; NaN in the truth = unknown, and does not count.
    threshold
        Largest error of a good pixel, in units of the map.
    missing
        What a NaN in a map is where the truth is known: "raise" refuses it, "ignore" leaves the pixel out, and
        "bad" counts it as bad.

    Returns
    -------
    FixedAndBroken

    Examples
    --------
    >>> fixed_and_broken([[9.0, 7.0]], [[7.0, 7.0]], [[7.0, 7.0]], threshold=1.0).fixed
    0.5
    """
    if missing == "ignore":
        unknown = np.isnan(real(before)) | np.isnan(real(after))
        truth = np.where(unknown, np.nan, real(truth))
    was, is_now = (is_bad(errors_of(estimate, truth, missing), threshold) for estimate in (before, after))
    return FixedAndBroken(
        float(was.mean()), float(is_now.mean()), float((was & ~is_now).mean()), float((~was & is_now).mean())
    )


@dataclass(frozen=True)
class Best:
    """The result of a method at its best parameter.

    Parameters
    ----------
    result
        The map, (height, width).
    parameter, score
        The parameter that made it, and its score.
    at_end
        Whether the parameter is the first or the last of the grid, so that a wider grid might do better.

    Examples
    --------
    >>> Best(np.ones((2, 2)), parameter=3.0, score=40.0, at_end=False).parameter
    3.0
    """

    result: DepthMap
    parameter: float
    score: float
    at_end: bool


def oracle(
    method: Callable[[DepthMap, Parameter], DepthMap],
    grid: Iterable[Parameter],
    noisy: DepthMap,
    truth: DepthMap,
    score: Callable[[DepthMap, DepthMap], float] = psnr,
) -> Best:
    """Find the result of ``method(noisy, parameter)`` that is nearest to the truth: a bound on tuning.

    The largest score wins, the earlier parameter on a tie.

    Parameters
    ----------
    method
        (map, parameter) -> map.
    grid
        Parameters to try.
    noisy, truth
        (height, width), the map to restore and the true one.
    score
        (map, truth) -> a number; larger is better.

    Returns
    -------
    Best

    Examples
    --------
    >>> truth = np.array([[1.0, 1.0], [1.0, 0.9]])
    >>> oracle(lambda depth, shift: depth + shift, [-1.0, 0.5, 1.0], np.zeros((2, 2)), truth).parameter
    1.0
    """
    parameters = list(grid)
    if not parameters:
        raise InputError("the grid holds no parameter to try")
    results = [method(noisy, parameter) for parameter in parameters]
    scores = [score(result, truth) for result in results]
    best = int(np.argmax(scores))
    return Best(results[best], parameters[best], scores[best], best in (0, len(parameters) - 1))

"""Numbers of a map as they are distributed: ranks, medians, differences between neighbours, curves over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.kernels import ranks as kernels
from sparsedepth.vocabulary import DepthMap, Vector

N_COUNTS = 4 * 2**11
"""Of the kernel: by eleven bits, in four tables."""


def at_ranks(values: NDArray[Any], ranks: Sequence[int]) -> Vector:
    """Find the numbers of some ranks, as if the array were sorted.

    Parameters
    ----------
    values : ndarray of float32
        NaN = missing.
    ranks : sequence of int
        From 0, the least number; below the number of those that are not missing.

    Examples
    --------
    >>> at_ranks(np.array([5.0, np.nan, 3.0, 4.0], np.float32), [0, 2]).tolist()
    [3.0, 5.0]
    """
    values, found = np.ascontiguousarray(values, np.float32), np.empty(len(ranks), np.float32)
    counts, scratch = np.empty(N_COUNTS, np.int32), np.empty(values.size + 1, np.float32)
    kernels.select(values.size, values, len(ranks), np.array(ranks, np.int64), counts, scratch, found)
    return found


def quantile(values: NDArray[Any], fraction: float, *, n: int, first: int = 0) -> float:
    """Compute a quantile of the numbers from a rank on, linear between two of them as that of NumPy.

    Parameters
    ----------
    values : ndarray of float32
        NaN = missing.
    fraction : float
        Of the numbers that lie below.
    n : int
        How many are not missing.
    first : int
        Rank of the first that counts.

    Examples
    --------
    >>> quantile(np.array([5.0, np.nan, 3.0, 4.0], np.float32), 0.25, n=3)
    3.5
    """
    low, part = divmod(fraction * (n - first - 1), 1)
    ends = [first + int(low), min(first + int(low) + 1, n - 1)]
    return float(np.quantile(at_ranks(values, ends), part))


def quantiles(values: Vector, fractions: Vector) -> Vector:
    """Compute many quantiles of few numbers: as those of NumPy, but after sorting once.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        Without NaN; one at least.
    fractions : ndarray of float
        Of the numbers that lie below.

    Examples
    --------
    >>> quantiles(np.array([5.0, 3.0, 4.0]), np.array([0.25, 0.5])).tolist()
    [3.5, 4.0]
    """
    ordered, place = np.sort(values), fractions * (len(values) - 1)
    below = np.floor(place).astype(np.intp)
    low, high, part = ordered[below], ordered[np.minimum(below + 1, len(values) - 1)], place - below
    return np.where(part < 0.5, low + (high - low) * part, high - (high - low) * (1 - part))


def linear_curve(values: NDArray[Any], knots: Vector, heights: Vector) -> Vector:
    """Interpolate linearly between knots at equal distances, and keep the heights at both ends beyond them.

    Parameters
    ----------
    values : ndarray of float
        Any shape; the result has the same.
    knots, heights : ndarray of float, shape (knots,)
        Two at least; the knots rise.

    Examples
    --------
    >>> linear_curve(np.array([-1.0, 0.25, 9.0]), np.array([0.0, 1.0]), np.array([2.0, 4.0])).tolist()
    [2.0, 2.5, 4.0]
    """
    values = np.ascontiguousarray(values, np.float32)
    found, heights = np.empty(values.shape, np.float32), np.asarray(heights, np.float32)
    per_knot = (len(knots) - 1) / (knots[-1] - knots[0])
    kernels.linear(values.size, values, knots[0], per_knot, len(heights), heights, found)
    return found


@dataclass(frozen=True, eq=False)
class Steps:
    """Differences between adjacent pixels of a map.

    Examples
    --------
    >>> Steps.of(np.array([[1.0, 2.0, np.nan], [4.0, 4.0, 4.0]])).median
    1.0
    """

    sizes: Vector
    """NaN where a pixel is missing."""
    count: int
    """How many are not missing."""

    @classmethod
    def of(cls, depth: DepthMap) -> Steps:
        """Compute the differences along rows and columns of a map (height, width)."""
        height, width = depth.shape
        beside = height * (width - 1)
        sizes = np.empty(beside + (height - 1) * width, np.float32)
        kernels.steps(height, width, np.ascontiguousarray(depth, np.float32), sizes[:beside], sizes[beside:])
        return cls(sizes, cls._count(sizes, np.inf)[0])

    @cached_property
    def median(self) -> float:
        """The median difference; 0 where there are none."""
        return quantile(self.sizes, 0.5, n=self.count) if self.count else 0.0

    def quantum(self, equal: float, min_equal_fraction: float, percentile: float) -> float:
        """Estimate the step between the levels of a quantised map; 0 = continuous.

        Parameters
        ----------
        equal : float
            Differences up to this one are none.
        min_equal_fraction : float
            Fraction of such differences from which a map is quantised.
        percentile : float
            Percentile of the other differences that is the step.
        """
        n_equal = self._count(self.sizes, equal)[1]
        if not self.count or n_equal / self.count < min_equal_fraction or n_equal == self.count:
            return 0.0
        return quantile(self.sizes, percentile / 100, n=self.count, first=n_equal)

    @staticmethod
    def _count(sizes: Vector, limit: float) -> tuple[int, int]:
        counts = np.empty(2, np.int64)
        kernels.count(sizes.size, sizes, limit, counts)
        return int(counts[0]), int(counts[1])

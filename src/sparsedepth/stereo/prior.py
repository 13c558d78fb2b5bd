"""Feedback of a belief to the matcher: the cost of a disparity (Eq. 13) and the weight of the data (Eq. 14).

As printed, Eq. 14 is the mean *square* of a difference of data costs. Eq. 13 divides such a cost by it, so the units do
not agree. On whole-pixel labels it is zero for most pixels, because their window holds but one label. Here the *root*
of that mean, sampled within the window, weights the data. It is taken relative to its median over the map, and never
raises the weight. So the energy keeps its scale. With no prior and no weighting it is exactly the plain one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsedepth.vocabulary import Belief, DepthMap, Floats, InputError, UnaryCost

WINDOW_SIGMAS = np.linspace(-1, 1, 9)
"""Where the window of Eq. 14 is sampled, in standard deviations."""


@dataclass(frozen=True)
class Feedback:
    """The strength with which a belief acts on the cost of disparities; the defaults fit graph cuts (K = 20)."""

    prior: float = 6.0
    """What a deviation of sqrt(2) standard deviations costs; 0 = no prior."""
    cap: float = 3.0
    """Largest cost of the prior, as a multiple of ``prior``: the data can overrule a wrong belief."""
    least_deviation: float = 0.5
    """Of a belief, in pixels: whole-pixel labels are no nearer than that."""
    least_weight: float = 0.1
    """Of the data, where they vary most within what is believed; 1 = all data count alike."""

    def __post_init__(self) -> None:
        if not (self.prior >= 0 and self.cap >= 0 and self.least_deviation > 0 and 0 < self.least_weight <= 1):
            raise InputError(
                f"{self} cannot act; prior and cap must be zero or more, least_deviation positive, and least_weight "
                "within 0 and 1"
            )


NO_FEEDBACK = Feedback(prior=0.0, least_weight=1.0)
"""The cost stays as it is, to the last bit."""


@dataclass(frozen=True, eq=False)
class Believed:
    """A cost with weighted data and a prior, for solvers that do not model visibility, as most do not.

    One that knows which pixels the other view does not show has its own cost for their data, but the same prior.
    """

    data: UnaryCost
    weight: Floats
    mean: DepthMap
    precision: Floats
    most: Floats
    """What the prior of each pixel costs at most."""

    def __call__(self, disparity: DepthMap) -> Floats:
        return self.with_data(self.data)(disparity)

    def with_data(self, data: UnaryCost) -> UnaryCost:
        """Combine the weights and the prior with other costs of data."""

        def cost(disparity: DepthMap) -> Floats:
            away = np.asarray(disparity, np.float32) - self.mean
            return self.weight * data(disparity) + np.minimum(self.precision * away**2, self.most)

        return cost

    def where_hidden(self, hidden: NDArray[np.bool_], filled: DepthMap, feedback: Feedback) -> Believed:
        """Replace the cost of pixels that the right view does not show: no data, only the distance to a filled map.

        The filled map has a standard deviation of ``feedback.least_deviation``. It is the mean also where nothing is
        believed, and costs nothing there.
        """
        nothing, precision = np.float32(0), np.float32(feedback.prior / (2 * feedback.least_deviation**2))
        return Believed(
            self.data,
            np.where(hidden, nothing, self.weight),
            np.where(hidden | (self.precision == 0), filled, self.mean).astype(np.float32),
            np.where(hidden, precision, self.precision),
            np.where(hidden, np.float32(feedback.prior * feedback.cap), self.most),
        )


def with_belief(cost: UnaryCost, belief: Belief, feedback: Feedback = Feedback()) -> Believed:
    """Build the unary of Eq. 13: weighted data, plus the squared distance to the belief over twice its variance.

    Where nothing is believed (NaN, or infinite variance) the cost stays as it is.

    >>> cost = lambda disparity: np.abs(disparity - 2)
    >>> belief = Belief(np.array([[3.0, np.nan]]), np.array([[1.0, np.inf]]))
    >>> with_belief(cost, belief, Feedback(prior=2.0, least_weight=1.0))(np.array([[2.0, 2.0]])).tolist()
    [[1.0, 0.0]]
    """
    mean, deviation, known = _floored(belief, feedback)
    weight = data_weight(cost, belief, feedback)
    precision = np.where(known, feedback.prior / (2 * deviation**2), 0).astype(np.float32)
    most = np.full_like(precision, feedback.prior * feedback.cap)
    return Believed(cost, weight, mean, precision, most)


def data_weight(cost: UnaryCost, belief: Belief, feedback: Feedback = Feedback()) -> Floats:
    """Compute the weight of each pixel's data, up to 1: less where they vary more than at the median pixel (Eq. 14)."""
    known = _floored(belief, feedback)[2]
    if feedback.least_weight == 1 or not known.any():
        return np.ones(known.shape, np.float32)
    spread = data_deviation(cost, belief, feedback)
    usual = np.median(spread[known])
    weight = np.clip(usual / np.where(spread > usual, spread, max(usual, 1.0)), feedback.least_weight, 1)
    return np.where(known & (spread > usual), weight, 1).astype(np.float32)


def data_deviation(cost: UnaryCost, belief: Belief, feedback: Feedback = Feedback()) -> Floats:
    """Compute the root of Eq. 14: how data costs within a standard deviation of the belief differ from its mean's."""
    mean, deviation, known = _floored(belief, feedback)
    centre = cost(mean)
    around = sum((cost(mean + np.float32(step) * deviation) - centre) ** 2 for step in WINDOW_SIGMAS)
    return np.where(known, np.sqrt(around / len(WINDOW_SIGMAS)), 0)


def _floored(belief: Belief, feedback: Feedback) -> tuple[DepthMap, DepthMap, NDArray[np.bool_]]:
    """Compute mean and floored standard deviation, finite everywhere, and where they are valid."""
    known = np.isfinite(belief.mean) & np.isfinite(belief.variance)
    mean = np.where(known, belief.mean, 0).astype(np.float32)
    deviation = np.sqrt(np.where(known, belief.variance, 1)).astype(np.float32)
    return mean, np.maximum(deviation, np.float32(feedback.least_deviation)), known

"""The expected squared error of a disparity, by a log-linear model of what the views and the map say against it.

The coefficients were fitted to the squared errors on Middlebury 2005 by maximum likelihood (``models/stereo_variance``,
refitted by training/stereo_variance.py). docs/results/stereo.md has the areas under sparsification curves, against
random and against the local standard deviation of the disparity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsedepth.fitted import load_fitted
from sparsedepth.neighbourhood import box_mean, local_variance
from sparsedepth.vocabulary import Belief, DepthMap, Floats

WINDOW_PX = 5
"""The side of the square in which disparities and matching costs are averaged; chosen on Middlebury 2005."""
MAX_DIFFERENCE_PX = 20.0
"""Views that disagree by more are no worse; chosen on Middlebury 2005."""
FEATURES = ("constant", "log_local_variance", "log_lr_difference", "match_cost", "filled", "log_belief_variance")
"""What the coefficients belong to; the last one only with a belief."""


def disparity_variance(
    disparity: DepthMap, lr_difference: Floats, match_cost: Floats, filled: NDArray[np.bool_], belief: Belief | None
) -> DepthMap:
    """Estimate the squared error of each disparity.

    Parameters
    ----------
    disparity : ndarray of float, shape (height, width)
        In pixels, without holes.
    lr_difference : ndarray of float, shape (height, width)
        By how much the maps of both views disagree, in pixels; infinite outside of the other view.
    match_cost : ndarray of float, shape (height, width)
        The AD-census cost of each match.
    filled : ndarray of bool, shape (height, width)
        The pixels that were filled, not matched.
    belief : Belief or None
        What the sparse model believes of the map.

    Returns
    -------
    ndarray of float32, shape (height, width)
        The variance, in squared pixels.
    """
    fitted = load_fitted("stereo_variance").arrays["without_belief" if belief is None else "with_belief"]
    columns = features(disparity, lr_difference, match_cost, filled, belief)
    terms = (weight * column for weight, column in zip(fitted.tolist(), columns, strict=True))
    return np.exp(sum(terms)).astype(np.float32)


def features(
    disparity: DepthMap, lr_difference: Floats, match_cost: Floats, filled: NDArray[np.bool_], belief: Belief | None
) -> list[Floats | float]:
    """Compute the `FEATURES` of each pixel, whose weighted sum is the logarithm of the variance."""
    spread = local_variance(np.asarray(disparity, np.float64), WINDOW_PX)
    columns = [
        1.0,
        np.log(0.05 + spread),
        np.log(0.05 + np.minimum(lr_difference, MAX_DIFFERENCE_PX) ** 2),
        box_mean(match_cost, WINDOW_PX),
        filled,
    ]
    if belief is not None:
        columns.append(np.log(0.02 + np.minimum(belief.variance, MAX_DIFFERENCE_PX**2)))
    return columns

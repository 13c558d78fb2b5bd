"""How far a disparity may be off: what the two views, the neighbours and the top layer say against it.

Weights were fitted to the squared errors on Middlebury 2005 by maximum likelihood. docs/results/stereo.md has the areas
under sparsification curves, against random and against the local standard deviation of the disparity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsedepth.neighbourhood import box_mean, local_variance
from sparsedepth.vocabulary import Belief, DepthMap, Floats

WINDOW = 5
FARTHEST = 20.0
"""Views that disagree by more, in pixels, are as wrong as can be."""

ALONE = {"base": 0.28, "spread": 0.48, "apart": 0.13, "unlike": 2.80, "filled": 0.39}
WITH_BELIEF = {"base": 2.31, "spread": 0.25, "apart": 0.20, "unlike": 2.46, "filled": 0.28, "doubt": 0.70}
"""What each sign adds to the logarithm of the variance."""


def variance(
    disparity: DepthMap, apart: Floats, unlike: Floats, filled: NDArray[np.bool_], belief: Belief | None
) -> DepthMap:
    """The expected squared error of each pixel, in squared pixels.

    ``apart`` is how far the views' maps disagree, ``unlike`` the AD-census cost of the match, ``filled`` what was not
    matched at all.
    """
    signs = {
        "base": 1.0,
        "spread": np.log(0.05 + local_variance(np.asarray(disparity, np.float64), WINDOW)),
        "apart": np.log(0.05 + np.minimum(apart, FARTHEST) ** 2),
        "unlike": box_mean(unlike, WINDOW),
        "filled": filled,
    }
    weights = ALONE
    if belief is not None:
        signs["doubt"] = np.log(0.02 + np.minimum(belief.variance, FARTHEST**2))
        weights = WITH_BELIEF
    return np.exp(sum(weight * signs[name] for name, weight in weights.items())).astype(np.float32)

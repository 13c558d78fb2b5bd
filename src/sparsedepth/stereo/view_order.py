"""A check of the order of the views: exchanged views have few matches that agree both ways."""

from __future__ import annotations

from functools import partial

import numpy as np

from sparsedepth.stereo.ad_census import AdCensus
from sparsedepth.stereo.occlusion import lr_difference
from sparsedepth.stereo.solvers import semi_global
from sparsedepth.stereo.team import at_once
from sparsedepth.vocabulary import DepthMap, Floats, StereoPair

SEARCHED_DISPARITIES = 16
"""Disparities that are searched in pictures made smaller, which takes little time."""
MIN_FRACTION_BETTER = 0.1
"""By so much of all pixels the other order must be better; it is in all 27 scenes of Middlebury 2005 and 2006."""


def looks_swapped(pair: StereoPair, threads: int = 1) -> bool:
    """Test whether far more pixels match both ways if the views are exchanged."""
    factor = min(-(-pair.max_disparity // SEARCHED_DISPARITIES), *(max(side // 8, 1) for side in pair.shape))
    left, right = at_once([partial(reduced, view, factor) for view in (pair.left, pair.right)], threads)
    reach = min(max(-(-pair.max_disparity // factor), 1), left.shape[1] - 1)
    orders = (StereoPair(*views, max_disparity=reach) for views in ((left, right), (right, left)))
    as_given, exchanged = at_once([partial(_consistent, order) for order in orders], threads)
    return exchanged > as_given + MIN_FRACTION_BETTER


def both_ways(pair: StereoPair) -> tuple[DepthMap, DepthMap]:
    """Match the left and the right view semi-globally."""
    return semi_global.solve_both(AdCensus.of(pair), pair)


def _consistent(pair: StereoPair) -> float:
    """Compute the fraction of pixels that match both ways."""
    return float((lr_difference(*both_ways(pair)) <= 1).mean())


def reduced(view: Floats, factor: int) -> Floats:
    """Average square blocks of a view; incomplete blocks are cut off."""
    height, width = (side // factor for side in view.shape[:2])
    rows = np.add.reduce([view[down : height * factor : factor] for down in range(factor)])
    sums = np.add.reduce([rows[:, aside : width * factor : factor] for aside in range(factor)])
    return sums / np.float32(factor**2)

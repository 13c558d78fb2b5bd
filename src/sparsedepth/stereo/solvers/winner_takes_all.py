"""Winner takes all: the cheapest disparity of each pixel by itself, without smoothness."""

from __future__ import annotations

import numpy as np

from sparsedepth.stereo.costs import ad_census, sample
from sparsedepth.stereo.prior import Feedback
from sparsedepth.vocabulary import DepthMap, Floats, StereoPair, UnaryCost

data_cost = ad_census
feedback = Feedback(prior=1.0, least_weight=1.0)
hidden_feedback = Feedback(prior=1.0, least_deviation=1.0)


def solve(unary: UnaryCost, pair: StereoPair, start: DepthMap | None, rng: np.random.Generator) -> DepthMap:
    """Find the least of the unary at whole disparities, refined by a parabola; ``start`` and ``rng`` are not used."""
    del start, rng
    return winner(sample(unary, pair, range(pair.max_disparity + 1)))


def winner(volume: Floats) -> DepthMap:
    """Find the label of least cost, moved to the minimum of the parabola through it and its neighbours.

    Of equal costs the smallest label wins: a surface that nothing shows is far away.
    """
    best = volume.argmin(axis=0)
    inner = np.clip(best, 1, len(volume) - 2) if len(volume) > 2 else np.ones_like(best)
    least, below, above = (
        np.take_along_axis(volume, np.minimum(inner + step, len(volume) - 1)[None], axis=0)[0] for step in (0, -1, 1)
    )
    curvature = below - 2 * least + above
    bend = np.where((inner == best) & (curvature > 0) & (len(volume) > 2), curvature, np.inf)
    return (best + np.clip((below - above) / (2 * bend), -0.5, 0.5)).astype(np.float32)

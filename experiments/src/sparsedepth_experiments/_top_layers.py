"""Top layers over second-order stereo: each is fitted to scenes with truth, and corrects the filled map of another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.baselines import median
from sparsedepth.belief import believe
from sparsedepth.coding.infer import infer
from sparsedepth.coding.learn import learn
from sparsedepth.coding.noise import Jeffreys, Stationary
from sparsedepth.data.middlebury import StereoScene
from sparsedepth.dictionary import Dictionary
from sparsedepth.metrics import bad_pixels
from sparsedepth.patches import cut, normalise, overlay
from sparsedepth.stereo.ad_census import AdCensus
from sparsedepth.stereo.occlusion import fill_along_colours, hidden_pixels, lr_difference, weighted_median
from sparsedepth.stereo.rows import byte_rows
from sparsedepth.stereo.variance import Evidence, disparity_variance
from sparsedepth.stereo.view_order import both_ways
from sparsedepth.vocabulary import DepthMap, Floats
from sparsedepth_experiments._scenes import SPARSITY, STRIDE, WINDOW, known


@dataclass(frozen=True, eq=False)
class Sample:
    """A scene, and the plain map of second-order stereo."""

    name: str
    scene: StereoScene
    plain: DepthMap

    @cached_property
    def guide(self) -> NDArray[np.uint8]:
        return byte_rows(self.scene.pair.left)

    @cached_property
    def hidden(self) -> NDArray[np.bool_]:
        return hidden_pixels(self.plain)

    @cached_property
    def filled(self) -> DepthMap:
        """The map of "fill only", which the top layers start from."""
        return fill_along_colours(self.plain, self.hidden, self.guide)

    @cached_property
    def semi_global(self) -> tuple[DepthMap, NDArray[np.bool_]]:
        """The semi-global map of the left view, and where the right one agrees."""
        left, right = both_ways(self.scene.pair)
        return left, lr_difference(left, right) <= 1

    @cached_property
    def right(self) -> DepthMap:
        return np.ascontiguousarray(both_ways(self.scene.pair)[1])

    @cached_property
    def truth(self) -> DepthMap:
        return known(self.scene, "all")

    def bad(self, disparity: DepthMap) -> float:
        """Compute the percentage of bad pixels, all, 1 px."""
        return 100 * bad_pixels(disparity, self.truth, 1.0)


Correct = Callable[[Sample], DepthMap]
"""What a fitted top layer does with a scene."""
Fit = Callable[[Sequence[Sample]], Correct]
"""Fits a top layer to scenes with truth."""


def remembered(correct: Correct) -> Correct:
    """Keep the maps that were made, because folds share their scenes."""
    made: dict[Sample, DepthMap] = {}

    def recalled(sample: Sample) -> DepthMap:
        if sample not in made:
            made[sample] = correct(sample)
        return made[sample]

    return recalled


def mean_bad(correct: Correct, samples: Sequence[Sample]) -> float:
    """Average the percentage of bad pixels over scenes."""
    return float(np.mean([each.bad(correct(each)) for each in samples]))


def chosen(candidates: Mapping[Any, Correct], samples: Sequence[Sample]) -> tuple[Any, Correct]:
    """Choose the candidate with the fewest bad pixels."""
    best = min(candidates, key=lambda key: mean_bad(candidates[key], samples))
    return best, candidates[best]


def filled(sample: Sample) -> DepthMap:
    """Return the filled map itself: the control without a top layer."""
    return sample.filled


def median_of_filled(sample: Sample) -> DepthMap:
    """Return a median of the filled map: the control that knows no scenes."""
    return median(sample.filled, WINDOW)


def another_matcher(sample: Sample) -> DepthMap:
    """Return the semi-global map, filled where both views disagree: the control without second-order stereo."""
    left, agree = sample.semi_global
    return fill_along_colours(left, ~agree, sample.guide)


def dictionary_belief(sample: Sample) -> DepthMap:
    """Return the mean that the paper's top layer believes."""
    return believe(sample.filled, "phi1_32", Jeffreys(), sparsity=SPARSITY, stride=STRIDE, threads=1).mean


# (a) A dictionary of the matcher's errors.

ERROR_SIDE_PX, ERROR_STRIDE_PX, N_ERROR_ATOMS, ERROR_STEPS = 16, 8, 128, 100
"""Side of patches and pixels between them, atoms of errors, and steps of learning them."""
ERROR_PRICES = (2.0, 5.0, 15.0)
"""Prices of an error's code that are tried, beside 5 of a depth's code."""
NOISE_VARIANCE = 0.01
"""Of what neither dictionary explains, in squared standard deviations of a patch."""


def fit_errors(train: Sequence[Sample], steps: int = ERROR_STEPS) -> Correct:
    """Learn the errors of scenes, and choose the price of their codes on a third of these."""
    atoms = learn_errors(train, steps)
    return chosen({price: without_errors(atoms, price) for price in ERROR_PRICES}, train[::3])[1]


def learn_errors(train: Sequence[Sample], n_steps: int = ERROR_STEPS) -> Floats:
    """Learn atoms of the errors of filled maps, in standard deviations of the map's patch."""
    found = []
    for each in train:
        wrong = np.where(np.isfinite(each.truth), each.filled - each.truth, np.nan)
        maps, errors = (cut(m, (ERROR_SIDE_PX, ERROR_SIDE_PX), ERROR_STRIDE_PX) for m in (each.filled, wrong))
        errors = np.where(np.abs(errors) > 1, errors, np.where(np.isnan(errors), np.nan, 0))
        scaled = errors / np.maximum(maps.std(axis=1, keepdims=True), 0.5)
        found.append(scaled[(np.nan_to_num(np.abs(errors)) > 1).mean(axis=1) > 0.02])
    patches = np.concatenate(found).astype(np.float32)
    noise = Stationary(NOISE_VARIANCE)
    steps = learn(patches, N_ERROR_ATOMS, noise, steps=n_steps, sparsity=SPARSITY, threads=1)
    return list(steps)[-1].state.atoms


def without_errors(atoms: Floats, price: float) -> Correct:
    """Decompose patches into depth and errors, and subtract the errors."""
    depth = Dictionary.builtin("phi1").atoms
    both = np.concatenate([depth, atoms]).astype(np.float32)
    prices = np.concatenate([np.full(len(depth), SPARSITY), np.full(len(atoms), price)])

    def correct(sample: Sample) -> DepthMap:
        shape = ERROR_SIDE_PX, ERROR_SIDE_PX
        scaled = normalise(cut(sample.filled, shape, ERROR_STRIDE_PX).astype(np.float32), 0.5)
        codes = infer(scaled.patches, both, Stationary(NOISE_VARIANCE), prices, threads=1).codes
        errors = codes[:, len(depth) :] @ atoms * scaled.scale[:, None]
        return sample.filled - overlay(errors.astype(np.float32), sample.filled.shape, shape, ERROR_STRIDE_PX)

    return correct


# (b) Beliefs with the picture's edges in the weights.

EDGE_WINDOWS = tuple((radius, colour) for radius in (3, 5, 9) for colour in (5.0, 10.0, 20.0))
"""Radius and standard deviation of colours of the weighted medians that are tried."""


def fit_edges(train: Sequence[Sample]) -> Correct:
    """Choose the window."""
    return chosen({window: along_colours(*window) for window in EDGE_WINDOWS}, train)[1]


@cache
def along_colours(radius: int, colour: float) -> Correct:
    """Believe the median of what has a pixel's colour around it."""

    def correct(sample: Sample) -> DepthMap:
        everywhere = np.ones(sample.filled.shape, bool)
        return weighted_median(sample.filled, sample.guide, everywhere, radius=radius, colour=colour)

    return remembered(correct)


# (c) The calibrated variance of the matcher as known noise.

VARIANCE_SCALES = (0.3, 1.0, 3.0)
"""Factors of the variance that are tried."""


def fit_noise(train: Sequence[Sample]) -> Correct:
    """Choose the factor."""
    return chosen({scale: known_noise(scale) for scale in VARIANCE_SCALES}, train)[1]


@cache
def known_noise(scale: float) -> Correct:
    """Believe the dictionary under the variance that `match` estimates for the filled map."""

    def correct(sample: Sample) -> DepthMap:
        pair = sample.scene.pair
        cost = AdCensus.of(pair)(sample.filled)
        evidence = Evidence(pair.left, pair.max_disparity, sample.filled, sample.plain, cost, sample.hidden)
        variance = scale * disparity_variance(evidence)
        return believe(sample.filled, "phi1", Stationary(), stride=8, variance=variance, threads=1).mean

    return remembered(correct)

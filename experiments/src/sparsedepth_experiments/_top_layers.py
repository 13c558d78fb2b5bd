"""Top layers over second-order stereo: each is fitted to scenes with truth, and corrects the filled map of another."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
from sparsedepth.neighbourhood import box_mean
from sparsedepth.patches import cut, normalise, overlay
from sparsedepth.stereo.ad_census import AdCensus
from sparsedepth.stereo.costs import photo_consistency
from sparsedepth.stereo.occlusion import COLOUR_STD, fill_along_colours, hidden_pixels, lr_difference, weighted_median
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


def dictionary_belief(sample: Sample) -> DepthMap:
    """Return the mean that the paper's top layer believes."""
    return believe(sample.filled, "phi1_32", Jeffreys(), sparsity=SPARSITY, stride=STRIDE, threads=1).mean


# (a) A dictionary of the matcher's errors.

ERROR_SIDE_PX, ERROR_STRIDE_PX, N_ERROR_ATOMS, ERROR_STEPS = 16, 8, 128, 150
"""Side of patches and pixels between them, atoms of errors, and steps of learning them."""
ERROR_PRICES = (2.0, 5.0, 15.0)
"""Prices of an error's code that are tried, beside 5 of a depth's code."""
NOISE_VARIANCE = 0.01
"""Of what neither dictionary explains, in squared standard deviations of a patch."""


def learn_errors(train: Sequence[Sample]) -> Floats:
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
    steps = learn(patches, N_ERROR_ATOMS, noise, steps=ERROR_STEPS, sparsity=SPARSITY, threads=1)
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


def along_colours(radius: int, colour: float) -> Correct:
    """Believe the median of what has a pixel's colour around it."""

    def correct(sample: Sample) -> DepthMap:
        everywhere = np.ones(sample.filled.shape, bool)
        return weighted_median(sample.filled, sample.guide, everywhere, radius=radius, colour=colour)

    return correct


# (c) The calibrated variance of the matcher as known noise.

VARIANCE_SCALES = (0.3, 1.0, 3.0)


def known_noise(scale: float) -> Correct:
    """Believe the dictionary under the variance that `match` estimates for the filled map."""

    def correct(sample: Sample) -> DepthMap:
        pair = sample.scene.pair
        cost = AdCensus.of(pair)(sample.filled)
        evidence = Evidence(pair.left, pair.max_disparity, sample.filled, sample.plain, cost, sample.hidden)
        variance = scale * disparity_variance(evidence)
        return believe(sample.filled, "phi1", Stationary(), stride=4, variance=variance, threads=1).mean

    return correct


# (d) A small trained refiner with the picture.

REFINER_UNITS = (32, 16)
"""Of the two hidden layers."""
PIXELS_A_SCENE = 4000
"""Drawn from each training scene, of those whose candidates disagree by more than 1 px."""
NEIGHBOURS = [(dy, dx) for dy in range(-9, 10, 3) for dx in range(-9, 10, 3) if (dy, dx) != (0, 0)]
"""Where a candidate asks for agreement, in pixels."""
PICTURE, SEMI_GLOBAL = "picture", "semi-global"
"""What the refiner may know beside the filled map and the data cost; the ablation leaves each out."""


def candidates(sample: Sample, knows: frozenset[str]) -> list[DepthMap]:
    """List the disparities that the refiner chooses from."""
    found = [sample.filled, median_of_filled(sample), np.asarray(median(sample.filled, 15), np.float32)]
    if PICTURE in knows:
        found += [along_colours(radius, COLOUR_STD)(sample) for radius in (3, 7, 15)]
    if SEMI_GLOBAL in knows:
        left, agree = sample.semi_global
        found += [left, fill_along_colours(left, ~agree, sample.guide)]
    return [np.asarray(each, np.float32) for each in found]


def features(sample: Sample, knows: frozenset[str]) -> tuple[Floats, Floats]:
    """Compute the candidates (n, height, width), and what is known of each: (n, features, height, width)."""
    maps = np.stack(candidates(sample, knows))
    pair = sample.scene.pair
    colour = _closeness(sample) if PICTURE in knows else None
    census, photo = AdCensus.of(pair), photo_consistency(pair)
    costs = np.stack([[box_mean(census(each), 3), photo(each), box_mean(census(each), 9)] for each in maps])
    columns = [
        *costs.transpose(1, 0, 2, 3),
        *(costs - costs.min(axis=0)).transpose(1, 0, 2, 3),
        np.clip(maps - sample.filled, -10, 10) / 5,
        np.abs(maps - np.median(maps, axis=0)).clip(0, 10) / 5,
        *_agreement(sample, maps, colour),
        np.broadcast_to(sample.hidden, maps.shape).astype(np.float32),
        (np.arange(maps.shape[2]) < maps).astype(np.float32),
    ]
    if SEMI_GLOBAL in knows:
        columns += [np.minimum(np.stack([lr_difference(each, sample.right) for each in maps]), 5) / 3]
    which = np.broadcast_to(np.eye(len(maps), dtype=np.float32)[:, :, None, None], (len(maps), *maps.shape))
    return maps, np.concatenate([np.stack(columns, axis=1), which], axis=1).astype(np.float32)


def _closeness(sample: Sample) -> Floats:
    """Compute how alike the colours of a pixel and its neighbours are, 0..1: (neighbours, height, width)."""
    view = sample.scene.pair.left.astype(np.float32)
    return np.stack(
        [np.exp(-((_shifted(view, *step) - view) ** 2).sum(axis=2) / (2 * COLOUR_STD**2)) for step in NEIGHBOURS]
    )


def _agreement(sample: Sample, maps: Floats, colour: Floats | None) -> list[Floats]:
    """Compute the share of neighbours within 1 px of each candidate: of all, and of those of like colour."""
    weights = [np.ones(len(NEIGHBOURS), np.float32)[:, None, None]] + ([] if colour is None else [colour])
    sums = [np.zeros(maps.shape, np.float32) for _ in weights]
    for number, step in enumerate(NEIGHBOURS):
        agree = np.abs(_shifted(sample.filled, *step) - maps) <= 1
        for total, weight in zip(sums, weights, strict=True):
            total += weight[number] * agree
    return [total / (weight.sum(axis=0) + 1e-3) for total, weight in zip(sums, weights, strict=True)]


def _shifted(values: Floats, dy: int, dx: int) -> Floats:
    """Move a map by whole pixels; its edge is repeated."""
    height, width = values.shape[:2]
    return values[np.ix_(np.clip(np.arange(height) + dy, 0, height - 1), np.clip(np.arange(width) + dx, 0, width - 1))]


@dataclass(frozen=True, eq=False)
class Refiner:
    """A small network that scores candidates: weights and biases of its layers, after scaling the features."""

    knows: frozenset[str]
    centre: Floats
    scale: Floats
    layers: Sequence[tuple[Floats, Floats]]

    def scores(self, rows: Floats) -> Floats:
        """Compute the log-odds that a candidate is right."""
        values = (rows - self.centre) / self.scale
        for weights, biases in self.layers[:-1]:
            values = np.maximum(values @ weights + biases, 0)
        weights, biases = self.layers[-1]
        return (values @ weights + biases)[:, 0]

    def __call__(self, sample: Sample) -> DepthMap:
        maps, known_of = features(sample, self.knows)
        rows = known_of.transpose(0, 2, 3, 1).reshape(-1, known_of.shape[1])
        best = self.scores(rows).reshape(maps.shape).argmax(axis=0)
        return np.take_along_axis(maps, best[None], axis=0)[0]


def train_refiner(train: Sequence[Sample], knows: frozenset[str], seed: int = 0) -> Refiner:
    """Train a network to tell which candidates are within 1 px of the truth."""
    from sklearn.neural_network import MLPClassifier

    rng, rows, right = np.random.default_rng(seed), [], []
    for each in train:
        maps, known_of = features(each, knows)
        open_ = np.isfinite(each.truth) & (np.ptp(maps, axis=0) > 1)
        at = rng.permutation(np.flatnonzero(open_))[:PIXELS_A_SCENE]
        rows.append(
            known_of.reshape(*known_of.shape[:2], -1)[:, :, at].transpose(0, 2, 1).reshape(-1, known_of.shape[1])
        )
        right.append((np.abs(maps - each.truth) <= 1).reshape(len(maps), -1)[:, at].ravel())
    all_rows, all_right = np.concatenate(rows), np.concatenate(right)
    centre, scale = all_rows.mean(axis=0), all_rows.std(axis=0) + 1e-3
    network = MLPClassifier(
        REFINER_UNITS, batch_size=1024, max_iter=12, tol=0.0, n_iter_no_change=12, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not come to rest after its epochs
        network.fit((all_rows - centre) / scale, all_right)
    return Refiner(knows, centre, scale, list(zip(network.coefs_, network.intercepts_, strict=True)))

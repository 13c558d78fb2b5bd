"""A small network that chooses between candidates for each disparity, after looking at the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sparsedepth.baselines import median
from sparsedepth.neighbourhood import box_mean
from sparsedepth.stereo.ad_census import AdCensus
from sparsedepth.stereo.costs import photo_consistency
from sparsedepth.stereo.occlusion import COLOUR_STD, fill_along_colours, lr_difference
from sparsedepth.vocabulary import DepthMap, Floats
from sparsedepth_experiments._top_layers import Sample, along_colours, median_of_filled

REFINER_UNITS = (32, 16)
"""Of the two hidden layers."""
PIXELS_A_SCENE = 4000
"""Drawn from each training scene, of those whose candidates are more than 1 px apart."""
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
        at = np.flatnonzero(disputed(maps))
        rows = known_of.reshape(*known_of.shape[:2], -1)[:, :, at].transpose(0, 2, 1).reshape(-1, known_of.shape[1])
        best = self.scores(rows).reshape(len(maps), -1).argmax(axis=0)
        refined = sample.filled.copy()
        refined.ravel()[at] = maps.reshape(len(maps), -1)[best, at]
        return refined


def disputed(maps: Floats) -> NDArray[np.bool_]:
    """Find the pixels whose candidates are more than 1 px apart; there is nothing to choose elsewhere."""
    return np.ptp(maps, axis=0) > 1


def drawn(sample: Sample, knows: frozenset[str]) -> tuple[Floats, NDArray[np.bool_]]:
    """Draw disputed pixels of a scene: what is known of their candidates, and which of these are right."""
    maps, known_of = features(sample, knows)
    at = np.flatnonzero(np.isfinite(sample.truth) & disputed(maps))
    at = np.random.default_rng(0).permutation(at)[:PIXELS_A_SCENE]
    rows = known_of.reshape(*known_of.shape[:2], -1)[:, :, at].transpose(0, 2, 1).reshape(-1, known_of.shape[1])
    return rows, (np.abs(maps - sample.truth) <= 1).reshape(len(maps), -1)[:, at].ravel()


class TrainingRows(dict[Sample, tuple[Floats, NDArray[np.bool_]]]):
    """The drawn pixels of scenes, made once for all folds."""

    def __init__(self, knows: frozenset[str]) -> None:
        super().__init__()
        self.knows = knows

    def __missing__(self, sample: Sample) -> tuple[Floats, NDArray[np.bool_]]:
        self[sample] = drawn(sample, self.knows)
        return self[sample]


def train_refiner(train: Sequence[Sample], rows_of: TrainingRows, seed: int = 0) -> Refiner:
    """Train a network to tell which candidates are within 1 px of the truth."""
    rows, right = (np.concatenate(each) for each in zip(*(rows_of[sample] for sample in train), strict=True))
    centre, scale = rows.mean(axis=0), rows.std(axis=0) + np.float32(1e-3)
    layers = _trained((rows - centre) / scale, right, np.random.default_rng(seed))
    return Refiner(rows_of.knows, centre, scale, layers)


EPOCHS, BATCH, RATE, DECAY = 12, 1024, 1e-3, (0.9, 0.999)
"""Of training by Adam (Kingma and Ba 2015): passes, rows of a step, its length, and the memory of its two means."""
Layers = list[tuple[Floats, Floats]]


def _trained(rows: Floats, right: NDArray[np.bool_], rng: np.random.Generator) -> Layers:
    """Minimise the cross-entropy of the network's odds."""
    sizes = [rows.shape[1], *REFINER_UNITS, 1]
    values = []
    for n_in, n_out in pairwise(sizes):
        most = np.sqrt(6 / (n_in + n_out))
        values += [rng.uniform(-most, most, (n_in, n_out)).astype(np.float32), np.zeros(n_out, np.float32)]
    means = [[np.zeros_like(value) for value in values] for _ in DECAY]
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(rows))
        for begin in range(0, len(rows), BATCH):
            step += 1
            some = order[begin : begin + BATCH]
            _adam(values, _gradients(values, rows[some], right[some]), means, step)
    return list(zip(values[::2], values[1::2], strict=True))


def _gradients(values: Sequence[Floats], rows: Floats, right: NDArray[np.bool_]) -> list[Floats]:
    """Compute the gradient of the mean cross-entropy by weights and biases, layer after layer."""
    inputs = [rows]
    for weights, biases in zip(values[:-2:2], values[1:-2:2], strict=True):
        inputs.append(np.maximum(inputs[-1] @ weights + biases, 0))
    odds = inputs[-1] @ values[-2] + values[-1]
    back = (1 / (1 + np.exp(-np.clip(odds, -30, 30))) - right[:, None]).astype(np.float32) / len(rows)
    found: list[Floats] = []
    for weights, given in zip(values[-2::-2], inputs[::-1], strict=True):
        found = [given.T @ back, back.sum(axis=0), *found]
        back = (back @ weights.T) * (given > 0)
    return found


def _adam(values: Sequence[Floats], gradients: Sequence[Floats], means: list[list[Floats]], step: int) -> None:
    """Change the values in place by one step."""
    bias = [1 - decay**step for decay in DECAY]
    for value, gradient, first, second in zip(values, gradients, *means, strict=True):
        first += (1 - DECAY[0]) * (gradient - first)
        second += (1 - DECAY[1]) * (gradient**2 - second)
        value -= RATE * (first / bias[0]) / (np.sqrt(second / bias[1]) + 1e-8)

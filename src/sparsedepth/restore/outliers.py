"""Estimate the probability that a pixel is an outlier, and blend measured and coded values by it.

Outliers are far from the coded value and from their neighbours, as large as the map's noise usually is, and isolated.
A small network weighs these features; it was trained on other maps with known noise (training/outlier_classifier.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from sparsedepth.chosen_pixels import BoxCounts, Neighbours, ring_offsets
from sparsedepth.coding.matmul import row_stable_matmul
from sparsedepth.fitted import load_fitted
from sparsedepth.neighbourhood import block_range, box_mean
from sparsedepth.restore.noise_model import ImpulseNoise
from sparsedepth.restore.scores import PixelScores, difference_floor
from sparsedepth.restore.settings import Settings
from sparsedepth.tiling import Tile
from sparsedepth.vocabulary import DepthMap, Floats, Vector

NEAR_OFFSETS, NEAR_ENDS = ring_offsets(1, 2, 3)
NEAR_RANKS = ((0, 1, 3), (0, 1, 2, 4, 7), (0, 3, 10))
"""Ranks of the neighbours within each ring, by distance in depth, whose distance is a feature."""
FAR_OFFSETS, FAR_ENDS = 3 * ring_offsets(2, 3)[0], np.array([40])
"""A sparse grid of pixels beyond the near ones, up to nine pixels away."""
FAR_RANKS = (0, 3)
"""Ranks of the far neighbours, by distance in depth, whose distance is a feature."""
SUSPECT_WINDOWS_PX, COUNTED_SCORE = (5, 9, 21), 1.0
"""Windows in which other pixels with a score above this one are counted."""
FEATURE_CLIP = 4.0
"""Largest size of a standardised feature. As in training, like all constants above."""
PIXELS_PER_BATCH = 2**16
"""Pixels that the network judges together; memory only."""

Indices = tuple[NDArray[np.intp], ...]
"""Indices of pixels along each axis, as `numpy.nonzero` returns them."""


@dataclass(frozen=True, eq=False)
class OutlierClassifier:
    """A network that turns features into the log-odds that a pixel is an outlier."""

    mean: Floats
    deviation: Floats
    layers: tuple[tuple[Floats, Floats], ...]
    """Weights and biases of each layer."""

    @classmethod
    def from_arrays(cls, stored: Mapping[str, Floats]) -> OutlierClassifier:
        layers = tuple((stored[f"weights{i}"], stored[f"offsets{i}"]) for i in range(len(stored) // 2 - 1))
        return cls(stored["mean"], stored["deviation"], layers)

    def __call__(self, features: Floats) -> Vector:
        return self.activations(self.standardise(features), row_stable_matmul)[-1][:, 0]

    def standardise(self, features: Floats) -> Floats:
        return np.clip((features - self.mean) / self.deviation, -FEATURE_CLIP, FEATURE_CLIP)

    def activations(self, inputs: Floats, times: Callable[[Floats, Floats], Floats] = np.matmul) -> list[Floats]:
        """Return the standardised inputs and the output of each layer."""
        outputs = [inputs]
        for weights, biases in self.layers[:-1]:
            outputs.append(np.tanh(times(outputs[-1], weights) + biases))
        weights, biases = self.layers[-1]
        return [*outputs, times(outputs[-1], weights) + biases]


@cache
def shipped_classifier() -> OutlierClassifier:
    """Load the classifier of the package."""
    return OutlierClassifier.from_arrays(load_fitted("outlier_classifier").arrays)


@dataclass(frozen=True, eq=False)
class Posterior:
    """How the pixels of a tile are judged."""

    probability: Floats
    """That a pixel is an outlier; 0 where missing."""
    weight: Floats
    """Of the coded value; 1 where missing."""

    def at(self, numbers: NDArray[np.intp]) -> Posterior:
        """Select pixels by flat indices."""
        return Posterior(self.probability.ravel()[numbers], self.weight.ravel()[numbers])

    def blend(self, depth: DepthMap, scores: PixelScores) -> Floats:
        """Return the weighted mean of measured and coded values; NaN where missing."""
        return np.where(np.isfinite(depth), depth - self.weight * scores.residual, np.nan)


@dataclass(frozen=True)
class OutlierModel:
    """Judges the pixels of a map whose impulse noise is known."""

    noise: ImpulseNoise
    step: float
    """Quantisation step of the map; 0 = continuous."""
    enabled: bool
    """Whether measured values may be changed."""
    settings: Settings
    classifier: OutlierClassifier
    dense_residual: float = 0.0
    """Residual that noise at every pixel leaves in smooth surroundings; 0 = there is no such noise."""

    def outliers(self, tile: Tile, posterior: Posterior) -> NDArray[np.bool_]:
        """Mark the valid pixels whose value mostly follows the codes."""
        return tile.valid & (posterior.weight > self.settings.outliers.corrected_weight)

    def __call__(self, tile: Tile, scores: PixelScores) -> Posterior:
        probability = np.zeros(scores.score.shape)
        suspect = scores.score > self.settings.outliers.min_score
        probability[suspect] = expit(self.log_odds(tile, scores, suspect))
        weight = np.where(tile.valid, probability if self.enabled else 0.0, 1.0)
        if tile.variance is not None:
            sensor = np.where(tile.valid, tile.variance, 0)
            weight = np.where(tile.valid, 1 - (1 - weight) * (1 - self._sensor_weight(scores, sensor)), 1.0)
        return Posterior(probability, weight)

    def log_odds(self, tile: Tile, scores: PixelScores, where: NDArray[np.bool_]) -> Vector:
        """Return the log-odds that the pixels of a mask are outliers."""
        if not where.any():
            return np.empty(0)
        rows, ignored = self.features(tile, scores, where), list(self.settings.outliers.ignored_features)
        rows[:, ignored] = self.classifier.mean[ignored]
        odds = [self.classifier(rows[batch]) for batch in _batches(len(rows))]
        return np.concatenate(odds) + self.penalties(tile, scores, where)

    def penalties(self, tile: Tile, scores: PixelScores, where: NDArray[np.bool_]) -> Vector:
        """Return what the log-odds of pixels lose in uniform blocks and beyond the amplitude of the noise."""
        at = np.flatnonzero(where)
        in_block, penalty = self.in_uniform_block(tile, scores).ravel()[at], self.amplitude_penalty(scores.at(at))
        return np.where(in_block, -self.settings.outliers.max_penalty, penalty)

    def in_uniform_block(self, tile: Tile, scores: PixelScores) -> NDArray[np.bool_]:
        """Mark pixels of a 2x2 block of similar depths: corners of structures, not noise."""
        similar = self.settings.outliers.block_similarity * np.abs(scores.residual)
        return block_range(tile.depth) <= np.maximum(self._floor(tile), similar)

    def amplitude_penalty(self, scores: PixelScores) -> Vector:
        """Return what the log-odds lose where a residual exceeds the noise's amplitude, unless it is isolated."""
        excess = self.settings.outliers.max_amplitude**2 - np.square(scores.residual / self.noise.amplitude)
        return np.where(self.is_isolated(scores), 0, np.clip(excess / 2, -self.settings.outliers.max_penalty, 0))

    def is_isolated(self, scores: PixelScores) -> NDArray[np.bool_]:
        """Mark pixels in smooth surroundings away from borders: a deviating pixel there is noise on any map."""
        return self._are_isolated(scores.near_border, scores.local_residual)

    def _are_isolated(self, near_border: NDArray[np.bool_], local_residual: Floats) -> NDArray[np.bool_]:
        return ~near_border & (local_residual <= max(self.settings.scores.difference_floor, self.dense_residual))

    def features(self, tile: Tile, scores: PixelScores, where: NDArray[np.bool_]) -> Floats:
        """Compute the features of the pixels of a mask, (pixels, features), of a map or of a stack of maps.

        Lengths are relative to the difference floor; the residual also to the amplitude of the noise.
        """
        noise, at = self.noise, np.flatnonzero(where)
        pixels, theirs, floor = np.unravel_index(at, where.shape), scores.at(at), self._floor_at(tile, at)
        valid = BoxCounts.of(tile.valid, pixels, max(SUSPECT_WINDOWS_PX))
        suspects = BoxCounts.of(scores.score > COUNTED_SCORE, pixels, max(SUSPECT_WINDOWS_PX))
        size = np.abs(theirs.residual)
        mean_residual = box_mean(
            np.minimum(np.abs(scores.residual), 1).astype(np.float32), SUSPECT_WINDOWS_PX[-1], mode="constant"
        )
        columns = [
            _log(size / noise.amplitude),
            np.full(len(size), np.log(max(noise.fraction, 1e-4))),
            np.full(len(size), np.log(noise.amplitude)),
            _log(theirs.score),
            _log(size / floor),
            _log(np.sqrt(theirs.patch_variance) / floor),
            _log(theirs.local_residual / floor),
            *(valid.within(side) / side**2 for side in (3, 5)),
            *(np.minimum(suspects.around(side) / np.maximum(valid.around(side), 1), 1) for side in SUSPECT_WINDOWS_PX),
            _log(mean_residual.ravel()[at] / floor),
            *_near_features(tile.depth, size, floor, pixels),
            *self._asymmetry(scores, suspects, pixels),
            *_far_features(tile.depth, floor, pixels),
        ]
        return np.stack(columns, axis=1, dtype=np.float32)

    def _asymmetry(self, scores: PixelScores, suspects: BoxCounts, pixels: Indices) -> list[Vector]:
        """Compute how many more suspects lie on the pixel's side of the coded surface: nearby, and in the map.

        The map's asymmetry does not count for isolated pixels: outliers may be one-sided by chance.
        """
        counted, sides = np.flatnonzero(scores.score > COUNTED_SCORE), np.zeros(scores.score.shape, np.int8)
        sides.ravel()[counted] = np.sign(scores.residual.ravel()[counted])
        nearby = BoxCounts.of(sides, pixels, max(SUSPECT_WINDOWS_PX)).around(SUSPECT_WINDOWS_PX[-1])
        isolated = self._are_isolated(scores.near_border[pixels], scores.local_residual[pixels])
        side, of_map = np.sign(scores.residual[pixels]), np.where(isolated, 0, self.noise.asymmetry)
        return [side * nearby / (suspects.around(SUSPECT_WINDOWS_PX[-1]) + 1), side * of_map]

    def _floor(self, tile: Tile) -> Floats:
        return difference_floor(tile, self.step, self.settings.scores)

    def _floor_at(self, tile: Tile, at: NDArray[np.intp]) -> Floats:
        """Return the difference floor at flat indices."""
        floor = self._floor(tile)
        return floor.ravel()[at] if np.ndim(floor) else np.broadcast_to(floor, len(at))

    def _sensor_weight(self, scores: PixelScores, sensor: Floats) -> Floats:
        """Return the weight of the coded value where the sensor gives a variance.

        Both variances decide, unless the difference exceeds them by far: then the codes have failed, at a step say.
        """
        coded = (
            self.settings.outliers.patch_variance_factor * scores.patch_variance
            + self.settings.scores.difference_floor**2
        )
        right, wrong = sensor + coded, sensor + 1
        prior = self.settings.outliers.coding_failure_probability
        log_odds = np.log(prior * np.sqrt(right / wrong)) + np.square(scores.residual) * (1 / right - 1 / wrong) / 2
        return expit(-log_odds) * sensor / right


def _far_features(depth: DepthMap, floor: Vector, pixels: Indices) -> list[Vector]:
    """Compute the distances in depth to the nearest of the far neighbours."""
    neighbours = Neighbours.at(depth.shape, pixels, FAR_OFFSETS)
    nearest = neighbours.nearest(neighbours.pad(depth.astype(np.float32)), FAR_ENDS, max(FAR_RANKS) + 1)[0]
    return [_log(nearest[rank] / floor) for rank in FAR_RANKS]


def _near_features(depth: DepthMap, size: Vector, floor: Vector, pixels: Indices) -> list[Vector]:
    """Compute the distances in depth to the nearest neighbours, to their median and to their range."""
    neighbours = Neighbours.at(depth.shape, pixels, NEAR_OFFSETS)
    padded = neighbours.pad(depth.astype(np.float32))
    value = padded[neighbours.centre]
    nearest = neighbours.nearest(padded, NEAR_ENDS, max(map(max, NEAR_RANKS)) + 1)
    columns = [_log(nearest[ring, rank] / floor) for ring, ranks in enumerate(NEAR_RANKS) for rank in ranks]
    *medians, low, high, similar = neighbours.spread(padded, NEAR_ENDS[:2], size / 2)
    columns += [_log(np.abs(value - median) / floor) for median in medians]
    outside = np.maximum(value - high, low - value) / floor
    return [*columns, np.sign(outside) * np.log1p(np.abs(outside)), _log((high - low) / floor), similar]


def _batches(n_pixels: int) -> list[slice]:
    return [slice(begin, begin + PIXELS_PER_BATCH) for begin in range(0, max(n_pixels, 1), PIXELS_PER_BATCH)]


def _log(values: Vector) -> Vector:
    return np.log(np.clip(values, 1e-3, 1e4))

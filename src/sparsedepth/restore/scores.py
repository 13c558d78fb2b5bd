"""Score each pixel of a map by how much it looks like an outlier.

The score is the product of two distances. One is from the coded value, relative to the disagreement of the patches; the
other is from the nearest neighbours in depth. Outliers bias the codes, so suspects are scored again after they have
been corrected.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from sparsedepth.coding.aggregate import PatchCoder, average_patches
from sparsedepth.neighbourhood import box_mean, grid_median, nearest_depth_distance
from sparsedepth.ranks import Steps
from sparsedepth.restore.settings import ScoreSettings
from sparsedepth.tiling import Tile
from sparsedepth.vocabulary import Floats


@dataclass(frozen=True, eq=False)
class PixelScores:
    """What the codes and the neighbours say about each pixel, in map standard deviations."""

    value: Floats
    """Mean of the patches."""
    patch_variance: Floats
    """Variance of the patches around it."""
    residual: Floats
    """Measured minus value; 0 where missing."""
    score: Floats
    """How much the pixel looks like an outlier; 0 where missing."""
    local_residual: Floats
    """Median absolute residual around the pixel."""
    weight: Floats
    """Weight of the patches; 0 where no patch has a valid pixel."""
    near_border: NDArray[np.bool_]
    """Whether a third or more of the 3x3 window is missing or beyond the border."""

    def at(self, where: NDArray[np.bool_ | np.intp]) -> PixelScores:
        """Select pixels by a mask or by flat indices."""
        numbers = np.flatnonzero(where) if where.dtype == bool else where
        return PixelScores(*(getattr(self, part.name).ravel()[numbers] for part in fields(self)))


def score_pixels(tile: Tile, coder: PatchCoder, step: float, settings: ScoreSettings, threads: int) -> PixelScores:
    """Code a tile, or a stack of maps, whose values are multiples of ``step``, and score its pixels.

    Only suspects need fine codes, unless a sensor gives a variance: then all pixels follow their codes a little.
    """
    coarse = coder.apart_by(settings.first_spacing * coder.stride) if tile.variance is None else coder
    average = average_patches(tile.depth, coarse, tile.variance, window=tile.window, threads=threads)
    weight = average.weight * np.float32((coarse.stride / coder.stride) ** 2)  # as if all patches were coded
    residual = np.nan_to_num(tile.depth - average.mean)
    local_residual = grid_median(np.abs(residual).astype(np.float32))
    score = _score(tile, step, residual, average.variance, settings)
    valid_fraction = box_mean(tile.valid.astype(np.float32), 3, mode="constant")
    near_border = valid_fraction < settings.border_valid_fraction
    return PixelScores(average.mean, average.variance, residual, score, local_residual, weight, near_border)


def rescore_suspects(
    tile: Tile,
    scores: PixelScores,
    corrected: Floats,
    coder: PatchCoder,
    step: float,
    settings: ScoreSettings,
    threads: int,
) -> PixelScores:
    """Score suspects again by the codes of the corrected map, of patches a little further apart."""
    suspect = tile.valid & (scores.score > settings.rescore_above)
    if not coder.overlapping or not suspect.any():
        return scores
    again = replace(
        coder.apart_by(coder.stride + settings.rescore_apart_px),
        sparsity=settings.rescore_sparsity,
        max_rounds=settings.rescore_rounds,
        core=settings.core_weight,
    )
    average = average_patches(
        corrected.astype(np.float32), again, tile.variance, only=suspect, window=tile.window, threads=threads
    )
    weight = average.weight * np.float32((again.stride / coder.stride) ** 2)
    enough = suspect & (2 * weight > scores.weight)
    value = np.where(enough, average.mean, scores.value)
    patch_variance = np.where(enough, average.variance, scores.patch_variance)
    residual = np.nan_to_num(tile.depth - value)
    score = _score(tile, step, residual, patch_variance, settings)
    return replace(scores, value=value, patch_variance=patch_variance, residual=residual, score=score)


def _score(tile: Tile, step: float, residual: Floats, patch_variance: Floats, settings: ScoreSettings) -> Floats:
    floor = np.square(difference_floor(tile, step, settings))
    deviation = np.sqrt(floor + settings.patch_variance_weight * patch_variance)
    return np.abs(residual) / deviation * nearest_depth_distance(tile.depth) / np.sqrt(floor)


def difference_floor(tile: Tile, step: float, settings: ScoreSettings) -> Floats:
    """Return the standard deviation, for each pixel, below which a difference is not significant."""
    sensor = 0 if tile.variance is None else np.where(tile.valid, tile.variance, 1)
    return np.sqrt(settings.difference_floor**2 + (settings.step_weight * step) ** 2 + sensor)


def quantization_step(steps: Steps, settings: ScoreSettings) -> float:
    """Estimate the step between the levels of a quantised map: a low percentile of its differences; 0 = continuous."""
    return steps.quantum(settings.equal_difference, settings.min_equal_fraction, settings.step_percentile)

"""The paper's restoration: every patch is centred, scaled to unit variance and coded; a pixel is their average."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.coding.aggregate import PatchCoder, average_patches_and_noise
from sparsedepth.dictionary import Dictionary
from sparsedepth.missing import holes_containing_patch
from sparsedepth.restore.settings import Settings
from sparsedepth.tiling import RestoreTile, Tile, classify_origin
from sparsedepth.vocabulary import Floats


def patch_coder(dictionary: Dictionary | None, quality: str, settings: Settings) -> PatchCoder:
    """Return the patch coder of a quality; without a dictionary, the paper's for quality "paper"."""
    effort = settings.paper.effort(quality)
    if dictionary is None:
        dictionary = Dictionary.builtin("phi1_annealed" if quality == "paper" else "default")
    stride = effort.stride if quality == "paper" else max(1, effort.stride * min(dictionary.patch_shape) // 8)
    return PatchCoder(dictionary, stride=stride, tolerance=effort.tolerance, max_rounds=effort.rounds)


def fit(
    sample: Tile, coder: PatchCoder, settings: Settings, *, correct: bool, fill: bool, second_pass: bool, threads: int
) -> RestoreTile:
    """Return the method; it learns nothing from the sample."""

    def restore(tile: Tile, threads: int) -> tuple[Floats, Floats, NDArray[np.integer[Any]]]:
        depth, valid = tile.depth, tile.valid
        average = average_patches_and_noise(depth, coder, tile.variance, window=tile.window, threads=threads)
        noisy = valid & (average.confidence < settings.paper.min_confidence) & correct
        mean, variance = average.mean, np.where(valid, average.noise, average.predicted_variance)
        if second_pass and noisy.any():
            shown = np.where(noisy, np.nan, depth)
            again = average_patches_and_noise(shown, coder, tile.variance, window=tile.window, threads=threads)
            mean = np.where(again.weight > 0, again.mean, mean)
            variance = np.where(noisy, variance, np.where(valid, again.noise, again.predicted_variance))
        if not correct:
            mean = np.where(valid, depth, mean)
        refused = (average.weight == 0) | holes_containing_patch(~valid, coder.dictionary.patch_shape) | (not fill)
        return mean, variance, classify_origin(valid, noisy, ~valid & refused)

    return restore

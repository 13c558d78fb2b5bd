"""Scores of pixels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.ndimage import median_filter

from sparsedepth.neighbourhood import grid_median
from sparsedepth.restore.pipeline import patch_coder
from sparsedepth.restore.scores import rescore_suspects, score_pixels
from sparsedepth.restore.settings import ScoreSettings, Settings
from sparsedepth.tiling import Tile


@pytest.mark.parametrize("shape", [(2, 13, 20), (30, 17), (1, 9), (2, 2)])
def test_the_local_median_is_that_of_a_grid_of_sixteen(shape):
    sizes = np.random.default_rng(4).random(shape).astype(np.float32)
    grid = np.outer([1, 0] * 3 + [1], [1, 0] * 3 + [1])
    expected = median_filter(sizes, footprint=grid, mode="reflect", axes=(-2, -1))
    assert_array_equal(grid_median(sizes), expected)


def test_only_suspects_are_scored_again():
    rng, chosen = np.random.default_rng(5), ScoreSettings()
    depth = np.add.outer(np.linspace(-1, 1, 40), np.linspace(-1, 1, 48)).astype(np.float32)
    depth[rng.random(depth.shape) < 0.05] += 1
    tile, coder = Tile.full(depth), patch_coder(None, "balanced", Settings())
    scores = score_pixels(tile, coder, 0.0, chosen, 1)
    again = rescore_suspects(tile, scores, depth - scores.residual, coder, 0.0, chosen, 1)
    suspect = scores.score > chosen.rescore_above
    assert 0.02 < suspect.mean() < 0.5
    assert_array_equal(again.value[~suspect], scores.value[~suspect])
    assert (again.value[suspect] != scores.value[suspect]).mean() > 0.5


def test_suspects_that_hardly_any_patch_covers_keep_their_score():
    """Weights count as those of patches as far apart as before: half of the first weight is enough."""
    rng, chosen = np.random.default_rng(5), ScoreSettings()
    depth = np.add.outer(np.linspace(-1, 1, 40), np.linspace(-1, 1, 48)).astype(np.float32)
    depth[rng.random(depth.shape) < 0.05] += 1
    tile, coder = Tile.full(depth), patch_coder(None, "balanced", Settings())
    scores = score_pixels(tile, coder, 0.0, chosen, 1)
    suspect = scores.score > chosen.rescore_above
    for times, least, most in ((0.5, 0.8, 1.0), (4.0, 0.0, 0.02)):
        first = replace(scores, weight=(times * scores.weight).astype(np.float32))
        again = rescore_suspects(tile, first, depth - scores.residual, coder, 0.0, chosen, 1)
        assert least <= (again.value[suspect] != scores.value[suspect]).mean() <= most

"""Filling holes by surfaces and by codes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sparsedepth import Origin, denoise
from sparsedepth.metrics import calibration
from sparsedepth.restore.inpainting import fill_holes
from sparsedepth.restore.pipeline import patch_coder
from sparsedepth.restore.settings import InpaintingSettings, Settings


def test_patches_that_hardly_overlap_leave_holes_to_the_surfaces():
    y, x = np.mgrid[:40, :50]
    depth = np.where(0.3 * x - 0.1 * y > 6, 1.0, 0.0)
    depth[np.random.default_rng(8).random(depth.shape) < 0.5] = np.nan
    without_codes = replace(Settings(), inpainting=replace(InpaintingSettings(), rounds=0))
    (fast, fast_surface), (balanced, balanced_surface) = (
        [fill_holes(depth, patch_coder(None, quality, Settings()), each, 1) for each in (Settings(), without_codes)]
        for quality in ("fast", "balanced")
    )
    assert_array_equal(fast, fast_surface)
    assert (balanced != balanced_surface).any()


@pytest.mark.slow
def test_the_variance_of_filled_pixels_is_calibrated():
    """Over random holes of stepped maps, the mean of squared error over variance is one, within a factor of two."""
    y, x = np.mgrid[:100, :100]
    clean = np.where(x + 0.5 * y > 80, 3.0, 0.0) + 0.02 * x + 0.3 * np.sin(y / 7)
    for seed in range(7, 10):
        holes = np.random.default_rng(seed).random(clean.shape) < 0.4
        result = denoise(np.where(holes, np.nan, clean))
        filled = result.origin == Origin.FILLED
        assert filled.sum() > 3000
        assert 0.5 < calibration((result.depth - clean)[filled], result.variance[filled]).overall < 2

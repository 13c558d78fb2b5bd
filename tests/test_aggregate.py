"""Averages of coded patches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose

from sparsedepth.coding.aggregate import average_patches
from sparsedepth.coding.noise import Jeffreys
from sparsedepth.restore.pipeline import patch_coder
from sparsedepth.restore.settings import Settings


def test_a_level_map_is_its_own_average():
    coder = patch_coder(None, "balanced", Settings())
    average = average_patches(np.full((20, 24), 3.0, np.float32), coder)
    assert_allclose(average.mean, 3, rtol=1e-6)
    assert_allclose(average.variance, 0, atol=1e-6)


def test_noise_that_is_not_convex_is_coded_by_iterations():
    coder = replace(patch_coder(None, "fast", Settings()), noise=Jeffreys(1.0, 1.0), max_rounds=24)
    wavy = np.sin(np.mgrid[:20, :24].sum(axis=0) / 6).astype(np.float32)
    assert np.abs(average_patches(wavy, coder).mean - wavy).mean() < 0.1

"""Pixels at an end of the map's range."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sparsedepth.restore.stuck import Stuck

from sparsedepth import Origin, denoise
from sparsedepth.data.crops import crops
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.simulated_scans import simulated_scans
from sparsedepth.metrics import psnr
from sparsedepth.patches import SYMMETRIES, turned
from sparsedepth.vocabulary import DepthMap


def salted(clean: DepthMap, share: float, ends: tuple[float, ...] = (-0.2, 1.2), seed: int = 0) -> DepthMap:
    """A share of the pixels at the ends of a range, which are told in ranges of the map."""
    rng = np.random.default_rng(seed)
    low, high = np.nanmin(clean), np.nanmax(clean)
    values = low + np.array(ends) * (high - low)
    there = (rng.random(clean.shape) < share) & np.isfinite(clean)
    return np.where(there, rng.choice(values, clean.shape), clean).astype(clean.dtype)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("ends", [(-0.2, 1.2), (1.5,)])
def test_salt_and_pepper_are_corrected(share, ends):
    clean = crops(motorcycle_disparity(), 1, seed=4)[0].depth
    noisy = salted(clean, share, ends)
    result = denoise(noisy)
    spoilt = np.isfinite(clean) & (noisy != clean)
    assert psnr(np.where(np.isfinite(clean), result.depth, np.nan), clean) > psnr(noisy, clean) + 20
    assert (result.origin[spoilt] == Origin.CORRECTED).all()
    assert (result.variance[spoilt] > 0).all()


def test_a_clipped_surface_is_no_salt():
    depth = np.minimum(np.add.outer(np.linspace(0, 2, 60), np.linspace(0, 2, 60)), 2.0)
    depth[20:30, 20:30] = 0.0
    assert Stuck.of(depth) == Stuck()
    few = np.where(np.random.default_rng(2).random(depth.shape) < 0.8, np.nan, depth)
    assert Stuck.of(few) == Stuck()
    assert_allclose(denoise(depth).depth, depth, atol=1e-5)


def test_levels_of_a_quantised_map_are_no_salt():
    """Single pixels of the highest level lie beside others one level below."""
    depth = np.round(np.add.outer(np.linspace(0, 3, 60), np.linspace(0, 3, 60)))
    depth[np.random.default_rng(1).random(depth.shape) < 0.02] = 7.0
    depth = np.where(depth == 7, np.where(np.add.outer(np.arange(60), np.arange(60)) > 100, 7, 5), depth)
    assert Stuck.of(depth) == Stuck()


def test_clean_maps_have_no_stuck_pixels():
    for scan in simulated_scans(6):
        assert Stuck.of(scan) == Stuck()
    assert Stuck.of(np.full((9, 9), 3.0)) == Stuck()
    assert Stuck.of(np.full((9, 9), np.nan)) == Stuck()


@pytest.mark.parametrize("symmetry", range(SYMMETRIES))
def test_stuck_pixels_turn_with_the_map(symmetry):
    noisy = salted(simulated_scans(1)[0], 0.05)
    found = Stuck.of(noisy)
    assert len(found.values) == 2
    assert_array_equal(Stuck.of(turned(noisy, symmetry)).values, found.values)

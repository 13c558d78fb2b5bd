"""Noise at every pixel: its level, when a map has it, and how it is smoothed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparsedepth import denoise
from sparsedepth.data import time_of_flight
from sparsedepth.data.synthetic import range_deviation, with_range_noise
from sparsedepth.restore.dense import NoiseLevel, Smoother, has_dense_noise
from sparsedepth.restore.pipeline import patch_coder
from sparsedepth.restore.settings import DenseSettings, Settings, VarianceSettings
from sparsedepth.sensors.differences import white_std
from sparsedepth.tiling import Tile

CHOSEN = DenseSettings()


@pytest.mark.parametrize("sigma", [0.05, 0.2])
def test_the_noise_level_is_estimated(sigma):
    y, x = np.mgrid[:120, :120]
    depth = np.where(x + y > 120, 1.0, 0.0) + 0.01 * x
    noisy = depth + sigma * np.random.default_rng(5).standard_normal(depth.shape)
    assert white_std(depth) < 1e-6
    assert white_std(noisy) == pytest.approx(sigma, rel=0.15)


def floor_with_a_box():
    """A floor that runs into the distance, and a box on it."""
    y, x = np.mgrid[:120, :120]
    return np.where((np.abs(x - 60) < 30) & (np.abs(y - 60) < 20), 3.0, 4.0 + 6 * y / 120)


def test_a_noise_level_that_grows_with_the_square_of_the_range_is_fitted():
    """At each pixel, also of the box on the floor; and rising and falling depths are alike."""
    ranges = floor_with_a_box()
    sigma = range_deviation(ranges, 0.05)
    assert sigma.max() > 8 * sigma.min()
    noisy = with_range_noise(ranges, 0.05, np.random.default_rng(5))
    level = NoiseLevel.fit(noisy, CHOSEN)
    assert_allclose(level.at_depth(noisy), sigma, rtol=0.5)
    assert np.abs(np.log(level.at_depth(noisy) / sigma)).mean() < 0.15
    assert_allclose(NoiseLevel.fit(-noisy, CHOSEN).at_depth(-ranges), level.at_depth(ranges), rtol=0.1)


def test_a_noise_level_that_is_the_same_everywhere_is_fitted():
    ranges = floor_with_a_box()
    noisy = ranges + 0.2 * np.random.default_rng(5).standard_normal(ranges.shape)
    assert_allclose(NoiseLevel.fit(noisy, CHOSEN).at_depth(ranges), 0.2, rtol=0.25)


def test_the_noise_level_is_one_number_where_blocks_are_few():
    noisy = 0.2 * np.random.default_rng(5).standard_normal((20, 20))
    level = NoiseLevel.fit(noisy, CHOSEN)
    assert level == NoiseLevel(white_std(noisy), CHOSEN)
    assert level.at_depth(np.array([np.nan, -5.0, 5.0])).tolist() == 3 * [level.sigma]


def test_dense_noise_may_be_small_at_some_depths_unless_outliers_are_many():
    near = np.arange(120) < 60
    depth = np.where(near, 0.001, 0.1) * np.random.default_rng(5).standard_normal((120, 120)) + np.where(near, -1, 1)
    assert white_std(depth) < CHOSEN.min_sigma
    assert has_dense_noise(depth, 0.01, CHOSEN)
    assert not has_dense_noise(depth, 0.2, CHOSEN)
    assert not has_dense_noise(np.where(near, np.round(depth), depth), 0.01, CHOSEN)


def test_heavy_tailed_texture_is_not_dense_noise():
    """Foliage is rough everywhere, but its differences are not Gaussian."""
    normal = np.random.default_rng(5).standard_normal((2, 120, 120))
    foliage = np.sign(normal[0]) * np.exp(3 * normal[1])
    foliage *= 0.1 / white_std(foliage)
    assert white_std(foliage) == pytest.approx(white_std(0.1 * normal[0]), rel=0.1)
    assert has_dense_noise(0.1 * normal[0], 0.01, CHOSEN)
    assert not has_dense_noise(foliage, 0.01, CHOSEN)


@pytest.mark.slow
def test_range_noise_next_to_a_high_step_is_smoothed_up_to_the_step():
    """Steps of a hundred standard deviations of the noise are neither rounded off nor made smaller."""
    ranges = np.where(np.arange(96) < 48, 4.0, 12.0) * np.ones((96, 1))
    noisy = ranges + 0.3 * np.square(ranges / 12) * np.random.default_rng(6).standard_normal(ranges.shape)
    error = np.square(denoise(noisy).depth - ranges)
    assert error[:, :48].mean() < 0.1 * np.square(noisy - ranges)[:, :48].mean()
    assert error[:, 48:].mean() < 0.1 * np.square(noisy - ranges)[:, 48:].mean()


@pytest.mark.slow
def test_dense_noise_is_smoothed_and_its_variance_is_calibrated():
    y, x = np.mgrid[:96, :96]
    clean = np.where(x + y > 100, 3.0, 0.0) + 0.01 * x
    noisy = clean + 0.3 * np.random.default_rng(6).standard_normal(clean.shape)
    result = denoise(noisy)
    error = np.square(result.depth - clean).mean()
    assert error < 0.3 * np.square(noisy - clean).mean()
    assert 0.3 < error / result.variance.mean() < 3


def smoother(sigma: float, quality: str) -> Smoother:
    return Smoother(NoiseLevel(sigma, CHOSEN), patch_coder(None, quality, Settings()))


def test_smoothing_removes_no_more_than_the_noise_amounts_to():
    texture = np.random.default_rng(6).standard_normal((2, 48, 48)).astype(np.float32)
    plain = smoother(0.1, "fast")
    calibrated = plain.calibrate(texture, VarianceSettings(), 1)
    window = Tile.full(texture[0]).window
    removed = np.square(texture - np.stack([calibrated(part, window, 1)[0] for part in texture])).sum()
    noise = np.square([plain.level.at_depth(part) for part in texture]).sum()
    assert calibrated.shrinkage is not None
    assert calibrated.shrinkage(calibrated._smooth(texture[0], window, 1)).max() < 1
    assert removed <= noise


def test_texture_stays_where_patches_disagree_and_noise_goes_where_they_agree():
    """Half of the map is a plane, the other half is rough; noise lies on both."""
    rng = np.random.default_rng(6)
    rough = np.where(np.arange(64) < 32, 0, 2 * rng.standard_normal((64, 64))) + 0.02 * np.arange(64)
    depth = (rough + 0.1 * rng.standard_normal(rough.shape)).astype(np.float32)
    calibrated = smoother(0.1, "balanced").calibrate(depth[None], VarianceSettings(), 1)
    error = np.square(calibrated(depth, Tile.full(depth).window, 1)[0] - rough)
    assert error[:, :28].mean() < 0.3 * 0.1**2
    assert error[:, 36:].mean() < 1.5 * 0.1**2


def test_noise_alone_is_removed_completely():
    depth = 0.1 * np.random.default_rng(6).standard_normal((1, 64, 64)).astype(np.float32)
    assert smoother(0.1, "fast").calibrate(depth, VarianceSettings(), 1).shrinkage is None


@pytest.mark.slow
@pytest.mark.parametrize("scene", time_of_flight.SIMULATED)
def test_strong_white_noise_is_smoothed_also_where_structure_looks_like_correlation(real_data, scene):
    maps = time_of_flight.simulated(scene, 8)
    left = np.std(denoise(maps.noisy, quality="fast").depth - maps.truth)
    assert left < 0.6 * np.std(maps.noisy - maps.truth)

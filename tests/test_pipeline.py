"""The default method from end to end: clean maps stay as they are, noise goes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from sparsedepth import Origin, denoise
from sparsedepth.data.simulated_scans import simulated_scans
from sparsedepth.data.synthetic import corrupted
from sparsedepth.metrics import psnr
from sparsedepth.vocabulary import Floats


def plane(shape=(40, 50)):
    y, x = np.mgrid[: shape[0], : shape[1]]
    return 0.3 * x - 0.1 * y + 2


def stairs(side=128):
    """Planes and steps, of unit standard deviation."""
    down, right = np.indices((side, side)) / side
    depth = 2 * right + np.where(down > 0.6, 1.5, 0) + np.where(right > 0.7, -1.0, 0.5 * down)
    return ((depth - depth.mean()) / depth.std()).astype(np.float32)


def test_slivers_that_the_border_cuts_off_are_kept():
    clean = stairs()
    clean[0, 20] = clean[0, 33] = clean[0, 34] = clean.max()
    assert_allclose(denoise(clean).depth, clean, atol=1e-3 * clean.std())


def test_noise_at_the_border_is_corrected_where_nothing_is_cut_off():
    clean = stairs()
    noisy = corrupted(clean, 0.05, np.random.default_rng(3))
    edge = np.ones(clean.shape, bool)
    edge[1:-1, 1:-1] = False
    before, after = (np.square(depth - clean)[edge].mean() for depth in (noisy, denoise(noisy).depth))
    assert after < 0.1 * before


@pytest.mark.slow
@pytest.mark.parametrize("scan", simulated_scans(2), ids=["far trees", "a near tree"])
def test_foliage_is_not_noise(scan):
    assert 0.02 < np.isnan(scan).mean() < 0.4
    assert psnr(denoise(scan, fill=False).depth, scan) > 60


def test_a_clean_map_is_left_unchanged():
    depth = plane() + np.where(plane() > 8, 4.0, 0)
    result = denoise(depth)
    assert_allclose(result.depth, depth, atol=1e-5)
    assert (result.origin == Origin.MEASURED).all()


@pytest.mark.slow
def test_clean_scans_are_left_unchanged():
    """Single returns from leaves have high scores, but the classifier finds hardly any of the estimated outliers."""
    for clean in simulated_scans(46)[41:46:2]:
        assert psnr(denoise(clean, fill=False).depth, clean) > 60


def with_spikes(depth: Floats, n: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Move some pixels by a standard deviation; return the map, and which pixels moved."""
    rng, spiked = np.random.default_rng(3), np.zeros(depth.shape, bool)
    spiked.ravel()[rng.choice(depth.size, n, replace=False)] = True
    return depth + np.where(spiked, rng.choice([-1, 1], depth.shape) * depth.std(), 0), spiked


@pytest.mark.slow
def test_a_few_spikes_of_a_raw_sensor_map_are_kept():
    """Their variance says that they are uncertain. On a smooth map, or if there are many, they are noise."""
    smooth = plane((100, 100))
    measured = smooth + 0.005 * smooth.std() * np.random.default_rng(4).standard_normal(smooth.shape)
    spiky, spiked = with_spikes(measured, 15)
    kept = denoise(spiky)
    assert_allclose(kept.depth, spiky, atol=1e-5)
    assert (kept.origin == Origin.MEASURED).all()
    assert np.median(kept.variance[spiked]) > 100 * np.median(kept.variance[~spiked])
    for depth, n in ((smooth, 15), (measured, 100)):
        spiky, spiked = with_spikes(depth, n)
        result = denoise(spiky)
        assert (result.origin[spiked] == Origin.CORRECTED).mean() > 0.9
        assert np.square(result.depth - depth).mean() < 0.05 * np.square(spiky - depth).mean()


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (4, 4), (5, 5), (6, 6), (7, 9), (1, 40), (63, 1)])
@pytest.mark.parametrize("quality", ["fast", "best"])
def test_a_plane_of_fewer_pixels_than_a_patch_stays(shape, quality):
    y, x = np.mgrid[: shape[0], : shape[1]]
    plane = 1 + 0.1 * x + 0.07 * y
    result = denoise(plane, quality=quality, threads=1)
    np.testing.assert_allclose(result.depth, plane, rtol=1e-6)
    assert (result.origin == Origin.MEASURED).all()

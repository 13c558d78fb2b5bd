"""The zoo of noise and holes: what each animal may touch, how much it does, and that the unit does not matter."""

from __future__ import annotations

import numpy as np
import pytest

from sparsedepth.data import synthetic
from sparsedepth.data.motorcycle import motorcycle_disparity

ANIMALS = {
    "impulses": lambda d, rng: synthetic.corrupted(d, 0.1, rng),
    "double impulses": lambda d, rng: synthetic.corrupted(d, 0.1, rng, 2.0),
    "clusters": lambda d, rng: synthetic.with_clusters(d, 0.05, rng),
    "range noise": lambda d, rng: synthetic.with_range_noise(d, 0.05, rng),
    "quantised": lambda d, rng: synthetic.quantised(d, 32),
    "flying pixels": lambda d, rng: synthetic.with_flying_pixels(d, 0.5, rng),
    "missing": lambda d, rng: synthetic.with_missing(d, 0.8, rng),
    "matching shadows": lambda d, rng: synthetic.with_matching_shadows(d, 1),
    "Kinect shadows": lambda d, rng: synthetic.with_kinect_shadows(d, 1, rng),
}
HOLES = ("missing", "matching shadows", "Kinect shadows")


@pytest.fixture(scope="module")
def depth():
    return motorcycle_disparity()[120:220, 250:350].copy()


def spoilt(name, depth, seed=3):
    return ANIMALS[name](depth, np.random.default_rng(seed))


@pytest.mark.parametrize("name", ANIMALS)
def test_unknown_stays_unknown_type_stays_and_the_seed_decides(name, depth):
    before = depth.copy()
    result = spoilt(name, depth)
    np.testing.assert_array_equal(depth, before)
    assert result.dtype == depth.dtype
    assert np.isnan(result[np.isnan(depth)]).all()
    np.testing.assert_array_equal(result, spoilt(name, depth))
    changed = np.isfinite(depth) & ~(result == depth)
    assert 0.001 < changed.mean() < 1
    if name in HOLES:
        assert np.isnan(result[changed]).all(), "holes hide and change nothing"
    else:
        assert not np.isnan(result[np.isfinite(depth)]).any(), "noise hides nothing"


@pytest.mark.parametrize("name", ANIMALS)
def test_the_unit_does_not_matter(name, depth):
    double = depth.astype(np.float64)
    np.testing.assert_allclose(spoilt(name, 1024 * double), 1024 * spoilt(name, double), rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in ANIMALS if "quantised" not in name and "matching" not in name])
def test_another_seed_spoils_otherwise(name, depth):
    assert not np.array_equal(spoilt(name, depth, 3), spoilt(name, depth, 4), equal_nan=True)


def test_amplitude_multiplies_the_noise_of_the_same_draw(depth):
    once, twice = (synthetic.corrupted(depth, 0.1, np.random.default_rng(0), a) - depth for a in (1.0, 2.0))
    np.testing.assert_allclose(twice, 2 * once, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_shares_are_what_was_asked_for(share):
    flat = np.zeros((200, 200))
    rng = np.random.default_rng(0)
    assert np.isnan(synthetic.with_missing(flat, share, rng)).mean() == pytest.approx(share, abs=0.01)
    ramp = flat + np.arange(200.0)
    assert (synthetic.corrupted(ramp, share, rng) != ramp).mean() == pytest.approx(share, abs=0.01)
    assert (synthetic.with_clusters(ramp, share, rng) != ramp).mean() == pytest.approx(share, abs=0.01)


def test_clusters_are_clusters_and_impulses_are_not(depth):
    """A spoilt pixel of a cluster has mostly spoilt neighbours; of impulses, about the share of them."""

    def company(name):
        spoilt_pixels = (spoilt(name, depth) != depth) & np.isfinite(depth)
        return spoilt_pixels[:, 1:][spoilt_pixels[:, :-1]].mean()

    assert company("clusters") > 0.6
    assert company("impulses") < 0.2


def test_range_noise_grows_with_the_square_of_the_range():
    ranges = np.repeat([[1.0, 2.0, 4.0]], 40_000, axis=0)
    noise = synthetic.with_range_noise(ranges, 0.05, np.random.default_rng(0)) - ranges
    near, middle, far = noise.std(axis=0)
    assert middle == pytest.approx(0.05 * ranges.std(), rel=0.03)
    assert middle / near == pytest.approx(4, rel=0.05)
    assert far / middle == pytest.approx(4, rel=0.05)


def test_quantised_maps_have_few_levels_and_err_by_half_a_step(depth):
    result = synthetic.quantised(depth, 32)
    assert len(np.unique(result[np.isfinite(result)])) <= 32
    assert np.nanmax(np.abs(result - depth)) <= 1.001 * (np.nanmax(depth) - np.nanmin(depth)) / 31 / 2
    np.testing.assert_array_equal(synthetic.quantised(np.full((4, 4), 2.0), 32), 2.0)


def test_flying_pixels_lie_between_near_and_far_beside_edges_only():
    step = np.where(np.arange(40) < 20, 1.0, 5.0) * np.ones((40, 1))
    result = synthetic.with_flying_pixels(step, 1.0, np.random.default_rng(0))
    changed = result != step
    assert set(np.unique(np.nonzero(changed)[1])) == {19, 20}
    assert ((result[changed] > 1) & (result[changed] < 5)).all()


def test_a_near_bar_hides_as_much_as_its_parallax_on_one_side():
    """A bar 6 px of parallax before a wall hides six columns of it: left of it from a camera to the right."""
    bar = np.where((np.arange(40) >= 20) & (np.arange(40) < 30), 1.0, 0.0) * np.ones((5, 1))
    hidden = synthetic.hidden_behind(bar, near=1, widest=6.0)
    assert set(np.nonzero(hidden)[1]) == set(range(14, 20))
    np.testing.assert_array_equal(synthetic.hidden_behind(-bar, near=-1, widest=6.0), hidden)
    assert not synthetic.hidden_behind(np.zeros((3, 3)), 1, 6.0).any()
    kinect = np.isnan(synthetic.with_kinect_shadows(np.tile(bar, (20, 1)), 1, np.random.default_rng(0), widest=6.0))
    assert kinect[:, 30:36].all(), "a projector to the left throws its shadow to the right"

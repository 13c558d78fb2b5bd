"""Holes of depth frames are filled from the side that they belong to."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsedepth.holes import Fill, fill
from sparsedepth.holes_rays import Rays
from sparsedepth.holes_sides import DEFAULT
from sparsedepth.vocabulary import InputError

NEAR, FAR, NOISE = 1500.0, 3000.0, 3.0
SIDES = ("background", "nearest", "surface")
BOXES = ((37, 43, 90, 83, 1500.0, 200.0), (123, 151, 71, 121, 1200.0, 140.0), (22, 203, 61, 69, 1800.0, 250.0))
"""Top, left, height, width, depth and brightness."""


def variance_of(depth):
    return np.where(np.isnan(depth), np.inf, NOISE**2)


def wall(shape=(96, 128)):
    """A slanted wall: a plane in 1/z."""
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    return 1 / (1 / FAR + 2e-7 * columns + 1e-7 * rows)


def shadow(turn=0):
    """A box in front of a wall; its shadow is missing at one side. Returns depth and truth."""
    truth = wall()
    truth[30:70, 40:70] = NEAR
    depth = truth.copy()
    depth[30:70, 70:84] = np.nan
    return np.rot90(depth, turn).copy(), np.rot90(truth, turn).copy()


def room(rng):
    """Boxes before a wall, with shadows at their right and dark patches at their left; with a picture."""
    depth = np.full((240, 320), FAR) + 1.5 * np.arange(320)
    picture, hole = np.full(depth.shape, 60.0), np.zeros(depth.shape, bool)
    for top, left, height, width, z, grey in BOXES:
        box = slice(top, top + height), slice(left, left + width)
        depth[box], picture[box] = z, grey
        hole[top : top + height, left + width : left + width + 14] = True
        hole[top + height // 3 : top + 2 * height // 3, left - 2 : left + 16] = True
    return depth, hole, picture + rng.normal(0, 4, picture.shape)


def rms(found: Fill, truth, where) -> float:
    return float(np.sqrt(np.mean(np.square(found.value - truth)[where])))


@pytest.mark.parametrize("side", SIDES)
def test_valid_pixels_keep_value_and_variance_and_every_hole_is_filled(side):
    depth, _ = shadow()
    valid = np.isfinite(depth)
    found = fill(depth, variance_of(depth), side)
    assert_array_equal(found.value[valid], depth[valid])
    assert_array_equal(found.variance[valid], np.full(valid.sum(), NOISE**2))
    assert np.isfinite(found.value).all()
    assert np.isfinite(found.variance).all()
    assert (found.variance > 0).all()
    assert not found.refused[valid].any()


@pytest.mark.parametrize("turn", range(4))
def test_a_shadow_is_the_background_up_to_the_near_edge(turn):
    depth, truth = shadow(turn)
    found = fill(depth, variance_of(depth), "background")
    hole = np.isnan(depth)
    assert_allclose(found.value[hole], truth[hole], rtol=0.005)
    assert not found.refused[hole].any()


def test_a_thin_long_band_is_filled_whole():
    depth = np.where(np.arange(200) < 100, NEAR, FAR) * np.ones((150, 1))
    depth[:, 100:103] = np.nan
    found = fill(depth, variance_of(depth), "background")
    assert_allclose(found.value[:, 100:103], FAR, rtol=1e-5)
    assert not found.refused.any()


def test_a_disparity_map_takes_the_smaller_side():
    depth, truth = shadow()
    found = fill(1e5 / depth, variance_of(depth) / 1e4, "background", larger_is_farther=False)
    hole = np.isnan(depth)
    assert_allclose(found.value[hole], 1e5 / truth[hole], rtol=0.005)


def test_a_map_that_is_no_inverse_disparity_may_hold_any_numbers():
    depth = np.where(np.arange(64) < 30, -500.0, 40.0) * np.ones((64, 1))
    depth[:, 30:38] = np.nan
    found = fill(depth, np.where(np.isnan(depth), np.inf, 0.01), "background", disparity=False)
    assert_allclose(found.value[:, 30:38], 40.0, atol=0.1)


@pytest.mark.parametrize("side", ["background", "nearest"])
def test_a_hole_within_a_plane_continues_the_plane(side):
    truth = wall()
    depth = truth.copy()
    depth[30:60, 40:70] = np.nan
    depth[:, :20] = np.nan
    found = fill(depth, variance_of(depth), side)
    assert_allclose(found.value, truth, rtol=0.004)


def test_the_nearest_side_of_a_shadow_is_shared_between_both():
    depth, truth = shadow()
    found = fill(depth, variance_of(depth), "nearest")
    assert_allclose(found.value[40:60, 70:74], NEAR, rtol=0.01)
    assert_allclose(found.value[40:60, 80:84], truth[40:60, 80:84], rtol=0.01)


@pytest.mark.parametrize("side", ["background", "nearest"])
def test_nothing_hangs_between_near_and_far(side):
    depth, hole, _ = room(np.random.default_rng(0))
    holed = np.where(hole, np.nan, depth)
    value = fill(holed, variance_of(holed), side).value[hole]
    assert np.mean((value > 1900) & (value < 2800)) == 0


def test_a_surface_is_the_robust_plate():
    truth = wall((60, 60))
    depth = np.where(np.random.default_rng(0).random(truth.shape) < 0.5, np.nan, truth)
    depth[20:30, 20:30] = np.nan
    assert_allclose(fill(depth, variance_of(depth), "surface").value, truth, rtol=0.01)


@pytest.mark.parametrize("side", SIDES)
def test_deep_pixels_are_filled_and_refused(side):
    depth = wall((200, 200))
    depth[:, 30:] = np.nan
    found = fill(depth, variance_of(depth), side)
    assert found.refused[:, 30 + int(DEFAULT.refuse_px) :].all()
    assert not found.refused[:, :60].any()
    assert np.isfinite(found.value).all()
    assert (np.sqrt(found.variance[:, 100:]) > 0.4 * found.value[:, 100:]).all()


def test_a_map_without_valid_pixels_is_refused():
    found = fill(np.full((8, 9), np.nan), np.full((8, 9), np.inf), "background")
    assert found.refused.all()
    assert np.isnan(found.value).all()
    assert np.isinf(found.variance).all()


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 3), (3, 2), (5, 2)])
@pytest.mark.parametrize("side", SIDES)
def test_tiny_maps_are_filled(shape, side):
    depth = np.full(shape, 5.0)
    depth.ravel()[1::2] = np.nan
    assert_allclose(fill(depth, np.where(np.isnan(depth), np.inf, 1e-4), side).value, 5.0, rtol=1e-5)


@pytest.mark.parametrize("side", ["background", "nearest"])
def test_values_depend_on_pixels_within_reach_only(side):
    rng = np.random.default_rng(1)
    depth, hole, _ = room(rng)
    holed = np.where(hole | (rng.random(depth.shape) < 0.05), np.nan, depth + rng.normal(0, NOISE, depth.shape))
    whole = fill(holed, variance_of(holed), side, reach_px=64)
    tile, inner = (slice(20, 180), slice(60, 260)), (slice(60, 140), slice(100, 220))
    part = fill(holed[tile], variance_of(holed[tile]), side, reach_px=64)
    for one, other in zip(whole, part, strict=True):
        assert_array_equal(one[inner], other[40:120, 40:160])


@pytest.mark.parametrize("side", SIDES)
def test_the_same_map_gives_the_same_bits(side):
    depth, hole, picture = room(np.random.default_rng(2))
    holed = np.where(hole, np.nan, depth)
    first, second = (fill(holed, variance_of(holed), side, guide=picture) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert_array_equal(one, other)


@pytest.mark.parametrize("side", SIDES)
def test_depths_stay_positive_however_large_the_noise(side):
    rng = np.random.default_rng(8)
    depth = np.where(rng.random((60, 80)) < 0.6, np.nan, rng.uniform(1, 1e4, (60, 80)))
    depth[20:40, 20:60] = np.nan
    found = fill(depth, np.where(np.isnan(depth), np.inf, 4 * depth**2), side)
    assert (found.value > 0).all()
    assert np.isfinite(found.value).all()
    assert np.isfinite(found.variance).all()


def test_the_unit_of_depth_does_not_matter():
    depth, _ = shadow()
    one, other = (fill(f * depth, f**2 * variance_of(depth), "background") for f in (1.0, 1e-3))
    assert_allclose(other.value, 1e-3 * one.value, rtol=1e-4)
    assert_allclose(other.variance, 1e-6 * one.variance, rtol=1e-2)


def test_a_lattice_is_filled_like_a_dense_frame():
    depth, truth = shadow()
    rows, columns = (np.round(1.64 * np.arange(size)).astype(int) for size in depth.shape)
    sparse, dense = (np.full((rows[-1] + 1, columns[-1] + 1), np.nan) for _ in range(2))
    sparse[np.ix_(rows, columns)] = depth
    at_truth = np.ix_(*(np.rint(np.arange(size) / 1.64).astype(int) for size in sparse.shape))
    dense[:] = truth[at_truth]
    found = fill(sparse, variance_of(sparse), "background")
    hole = np.isnan(depth[at_truth])
    assert not found.refused.any()
    assert np.mean(np.abs(found.value - dense) < 30) > 0.97
    assert np.mean(np.abs(found.value - dense)[hole] < 30) > 0.95


def test_the_variance_is_honest_for_a_noisy_wall():
    rng = np.random.default_rng(3)
    truth = wall((240, 320))
    depth = truth + rng.normal(0, NOISE, truth.shape)
    for top, left in rng.integers(10, 200, (25, 2)):
        depth[top : top + 16, left : left + 16] = np.nan
    found = fill(depth, variance_of(depth), "background")
    hole = np.isnan(depth)
    ratio = (np.square(found.value - truth) / found.variance)[hole]
    assert (ratio < 4).mean() > 0.95
    assert found.variance[hole].mean() < 4 * NOISE**2


def test_the_variance_counts_the_other_side_where_both_have_equal_evidence():
    depth = np.where(np.arange(128) < 64, NEAR, FAR) * np.ones((128, 1))
    depth[54:74, 54:74] = np.nan
    found = fill(depth, variance_of(depth), "background", settings=replace(DEFAULT, wrong_side=0.45))
    sure = fill(depth, variance_of(depth), "background", settings=replace(DEFAULT, wrong_side=0.0))
    assert found.variance[64, 63] > 10 * sure.variance[64, 63]
    assert found.variance[56, 72] == pytest.approx(sure.variance[56, 72], rel=0.5)


def test_a_registered_picture_finds_the_side_of_dark_patches():
    depth, hole, picture = room(np.random.default_rng(4))
    holed = np.where(hole, np.nan, depth)
    plain, guided = (fill(holed, variance_of(holed), "background", guide=guide) for guide in (None, picture))
    assert rms(guided, depth, hole) < 0.6 * rms(plain, depth, hole)


@pytest.mark.slow
@pytest.mark.parametrize("side", ["background", "nearest"])
@pytest.mark.parametrize("kind", ["noise", "blocks", "flipped", "constant", "gap", *range(1, 60, 4)])
def test_a_picture_of_something_else_does_no_harm(side, kind):
    rng = np.random.default_rng(5)
    depth, hole, picture = room(rng)
    others = {
        "noise": rng.normal(0, 1, (*depth.shape, 3)),
        "blocks": np.kron(rng.random((12, 16)), np.ones((20, 20))),
        "flipped": picture[::-1, ::-1],
        "constant": np.ones(depth.shape),
        "gap": np.where(rng.random(depth.shape) < 0.5, np.nan, picture[::-1]),
    }
    other = others[kind] if isinstance(kind, str) else np.roll(picture, kind, (0, 1))
    holed = np.where(hole, np.nan, depth + rng.normal(0, NOISE, depth.shape))
    plain, guided = (fill(holed, variance_of(holed), side, guide=guide) for guide in (None, other))
    assert rms(guided, depth, hole) <= 1.02 * rms(plain, depth, hole)


def test_rays_end_at_the_first_valid_pixel_in_each_direction():
    rng = np.random.default_rng(6)
    valid = rng.random((23, 17)) < 0.1
    rays = Rays.cast(valid, 9, ((0, 1), (1, -2)))
    for hole, *hits in zip(rays.holes, *rays.hits, strict=True):
        row, column = divmod(int(hole), 17)
        for hit, (down, right) in zip(hits, ((0, -1), (0, 1), (-1, 2), (1, -2)), strict=True):
            steps = range(1, 9 // max(abs(down), abs(right)) + 1)
            path = [(row + k * down, column + k * right) for k in steps]
            inside = [(r, c) for r, c in path if 0 <= r < 23 and 0 <= c < 17]
            wanted = next((17 * r + c for r, c in inside if valid[r, c]), -1)
            assert hit == wanted


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"side": "far"}, "'background'"),
        ({"depth": np.zeros(3)}, "height, width"),
        ({"guide": np.zeros((3, 3))}, "picture"),
        ({"depth": np.full((96, 128), -1.0)}, "positive"),
        ({"variance": np.full((96, 128), -1.0)}, "variance"),
        ({"reach_px": 3}, "reach"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(change, words):
    given = {"depth": wall(), "variance": np.ones((96, 128)), "side": "background"} | change
    with pytest.raises(InputError, match=words):
        fill(**given)


def test_time_grows_as_the_number_of_pixels():
    rng = np.random.default_rng(7)
    depth = np.kron(rng.uniform(1000, 3000, (12, 16)), np.ones((40, 40))) + rng.normal(0, NOISE, (480, 640))
    for row, column in rng.integers(0, 440, (60, 2)):
        depth[row : row + 40, column : column + 30] = np.nan
    seconds = []
    for part in (depth[:240, :320], depth):
        start = time.process_time()
        fill(part, variance_of(part), "background")
        seconds.append(time.process_time() - start)
    assert seconds[1] < 12 * seconds[0], "four times as many pixels, with room for a busy machine"

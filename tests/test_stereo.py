"""Stereo pairs at the door, costs at any disparity, occlusions, and what `match` makes of them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from sparsedepth import InputError, InputWarning, Origin, StereoPair, match
from sparsedepth.data import middlebury
from sparsedepth.data.motorcycle import motorcycle_pair
from sparsedepth.fitted import load_fitted
from sparsedepth.matching import stages
from sparsedepth.metrics import bad_pixels, calibration, sparsification
from sparsedepth.neighbourhood import local_variance
from sparsedepth.stereo import occlusion, opencv
from sparsedepth.stereo.costs import COSTS, birchfield_tomasi, sample, squared
from sparsedepth.stereo.match import match_evidence
from sparsedepth.stereo.rows import byte_rows
from sparsedepth.stereo.variance import bounded, features
from sparsedepth.stereo.view_order import looks_swapped


def texture(shape, seed=0, channels=3) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (*shape, channels), np.uint8)


def step_scene(near=9, far=3, shape=(30, 70), seed=0) -> tuple[Any, Any, Any]:
    """A square in front of a wall: left view, right view, true disparity."""
    behind, front = texture((shape[0], shape[1] + 20), seed), texture((14, 24), seed + 1)
    left, right = (behind[:, start : start + shape[1]].copy() for start in (4, 4 + far))
    truth = np.full(shape, float(far))
    left[8:22, 30:54], right[8:22, 30 - near : 54 - near] = front, front
    truth[8:22, 30:54] = near
    return left, right, truth


@pytest.mark.parametrize(
    ("picture", "white"),
    [
        (np.full((2, 5), 255, np.uint8), 255),
        (np.full((2, 5), 51, np.uint8), 51),
        (np.full((2, 5), 1.0), 255),
        (np.full((2, 5), 200.0), 200),
        (np.full((2, 5, 3), 65535, np.uint16), 255),
        (np.full((2, 5), 1023, np.uint16), 255),
        (np.full((2, 5), 200, np.uint16), 200),
    ],
)
def test_pictures_of_any_depth_become_bytes(picture, white):
    pair = StereoPair.from_images(picture, picture, 2)
    assert pair.left.dtype == np.float32
    assert pair.left.ndim == 3
    np.testing.assert_allclose(pair.left, white, rtol=1e-6)


@pytest.mark.parametrize("largest", [0.5, 255.0, 4095.0])
def test_a_pair_keeps_its_numbers_and_nothing_made_of_it_is_scaled(largest):
    left = np.random.default_rng(0).uniform(0, largest, (9, 20, 3)).astype(np.float32)
    pair = StereoPair(left, left[::-1], 6)
    np.testing.assert_array_equal(pair.left, left)
    np.testing.assert_array_equal(pair.mirrored().right, left[:, ::-1])
    np.testing.assert_array_equal(pair.grey().left[..., 0], left.mean(axis=2))
    small = StereoPair(pair.left[::2, ::2], pair.right[::2, ::2], 3)
    np.testing.assert_array_equal(small.left, left[::2, ::2])


@pytest.mark.parametrize("make", [StereoPair, StereoPair.from_images], ids=["as they are", "from images"])
@pytest.mark.parametrize(
    ("left", "right", "reach", "said"),
    [
        (np.zeros((4, 9)), np.zeros((4, 8)), 2, "equal size"),
        (np.zeros((4, 9)), np.zeros((4, 9, 3)), 2, "equal size"),
        (np.full((4, 9), np.nan), np.zeros((4, 9)), 2, "NaN"),
        (np.full((4, 9), -1.0), np.zeros((4, 9)), 2, "numbers from -1"),
        (np.zeros((4, 9), bool), np.zeros((4, 9), bool), 2, "bool"),
        (np.zeros(9), np.zeros(9), 2, "shape"),
        (np.zeros((4, 9)), np.zeros((4, 9)), 9, "give 1 to 8"),
        (np.zeros((4, 9)), np.zeros((4, 9)), 0, "give 1 to 8"),
        (np.zeros((4, 9)), np.zeros((4, 9)), 2.5, "whole number"),
    ],
)
def test_what_is_no_pair_is_refused(left, right, reach, said, make):
    with pytest.raises(InputError, match=said):
        make(left, right, reach)


def test_a_mirror_of_a_mirror_is_the_pair():
    pair = StereoPair(texture((4, 9)) // 255, texture((4, 9), 1) // 255, 3)
    again = pair.mirrored().mirrored()
    np.testing.assert_array_equal(again.left, pair.left)
    np.testing.assert_array_equal(again.right, pair.right)
    assert pair.grey().left.shape == (4, 9, 1)


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
@pytest.mark.parametrize("channels", [1, 3])
def test_volumes_hold_what_the_cost_says_of_any_map(cost, channels):
    pair = StereoPair(texture((9, 20), 0, channels), texture((9, 20), 1, channels), 8)
    unary = cost(pair)
    labels = [0, 1.25, 3, 7.5]
    volume = sample(unary, pair, labels)
    assert volume.dtype == np.float32
    assert (volume >= 0).all()
    which = np.random.default_rng(2).integers(0, len(labels), pair.shape)
    mixed = unary(np.asarray(labels)[which])
    np.testing.assert_allclose(mixed, np.take_along_axis(volume, which[None], 0)[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
def test_the_true_shift_costs_nothing_and_outside_costs_what_is_said(cost):
    wide = texture((9, 30))
    pair = StereoPair(wide[:, 3:23], wide[:, 5:25], 6)
    found = cost(pair, outside=7.0)(np.full(pair.shape, 2.0))
    np.testing.assert_array_equal(found[:, :2], 7)
    np.testing.assert_allclose(found[:, 6:-4], 0, atol=1e-4)


def test_the_squared_cost_is_equation_9():
    pair = StereoPair(texture((5, 12), 0, 1), texture((5, 12), 1, 1), 4)
    by_hand = (pair.left[:, 4:, 0] - (0.5 * pair.right[:, 2:-2, 0] + 0.5 * pair.right[:, 1:-3, 0])) ** 2
    np.testing.assert_allclose(squared(pair)(np.full(pair.shape, 2.5))[:, 4:], by_hand, rtol=1e-4, atol=1e-2)


def test_birchfield_tomasi_forgives_half_a_pixel_and_is_truncated():
    ramp = np.broadcast_to(np.arange(0, 240, 12, dtype=np.float32), (3, 20))
    pair = StereoPair(ramp, ramp, 8)
    unary = birchfield_tomasi(pair)
    np.testing.assert_allclose(unary(np.full(pair.shape, 0.5))[:, 2:-2], 0, atol=1e-4)
    assert unary(np.full(pair.shape, 8.0)).max() == 400


def test_what_one_view_hides_is_found_and_filled_from_behind():
    truth = np.full((6, 30), 2.0, np.float32)
    truth[:, 12:20] = 6
    other = np.full((6, 30), 2.0, np.float32)
    other[:, 6:14] = 6
    bad = occlusion.lr_difference(truth, other) > 1
    expected = np.zeros_like(bad)
    expected[:, :2] = True
    expected[:, 8:12] = True
    np.testing.assert_array_equal(bad, expected)
    assert np.isinf(occlusion.lr_difference(truth, other)[:, :2]).all()
    np.testing.assert_array_equal(occlusion.fill_background(np.where(bad, 99, truth), bad), truth)


def test_rows_without_a_match_take_the_nearest_and_maps_without_any_stay():
    disparity = np.array([[1.0, 5.0], [9, 9], [3, 4]])
    bad = np.array([[False, False], [True, True], [True, False]])
    np.testing.assert_array_equal(occlusion.fill_background(disparity, bad), [[1, 5], [1, 5], [4, 4]])
    np.testing.assert_array_equal(occlusion.fill_background(disparity, np.ones_like(bad)), disparity)


def test_slanted_surfaces_go_on_where_they_are_hidden():
    rows, columns = np.mgrid[:40, :60]
    plane = (20 - 0.12 * columns + 0.02 * rows).astype(np.float32)
    guide = np.full((len(plane), 1, 60), 99, np.uint8)
    bad = np.zeros(plane.shape, bool)
    bad[:, :12] = bad[10:30, 30:38] = True
    hole = np.where(bad, np.float32(50), plane)
    slanted, level = (np.abs(occlusion.fill_background(hole, bad, g) - plane)[bad] for g in (guide, None))
    assert slanted.max() < 0.8
    assert level.max() > 1.3
    assert slanted.mean() < level.mean() / 2
    other = guide + (150 * (rows > 20)[:, None]).astype(np.uint8)
    np.testing.assert_allclose(
        occlusion.fill_background(np.where(rows > 20, hole + 9, hole), bad, other)[:21],
        occlusion.fill_background(hole, bad, other)[:21],
        atol=1e-3,
        err_msg="a surface of another colour and depth has no say",
    )


def test_pieces_are_what_hangs_together():
    disparity = np.full((12, 14), 5.0, np.float32)
    disparity[2:5, 2:5], disparity[7:10, 6:12] = 9.0, 2.0
    disparity[7:10, 8] = 2.9
    small = occlusion.speckles(disparity, 10)
    assert small[2:5, 2:5].all()
    assert small.sum() == 9
    assert not occlusion.speckles(disparity, 9).any()


def test_edges_are_where_a_window_holds_a_step():
    disparity = np.zeros((9, 12), np.float32)
    disparity[:, 6:] = 1.5
    assert (np.flatnonzero(occlusion.near_edges(disparity, 2)[4]) == [4, 5, 6, 7]).all()
    assert not occlusion.near_edges(disparity / 2, 2).any()


def test_the_weighted_median_is_that_of_its_definition():
    rng = np.random.default_rng(0)
    guide, disparity = texture((11, 13)), (rng.integers(0, 20, (11, 13)) / 2).astype(np.float32)
    where = rng.random((11, 13)) < 0.4
    found = occlusion.weighted_median(disparity, byte_rows(guide), where, radius=2, colour=60.0)
    np.testing.assert_array_equal(found[~where], disparity[~where])
    for y, x in np.argwhere(where):
        window = slice(max(y - 2, 0), y + 3), slice(max(x - 2, 0), x + 3)
        weight = np.exp(-((guide[window].astype(float) - guide[y, x]) ** 2).sum(-1) / (2 * 60**2)).ravel()
        order = np.argsort(disparity[window], axis=None)
        total = weight[order].cumsum()
        assert found[y, x] == disparity[window].ravel()[order][np.searchsorted(total, total[-1] / 2)]


def test_match_finds_a_square_before_a_wall():
    left, right, truth = step_scene()
    found = match(left, right, max_disparity=14)
    assert bad_pixels(found.disparity, truth, 1) < 0.05
    assert found.disparity.dtype == found.variance.dtype == np.float32
    assert set(np.unique(found.origin)) == {Origin.MEASURED, Origin.FILLED}
    hidden = found.origin == Origin.FILLED
    assert hidden[8:22, 25:29].mean() > 0.8, "beside the square, the right view does not show the wall"
    assert np.median(found.variance[hidden]) > 3 * np.median(found.variance[~hidden])
    assert np.isfinite(found.variance).all()
    assert (found.variance > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["winner_takes_all", "semi_global"])
def test_one_thread_is_many_and_rounds_with_a_belief_keep_the_scene(solver):
    left, right, truth = step_scene(seed=4)
    one, two = (match(left, right, max_disparity=14, solver=solver, threads=n, rounds=1) for n in (1, 2))
    np.testing.assert_array_equal(one.disparity, two.disparity)
    np.testing.assert_allclose(one.variance, two.variance, rtol=1e-4)
    assert bad_pixels(one.disparity, truth, 1) < 0.06


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["graph_cut", "second_order"])
def test_solvers_that_cut_match_too(solver):
    if solver == "second_order":
        pytest.importorskip("cv2")
    left, right, truth = step_scene(seed=5)
    found = match(left, right, max_disparity=12, solver=solver)
    assert bad_pixels(found.disparity, truth, 1) < 0.06


@pytest.mark.slow
def test_a_slow_solver_tells_its_steps_within_a_stage():
    pytest.importorskip("cv2")
    left, right, _ = step_scene(shape=(30, 60))
    told = list(stages(StereoPair(left, right, 12), solver="second_order"))
    steps = [stage.description for stage in told if stage.done == 1][1:]
    assert steps[0].startswith("left view, 1 of ")
    assert any(step.startswith("right view, ") for step in steps)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [0, 2])
def test_every_stage_says_how_many_are_done_and_how_many_there_are(rounds):
    left, right, _ = step_scene(shape=(30, 60))
    told = list(stages(StereoPair(left, right, 12), solver="winner_takes_all", rounds=rounds))
    assert [stage.done for stage in told] == list(range(len(told)))
    assert {stage.total for stage in told} == {len(told) - 1} == {3 + rounds}
    assert [stage.result is not None for stage in told] == [False] * (len(told) - 1) + [True]


def test_the_depth_of_the_pictures_does_not_matter():
    left, right, _ = step_scene(seed=6)
    plain = match(left, right, max_disparity=12)
    for convert in (lambda v: v.astype(np.uint16) * 257, lambda v: v / 255, lambda v: v.astype(np.float32)):
        same = match(convert(left), convert(right), max_disparity=12)
        assert (np.abs(same.disparity - plain.disparity) > 0.01).mean() < 0.01


def test_the_variance_is_fitted_to_the_features_it_is_computed_from():
    left, right, _ = step_scene(seed=7)
    found = match(left, right, max_disparity=12, threads=1)
    evidence = match_evidence(StereoPair(left, right, 12))
    weights = load_fitted("stereo_variance").arrays["weights"]
    np.testing.assert_array_equal(evidence.disparity, found.disparity)
    columns = np.stack([np.broadcast_to(column, evidence.disparity.shape) for column in features(evidence)])
    matched, filled = np.exp(np.tensordot(weights, columns, 1))
    expected = bounded(np.where(evidence.unmatched, filled, matched), 12)
    np.testing.assert_allclose(found.variance, expected, rtol=1e-4)


@pytest.mark.parametrize("solver", ["semi_global", "winner_takes_all"])
def test_no_variance_is_beyond_that_of_the_range(solver):
    noise = [np.random.default_rng(seed).integers(0, 256, (30, 60), np.uint8) for seed in (0, 1)]
    with pytest.warns(InputWarning):
        found = match(*noise, max_disparity=20, solver=solver)
    assert 1 < found.variance.max() <= 21**2 / 12


def test_swapped_and_flat_views_and_other_mistakes_are_said():
    left, right, _ = step_scene(shape=(40, 90))
    assert not looks_swapped(StereoPair(left, right, 14))
    with pytest.raises(InputError, match="exchange left and right"):
        match(right, left, max_disparity=14)
    with pytest.raises(InputError, match="nothing to match"):
        match(np.full_like(left, 9), right, max_disparity=14)
    usual: dict[str, Any] = {"max_disparity": 14}
    wishes: list[dict[str, Any]] = [{"rounds": -1}, {"threads": 0}, {"solver": "magic"}, {"max_disparity": 90}]
    for wish in wishes:
        with pytest.raises(InputError):
            match(left, right, **(usual | wish))


@pytest.mark.slow
def test_a_volume_beyond_memory_is_refused_before_it_is_made():
    view = np.zeros((3000, 4000), np.uint8)
    view[0, 0] = 1
    with pytest.raises(InputError, match="GB"):
        match(view, view, max_disparity=500, solver="winner_takes_all")
    with pytest.raises(InputError, match="GB"):
        match(view, view, max_disparity=500, rounds=1)


def test_opencv_is_a_peer():
    pytest.importorskip("cv2")
    left, right, truth = step_scene()
    pair = StereoPair(left, right, 14)
    for matcher in (opencv.filled, opencv.filtered):
        found = matcher(pair)
        assert found.shape == truth.shape
        assert np.isfinite(found).all()
        assert bad_pixels(found, truth, 1) < 0.35
    assert np.nanmin(opencv.block_matching(pair.grey())) >= 0


@pytest.mark.parametrize("shift", [5, 20, 37])
def test_opencv_searches_the_whole_range(rng, shift):
    pytest.importorskip("cv2")
    wall = rng.integers(0, 255, (40, 140)).astype(np.uint8)
    pair = StereoPair(wall[:, :100], wall[:, shift : shift + 100], 40)
    assert np.median(opencv.filled(pair)) == pytest.approx(shift, abs=0.1)


def test_opencv_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(InputError, match=r"pip install 'sparsedepth\[stereo\]'"):
        opencv.filled(StereoPair(np.zeros((4, 9)), np.zeros((4, 9)), 2))


def test_the_motorcycle_pair_has_the_range_of_its_truth():
    pair = motorcycle_pair()
    assert pair.shape == (500, 741)
    assert 55 < pair.max_disparity < 70


@pytest.mark.usefixtures("real_data")
def test_scenes_to_choose_on_and_to_test_on():
    assert "Art" in middlebury.scene_names(2005)
    for scene in (middlebury.stereo_pair(2005, "Reindeer"), middlebury.benchmark_pair("Tsukuba")):
        assert scene.pair.shape == scene.disparity.shape
        assert (scene.discontinuous <= scene.unoccluded).all()
        assert (scene.unoccluded <= scene.evaluated).all()
        assert 0.6 < scene.unoccluded.mean() < 1
        assert np.nanmax(scene.disparity) <= scene.pair.max_disparity
    with pytest.raises(InputError, match="choose one of"):
        middlebury.stereo_pair(2005, "Moon")


@pytest.mark.slow
@pytest.mark.usefixtures("real_data")
def test_a_real_scene_and_how_its_variance_ranks_the_errors():
    """Reindeer, on which the settings were chosen with five others."""
    scene = middlebury.stereo_pair(2005, "Reindeer")
    pair = scene.pair
    found = match(pair.left, pair.right, max_disparity=pair.max_disparity)
    assert bad_pixels(found.disparity, scene.disparity, 1) < 0.075
    error = found.disparity - scene.disparity

    def area(variance):
        curve = sparsification(error, variance)
        return np.trapezoid(curve.by_variance, curve.share)

    assert area(found.variance) < 0.5
    assert area(found.variance) < area(local_variance(found.disparity.astype(np.float64), 5))
    assert 0.2 < calibration(error, found.variance).overall < 5

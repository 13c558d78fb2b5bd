"""Formulas of matching, pixel by pixel: costs, weights, planes, features, warnings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsedepth import Belief, InputError, Match, Origin, StereoPair
from sparsedepth.stereo.ad_census import AdCensus
from sparsedepth.stereo.calibration import StereoCalibration
from sparsedepth.stereo.costs import LOG_2, photo_consistency, squared
from sparsedepth.stereo.occlusion import fill_background
from sparsedepth.stereo.opencv import mean_shift_segments
from sparsedepth.stereo.prior import Feedback, data_deviation, with_belief
from sparsedepth.stereo.proposals import level, planes, random_map, smoothed
from sparsedepth.stereo.solvers.graph_cut import energy, improve, potts_weights, solve
from sparsedepth.stereo.solvers.second_order import energy_of
from sparsedepth.stereo.solvers.semi_global import MAX_PATH, _scale
from sparsedepth.stereo.solvers.winner_takes_all import winner
from sparsedepth.stereo.variance import FEATURES, Evidence, bounded, features
from sparsedepth.stereo.view_order import reduced
from sparsedepth.stereo.view_warnings import LIMITS, _least, pair_warnings


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def pair_of(rng, shape=(7, 20), channels=3):
    left, right = rng.uniform(0, 255, (2, *shape, channels)).astype(np.float32)
    return StereoPair(left, right, 6)


def seen_at(view, disparity):
    """A view at x - disparity, between pixels by linear interpolation, beyond its edges as at them."""
    found, columns = np.empty(view.shape), np.arange(view.shape[1])
    for y, channel in np.ndindex(view.shape[0], view.shape[2]):
        found[y, :, channel] = np.interp(columns - disparity[y], columns, view[y, :, channel])
    return found


DISPARITIES = {
    "none": 0.0, "whole": 3.0, "between": 2.3, "behind": -1.7, "whole behind": -2.0, "beyond": 40.0, "far": -40.5
}  # fmt: skip


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", [*DISPARITIES, "map"])
def test_the_squared_cost_is_that_of_the_interpolated_view(rng, name, channels):
    pair = pair_of(rng, channels=channels)
    disparity = rng.uniform(-3, 23, pair.shape) if name == "map" else np.full(pair.shape, DISPARITIES[name])
    expected = ((pair.left - seen_at(pair.right, disparity)) ** 2).mean(2)
    assert_allclose(squared(pair)(disparity), expected, rtol=1e-3, atol=0.05)
    photo = photo_consistency(pair, spread=5000.0, outside=None)(disparity)
    assert_allclose(photo, LOG_2 - np.log1p(np.exp(-expected / 5000)), atol=1e-4)


@pytest.mark.parametrize("disparity", [-0.5, 0.0, 0.25, 3.0])
def test_matches_outside_of_the_other_view_cost_what_is_said(rng, disparity):
    pair = pair_of(rng)
    found = squared(pair, outside=-1.0)(np.full(pair.shape, disparity, np.float32))
    place = np.arange(20) - disparity
    assert_array_equal(found[0] == -1, (place < 0) | (place > 19))


def test_a_jump_costs_more_between_pixels_that_look_alike(rng):
    pair, disparity = pair_of(rng), rng.integers(0, 3, (7, 20)).astype(np.float32)
    right, down = (each.reshape(7, 20) for each in potts_weights(pair, 7.0, 40.0))
    grey, total = pair.left.mean(2), 0.0
    for y, x in np.ndindex(7, 20):
        for weight, (v, w) in ((right, (y, x + 1)), (down, (y + 1, x))):
            if v == 7 or w == 20:
                assert weight[y, x] == 0
                continue
            expected = 14 if abs(grey[v, w] - grey[y, x]) < 40 else 7
            assert weight[y, x] == expected
            total += expected * (disparity[v, w] != disparity[y, x])
    assert energy(lambda d: d, pair, disparity, potts=7.0, alike=40.0) == pytest.approx(total + disparity.sum())


@pytest.mark.parametrize("labels", [1, 2, 3, 9])
def test_the_winner_is_moved_to_the_least_of_its_parabola(rng, labels):
    volume = rng.integers(0, 6, (labels, 12, 30)).astype(np.float32)
    found = winner(volume)
    for y, x in np.ndindex(12, 30):
        costs, best = volume[:, y, x], int(volume[:, y, x].argmin())
        expected = float(best)
        if 0 < best < labels - 1:
            below, here, above = costs[best - 1 : best + 2]
            expected += (below - above) / (2 * (below - 2 * here + above)) if below + above > 2 * here else 0
        assert found[y, x] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("most", [0.3, 1.0, 2.0, 3.0, 8191.0, 20000.0])
def test_costs_become_whole_numbers_by_the_largest_power_of_two_that_fits(most):
    scale = _scale(most)
    assert scale * most <= MAX_PATH < 2 * scale * most
    assert np.log2(scale) == round(np.log2(scale))


def test_blocks_of_a_view_are_averaged(rng):
    view = rng.random((11, 17, 3)).astype(np.float32)
    expected = view[:9, :15].reshape(3, 3, 5, 3, 3).mean(axis=(1, 3))
    assert_allclose(reduced(view, 3), expected, rtol=1e-5)


def test_smoothing_proposes_the_mean_of_both_neighbours(rng):
    disparity = rng.random((8, 9)).astype(np.float32)
    across, down = (smoothed(disparity, vertical=vertical) for vertical in (False, True))
    assert_allclose(across[:, 1:-1], (disparity[:, :-2] + disparity[:, 2:]) / 2, rtol=1e-6)
    assert_allclose(down[1:-1], (disparity[:-2] + disparity[2:]) / 2, rtol=1e-6)
    assert_array_equal(across[:, [0, -1]], disparity[:, [0, -1]])
    assert_array_equal(down[[0, -1]], disparity[[0, -1]])


def test_random_proposals_lie_within_the_range(rng):
    pair = pair_of(rng, (40, 50))
    found = random_map(pair, rng)
    assert 0 <= found.min() < 0.1
    assert 5.9 < found.max() <= 6
    everywhere = [level(pair, rng)[0, 0] for _ in range(300)]
    assert 0 <= min(everywhere) < 0.2
    assert 5.8 < max(everywhere) <= 6


@pytest.mark.parametrize("slope", [0.5, -0.85, 0.95])
@pytest.mark.parametrize("down", [False, True])
def test_segments_become_their_planes_unless_these_are_too_steep(rng, slope, down):
    rows, columns = np.mgrid[:24, :30]
    segments = (columns >= 15).astype(np.int32)
    along = rows if down else columns - 7
    disparity = np.where(segments == 0, 20 + slope * along + 0.05 * rows, 8 - 0.2 * columns + 0.1 * rows)
    trusted = rng.random(disparity.shape) < 0.6
    noisy = np.where(rng.random(disparity.shape) < 0.2, rng.uniform(0, 40, disparity.shape), disparity)
    found = planes(noisy.astype(np.float32), trusted, segments, 40, rng)
    assert_allclose(found[:, 15:], np.clip(disparity[:, 15:], 0, 40), atol=0.05)
    if abs(slope) + 0.05 * down < 0.9:
        assert_allclose(found[:, :15], disparity[:, :15], atol=0.05)
    else:
        assert np.abs(np.diff(found[:, :15], axis=0 if down else 1)).max() < 0.9


def test_few_trusted_pixels_give_their_median(rng):
    segments = np.repeat(np.arange(4, dtype=np.int32), 5)[None] * np.ones((4, 1), np.int32)
    disparity, trusted = rng.uniform(0, 9, (4, 20)).astype(np.float32), np.zeros((4, 20), bool)
    trusted[0, 0] = trusted[1, 6] = trusted[2, 7] = trusted[:, 15:] = True
    found = planes(disparity, trusted, segments, 9, rng)
    assert_allclose(found[:, :5], disparity[0, 0])
    assert_allclose(found[:, 5:10], max(disparity[1, 6], disparity[2, 7]))
    assert_allclose(found[:, 10:15], np.median(disparity[trusted]), rtol=1e-6)


def test_rows_without_good_pixels_are_those_of_the_nearest_row(rng):
    disparity, bad = rng.random((9, 6)).astype(np.float32), np.zeros((9, 6), bool)
    bad[[0, 1, 4, 5, 8]] = True
    found = fill_background(disparity, bad)
    assert_array_equal(found[[0, 1, 8]], disparity[[2, 2, 7]])
    assert_array_equal(found[[4, 5]], disparity[[3, 6]])


def box(values, side):
    """The mean over a window; the map goes on as its edge."""
    padded = np.pad(values.astype(float), side // 2, mode="edge")
    return np.lib.stride_tricks.sliding_window_view(padded, (side, side)).mean(axis=(2, 3))


def test_features_of_the_variance_are_their_definitions(rng):
    shape = (24, 34)
    disparity, solved = rng.uniform(0, 30, (2, *shape)).astype(np.float32)
    unmatched = rng.random(shape) < 0.9
    unmatched[8:16, 10:22] = True
    left = rng.uniform(0, 255, (*shape, 3)).astype(np.float32)
    cost = rng.uniform(0, 2, shape).astype(np.float32)
    found: dict[str, Any] = dict(
        zip(FEATURES, features(Evidence(left, 32, disparity, solved, cost, unmatched)), strict=True)
    )
    moved = np.minimum(np.abs(disparity.astype(float) - solved), 20)
    apart = np.argwhere(np.ones(shape, bool))[:, None] - np.argwhere(~unmatched)
    brightness = left.astype(float).mean(2)
    change = np.abs(np.diff(brightness, axis=1, prepend=brightness[:, :1]))
    mask = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]])
    bends = (np.lib.stride_tricks.sliding_window_view(brightness, (3, 3)) * mask).sum(axis=(2, 3))[::3]
    expected = {
        "constant": 1.0,
        "log_spread": np.log(0.05 + box(disparity.astype(float) ** 2, 5) - box(disparity, 5) ** 2),
        "log_wide_spread": np.log(0.05 + box(disparity.astype(float) ** 2, 15) - box(disparity, 15) ** 2),
        "match_cost": box(cost, 5),
        "wide_match_cost": box(cost, 15),
        "log_moved": np.log(0.05 + moved**2),
        "log_distance": np.log1p(np.abs(apart).max(2).min(1).reshape(shape)),
        "unmatched_near": box(unmatched, 9),
        "unmatched_wide": box(unmatched, 31),
        "log_texture": np.log1p(box(change, 5)),
        "relative_disparity": disparity / 32,
        "log_range": np.log(32),
        "log_detail": np.log(1 / 12 + (np.median(np.abs(bends)) / 0.6745 / 6) ** 2),
    }
    for name, values in expected.items():
        assert_allclose(found[name], values, rtol=2e-4, atol=1e-4, err_msg=name)


def test_a_variance_is_bounded_by_half_of_each_where_both_are_equal():
    most = 60**2 / 12
    assert_allclose(bounded(np.array([most, 1e-6, 1e12]), 59), [most / 2, 1e-6, most], rtol=1e-6)


def test_the_deviation_of_data_is_the_root_mean_square_within_one_sigma(rng):
    belief = Belief(np.array([[3.0, 4.0]]), np.array([[4.0, 0.01]]))
    found = data_deviation(lambda disparity: disparity**2, belief, Feedback(least_deviation=0.5))
    for mean, sigma, ours in ((3.0, 2.0, found[0, 0]), (4.0, 0.5, found[0, 1])):
        places = mean + sigma * np.linspace(-1, 1, 9)
        assert ours == pytest.approx(np.sqrt(np.mean((places**2 - mean**2) ** 2)), rel=1e-5)


def test_hidden_pixels_cost_at_least_their_price_and_their_prior(rng):
    pair = pair_of(rng, (12, 20))
    data, belief = photo_consistency(pair), Belief(np.full((12, 20), 2.0), np.full((12, 20), 1.0))
    disparity, told = np.full((12, 20), 3.0, np.float32), with_belief(data, belief, Feedback(prior=0.4))
    seen, hidden = energy_of(data, pair).costs(disparity)
    assert_array_equal(seen, data(disparity))
    assert_array_equal(hidden, np.maximum(seen, np.float32(LOG_2 + 0.01)))
    seen, hidden = energy_of(told, pair).costs(disparity)
    assert_allclose(hidden - seen, told.weight * np.maximum(LOG_2 + 0.01 - data(disparity), 0), atol=1e-6)
    assert_allclose(seen, told(disparity))


def test_bends_within_a_segment_cost_more(rng):
    left = np.zeros((12, 20, 3), np.float32)
    left[:, 10:] = 200
    energy_ = energy_of(lambda d: d, StereoPair(left, left, 4), together=5.0, apart=1.0)
    rows, columns = energy_.along_rows, energy_.along_columns
    assert rows.shape == (12, 18)
    assert columns.shape == (10, 20)
    assert (rows[:, 8:10] == 1).all()  # both triples that the edge divides
    assert (rows[:, [0, 1, 2, -2, -1]] == 5).all()
    assert (columns[:, [0, 1, 2, -2, -1]] == 5).all()


@pytest.mark.parametrize("place", [1.0, 2.25, 3.5, 6.9])
def test_the_least_of_two_lines_is_where_they_meet(place):
    costs = 3 * np.abs(np.arange(9) - place)
    found, slope = _least(costs)
    assert found == pytest.approx(place)
    assert slope == pytest.approx(max(costs[round(place) - 1], costs[round(place) + 1]) - costs[round(place)])
    assert _least(np.zeros(9)) == (0.0, 0.0)
    assert _least(np.arange(9.0)) == (0.0, 1.0)
    assert _least(2 * np.arange(9.0)[::-1]) == (8.0, 2.0)


def warned(rng, disparity, unmatched, limits=LIMITS):
    view = rng.uniform(0, 255, (60, 80, 3)).astype(np.float32)
    return pair_warnings(AdCensus.of(StereoPair(view, view, 8)), disparity, unmatched, 8, limits)


def test_a_pair_is_warned_of_beyond_its_limits_and_not_at_them(rng):
    limits = replace(LIMITS, max_share_at_end=0.25, max_filled=0.5)
    disparity, unmatched = np.zeros((60, 80)), np.zeros((60, 80), bool)
    assert warned(rng, disparity, unmatched, limits) == ()
    disparity[:15], unmatched[-30:] = 7.25, True
    disparity[:15, 40:] = 0
    assert warned(rng, disparity, unmatched, limits) == ()
    disparity[0, 41] = 7.25
    (said,) = warned(rng, disparity, unmatched, limits)
    assert "25 % of the matched pixels" in said
    disparity[:15] = 7.24
    unmatched[0, 0] = True
    (said,) = warned(rng, disparity, unmatched, limits)
    assert "50 % of the pixels did not match" in said


def test_offsets_come_from_the_principal_points(tmp_path):
    text = "cam0=[1000 0 300; 0 1000 200; 0 0 1]\ncam1=[1000 0 312.5; 0 1000 200; 0 0 1]\nbaseline=150\nwidth=640\n"
    (tmp_path / "calib.txt").write_text(text)
    found = StereoCalibration.from_file(tmp_path / "calib.txt", shape=(240, 320))
    assert found == StereoCalibration(500.0, 0.15, 6.25)
    with pytest.raises(InputError):
        StereoCalibration(500.0, 0.0)


def test_the_horizon_is_refused(rng):
    disparity = np.array([[-5.0, -4.0, -3.0, 6.0]], np.float32)
    found = StereoCalibration(1000.0, 0.2, 4.0).depth(
        Match(disparity, np.full((1, 4), 0.5), np.zeros((1, 4), np.uint8))
    )
    assert_allclose(found.depth, [[np.nan, np.nan, 200.0, 20.0]])
    assert np.isinf(found.variance[0, :2]).all()
    # Distances 1 and 10; only 10 is told from infinity: half normal, half mistaken for it, at a tenth of the depth.
    assert_allclose(found.variance[0, 2], 200**2 * (0.25 * 1.75 + 0.25 * 0.9**2 / 9**2), rtol=1e-6)
    assert_allclose(found.variance[0, 3], 20**2 * 0.005 * 1.015, rtol=1e-6)
    assert_array_equal(found.origin, [[Origin.REFUSED, Origin.REFUSED, 0, 0]])


def test_segments_are_numbered_from_zero_on(rng):
    left = np.zeros((12, 40, 3), np.float32)
    left[:, 20:] = 200
    found = mean_shift_segments(left)
    assert_array_equal(np.unique(found), np.arange(found.max() + 1))
    assert found[0, 0] != found[0, -1]


@pytest.mark.parametrize("move", ["swap", "expansion"])
@pytest.mark.parametrize("seed", range(6))
def test_a_map_that_no_move_improves_is_not_improved_by_starting_again(seed, move):
    rng = np.random.default_rng(seed)
    pair, volume = pair_of(rng, (8, 12)), rng.uniform(0, 30, (7, 8, 12)).astype(np.float32)

    def unary(disparity):
        return np.take_along_axis(volume, disparity.astype(int)[None], 0)[0]

    found = solve(unary, pair, None, rng, move=move, potts=6.0, cycles=50)
    (again,) = improve(unary, pair, found, rng, move=move, potts=6.0, cycles=50)
    assert again.changed == 0
    assert_array_equal(again.disparity, found)

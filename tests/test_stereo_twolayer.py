"""The two layers: without a belief nothing changes, with one the cost changes as Eq. 13 says."""

from __future__ import annotations

import numpy as np
import pytest

from sparsedepth.stereo import solvers
from sparsedepth.stereo.costs import COSTS, birchfield_tomasi, squared
from sparsedepth.stereo.occlusion import fill_along_colours, hidden_pixels
from sparsedepth.stereo.prior import NO_FEEDBACK, Feedback, data_deviation, data_weight, with_belief
from sparsedepth.stereo.rows import byte_rows
from sparsedepth.stereo.solvers import semi_global, winner_takes_all
from sparsedepth.stereo.twolayer import PAPER, Estimate, believe_nothing, two_layer
from sparsedepth.vocabulary import Belief, InputError, StereoPair

NOWHERE = Belief(np.full((12, 30), np.nan), np.full((12, 30), np.inf))


def pair(seed: int = 0) -> StereoPair:
    rng = np.random.default_rng(seed)
    right = rng.uniform(0, 255, (12, 30))
    return StereoPair(np.roll(right, 2, axis=1) + rng.uniform(0, 5, (12, 30)), right, 4)


def belief(seed: int = 1) -> Belief:
    rng = np.random.default_rng(seed)
    return Belief(rng.uniform(0, 4, (12, 30)), rng.uniform(0.01, 4, (12, 30)))


def somewhere(seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 4, (12, 30)).astype(np.float32)


@pytest.mark.parametrize("name", COSTS)
def test_without_prior_and_weighing_the_cost_is_the_plain_one_to_the_last_bit(name):
    cost = COSTS[name](pair())
    for told, feedback in ((belief(), NO_FEEDBACK), (NOWHERE, Feedback())):
        np.testing.assert_array_equal(with_belief(cost, told, feedback)(somewhere()), cost(somewhere()))


@pytest.mark.slow
@pytest.mark.parametrize("name", solvers.names())
def test_without_feedback_the_two_layers_are_the_plain_matcher(name):
    """A round is then a run from the map before, which solvers without chance cannot improve."""
    if name == "second_order":
        pytest.importorskip("cv2")
    solver = solvers.load(name)
    views, rng = pair(), np.random.default_rng(0)
    cost = solver.data_cost(views)
    plain = solver.solve(cost, views, np.zeros(views.shape, np.float32), rng)
    again = solver.solve(cost, views, plain, rng)
    first, second = two_layer(
        views, cost, solver.solve, lambda _: belief(), np.random.default_rng(0), rounds=1, feedback=NO_FEEDBACK
    )
    np.testing.assert_array_equal(first.disparity, plain)
    np.testing.assert_array_equal(second.disparity, again)
    if name != "second_order":
        assert (second.changed, second.energy) == (0, first.energy)


def costs_nothing(disparity):
    return np.zeros(np.shape(disparity), np.float32)


def test_the_prior_is_a_parabola_that_is_cut_off():
    told = Belief(np.full((12, 30), 2.0), np.full((12, 30), 4.0))
    unary = with_belief(costs_nothing, told, Feedback(prior=6.0, cap=3.0))
    for distance, price in ((0, 0), (1, 6 / 8), (2, 3), (100, 18)):
        np.testing.assert_allclose(unary(told.mean + distance), price, rtol=1e-6)


def test_a_sure_belief_is_not_surer_than_the_floor():
    sure, floored = (Belief(somewhere(), np.full((12, 30), v)) for v in (1e-8, 0.25))
    cost = birchfield_tomasi(pair())
    unaries = [with_belief(cost, told, Feedback(least_deviation=0.5))(somewhere(5)) for told in (sure, floored)]
    np.testing.assert_array_equal(unaries[0], unaries[1])


def test_data_count_less_where_they_vary_more_and_never_more_than_alone():
    cost, feedback = squared(pair()), Feedback(least_weight=0.1)
    weight, spread = data_weight(cost, belief(), feedback), data_deviation(cost, belief(), feedback)
    assert weight.min() >= np.float32(0.1)
    assert weight.max() == 1
    assert (weight == 1).mean() == pytest.approx(0.5, abs=0.02)
    assert (np.diff(weight.ravel()[np.argsort(spread.ravel())]) <= 0).all()


def test_the_cost_has_the_weighted_data_of_eq_14():
    cost, feedback = squared(pair()), Feedback(prior=0.0, least_weight=0.1)
    weight = data_weight(cost, belief(), feedback)
    assert (weight < 1).any()
    np.testing.assert_array_equal(with_belief(cost, belief(), feedback)(somewhere()), weight * cost(somewhere()))


def test_the_weight_has_no_unit():
    cost = squared(pair())
    weights = [data_weight(each, belief()) for each in (cost, lambda disparity: 1000 * cost(disparity))]
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-4)


def test_the_deviation_of_data_is_that_of_its_window():
    told = Belief(np.full((1, 1), 3.0), np.full((1, 1), 4.0))
    # The root mean square of nine steps from -1 to 1 is sqrt(5 / 12); two pixels of 5 each.
    assert data_deviation(lambda disparity: 5.0 * disparity, told)[0, 0] == pytest.approx(10 * np.sqrt(5 / 12))


def test_flat_views_weigh_nothing_and_divide_by_nothing():
    flat = StereoPair(np.full((12, 30), 9.0), np.full((12, 30), 9.0), 4)
    np.testing.assert_array_equal(data_weight(squared(flat), belief()), 1)


def test_a_belief_mends_what_the_data_leave_open():
    """A stripe without texture: the data say nothing, the belief says 2."""
    rng = np.random.default_rng(0)
    right = rng.uniform(0, 255, (12, 40))
    right[:, 15:25] = 100
    views = StereoPair(np.roll(right, 2, axis=1), right, 4)
    told = Belief(np.full(views.shape, 2.0), np.full(views.shape, 0.25))
    first, second = two_layer(
        views, squared(views), winner_takes_all.solve, lambda _: told, np.random.default_rng(0), rounds=1
    )
    assert (abs(first.disparity - 2) > 0.5)[:, 6:].any()
    assert (abs(second.disparity - 2) < 0.5)[:, 6:].all()
    assert second.changed > 0
    assert first.belief is None
    assert second.belief is told


def test_rounds_are_counted_and_a_first_map_is_taken():
    views, seen = pair(), []

    def believe(disparity):
        seen.append(disparity)
        return belief()

    known = np.ones(views.shape, np.float32)
    found = list(
        two_layer(views, squared(views), winner_takes_all.solve, believe, np.random.default_rng(0), first=known)
    )
    assert len(found) == 1 + PAPER.rounds == 1 + len(seen)
    assert seen[0] is known
    assert found[0].disparity is known
    assert all(isinstance(each, Estimate) and np.isfinite(each.energy) for each in found)


@pytest.mark.parametrize("wrong", [{"prior": -1}, {"cap": -1}, {"least_deviation": 0}, {"least_weight": 0}])
def test_what_cannot_act_is_refused(wrong):
    with pytest.raises(InputError, match="cannot act"):
        Feedback(**wrong)
    with pytest.raises(InputError, match="rounds"):
        next(two_layer(pair(), squared(pair()), winner_takes_all.solve, lambda _: NOWHERE, np.random.default_rng(0),
                       rounds=-1))  # fmt: skip


def slow_hidden(disparity: np.ndarray) -> np.ndarray:
    """A nearer pixel of the row lands within half a pixel of the same place, or the place is outside."""
    place = np.arange(disparity.shape[1], dtype=np.float32) - disparity
    same = np.abs(place[:, :, None] - place[:, None, :]) < 0.5
    nearer = disparity[:, None, :] > disparity[:, :, None]
    return (same & nearer).any(axis=2) | (place < 0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [(12, 30), (1, 9), (9, 1), (3, 2)])
def test_hidden_is_what_a_nearer_pixel_covers_and_what_lands_outside(seed, shape):
    disparity = np.rint(np.random.default_rng(seed).uniform(0, 18, shape)).astype(np.float32) / 3
    np.testing.assert_array_equal(hidden_pixels(disparity), slow_hidden(disparity))
    assert hidden_pixels(disparity).any()


def test_a_plane_hides_nothing_of_itself():
    np.testing.assert_array_equal(hidden_pixels(np.full((4, 20), 3.0, np.float32)), np.arange(20) < np.full((4, 1), 3))


HIDDEN = Feedback(prior=2.0, cap=3.0, least_deviation=1.0)


@pytest.mark.parametrize("name", COSTS)
@pytest.mark.parametrize("told", [belief(), NOWHERE])
def test_hidden_pixels_cost_the_distance_to_the_filled_map_and_nothing_else(name, told):
    cost, hidden = COSTS[name](pair()), np.random.default_rng(3).random((12, 30)) < 0.3
    filled, disparity = somewhere(7), somewhere()
    usual = with_belief(cost, told)
    unary = usual.where_hidden(hidden, filled, HIDDEN)
    assert (unary.weight[hidden] == 0).all()
    np.testing.assert_array_equal(unary(disparity)[~hidden], usual(disparity)[~hidden])
    for away, price in ((0, 0), (1, 1), (-1, 1), (2, 4), (50, 6)):
        np.testing.assert_allclose(unary(filled + away)[hidden], price, atol=1e-5)
    np.testing.assert_array_equal(unary.mean[hidden], filled[hidden])
    if told is NOWHERE:
        np.testing.assert_array_equal(unary.mean, filled)


def test_the_cap_of_visible_pixels_is_that_of_their_own_belief():
    far, hidden = belief().mean + 100, np.zeros((12, 30), bool)
    hidden[:, :5] = True
    unary = with_belief(costs_nothing, belief(), Feedback(prior=0.1, cap=3.0)).where_hidden(hidden, somewhere(), HIDDEN)
    np.testing.assert_allclose(unary(far), np.where(hidden, 6, 0.3), rtol=1e-6)


def near_and_far(near: int = 6, far: int = 2) -> tuple[StereoPair, np.ndarray]:
    """A square before a wall; what it hides in the right view lies to the left of it in the left one."""
    rng = np.random.default_rng(5)
    wall, square = rng.uniform(0, 120, (30, 80)), rng.uniform(140, 255, (14, 20))
    left, right, truth = wall[:, 10:70].copy(), wall[:, 10 + far : 70 + far].copy(), np.full((30, 60), float(far))
    left[8:22, 25:45], truth[8:22, 25:45] = square, near
    right[8:22, 25 - near : 45 - near] = square
    return StereoPair(left, right, 9), truth


def test_what_the_right_view_does_not_show_takes_the_disparity_behind_it():
    views, truth = near_and_far()
    first, second = two_layer(
        views, semi_global.data_cost(views), semi_global.solve, believe_nothing, np.random.default_rng(0), rounds=1,
        feedback=NO_FEEDBACK, hidden_feedback=semi_global.hidden_feedback, first=truth.astype(np.float32) + 0.1,
    )  # fmt: skip
    covered = hidden_pixels(truth.astype(np.float32))
    assert covered[8:22, 21:25].all()
    assert first.hidden is None
    assert second.hidden is not None
    assert (np.abs(second.disparity - truth) < 0.6)[second.hidden].mean() > 0.95


def test_where_nothing_is_hidden_the_loop_is_the_plain_matcher():
    left, right = np.random.default_rng(0).uniform(0, 255, (2, 12, 30))
    views = StereoPair(left, right, 4)
    level = np.zeros((12, 30), np.float32)
    runs = [
        list(two_layer(views, squared(views), winner_takes_all.solve, believe_nothing, np.random.default_rng(0),
                       rounds=1, feedback=NO_FEEDBACK, hidden_feedback=hidden, first=level))
        for hidden in (None, HIDDEN)
    ]  # fmt: skip
    assert runs[1][1].hidden is not None
    assert not runs[1][1].hidden.any()
    np.testing.assert_array_equal(runs[0][1].disparity, runs[1][1].disparity)


def test_the_belief_is_about_the_filled_map():
    views, truth = near_and_far()
    given, seen = truth.astype(np.float32), []

    def believe(disparity):
        seen.append(disparity)
        return believe_nothing(disparity)

    list(two_layer(views, squared(views), winner_takes_all.solve, believe, np.random.default_rng(0), rounds=1,
                   hidden_feedback=HIDDEN, first=given))  # fmt: skip
    hidden = hidden_pixels(given)
    np.testing.assert_array_equal(seen[0], fill_along_colours(given, hidden, byte_rows(views.left)))
    np.testing.assert_array_equal(seen[0][~hidden], given[~hidden])

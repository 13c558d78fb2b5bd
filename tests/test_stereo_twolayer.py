"""The two layers: without a belief nothing changes, with one the cost changes as Eq. 13 says."""

from __future__ import annotations

import numpy as np
import pytest

from sparsedepth.stereo import solvers
from sparsedepth.stereo.costs import COSTS, birchfield_tomasi, squared
from sparsedepth.stereo.prior import NO_FEEDBACK, Feedback, data_deviation, data_weight, with_belief
from sparsedepth.stereo.solvers import winner_takes_all
from sparsedepth.stereo.twolayer import PAPER, Estimate, two_layer
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


def test_the_prior_is_a_parabola_that_is_cut_off():
    told = Belief(np.full((12, 30), 2.0), np.full((12, 30), 4.0))
    nothing = lambda disparity: np.zeros(np.shape(disparity), np.float32)  # noqa: E731
    unary = with_belief(nothing, told, Feedback(prior=6.0, cap=3.0))
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


def test_the_weight_has_no_unit():
    cost = squared(pair())
    weights = [data_weight(each, belief()) for each in (cost, lambda disparity: 1000 * cost(disparity))]
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-4)


def test_the_deviation_of_data_is_that_of_its_window():
    told = Belief(np.full((1, 1), 3.0), np.full((1, 1), 4.0))
    slope = lambda disparity: 5.0 * disparity  # noqa: E731
    # The root mean square of nine steps from -1 to 1 is sqrt(5 / 12); two pixels of 5 each.
    assert data_deviation(slope, told)[0, 0] == pytest.approx(10 * np.sqrt(5 / 12))


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

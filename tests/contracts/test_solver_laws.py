"""What every solver of the middle layer promises, whatever its idea of smoothness."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparsedepth.stereo import solvers
from sparsedepth.stereo.costs import ad_census
from sparsedepth.stereo.solvers import semi_global, winner_takes_all
from sparsedepth.vocabulary import InputError, StereoPair

NEEDS = {"second_order": "cv2"}


@pytest.fixture(params=solvers.names())
def solver(request) -> solvers.Solver:
    if request.param in NEEDS:
        pytest.importorskip(NEEDS[request.param], reason=f"{request.param} needs {NEEDS[request.param]}")
    return solvers.load(request.param)


def texture(shape=(18, 40), seed=0, channels=3) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (*shape, channels), np.uint8)


def shifted(shift: int, max_disparity=6, seed=0) -> StereoPair:
    wide = texture((18, 50), seed)
    return StereoPair(wide[:, 5:45], wide[:, 5 + shift : 45 + shift], max_disparity)


def solved(solver: solvers.Solver, pair: StereoPair, seed=0) -> np.ndarray:
    start = np.zeros(pair.shape, np.float32)
    return solver.solve(solver.data_cost(pair), pair, start, np.random.default_rng(seed))


def test_views_of_one_colour_are_far_away(solver):
    flat: Any = np.full((9, 14), 77, np.uint8)
    np.testing.assert_array_equal(solved(solver, StereoPair(flat, flat, 4)), 0)


def test_equal_views_have_no_disparity(solver):
    picture = texture()
    np.testing.assert_allclose(solved(solver, StereoPair(picture, picture, 6)), 0, atol=1e-6)


@pytest.mark.parametrize("shift", [1, 3, 5])
def test_a_shift_is_found(solver, shift):
    inner = solved(solver, shifted(shift))[:, 10:-5]
    assert (np.abs(inner - shift) <= 0.5).mean() > 0.99


def test_disparities_stay_within_the_range(solver):
    left, right = texture(seed=1), texture(seed=2)
    found = solved(solver, StereoPair(left, right, 6))
    assert found.shape == left.shape[:2]
    assert np.isfinite(found).all()
    assert found.min() >= 0
    assert found.max() <= 6


def test_equal_seeds_give_equal_bits(solver):
    pair = StereoPair(texture(seed=3), texture(seed=4), 5)
    np.testing.assert_array_equal(solved(solver, pair, seed=7), solved(solver, pair, seed=7))


def test_the_range_may_be_one_pixel(solver):
    found = solved(solver, shifted(1, max_disparity=1))
    assert (np.rint(found[:, 10:-5]) == 1).mean() > 0.98


def test_a_unary_is_followed(solver):
    """What a belief says of pixels without data decides them."""
    pair = shifted(2)
    wanted = np.full(pair.shape, 4.0)
    wanted[:, 20:] = 1
    found = solver.solve(lambda d: 1000 * np.abs(d - wanted), pair, np.zeros(pair.shape), np.random.default_rng(0))
    np.testing.assert_allclose(found, wanted, atol=0.5)


def test_an_unknown_solver_lists_the_known_ones():
    with pytest.raises(InputError, match="semi_global"):
        solvers.load("magic")


def test_semi_global_without_penalties_is_winner_takes_all():
    pair = StereoPair(texture(seed=5), texture(seed=6), 6)
    rng = np.random.default_rng(0)
    free = semi_global.solve(ad_census(pair), pair, None, rng, step_penalty=0, jump_penalty=0)
    plain = winner_takes_all.solve(ad_census(pair), pair, None, rng)
    np.testing.assert_allclose(free, plain, atol=1e-4)


def test_the_winner_is_the_vertex_of_a_parabola():
    labels = np.arange(7.0)[:, None, None]
    vertices = np.array([[0.0, 2.3, 3.5, 4.8, 6.0]])
    np.testing.assert_allclose(winner_takes_all.winner((labels - vertices) ** 2), vertices, atol=1e-6)
    np.testing.assert_array_equal(winner_takes_all.winner(np.array([[[3.0]], [[1.0]]])), 1)

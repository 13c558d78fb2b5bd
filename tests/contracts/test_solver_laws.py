"""What every solver of the middle layer promises, whatever its idea of smoothness."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from sparsedepth.stereo import solvers
from sparsedepth.stereo.costs import ad_census, sample
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


@pytest.mark.parametrize("vertical", [False, True])
def test_two_paths_find_the_cheapest_labelling_of_a_line(vertical):
    """Paths from both ends, less the pixel's own cost, are the least energy of all labellings through each label."""
    rng = np.random.default_rng(3)
    n, n_labels, small, large = 5, 4, 0.3, 0.7
    line = rng.random((n_labels, 1, n)).astype(np.float32)
    grey = np.zeros((1, n))
    pair = StereoPair(grey, grey, n_labels - 1)
    if vertical:
        line = line.swapaxes(1, 2)
        pair = StereoPair(np.zeros((n, n)), np.zeros((n, n)), n_labels - 1)
        line = np.broadcast_to(line, (n_labels, n, n)).copy()
    ways = ((1, 0), (-1, 0)) if vertical else ((0, 1), (0, -1))
    paths = semi_global.aggregate(line, pair, small, large, 12.0, ways)
    found, costs = (array[:, :, 0] if vertical else array[:, 0] for array in (paths - line, line))
    best = np.full((n_labels, n), np.inf)
    for labels in product(range(n_labels), repeat=n):
        steps = np.abs(np.diff(labels))
        energy = costs[labels, range(n)].sum() + np.where(steps == 1, small, np.where(steps > 1, large, 0)).sum()
        best[labels, range(n)] = np.minimum(best[labels, range(n)], energy)
    np.testing.assert_allclose(found - found.min(axis=0), best - best.min(axis=0), atol=1e-5)


def test_penalties_shrink_where_colours_jump_in_one_or_both_views():
    """Against the rule written out pixel by pixel, along a diagonal and a row."""
    pair = StereoPair(texture((4, 9), 8), texture((4, 9), 9), 3)
    volume = sample(ad_census(pair), pair, range(4))
    for dy, dx in ((1, 1), (-1, 1), (1, 0), (0, 1), (0, -1), (1, -1)):
        fast = semi_global.aggregate(volume, pair, 1.0, 4.0, 90.0, [(dy, dx)])
        np.testing.assert_allclose(fast, slow_path(volume, pair, dy, dx, 90.0), atol=1e-5)


def slow_path(volume: np.ndarray, pair: StereoPair, dy: int, dx: int, jump: float) -> np.ndarray:
    n_labels, height, width = volume.shape
    paths = volume.copy()
    rows, columns = range(height)[:: dy or 1], range(width)[:: dx or 1]
    for y, x in product(rows, columns):
        before = y - dy, x - dx
        if not (0 <= before[0] < height and 0 <= before[1] < width):
            continue
        previous = paths[:, before[0], before[1]]
        for d in range(n_labels):
            there = max(x - d, 0)
            past = min(max(there - dx, 0), width - 1)
            edges = (np.abs(pair.left[y, x] - pair.left[before]).max() > jump) + int(
                np.abs(pair.right[y, there] - pair.right[before[0], past]).max() > jump
            )
            relief = semi_global.PENALTY_FACTORS[edges]
            options = [previous[d], previous.min() + 4 * relief]
            options += [previous[e] + relief for e in (d - 1, d + 1) if 0 <= e < n_labels]
            paths[d, y, x] += min(options) - previous.min()
    return paths

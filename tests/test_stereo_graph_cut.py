"""Graph cuts: a move is the best of its kind, and no cycle makes a map worse."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from sparsedepth.stereo.costs import squared
from sparsedepth.stereo.cuts import Network, minimum_cut
from sparsedepth.stereo.solvers import graph_cut
from sparsedepth.stereo.solvers.graph_cut import MOVES, Grid, within
from sparsedepth.vocabulary import InputError, StereoPair

SHAPES = [(1, 1), (1, 3), (3, 1), (2, 3), (3, 3)]


def random_grid(seed: int, shape: tuple[int, int], n_labels: int = 3) -> Grid:
    rng = np.random.default_rng(seed)
    right, down = rng.integers(1, 9, (2, *shape)).astype(float)
    right[:, -1] = down[-1] = 0
    volume = rng.integers(0, 20, (n_labels, *shape)).astype(np.float32)
    labels = rng.integers(0, n_labels, shape).astype(np.int16)
    return Grid.of(volume, n_labels, (right.ravel(), down.ravel()), labels)


def plain_energy(grid: Grid, labels: np.ndarray, shape: tuple[int, int]) -> float:
    """Pixel by pixel."""
    total = 0.0
    right, down = (within(weight, shape) for weight in (grid.right, grid.down))
    for y, x in product(*map(range, shape)):
        total += within(grid.costs, shape)[labels[y, x], y, x]
        if x + 1 < shape[1] and labels[y, x] != labels[y, x + 1]:
            total += right[y, x]
        if y + 1 < shape[0] and labels[y, x] != labels[y + 1, x]:
            total += down[y, x]
    return float(total)


def within_reach(labels: np.ndarray, move: str, which: tuple[int, ...]):
    """Every labelling that the move may choose."""
    choices = {
        "swap": lambda label: which if label in which else (label,),
        "expansion": lambda label: {label, *which},
    }[move]
    for chosen in product(*(choices(label) for label in labels.ravel())):
        yield np.array(chosen).reshape(labels.shape)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("move", "which"), [("swap", (0, 2)), ("swap", (1, 2)), ("expansion", (1,))])
def test_a_move_is_the_best_within_its_reach(move, which, shape):
    for seed in range(8):
        grid = random_grid(seed, shape)
        start = grid.labels.copy()
        MOVES[move](grid, *which)
        best = min(plain_energy(grid, labels, shape) for labels in within_reach(start, move, which))
        assert grid.energy() == pytest.approx(best)
        assert plain_energy(grid, grid.labels, shape) == pytest.approx(best)


def explicit_network(grid: Grid, move: str, which: tuple[int, ...]) -> tuple[Network, np.ndarray]:
    """The cut of a move, written out pixel by pixel and link by link; and the places of its nodes."""
    labels, costs = grid.labels, within(grid.costs, grid.shape)
    takes_part = np.isin(labels, which) if move == "swap" else labels != which[0]
    new = which[-1]
    place = np.cumsum(takes_part.ravel()).reshape(grid.shape) - 1
    slope, edges = np.zeros(takes_part.sum()), []
    for y, x in zip(*np.nonzero(takes_part), strict=True):
        old = which[0] if move == "swap" else labels[y, x]
        slope[place[y, x]] += costs[new, y, x] - costs[old, y, x]
    for weights, (dy, dx) in ((within(grid.right, grid.shape), (0, 1)), (within(grid.down, grid.shape), (1, 0))):
        for y, x in product(range(grid.shape[0] - dy), range(grid.shape[1] - dx)):
            one, other, weight = (y, x), (y + dy, x + dx), weights[y, x]
            if takes_part[one] and takes_part[other]:
                now = weight if move == "expansion" and labels[one] != labels[other] else 0
                slope[place[other]] -= now
                edges.append((place[one], place[other], weight, weight - now))
            elif move == "expansion" and (takes_part[one] or takes_part[other]):
                slope[place[one if takes_part[one] else other]] -= weight
    return Network.of(slope, *np.array(edges).T), takes_part


@pytest.mark.parametrize("shape", [(2, 40), (23, 17), (40, 3), (1, 30)], ids=str)
def test_a_move_is_the_cut_of_its_graph(shape):
    """One move after the other on one grid, whose workspace must be as new after each."""
    grid = random_grid(sum(shape), shape)
    for which in [(0, 2), (1,), (1, 2), (0,), (0, 1), (2,), (0, 2)]:
        move = "swap" if len(which) == 2 else "expansion"
        before, energy = grid.labels.copy(), grid.energy()
        network, takes_part = explicit_network(grid, move, which)
        wanted = before.copy()
        chosen = minimum_cut(network).sink_side
        wanted[takes_part] = np.where(chosen, which[-1], which[0] if move == "swap" else before[takes_part])
        MOVES[move](grid, *which)
        assert grid.energy() <= energy
        np.testing.assert_array_equal(grid.labels, wanted if grid.energy() < energy else before)


def small_pair(seed: int = 0, max_disparity: int = 4) -> StereoPair:
    """A square 3 pixels before a wall at 1 pixel, of random texture."""
    rng = np.random.default_rng(seed)
    scene, front = rng.integers(0, 256, (2, 16, 40)).astype(np.uint8)
    right = scene.copy()
    left = np.roll(scene, 1, axis=1)
    left[4:12, 18:28], right[4:12, 15:25] = front[4:12, 18:28], front[4:12, 18:28]
    return StereoPair(left, right, max_disparity)


@pytest.mark.parametrize("move", MOVES)
def test_the_energy_never_rises_and_is_the_true_one(move):
    pair, rng = small_pair(), np.random.default_rng(1)
    unary, start = squared(pair), np.random.default_rng(2).integers(0, 5, (16, 40)).astype(np.float32)
    cycles = list(graph_cut.improve(unary, pair, start, rng, move=move))
    energies = [graph_cut.energy(unary, pair, start)] + [cycle.energy for cycle in cycles]
    assert (np.diff(energies) <= 0).all()
    assert cycles[-1].changed == 0
    assert cycles[-1].energy == pytest.approx(graph_cut.energy(unary, pair, cycles[-1].disparity))
    assert cycles[-1].cuts <= cycles[0].cuts


@pytest.mark.parametrize("move", MOVES)
def test_a_square_before_a_wall_is_found(move):
    pair = small_pair()
    disparity = graph_cut.solve(squared(pair), pair, np.zeros(pair.shape), np.random.default_rng(0), move=move)
    truth = np.ones(pair.shape)
    truth[4:12, 18:28] = 3
    assert (disparity != truth)[:, 1:].mean() < 0.06
    assert disparity.dtype == np.float32


def test_what_cannot_be_improved_stays():
    pair = small_pair()
    found = graph_cut.solve(squared(pair), pair, np.zeros(pair.shape), np.random.default_rng(0))
    again = graph_cut.solve(squared(pair), pair, found, np.random.default_rng(7))
    np.testing.assert_array_equal(found, again)


def test_a_jump_costs_twice_as_much_between_pixels_that_look_alike():
    view = np.array([[0, 4, 9], [0, 5, 10.0]])
    right, down = graph_cut.potts_weights(StereoPair(view, view, 1))
    np.testing.assert_array_equal(right.reshape(2, 3), [[40, 20, 0], [20, 20, 0]])
    np.testing.assert_array_equal(down.reshape(2, 3), [[40, 40, 40], [0, 0, 0]])


def test_no_jumps_are_left_if_they_cost_enough():
    pair = small_pair()
    found = graph_cut.solve(squared(pair), pair, None, np.random.default_rng(0), potts=1e6)
    assert np.unique(found).tolist() == [1]


def test_an_unknown_move_is_refused():
    pair = small_pair()
    with pytest.raises(InputError, match="'swap', 'expansion'"):
        graph_cut.solve(squared(pair), pair, np.zeros(pair.shape), np.random.default_rng(0), move="jump")

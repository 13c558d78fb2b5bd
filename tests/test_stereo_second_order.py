"""Second-order stereo: its reduced energy is its energy, and a fusion never raises it."""

from __future__ import annotations

import importlib.util
from itertools import product
from typing import Any

import numpy as np
import pytest

from sparsedepth.metrics import bad_pixels
from sparsedepth.stereo import cuts, proposals
from sparsedepth.stereo.fusion import COST_STEPS, Choices, SecondOrderEnergy, fuse
from sparsedepth.stereo.prior import Feedback, with_belief
from sparsedepth.stereo.solvers import second_order
from sparsedepth.vocabulary import Belief, InputError, StereoPair
from sparsedepth_experiments._scenes import cut_out, known, small_scene

pytestmark = pytest.mark.skipif(importlib.util.find_spec("cv2") is None, reason="OpenCV is not installed")


def random_energy(rng: np.random.Generator, shape: tuple[int, int]) -> SecondOrderEnergy:
    wanted, price = rng.uniform(0, 4, shape), rng.uniform(0.1, 0.7, shape)

    def costs(disparity):
        return np.minimum(price * np.abs(disparity - wanted), 0.69), np.full(disparity.shape, 0.7)

    height, width = shape
    rows, columns = (
        rng.choice([0.2, 2.0], (height, max(width - 2, 0))),
        rng.choice([0.2, 2.0], (max(height - 2, 0), width)),
    )
    return SecondOrderEnergy(costs, rows, columns, 1.2)


def two_maps(rng: np.random.Generator, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Some pixels land on one line of sight: disparities are thirds."""
    first, second = np.rint(rng.uniform(0, 12, (2, *shape))) / 3
    second[rng.random(shape) < 0.1] = 1.0
    return first.astype(np.float32), second.astype(np.float32)


def least_over_help(problem: cuts.Polynomial, pixels: np.ndarray) -> float:
    """Helpers meet pixels only, so that each is best by itself."""
    n, slope = len(pixels), problem.slope.copy()
    among = (problem.second < n) & (problem.first < n)
    value = slope[:n] @ pixels + problem.coupling[among] @ (pixels[problem.first] * pixels[problem.second % n])[among]
    for i, j, q in zip(problem.first[~among], problem.second[~among], problem.coupling[~among], strict=True):
        slope[j] += q * pixels[i]
    return float(value + np.minimum(slope[n:], 0).sum()) / COST_STEPS


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shape", [(3, 4), (1, 10), (4, 3), (2, 6)])
def test_the_reduced_energy_is_the_energy_of_every_choice(seed, shape):
    rng = np.random.default_rng(seed)
    energy, (current, proposal) = random_energy(rng, shape), two_maps(rng, shape)
    problem = Choices.of(energy, current, proposal).polynomial()
    everything = least_over_help(problem, np.zeros(current.size))
    choices = list(product((0, 1), repeat=current.size))
    for choice in [choices[i] for i in rng.permutation(len(choices))[:300]]:
        pixels = np.array(choice)
        direct = energy.value(np.where(pixels.reshape(shape) == 1, proposal, current)) - energy.value(current)
        assert least_over_help(problem, pixels) - everything == pytest.approx(direct, abs=1e-4)


def slow_costs(energy: SecondOrderEnergy, disparity: np.ndarray) -> np.ndarray:
    """What every pixel costs, with the bends around it; pair by pair and triple by triple."""
    height, width = disparity.shape
    place = np.arange(width, dtype=np.float32) - disparity
    seen, hidden = energy.costs(disparity)
    costs = np.empty(disparity.shape)
    for y, x in np.ndindex(height, width):
        nearer = (np.abs(place[y] - place[y, x]) < 0.5) & (disparity[y] > disparity[y, x]) & (place[y, x] >= 0)
        costs[y, x] = hidden[y, x] if nearer.any() else seen[y, x]
        if 0 < x < width - 1:
            second = disparity[y, x - 1] - 2 * disparity[y, x] + disparity[y, x + 1]
            costs[y, x] += energy.along_rows[y, x - 1] * min(abs(second) / energy.bend, 1)
        if 0 < y < height - 1:
            second = disparity[y - 1, x] - 2 * disparity[y, x] + disparity[y + 1, x]
            costs[y, x] += energy.along_columns[y - 1, x] * min(abs(second) / energy.bend, 1)
    return costs


@pytest.mark.parametrize("shape", [(5, 12), (1, 30), (30, 1), (2, 2), (7, 40)])
@pytest.mark.parametrize("seed", range(4))
def test_the_costs_of_a_choice_are_those_of_its_map(seed, shape):
    """Against the rule written out; a pixel is hidden by a nearer one on its line of sight."""
    rng = np.random.default_rng(seed)
    energy, (current, proposal) = random_energy(rng, shape), two_maps(rng, shape)
    choices, taken = Choices.of(energy, current, proposal), rng.random(shape) < 0.5
    chosen = np.where(taken, proposal, current)
    slow = slow_costs(energy, chosen)
    np.testing.assert_allclose(choices.costs(taken), slow, atol=1e-5)
    assert choices.value(taken) == pytest.approx(slow.sum(), abs=1e-4)
    assert energy.value(chosen) == choices.value(taken)


def test_pixels_hide_each_other():
    """So that the law above does not hold for want of cases."""
    disparity = two_maps(np.random.default_rng(3), (5, 12))[0]
    none = np.zeros((5, 10)), np.zeros((3, 12))
    energy = SecondOrderEnergy(lambda d: (np.zeros(d.shape), np.ones(d.shape)), *none, 1.0)
    assert 0 < energy.value(disparity) < 60


def test_many_pixels_on_one_line_of_sight_find_room():
    """A wall seen from the side: all pairs of a row matter."""
    current = np.broadcast_to(np.arange(40, dtype=np.float32), (2, 40))
    energy = random_energy(np.random.default_rng(0), (2, 40))
    choices = Choices.of(energy, current, current[:, ::-1].copy())
    problem = choices.polynomial()
    base = least_over_help(problem, np.zeros(80))
    for taken in (np.ones((2, 40), bool), np.random.default_rng(1).random((2, 40)) < 0.5):
        found = least_over_help(problem, taken.ravel().astype(int)) - base
        assert found == pytest.approx(choices.value(taken) - choices.value(taken & False), abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_what_roof_duality_tells_of_a_fusion_is_in_the_best_choice(seed):
    rng, shape = np.random.default_rng(seed), (3, 3)
    energy, (current, proposal) = random_energy(rng, shape), two_maps(rng, shape)
    labels = cuts.roof_duality(Choices.of(energy, current, proposal).polynomial())[: current.size].reshape(shape)
    choices = [np.array(choice).reshape(shape) for choice in product((0, 1), repeat=current.size)]
    values = [energy.value(np.where(choice == 1, proposal, current)) for choice in choices]
    best = choices[int(np.argmin(values))]
    told = labels != cuts.UNLABELLED
    np.testing.assert_array_equal(labels[told & (current != proposal)], best[told & (current != proposal)])
    fused = fuse(energy, current, proposal, rng)
    assert fused.energy >= min(values) - 1e-6
    if told.all():
        assert fused.energy == pytest.approx(min(values), abs=0.01)


@pytest.mark.parametrize("seed", range(4))
def test_a_fusion_never_raises_the_energy_and_says_it_truly(seed):
    rng, shape = np.random.default_rng(seed), (17, 23)
    energy, (current, _) = random_energy(rng, shape), two_maps(rng, shape)
    before, shares = energy.value(current), []
    for _ in range(6):
        proposal = two_maps(rng, shape)[1]
        fused = fuse(energy, current, proposal, rng)
        assert fused.energy <= before
        assert fused.energy == pytest.approx(energy.value(fused.disparity))
        assert ((fused.disparity == current) | (fused.disparity == proposal)).all()
        current, before = fused.disparity, fused.energy
        shares.append(fused.labelled)
    assert 0 < min(shares) <= 1


def test_trying_again_pays():
    """With open pixels, holding a random half of them lowers the energy further, in the mean."""
    gains = []
    for seed in range(5):
        rng, shape = np.random.default_rng(seed), (25, 25)
        energy, (current, proposal) = random_energy(rng, shape), two_maps(rng, shape)
        once, again = (fuse(energy, current, proposal, np.random.default_rng(0), improvements=n).energy for n in (0, 4))
        assert again <= once
        gains.append(once - again)
    assert max(gains) > 0


def test_a_map_fused_with_itself_is_itself():
    rng = np.random.default_rng(0)
    energy, (current, _) = random_energy(rng, (6, 9)), two_maps(rng, (6, 9))
    np.testing.assert_array_equal(fuse(energy, current, current, rng).disparity, current)


def test_planes_cost_nothing_to_bend():
    rows, columns = np.mgrid[:7, :9].astype(np.float32)
    bends = random_energy(np.random.default_rng(0), (7, 9))
    energy = SecondOrderEnergy(lambda d: (0 * d, 0 * d), bends.along_rows, bends.along_columns, bends.bend)
    assert energy.value(0.3 * columns + 0.2 * rows + 1) == pytest.approx(0, abs=1e-4)
    assert energy.value((0.3 * columns + 0.2 * rows + 1) ** 2) > 1


def slanted(shape: tuple[int, int] = (30, 50)) -> tuple[np.ndarray, np.ndarray]:
    """Two planes side by side, and their segments."""
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    right = columns >= 25
    truth = np.where(right, 8 - 0.1 * columns + 0.05 * rows, 3 + 0.2 * columns)
    return truth.astype(np.float32), right.astype(np.int32)


def test_planes_are_found_among_outliers_and_beyond_what_is_trusted():
    rng = np.random.default_rng(0)
    truth, segments = slanted()
    noisy = truth + rng.normal(scale=0.05, size=truth.shape)
    noisy[rng.random(truth.shape) < 0.4] = 12
    found = proposals.planes(noisy, rng.random(truth.shape) < 0.5, segments, 15, rng)
    np.testing.assert_allclose(found, truth, atol=0.15)


def test_segments_without_enough_pixels_are_level():
    truth, segments = slanted()
    trusted = np.zeros(truth.shape, bool)
    trusted[4, :2] = True
    found = proposals.planes(truth, trusted, segments, 15, np.random.default_rng(0))
    assert [np.unique(found[segments == part]).size for part in (0, 1)] == [1, 1]
    nothing = proposals.planes(truth, trusted & False, segments, 15, np.random.default_rng(0))
    np.testing.assert_array_equal(nothing, 0)


def test_smoothing_straightens_and_leaves_planes_alone():
    rows, columns = np.mgrid[:6, :8].astype(np.float32)
    plane = 2 + columns / 2 + rows
    for vertical in (False, True):
        np.testing.assert_allclose(proposals.smoothed(plane, vertical=vertical), plane)
    bump = np.zeros((5, 5))
    bump[2, 2] = 1
    assert proposals.smoothed(bump, vertical=True)[1, 2] == 0.5
    assert proposals.smoothed(bump, vertical=False)[2, 1] == 0.5


def textured(shift: float = 3.0) -> StereoPair:
    rng = np.random.default_rng(5)
    wide: Any = np.repeat(rng.integers(0, 256, (16, 30, 3)), 2, axis=1).astype(np.uint8)
    return StereoPair(wide[:, 8:48], wide[:, 8 + int(shift) : 48 + int(shift)], 6)


@pytest.mark.parametrize("schedule", ["quick", "touch"])
def test_energies_fall_and_are_those_of_the_maps(schedule):
    pair = textured()
    cost = second_order.data_cost(pair)
    energy = second_order.energy_of(cost, pair)
    steps = list(second_order.fusions(cost, pair, None, np.random.default_rng(0), schedule=schedule))
    energies = [step.energy for step in steps]
    begin = np.zeros(pair.shape, np.float32) if schedule == "touch" else proposals.matched_both_ways(pair)[0]
    assert energies[0] <= energy.value(begin)
    assert (np.diff(energies) <= 0).all()
    assert steps[-1].energy == pytest.approx(energy.value(steps[-1].disparity))
    assert [step.done for step in steps] == list(range(1, steps[-1].total + 1))
    assert all(0 <= step.labelled <= 1 and step.seconds >= 0 for step in steps)


@pytest.mark.slow
def test_a_level_start_is_no_start():
    """Nothing tells it from none, and what the right view does not show must not fall for it."""
    pair = textured()
    cost = second_order.data_cost(pair)

    def proposed(start):
        steps = list(second_order.fusions(cost, pair, start, np.random.default_rng(0)))
        return [step.proposal for step in steps], steps[-1].disparity

    names, without = proposed(None)
    assert "start" not in names
    for level in (0.0, 2.0):
        np.testing.assert_array_equal(proposed(np.full(pair.shape, level))[1], without)
    assert "start" in proposed(np.add.outer(np.zeros(16), np.linspace(2, 4, 40)))[0]


@pytest.mark.slow
def test_the_authors_schedule_comes_from_chance_to_a_real_scene():
    """Better than the windows that its planes are fitted to."""
    scene = cut_out(small_scene(), 0, 0, (32, 64))
    pair, truth = scene.pair, known(scene, "nonocc")
    cost = second_order.data_cost(pair)
    steps = list(second_order.fusions(cost, pair, None, np.random.default_rng(0), schedule="authors"))
    windows = proposals.matched_windows(cost, pair)
    assert bad_pixels(steps[-1].disparity, truth, 1.0) < bad_pixels(windows, truth, 1.0)
    done = [step.done for step in steps]
    assert done == sorted(set(done))
    assert done[-1] <= steps[-1].total


def test_the_authors_schedule_comes_from_random_maps_to_the_same_shift():
    pair = textured()
    cost, rng = second_order.data_cost(pair), np.random.default_rng(0)
    steps = list(second_order.fusions(cost, pair, None, rng, schedule="authors", stage_fusions=8))
    assert (np.abs(steps[-1].disparity[:, 8:-4] - 3) < 0.5).mean() > 0.95
    assert {step.proposal for step in steps} == {"planes", "level", "earlier", "smooth"}


def test_an_unknown_schedule_is_refused():
    pair = textured()
    with pytest.raises(InputError, match="quick"):
        second_order.solve(second_order.data_cost(pair), pair, None, np.random.default_rng(0), schedule="soon")


def test_a_belief_holds_hidden_pixels_too_and_its_mean_can_be_proposed():
    pair = textured()
    data = second_order.data_cost(pair)
    mean = np.full(pair.shape, 2.0)
    unary = with_belief(data, Belief(mean, np.full(pair.shape, 0.25)), Feedback(prior=0.5, least_weight=1.0))
    energy = second_order.energy_of(unary, pair)
    at = np.full(pair.shape, 3.0, np.float32)
    seen, hidden = energy.costs(at)
    np.testing.assert_array_equal(seen, unary(at))
    np.testing.assert_allclose(hidden - second_order.HIDDEN_COST, unary(at) - data(at), atol=1e-6)
    assert (hidden >= seen).all()
    steps = list(second_order.fusions(unary, pair, None, np.random.default_rng(0), schedule="touch", with_mean=True))
    assert "belief" in {step.proposal for step in steps}

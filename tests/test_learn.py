"""Learning: the gradient, the two update rules, recovery of planted atoms, determinism."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from conftest import edge_patches, known_variance, unit_atoms
from sparsedepth import Dictionary, InputError, Jeffreys, Known, Stationary, energy, infer, learn
from sparsedepth.coding.accumulate import SHARD_PATCHES, accumulate, dictionary_gradient, total
from sparsedepth.coding.learn import (
    PAPER_ROUNDS,
    PAPER_UPDATE,
    Batch,
    LearningState,
    Phase,
    paper_phases,
    schedule,
)
from sparsedepth.coding.starts import random_start, start_from
from sparsedepth.coding.updates import BlockCoordinate, Gradient, largest_eigenvalue
from sparsedepth.patches import PatchPool

pytestmark = pytest.mark.slow


def last(steps):
    *_, step = steps
    return step


def test_gradient_equals_finite_differences(noise_model):
    patches, atoms = edge_patches(12, 4), unit_atoms(20, 16)
    code = infer(patches, atoms, noise_model(12, 16))
    gradient = dictionary_gradient(patches, atoms, code.codes, code.variance)
    step = 1e-6
    for j, i in ((0, 0), (3, 7), (11, 15), (19, 4)):
        up, down = atoms.copy(), atoms.copy()
        up[j, i] += step
        down[j, i] -= step
        slope = (
            energy(patches, up, code.codes, code.variance).mean()
            - energy(patches, down, code.codes, code.variance).mean()
        ) / (2 * step)
        assert gradient[j, i] == pytest.approx(slope, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("update", [Gradient(), BlockCoordinate()], ids=repr)
@pytest.mark.parametrize("noise", [Jeffreys(), Stationary()], ids=repr)
def test_learning_lowers_the_held_out_energy(update, noise):
    patches, held = edge_patches(2000, 6, seed=1), edge_patches(200, 6, seed=2)
    start = start_from(PatchPool(patches), 48)
    step = last(learn(patches, start, phases=[Phase(40, noise, update)], held_out=held))
    before = infer(held, start, noise).energy.mean()
    assert step.held_out == pytest.approx(infer(held, step.dictionary, noise).energy.mean(), rel=1e-6)
    assert step.held_out < before - 1


def test_held_out_energy_falls_from_report_to_report():
    patches, held = edge_patches(2000, 6, seed=1), edge_patches(200, 6, seed=2)
    run = learn(patches, 48, phases=[Phase(90, Stationary(), BlockCoordinate())], held_out=held, report_every=30)
    reported = [step.held_out for step in run if step.held_out is not None]
    assert len(reported) == 3
    assert reported == sorted(reported, reverse=True)


PLANTED = unit_atoms(24, 64, seed=100)


def _planted_patches():
    """Sparse sums of 24 planted atoms; a quarter of the pixels are often hit by strong noise. And its variance."""
    rng = np.random.default_rng(0)
    codes = rng.laplace(0, 3, (8000, 24)) * (rng.random((8000, 24)) < 0.12)
    hit = (np.arange(64) < 16) & (rng.random((8000, 64)) < 0.3)
    variance = np.where(hit, 25.0, 0.0025)
    patches = codes @ PLANTED + rng.normal(0, np.sqrt(variance))
    return patches.astype(np.float32), variance.astype(np.float32)


def _recovered(dictionary):
    """How many planted atoms have a learned twin (absolute correlation above 0.95)."""
    return int((np.abs(PLANTED @ dictionary.atoms.T).max(axis=1) > 0.95).sum())


def test_planted_atoms_are_recovered_where_plain_sparse_coding_fails():
    pool = PatchPool(_planted_patches()[0], batch=512)
    update = BlockCoordinate()
    inferred = [Phase(70, Jeffreys(1.0), update), Phase(70, Jeffreys(0.3), update)]
    assert _recovered(last(learn(pool, 24, phases=inferred)).dictionary) >= 22
    for variance in (0.1, 0.3, 1.0, 3.0):
        plain = [Phase(140, Stationary(variance), update)]
        assert _recovered(last(learn(pool, 24, phases=plain)).dictionary) <= 12


def test_a_sensors_variance_stands_in_for_inference():
    """Plain sparse coding recovers the planted atoms once it is told which pixels are noisy."""
    patches, variance = _planted_patches()
    told = PatchPool(patches, batch=512, variance=variance)
    assert _recovered(last(learn(told, 24, phases=[Phase(140, Stationary(1.0))])).dictionary) >= 22


def test_known_variance_enters_the_gradient():
    patches, atoms = edge_patches(30, 4, missing=0), unit_atoms(16, 16)
    silent = np.full(patches.shape, 0.01)
    silent[:, 5] = np.inf
    noise = Stationary(0.01).plus(silent)
    code = infer(patches, atoms, noise)
    assert (dictionary_gradient(patches, atoms, code.codes, code.variance)[:, 5] == 0).all()
    assert noise.plus(known_variance(30, 16)).inferred is False
    assert Jeffreys().plus(silent).inferred is True


@pytest.mark.parametrize("update", [Gradient(), PAPER_UPDATE, BlockCoordinate(warm_up=1)], ids=repr)
def test_deterministic_and_resumable(update):
    patches = edge_patches(600, 5)
    phases = [Phase(4, Stationary(), update), Phase(5, Jeffreys(), update)]
    whole = list(learn(patches, 30, phases=phases, threads=1))
    again = last(learn(patches, 30, phases=phases, threads=2))
    np.testing.assert_array_equal(again.state.atoms, whole[-1].state.atoms)
    for stop in (0, 3, 4, 7):
        rest = last(learn(patches, 30, phases=phases, resume=whole[stop].state))
        assert rest.step == 9
        np.testing.assert_array_equal(rest.state.atoms, whole[-1].state.atoms)


def test_the_papers_learning_resumes_bit_identically_from_any_step():
    patches, start = edge_patches(600, 5), random_start(30, (5, 5))
    options = {"phases": paper_phases(Jeffreys(), 7), "rounds": PAPER_ROUNDS}
    whole = list(learn(patches, start, **options))
    for step in whole[:-1]:
        rest = last(learn(patches, start, resume=step.state, **options))
        np.testing.assert_array_equal(rest.state.atoms, whole[-1].state.atoms)
        assert rest.state.memory["largest"] == whole[-1].state.memory["largest"]


def test_the_papers_step_never_grows_and_no_atom_is_renewed():
    """A twin stays a twin, and the step follows the steepest batch so far."""
    start = random_start(30, (5, 5))
    atoms = start.atoms.copy()
    atoms[3] = atoms[4]
    steps = list(learn(edge_patches(600, 5), Dictionary(atoms, (5, 5)), phases=paper_phases(Jeffreys(), 6)))
    assert [step.replaced for step in steps] == [0] * 6
    largest = [float(step.state.memory["largest"][0]) for step in steps]
    assert largest == sorted(largest)
    assert largest[0] > 0


def test_the_papers_update_is_a_step_against_the_gradient_of_eq_7():
    patches, start = edge_patches(SHARD_PATCHES, 5, missing=0), random_start(30, (5, 5))
    found = total(accumulate(Batch(patches), start.atoms, Jeffreys(), 1.0, rounds=PAPER_ROUNDS, threads=1))
    moved = PAPER_UPDATE.move(start.atoms, PAPER_UPDATE.start(start.atoms), found, 0) - start.atoms
    code = infer(patches, start.atoms, Jeffreys(), tolerance=0.0, max_rounds=PAPER_ROUNDS)
    descent = -dictionary_gradient(patches, start, code.codes, code.variance)
    rate = (moved * descent).sum() / (descent**2).sum()
    assert rate > 0
    np.testing.assert_allclose(moved, rate * descent, atol=1e-4 * np.abs(moved).max())


def test_a_random_start_knows_no_data():
    """It takes none, its atoms have norm 1, and neighbouring pixels are uncorrelated."""
    start = random_start(400, (8, 8), seed=3)
    np.testing.assert_array_equal(start.atoms, random_start(400, (8, 8), seed=3).atoms)
    assert not np.array_equal(start.atoms, random_start(400, (8, 8), seed=4).atoms)
    np.testing.assert_allclose(np.linalg.norm(start.atoms, axis=1), 1, rtol=1e-5)
    pixels = start.atoms.reshape(-1, 8, 8)
    assert abs(np.corrcoef(pixels[:, :, 1:].ravel(), pixels[:, :, :-1].ravel())[0, 1]) < 0.03
    with pytest.raises(InputError, match="at least one"):
        random_start(0, (8, 8))


def test_another_seed_another_dictionary():
    patches = edge_patches(600, 5)
    one, other = (last(learn(patches, 30, steps=4, seed=seed)).state.atoms for seed in (0, 1))
    assert not np.array_equal(one, other)


def test_atoms_keep_unit_norm_and_idle_ones_are_replaced():
    patches = edge_patches(1000, 5)
    start = start_from(PatchPool(patches), 30)
    atoms = start.atoms.copy()
    atoms[3] = atoms[4]
    steps = list(learn(patches, Dictionary(atoms, (5, 5)), steps=8))
    assert steps[0].replaced >= 1
    final = steps[-1].state.atoms
    np.testing.assert_allclose(np.linalg.norm(final, axis=1), 1, rtol=1e-5)
    assert (np.abs(final @ final.T) - np.eye(30)).max() < 0.99


def test_steps_come_with_atoms_sorted_by_use():
    step = last(learn(edge_patches(600, 5), 30, steps=6))
    order = np.argsort(-step.state.usage, kind="stable")
    np.testing.assert_array_equal(step.dictionary.atoms, step.state.atoms[order])


@pytest.mark.parametrize("steps", [3, 7, 90, 1500])
@pytest.mark.parametrize(
    "noise", [Jeffreys(floor=0.001), Jeffreys(floor=0.03), Stationary(0.01), Stationary(5.0)], ids=repr
)
def test_schedule_anneals_plain_sparse_coding_down_to_the_model(noise, steps):
    *annealing, final = schedule(noise, steps)
    assert final.noise == noise
    assert sum(phase.steps for phase in annealing) + final.steps == steps
    assert final.steps >= 1
    variances = [phase.noise.variance for phase in annealing if isinstance(phase.noise, Stationary)]
    assert len(variances) == len(annealing)
    assert variances == sorted(variances, reverse=True)


def test_checkpoint_round_trip(tmp_path):
    step = last(learn(edge_patches(300, 5), 20, steps=5))
    step.state.save(tmp_path / "run.checkpoint", {"seed": 0})
    loaded = LearningState.load(tmp_path / "run.checkpoint", {"seed": 0})
    assert loaded.step == step.step
    np.testing.assert_array_equal(loaded.atoms, step.state.atoms)
    np.testing.assert_array_equal(loaded.usage, step.state.usage)
    assert loaded.memory.keys() == step.state.memory.keys()
    with pytest.raises(InputError, match="other data or settings"):
        LearningState.load(tmp_path / "run.checkpoint", {"seed": 1})


def test_largest_eigenvalue_is_near_the_truth():
    codes = np.random.default_rng(0).standard_normal((200, 30)) * np.linspace(1, 3, 30)
    products = codes.T @ codes / 200
    exact = np.linalg.eigvalsh(products)[-1]
    assert 0.9 * exact <= largest_eigenvalue(products) <= exact * (1 + 1e-9)
    assert largest_eigenvalue(0 * products) == 0


@pytest.mark.parametrize("cuts", [(), (1,), (2, 3), (1, 4, 6), (3, 5)], ids=str)
def test_a_batch_tells_the_same_bits_however_its_shards_are_spread(cuts):
    patches, atoms = edge_patches(6 * SHARD_PATCHES + 50, 4).astype(np.float32), unit_atoms(24, 16, dtype=np.float32)
    variance = known_variance(len(patches), 16).astype(np.float32)

    def partial(first, end):
        rows = slice(first * SHARD_PATCHES, end * SHARD_PATCHES)
        batch = Batch(patches[rows], variance[rows])
        return accumulate(batch, atoms, Jeffreys(), 1.0, rounds=16, threads=1, first=first)

    whole = total(partial(0, 7))
    places = [0, *cuts, 7]
    spread = [partial(first, end) for first, end in itertools.pairwise(places)]
    again = total({branch: sums for part in reversed(spread) for branch, sums in part.items()})
    for name, value in vars(whole).items():
        np.testing.assert_array_equal(getattr(again, name), value, err_msg=name)
    assert whole.count == len(patches) == len(whole.excess)


def test_known_variances_come_with_the_patches():
    with pytest.raises(InputError, match="with the patches"):
        next(learn(edge_patches(50, 4), 8, Known(np.ones(16))))


def test_oblong_patches_need_a_dictionary_to_start():
    patches = np.random.default_rng(0).standard_normal((50, 12))
    with pytest.raises(InputError, match="not square"):
        next(learn(patches, 8))
    start = start_from(PatchPool(patches), 8, (3, 4))
    assert next(learn(batches_of(patches), start, steps=3)).dictionary.patch_shape == (3, 4)


def batches_of(patches):
    return lambda step: Batch(patches)

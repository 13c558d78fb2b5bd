"""Laws that inference obeys under every noise model."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import oracle
from conftest import edge_patches, known_variance, unit_atoms
from sparsedepth import Jeffreys, Known, Stationary, energy, infer
from sparsedepth.coding.admm import CHECK_INTERVAL_ITERATIONS, Block, EnergyAtRest, Factors, plan, solve
from sparsedepth.coding.infer import sparse_codes
from sparsedepth.parallel import one_blas_thread

SIDE, ATOMS = 6, 50
PIXELS = SIDE * SIDE


@pytest.fixture(scope="module")
def atoms():
    return unit_atoms(ATOMS, PIXELS)


@pytest.fixture(scope="module")
def patches():
    return edge_patches(70, SIDE)


def test_energy_is_equation_six(patches, atoms, noise_model):
    noise = noise_model(len(patches), PIXELS)
    code = infer(patches, atoms, noise)
    literal = oracle.energy(patches, atoms, code.codes, code.variance, 1.0, noise)
    np.testing.assert_allclose(code.energy, literal, rtol=1e-10)
    np.testing.assert_allclose(energy(patches, atoms, code.codes, code.variance, noise=noise), literal, rtol=1e-10)


@pytest.mark.slow
def test_returned_energy_is_the_lowest_seen(patches, atoms, noise_model):
    noise = noise_model(len(patches), PIXELS)
    factors = Factors(atoms)
    code = infer(patches, atoms, noise, max_rounds=96)
    with one_blas_thread:
        for job in plan(patches, noise, 1.0, block=1024):
            mine, some = patches[job.rows], noise.take(job.rows)
            solution = solve(Block(mine, some, 1.0, factors, job), EnergyAtRest(2e-3), max_rounds=96)
            np.testing.assert_array_equal(code.codes[job.rows], solution.codes)
            for rounds, codes in _trajectory(Block(mine, some, 1.0, factors, job), 96):
                seen = solution.rounds >= rounds
                value = energy(mine, atoms, codes, some.best_variance(mine - codes @ atoms), noise=some)
                assert (code.energy[job.rows][seen] <= value[seen] + 1e-9 * np.abs(value[seen])).all()


def _trajectory(block, rounds):
    """The codes at every look of an undisturbed run, and the iterations before it."""
    for look in range(0, rounds + 1, CHECK_INTERVAL_ITERATIONS):
        yield look, block.codes_of(np.arange(block.count))
        if block.starting:
            block.advance(CHECK_INTERVAL_ITERATIONS)
            block.leave_start()
        else:
            if block.noise.inferred:
                block.tighten()
            block.advance(CHECK_INTERVAL_ITERATIONS)


@pytest.mark.slow
def test_energy_is_at_most_that_of_the_zero_code(patches, atoms, noise_model):
    noise = noise_model(len(patches), PIXELS)
    for sparsity in (0.1, 1.0, 1e3):
        code = infer(patches, atoms, noise, sparsity)
        zero = energy(patches, atoms, np.zeros_like(code.codes), noise.best_variance(patches), sparsity, noise)
        assert (code.energy <= zero + 1e-9).all()


def test_closed_form_variance_step_lowers_the_energy(patches, atoms, noise_model):
    noise = noise_model(len(patches), PIXELS)
    rng = np.random.default_rng(1)
    codes = rng.standard_normal((len(patches), ATOMS)) * (rng.random((len(patches), ATOMS)) < 0.1)
    best = noise.best_variance(patches - codes @ atoms)
    lowest = energy(patches, atoms, codes, best, noise=noise)
    floor = noise.floor_variance(patches)
    assert (energy(patches, atoms, codes, noise.initial_variance(patches), noise=noise) >= lowest - 1e-9).all()
    if noise.inferred:
        for factor in (0.5, 0.9, 1.1, 3.0):
            moved = np.maximum(best * factor, floor)
            assert (energy(patches, atoms, codes, moved, noise=noise) >= lowest - 1e-9).all()
    assert (np.isfinite(best) <= (best >= floor * (1 - 1e-12))).all()


def test_growth_and_price_obey_the_envelope_theorem(noise_model):
    noise = noise_model(1, 400)
    q = np.geomspace(1e-3, 1e4, 400)
    step = 1e-6 * q
    slope = (noise.price(q + step) - noise.price(q - step)) / (2 * step)
    np.testing.assert_allclose(slope, 1 / (2 * noise.growth(q)), rtol=1e-4)


@pytest.mark.slow
def test_a_variance_of_the_sensor_is_added_to_the_floor(patches, noise_model):
    noise, sensor = noise_model(len(patches), PIXELS), known_variance(len(patches), PIXELS, seed=8)
    np.testing.assert_allclose(noise.plus(sensor).floor_variance(patches), noise.floor_variance(patches) + sensor)


def test_as_low_as_the_exact_alternation(atoms, noise_model):
    patches = edge_patches(24, SIDE, seed=5)
    noise = noise_model(len(patches), PIXELS)
    code = infer(patches, atoms, noise, tolerance=1e-6, max_rounds=2000)
    exact = oracle.energy(patches, atoms, *oracle.alternate(patches, atoms, noise, 1.0), 1.0, noise)
    excess = exact - noise.cost(noise.floor_variance(patches))
    if noise.inferred:  # not convex: other local minima, on the whole no worse
        assert code.energy.mean() <= exact.mean() + 0.01 * excess.mean()
    else:
        assert (code.energy <= exact + 1e-4 * excess).all()


@pytest.mark.slow
def test_a_patch_does_not_depend_on_its_company(patches, atoms, noise_model):
    for dtype in (np.float32, np.float64):
        some = patches.astype(dtype)
        noise = noise_model(len(patches), PIXELS)
        whole = infer(some, atoms, noise, threads=1)
        for rows, block, threads in ((slice(0, 1), 1024, 1), (slice(3, 40), 7, 2), (slice(10, 70), 33, 3)):
            part = infer(some[rows], atoms, noise.take(rows), block=block, threads=threads)
            np.testing.assert_array_equal(part.codes, whole.codes[rows])
            np.testing.assert_array_equal(part.variance, whole.variance[rows])
            np.testing.assert_array_equal(part.rounds, whole.rounds[rows])
            np.testing.assert_allclose(part.energy, whole.energy[rows], rtol=1e-12)


@pytest.mark.slow
def test_codes_alone_are_the_same_codes(patches, atoms, noise_model):
    noise = noise_model(len(patches), PIXELS)
    alone = sparse_codes(patches, atoms, noise, 1.0, tolerance=2e-3, max_rounds=48)
    np.testing.assert_array_equal(alone, infer(patches, atoms, noise, max_rounds=48).codes)


@pytest.mark.slow
def test_units_do_not_matter(patches, atoms):
    c = 1024.0  # a power of two: scaling is exact
    models = {
        "jeffreys": (Jeffreys(0.01, 1.0), Jeffreys(0.01 * c**2, c**2)),
        "stationary": (Stationary(0.02), Stationary(0.02 * c**2)),
        "known": (Known(known_variance(70, PIXELS)), Known(known_variance(70, PIXELS) * c**2)),
        "known floor": (
            Known(known_variance(70, PIXELS), inferred=True),
            Known(known_variance(70, PIXELS) * c**2, inferred=True, initial=c**2),
        ),
    }
    for before, after in models.values():
        code, scaled = infer(patches, atoms, before, 1.0), infer(patches * c, atoms, after, 1 / c)
        np.testing.assert_allclose(scaled.codes, code.codes * c, rtol=1e-9, atol=1e-12 * c)
        np.testing.assert_allclose(scaled.variance, code.variance * c**2, rtol=1e-9)


@pytest.mark.slow
def test_permuting_atoms_permutes_codes(patches, atoms, noise_model):
    noise = noise_model(len(patches), PIXELS)
    order = np.random.default_rng(0).permutation(ATOMS)
    code = infer(patches, atoms, noise, tolerance=1e-5, max_rounds=1000)
    shuffled = infer(patches, atoms[order], noise, tolerance=1e-5, max_rounds=1000)
    np.testing.assert_allclose(shuffled.codes, code.codes[:, order], atol=1e-6)


def test_permuting_pixels_changes_nothing(patches, atoms):
    order = np.random.default_rng(0).permutation(PIXELS)
    code = infer(patches, atoms)
    shuffled = infer(patches[:, order], atoms[:, order])
    np.testing.assert_allclose(shuffled.codes, code.codes, atol=1e-6)
    np.testing.assert_allclose(shuffled.variance, code.variance[:, order], rtol=1e-5)


def test_missing_pixels_take_no_part(patches, atoms, noise_model):
    noise = noise_model(len(patches), PIXELS)
    code = infer(patches, atoms, noise)
    missing = np.isnan(patches) | ~np.isfinite(noise.floor_variance(patches))
    np.testing.assert_array_equal(np.isinf(code.variance), missing)
    assert np.isfinite(code.variance[~missing]).all()
    if isinstance(noise, Known):  # infinite variance and NaN say the same
        np.testing.assert_array_equal(infer(np.where(missing, np.nan, patches), atoms, noise).codes, code.codes)


def test_float32_agrees_with_float64(patches, atoms, noise_model):
    """Stated tolerance: the mean energy, and that of nine patches in ten, to 1e-3 of its excess over the floor."""
    noise = noise_model(len(patches), PIXELS)
    single = infer(patches.astype(np.float32), atoms, noise)
    double = infer(patches, atoms, noise)
    assert single.codes.dtype == single.variance.dtype == np.float32
    assert double.codes.dtype == double.variance.dtype == np.float64
    assert single.energy.dtype == double.energy.dtype == np.float64
    excess = double.energy - noise.cost(noise.floor_variance(patches))
    assert abs(single.energy.mean() - double.energy.mean()) <= 1e-3 * excess.mean()
    assert (np.abs(single.energy - double.energy) <= 1e-3 * excess).mean() >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_odd_patches_have_documented_results(atoms, noise_model, dtype):
    patches = np.full((6, PIXELS), np.nan)
    patches[1] = 0.0
    patches[2] = 3.0
    patches[3, 17] = 2.0
    patches[4] = edge_patches(1, SIDE, missing=0, seed=9) * 1e12
    patches[5] = edge_patches(1, SIDE, missing=0, seed=9) * 1e-12
    code = infer(patches.astype(dtype), atoms, noise_model(6, PIXELS))
    assert np.isfinite(code.codes).all()
    assert np.isfinite(code.energy).all()
    np.testing.assert_array_equal(code.codes[:2], 0)  # nothing known, or nothing to say
    assert code.energy[0] == 0
    assert np.isinf(code.variance[0]).all()
    assert code.converged[:2].all()
    assert (code.rounds[:2] == 0).all()
    np.testing.assert_array_equal(code.codes[5], 0)  # far below the noise


def test_no_patches(atoms):
    code = infer(np.empty((0, PIXELS)), atoms)
    assert code.codes.shape == (0, ATOMS)
    assert code.energy.shape == (0,)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("side", "overcomplete", "floor", "sparsity"),
    [*product((8, 16), (1, 4), (0.001, 0.1), (0.1, 10.0)), (32, 1, 0.01, 1.0), (32, 1, 0.001, 10.0)],
)
def test_penalties_suit_other_settings(side, overcomplete, floor, sparsity):
    """At the default effort nearly all patches come to rest, within 3 % of what ten times the effort finds."""
    patches = edge_patches(48, side, seed=2).astype(np.float32)
    data = np.nan_to_num(edge_patches(overcomplete * side * side, side, seed=4, outliers=0)) + 1e-3
    atoms = (data / np.linalg.norm(data, axis=1, keepdims=True)).astype(np.float32)
    noise = Jeffreys(floor=floor)
    quick = infer(patches, atoms, noise, sparsity)
    long = infer(patches, atoms, noise, sparsity, tolerance=1e-5, max_rounds=2000)
    offset = noise.cost(noise.floor_variance(patches))
    assert quick.converged.mean() >= 0.9
    assert (quick.energy - offset).mean() <= 1.03 * (long.energy - offset).mean()

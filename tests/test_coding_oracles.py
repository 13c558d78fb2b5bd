"""Formulas of coding, learning and averaging, patch by patch."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from conftest import edge_patches, unit_atoms
from sparsedepth import Dictionary, Jeffreys, Stationary, infer
from sparsedepth.coding.accumulate import Statistics, accumulate, total
from sparsedepth.coding.admm import (
    CODE_PENALTY,
    RATIO_BASE,
    RATIO_EXPONENTS,
    RESIDUAL_PENALTY,
    Factors,
    Penalties,
    plan,
    ratio_of,
)
from sparsedepth.coding.aggregate import (
    PatchCoder,
    average_patches,
    average_patches_and_noise,
    refit_least_squares,
)
from sparsedepth.coding.descent import is_convex
from sparsedepth.coding.infer import fit_patches, sparse_codes
from sparsedepth.coding.learn import Phase, _idle, _worst_represented, learn
from sparsedepth.coding.starts import random_start
from sparsedepth.coding.updates import BlockCoordinate, Gradient
from sparsedepth.patches import PatchPool, Window

SHAPE = (3, 4)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def dictionary() -> Dictionary:
    return Dictionary(unit_atoms(20, 12).astype(np.float32), SHAPE)


def coder_of(**more) -> PatchCoder:
    return PatchCoder(dictionary(), Jeffreys(floor=0.01), sparsity=0.3, **more)


def map_of(rng, shape=(11, 13)):
    depth = (np.arange(shape[1]) > 6) + 0.2 * rng.standard_normal(shape)
    depth[rng.random(shape) < 0.2] = np.nan
    depth[:4, :5] = np.nan
    return depth.astype(np.float32)


def scaled_patches(depth, coder, only=None, units=None):
    """Cut every patch that is wanted: its place, its scaled values, its unit and its centre."""
    core = (coder.weights >= coder.core * coder.weights.max()).reshape(SHAPE)
    for y, x in product(*Window.full(depth.shape).corners(SHAPE, coder.stride)):
        place = np.s_[y : y + SHAPE[0], x : x + SHAPE[1]]
        patch = depth[place].ravel().astype(float)
        known = np.isfinite(patch)
        if not known.any() or (only is not None and not (only[place] & core).any()):
            continue
        centre, scale = np.median(patch[known]), coder.unit
        if units is not None:
            scale = np.median(units[place])
        elif coder.unit is None:
            centre, scale = patch[known].mean(), np.hypot(patch[known].std(), coder.softening)
        yield place, ((patch - centre) / scale).astype(np.float32), scale, centre


def slow_average(depth, coder, only=None, units=None):
    """Add up coded patches one by one; average values and their squares at each pixel."""
    places, patches, scales, centres = zip(*scaled_patches(depth, coder, only, units), strict=True)
    given = np.array(patches), coder.atoms, coder.noise, coder.penalties
    counts = np.ones(len(places))
    if coder.unit is not None and units is None and not coder.refit and is_convex(coder.noise):
        fitted = fit_patches(*given, coder.max_rounds)
    else:
        codes = sparse_codes(*given, tolerance=coder.tolerance, max_rounds=coder.max_rounds)
        if coder.refit:
            codes, counts = refit_least_squares(np.array(patches), codes, coder)
        fitted = codes @ coder.atoms
    sums = [np.zeros(depth.shape) for _ in range(3)]
    for place, patch, fit, scale, centre, count in zip(places, patches, fitted, scales, centres, counts, strict=True):
        weight, value = np.isfinite(patch).mean() / count * coder.weights, fit * scale + centre
        for sum_, term in zip(sums, (weight, weight * value, weight * value**2), strict=True):
            sum_[place] += term.reshape(SHAPE)
    some = np.where(sums[0] > 0, sums[0], 1)
    mean = np.where(sums[0] > 0, sums[1] / some, np.nan)
    return sums[0], mean, sums[2] / some - np.nan_to_num(mean) ** 2


CODERS = {
    "own deviation": {},
    "one unit": {"unit": 0.1},
    "apart": {"stride": 2, "unit": 0.1},
    "gaussian": {"window": 0.4, "unit": 0.1},
    "free mean": {"free_mean": True, "unit": 0.1, "refit": True},
    "refitted": {"refit": True, "unit": 0.1, "min_code": 0.2},
}


@pytest.mark.parametrize("name", CODERS)
def test_an_average_is_that_of_patches_coded_one_by_one(rng, name):
    depth, coder = map_of(rng), coder_of(**CODERS[name])
    found = average_patches(depth, coder)
    weight, mean, variance = slow_average(depth, coder)
    reached = np.broadcast_to(weight > 0, depth.shape)
    assert_allclose(found.weight, weight, rtol=1e-5)
    assert_allclose(found.mean[reached], mean[reached], atol=2e-4)
    assert_allclose(found.variance[reached], variance[reached], atol=2e-4)
    assert_array_equal(np.isnan(found.mean), ~reached)


@pytest.mark.parametrize("refit", [True, False])
def test_only_patches_are_coded_whose_core_holds_a_wanted_pixel(rng, refit):
    depth, only = map_of(rng), np.zeros((11, 13), bool)
    only[6, 8] = only[9, 2] = True
    coder = coder_of(unit=0.1, window=0.5, core=0.7, refit=refit)
    found = average_patches(depth, coder, only=only)
    weight, mean, _ = slow_average(depth, coder, only)
    assert (weight == 0).any()
    assert_allclose(found.weight, weight, rtol=1e-5)
    assert_allclose(found.mean[weight > 0], mean[weight > 0], atol=2e-4)


def test_a_patch_is_divided_by_the_median_of_its_units(rng):
    depth, units = map_of(rng), rng.uniform(0.05, 0.4, (11, 13))
    coder = coder_of(unit=1.0)
    found = average_patches(depth, coder, units=units)
    weight, mean, _ = slow_average(depth, coder, units=units)
    assert_allclose(found.mean[weight > 0], mean[weight > 0], atol=2e-4)


def test_inferred_noise_is_averaged_with_the_values(rng):
    depth, coder = map_of(rng), coder_of(unit=0.1)
    found = average_patches_and_noise(depth, coder)
    noise, confidence, weights = (np.zeros(depth.shape) for _ in range(3))
    places, patches, _, _ = zip(*scaled_patches(depth, coder), strict=True)
    effort = {"tolerance": coder.tolerance, "max_rounds": coder.max_rounds}
    inferred = infer(np.array(patches), coder.atoms, coder.noise, coder.penalties, **effort).variance
    for place, patch, variance in zip(places, patches, inferred, strict=True):
        known = np.isfinite(patch)
        noise[place] += (np.where(known, variance, 0) * known.mean() * 0.1**2).reshape(SHAPE)
        confidence[place] += (np.where(known, 0.01 / variance, 0) * known.mean()).reshape(SHAPE)
        weights[place] += known.mean()
    valid = np.isfinite(depth)
    assert_allclose(found.weight, weights, rtol=1e-5)
    assert_allclose(found.noise[valid], noise[valid] / weights[valid], rtol=2e-3)
    assert_allclose(found.confidence[valid], confidence[valid] / weights[valid], rtol=2e-3)
    assert np.isinf(found.noise[~valid]).all()
    assert_array_equal(found.confidence[~valid], 0)
    assert_allclose(found.floor[weights > 0], 0.01 * 0.1**2, rtol=1e-5)
    assert_allclose(found.predicted_variance, found.variance + found.floor)


def test_weights_are_gaussian_in_patch_sides():
    found = coder_of(window=0.3).weights.reshape(SHAPE)
    rows, columns = np.indices(SHAPE)
    down, across = (rows - 1) / (0.3 * 3), (columns - 1.5) / (0.3 * 4)
    assert_allclose(found, np.exp(-(down**2 + across**2) / 2))
    assert_array_equal(coder_of().weights, 1)


def test_a_free_mean_is_an_atom_without_penalty():
    coder = replace(coder_of(), free_mean=True, sparsity=0.7)
    assert_allclose(coder.atoms[:-1].sum(1), 0, atol=1e-5)
    assert_allclose(np.linalg.norm(coder.atoms, axis=1), 1, rtol=1e-5)
    assert_allclose(coder.atoms[-1], 12**-0.5)
    assert_array_equal(coder.penalties, [0.7] * (len(coder.atoms) - 1) + [0])
    assert coder_of(stride=1).overlapping
    assert not coder_of(stride=2).overlapping


def test_refitted_codes_are_ridge_regressions_on_the_largest(rng):
    coder = coder_of(refit=True, max_active=3, min_code=0.3, ridge=0.2)
    patches, codes = rng.standard_normal((30, 12)), rng.standard_normal((30, 20)) * (rng.random((30, 20)) < 0.15)
    patches[rng.random(patches.shape) < 0.2] = np.nan
    found, counts = refit_least_squares(patches, codes, coder)
    for patch, code, ours, count in zip(patches, codes, found, counts, strict=True):
        largest = np.argsort(-np.abs(code))[:3]
        active, known = largest[np.abs(code[largest]) > 0.3], np.isfinite(patch)
        seen = coder.atoms[active][:, known]
        expected = np.zeros(20)
        expected[active] = np.linalg.solve(seen @ seen.T + 0.2 * np.eye(len(active)), seen @ patch[known])
        assert count == max(len(active), 1)
        assert_allclose(ours, expected, atol=1e-4)


@pytest.mark.parametrize("inferred", [True, False])
def test_penalties_share_the_error_of_a_coarse_ratio(rng, inferred):
    rms, variance, sparsity = 10 ** rng.uniform(-2, 2, 200), 10 ** rng.uniform(-4, 1, 200), 0.8
    found = Penalties.choose(rms, variance, sparsity, inferred)
    residual = RESIDUAL_PENALTY[inferred] / variance * np.minimum(1, np.sqrt(variance) / rms) ** 0.5
    code = CODE_PENALTY * sparsity / rms
    ours = sparsity / found.unit
    assert_allclose(ours / found.residual, ratio_of(found.exponent))
    assert_allclose(ours * found.residual, code * residual)
    inside = np.abs(found.exponent) < RATIO_EXPONENTS[1]
    assert (np.abs(np.log(code / residual / ratio_of(found.exponent)))[inside] <= np.log(RATIO_BASE) / 2 + 1e-9).all()


def test_jobs_hold_every_patch_once_and_share_their_ratios(rng):
    patches = edge_patches(300, 4) * 10 ** rng.uniform(-3, 2, (300, 1))
    patches[::7] = 0
    noise = Jeffreys(floor=0.001, initial=0.5)
    jobs = plan(patches, noise, 1.0, 16)
    rows = np.concatenate([job.rows for job in jobs])
    assert_array_equal(np.sort(rows), np.flatnonzero(np.nan_to_num(patches).any(1)))
    for job in jobs:
        assert 0 < len(job.rows) <= 16
        assert len(np.unique(job.rest.exponent)) == len(np.unique(job.start.exponent)) == 1
        assert job.starting
    assert not any(job.starting for job in plan(patches, Stationary(0.02), 1.0, 16))


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 2.0])
def test_factors_solve_the_ridge_regression(rng, exponent):
    atoms, ratio = unit_atoms(20, 12), ratio_of(exponent)
    factors = Factors(atoms)
    found, misfit = factors.of(exponent) / 1.7, rng.standard_normal(12)
    n = len(factors.atoms)
    inverse = np.linalg.inv(atoms.T @ atoms + ratio * np.eye(12))
    assert_allclose(misfit @ found[:12, :20], atoms @ inverse @ misfit, rtol=1e-8)
    assert_allclose(misfit @ found[:12, n : n + 12], ratio * inverse @ misfit, rtol=1e-8)
    assert factors.atoms.shape == (32, 32)


def batch_of(rng, atoms):
    patches, noise = edge_patches(60, 4, seed=int(rng.integers(99)), missing=0, outliers=0), Stationary(0.05)
    return Statistics.of(patches, atoms, infer(patches, atoms, noise), noise)


@pytest.mark.parametrize("steady", [True, False])
def test_a_gradient_step_is_a_rate_over_the_largest_curvature(rng, steady):
    atoms = unit_atoms(20, 16)
    rule = Gradient(rate=1.5, decay=10.0, steady=steady)
    memory, largest = rule.start(atoms), 0.0
    for step in range(4):
        batch = batch_of(rng, atoms)
        top = np.linalg.eigvalsh(batch.products / batch.count)[-1]
        largest = max(top, largest) if steady else top
        expected = 1.5 / (1 + step / 10) * 0.05 / largest / batch.count * batch.descent
        assert_allclose(rule.move(atoms, memory, batch, step) - atoms, expected, rtol=0.03, atol=1e-9)


def test_the_coordinate_update_goes_atom_by_atom_to_the_least_of_the_bound(rng):
    atoms, rule = unit_atoms(20, 16), BlockCoordinate(averaging=0.6, damping=0.1, warm_up=2)
    memory, curvature, pull = rule.start(atoms), np.zeros((20, 20)), np.zeros((20, 16))
    for number in range(1, 5):
        batch = batch_of(rng, atoms)
        fresh = max(1 - 0.6, 1 / number)
        aim = batch.products @ atoms + batch.least_variance * batch.descent
        curvature = (1 - fresh) * curvature + fresh * batch.products / batch.count
        pull = (1 - fresh) * pull + fresh * aim / batch.count
        found, expected = rule.move(atoms, memory, batch, number), atoms.copy()
        if number > 2:
            damping = 0.1 * np.trace(curvature) / 20
            for atom in range(20):
                others = curvature[atom] @ expected - curvature[atom, atom] * expected[atom]
                best = pull[atom] + damping * atoms[atom] - others
                expected[atom] = best / np.linalg.norm(best)
        assert_allclose(found, expected, atol=1e-9)
        atoms = found


def test_atoms_are_idle_that_are_hardly_used_or_twins_of_busier_ones(rng):
    atoms, usage = unit_atoms(12, 16), rng.uniform(0.8, 1.2, 12)
    atoms[5], atoms[7] = -atoms[2], atoms[3] + 0.05 * atoms[4]
    atoms[7] /= np.linalg.norm(atoms[7])
    usage[2], usage[5], usage[3] = 1.0, 1.1, usage[7]
    usage[9] = 0.019 * np.median(usage)
    expected = []
    for atom in range(12):
        twins = [other for other in range(12) if other != atom and abs(atoms[atom] @ atoms[other]) > 0.98]
        busier = any(usage[other] > usage[atom] or (usage[other] == usage[atom] and other < atom) for other in twins)
        if busier or usage[atom] < 0.02 * np.median(usage):
            expected.append(atom)
    assert_array_equal(_idle(atoms, usage), expected)
    assert expected == [2, 7, 9]
    usage[9] = 0.021 * np.median(usage)
    assert_array_equal(_idle(atoms, usage), [2, 7])


def test_patches_that_are_represented_worst_come_first_and_those_with_holes_last():
    patches = np.arange(20.0).reshape(5, 4) + 1
    patches[1, 2], patches[3] = np.nan, 0
    found = _worst_represented(patches, np.array([1.0, 9.0, 3.0, 7.0, 2.0]))
    assert_array_equal(found, np.nan_to_num(patches)[[2, 4, 0, 1]])


def test_the_usage_of_atoms_is_a_running_mean(rng):
    pool = PatchPool(edge_patches(300, 4, missing=0), batch=64, seed=1)
    start = random_start(12, (4, 4), seed=0)
    phases = [Phase(3, Jeffreys(), Gradient(), renewal=False)]
    usage, atoms = None, start.atoms
    for step in learn(pool, start, phases=phases, rounds=16, threads=1):
        if usage is not None:
            batch = pool(step.state.step - 1)
            sums = total(accumulate(batch, atoms, Jeffreys(), 1.0, rounds=16, threads=1))
            assert_allclose(step.state.usage, 0.98 * usage + 0.02 * sums.usage / sums.count, rtol=1e-4)
            assert step.energy == pytest.approx(sums.energy / sums.count)
        usage, atoms = step.state.usage, step.state.atoms
    assert usage is not None

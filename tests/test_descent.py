"""Laws of the descent on the atoms that matter: it finds the minimum that ADMM finds, faster."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sparsedepth import infer
from sparsedepth.coding import descent
from sparsedepth.coding.descent import PaddedAtoms, descend, is_convex
from sparsedepth.coding.infer import fit_patches
from sparsedepth.coding.noise import Exponential, Jeffreys, Known, Stationary
from sparsedepth.kernels import codes as kernels
from sparsedepth.kernels.library import load

MANY = 60
"""Rounds after which every patch here is done."""


def some_atoms(pixels, n=50):
    """Draw smooth atoms, and a constant one at the end that is free."""
    atoms = np.cumsum(np.random.default_rng(1).standard_normal((n, pixels)), axis=1)
    atoms[-1] = 1
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    return atoms.astype(np.float32), np.where(np.arange(n) < n - 1, 1.2, 0.0)


def some_patches(pixels, n=29):
    """Draw patches from flat to steep, with outliers and holes; the last one has no pixel at all."""
    rng = np.random.default_rng(2)
    patches = np.cumsum(rng.standard_normal((n, pixels)), axis=1) * np.geomspace(0.01, 10, n)[:, None]
    patches += rng.standard_normal(patches.shape) + 30 * (rng.random(patches.shape) < 0.05)
    patches[rng.random(patches.shape) < 0.1] = np.nan
    patches[-1] = np.nan
    return patches.astype(np.float32)


def noises(n, pixels):
    floors = np.random.default_rng(3).uniform(0.5, 4, (n, pixels))
    return {"huber": Exponential(1.0), "huber, floors": Exponential(floors), "squares": Stationary(2.0)} | {
        "squares, floors": Known(floors)
    }


def energy_of(patches, fitted, spent, noise):
    floors = noise.floor_variance(patches).astype(float)
    q = np.where(np.isfinite(floors), np.square(np.nan_to_num(patches - fitted)) / floors, 0)
    return noise.price(q).sum(axis=1) + spent


@pytest.mark.slow
@pytest.mark.parametrize("name", noises(1, 1))
@pytest.mark.parametrize("pixels", [16, 36, 64])
def test_energy_is_as_low_as_that_of_long_inference(name, pixels):
    patches, (atoms, prices) = some_patches(pixels), some_atoms(pixels)
    noise = noises(*patches.shape)[name]
    code = infer(patches, atoms, noise, prices, tolerance=1e-7, max_rounds=2000)
    slow = energy_of(patches, code.codes @ atoms, np.abs(code.codes) @ prices, noise)
    found = energy_of(patches, *descend(patches, atoms, noise, prices, MANY), noise)
    assert (found <= slow * 1.015 + 0.3).all()


@pytest.mark.parametrize("name", noises(1, 1))
def test_no_atom_would_help_in_the_end(name):
    patches, (atoms, prices) = some_patches(64), some_atoms(64)
    noise = noises(*patches.shape)[name]
    fitted, _ = descend(patches, atoms, noise, prices, MANY)
    floors = noise.floor_variance(patches).astype(float)
    residual = np.nan_to_num(patches - fitted)
    pull = residual / (floors * noise.growth(np.square(residual) / floors))
    of_ridge = 30 * descent.RIDGE  # codes are below thirty mean residuals
    assert (np.abs(pull @ atoms.T) <= prices + 2 * descent.TOLERANCE + of_ridge).all()


def test_more_rounds_lower_the_energy():
    patches, (atoms, prices) = some_patches(64), some_atoms(64)
    noise = Exponential(1.0)
    few, some, many = (energy_of(patches, *descend(patches, atoms, noise, prices, n), noise) for n in (3, 8, MANY))
    assert (some <= few * 1.01 + 0.1).all()
    assert (many <= some * 1.001 + 0.1).all()
    assert few.sum() > some.sum() > many.sum()


@pytest.mark.parametrize("pixels", [64, 256, 576])
def test_eight_rounds_are_enough_for_large_patches_too(pixels):
    atoms = np.linalg.qr(np.random.default_rng(4).standard_normal((pixels, pixels)))[0].astype(np.float32)
    codes = np.where(np.arange(pixels) < min(pixels // 4, 64), 40.0, np.zeros((7, 1)))
    patches = (codes @ atoms).astype(np.float32)
    fitted, _ = descend(patches, atoms, Stationary(1.0), np.ones(pixels), 8)
    assert np.abs(fitted @ atoms.T - codes).max() < 2


def test_a_patch_does_not_depend_on_its_company():
    patches, (atoms, prices) = some_patches(36), some_atoms(36)
    whole = np.column_stack(descend(patches, atoms, Exponential(1.0), prices, 8))
    for rows in (slice(3, 4), slice(5, 16), np.arange(len(patches))[::-1]):
        assert_array_equal(np.column_stack(descend(patches[rows], atoms, Exponential(1.0), prices, 8)), whole[rows])


def test_infinite_variance_is_missing():
    patches, (atoms, prices) = some_patches(36), some_atoms(36)
    floors = np.where(np.isnan(patches), np.inf, 1.0)
    shown = np.where(np.isnan(patches), 1e3, patches)
    known = descend(shown, atoms, Exponential(floors), prices, 8)
    assert_array_equal(known[0], descend(patches, atoms, Exponential(1.0), prices, 8)[0])


def test_nothing_is_fitted_where_codes_only_cost():
    patches, (atoms, _) = some_patches(16), some_atoms(16)
    assert not fit_patches(patches, atoms, Exponential(1e6), 1.0, 8).any()
    assert not fit_patches(patches[-1:], atoms, Exponential(1.0), 1.0, 8).any()


def test_only_jeffreys_is_not_convex():
    assert not is_convex(Jeffreys())
    assert all(is_convex(noise) for noise in noises(1, 1).values())


def test_both_libraries_fit_the_same_bits():
    if not load("baseline").processor_has_avx2():
        pytest.skip("this processor has one library")
    patches, (atoms, prices) = some_patches(48), some_atoms(48)
    padded, n = PaddedAtoms.of(atoms, prices), len(patches)
    results = []
    for level in ("baseline", "avx2"):
        fitted, spent = np.empty_like(patches), np.empty(n, np.float32)
        arrays = (padded.rows, padded.columns, padded.prices, patches, np.ones_like(patches))
        addresses = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        scratch = np.empty(kernels.scratch(48, len(padded.rows)), np.float32)
        sizes = map(ctypes.c_int64, (n, 48, 48, len(padded.rows)))
        effort = (descent.TOLERANCE, descent.THRESHOLD_FALL, descent.RIDGE)
        effort = (*map(ctypes.c_int64, (1, 8, descent.ADMITTED, descent.SWEEPS)), *map(ctypes.c_float, effort))
        received = [ctypes.c_void_p(array.ctypes.data) for array in (scratch, fitted, spent)]
        ctypes.CDLL(load(level)._name).codes_fit(*sizes, *addresses, *effort, *received)
        results.append(np.column_stack([fitted, spent]))
    assert_array_equal(*results)
    assert_array_equal(results[0][:, :-1], descend(patches, atoms, Exponential(1.0), prices, 8)[0])

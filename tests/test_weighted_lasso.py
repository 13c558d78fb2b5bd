"""The inner problem: codes for fixed variances."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Lasso

import oracle
from conftest import edge_patches, known_variance, unit_atoms
from sparsedepth import weighted_lasso

SIDE, ATOMS = 5, 40
PIXELS = SIDE * SIDE


@pytest.fixture(scope="module")
def problem():
    return edge_patches(20, SIDE), unit_atoms(ATOMS, PIXELS), known_variance(20, PIXELS)


@pytest.mark.slow
def test_optimality_conditions(problem):
    """Where a code is not zero the gradient of the misfit is -sparsity * sign; elsewhere it is at most sparsity."""
    patches, atoms, variance = problem
    for sparsity in (0.1, 1.0, 10.0):
        codes = weighted_lasso(patches, atoms, variance, sparsity, tolerance=1e-9, max_rounds=20_000)
        weighted = np.where(np.isnan(patches), 0, (patches - codes @ atoms) / variance)
        pull = weighted @ atoms.T
        active = np.abs(codes) > 1e-6
        np.testing.assert_allclose(pull[active], sparsity * np.sign(codes[active]), rtol=2e-3)
        assert (np.abs(pull) <= sparsity * 1.002).all()


@pytest.mark.slow
def test_agrees_with_coordinate_descent(problem):
    patches, atoms, variance = problem
    codes = weighted_lasso(patches, atoms, variance, 1.0, tolerance=1e-8, max_rounds=20_000)
    exact = oracle.weighted_lasso(patches, atoms, variance, 1.0)
    ours, best = (oracle.objective(patches, atoms, c, variance, 1.0) for c in (codes, exact))
    np.testing.assert_allclose(ours, best, rtol=1e-5)
    np.testing.assert_allclose(codes, exact, atol=1e-2)


def test_agrees_with_scikit_learn(problem):
    """Lasso on rows scaled by the roots of the precisions; scikit-learn divides the misfit by the number of rows."""
    patches, atoms, variance = problem
    codes = weighted_lasso(patches, atoms, variance, 1.0, tolerance=1e-8, max_rounds=20_000)
    theirs = np.empty_like(codes)
    for row, (patch, spread) in enumerate(zip(patches, variance, strict=True)):
        root = np.sqrt(np.where(np.isnan(patch), 0, 1 / spread))
        model = Lasso(alpha=1 / PIXELS, fit_intercept=False, tol=1e-10, max_iter=100_000)
        theirs[row] = model.fit(root[:, None] * atoms.T, root * np.nan_to_num(patch)).coef_
    ours, best = (oracle.objective(patches, atoms, c, variance, 1.0) for c in (codes, theirs))
    np.testing.assert_allclose(ours, best, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", [1e-1, 1e-2, 1e-4])
def test_the_gap_bounds_the_error(problem, tolerance):
    patches, atoms, variance = problem
    codes = weighted_lasso(patches, atoms, variance, 1.0, tolerance=tolerance)
    exact = oracle.weighted_lasso(patches, atoms, variance, 1.0)
    ours, best = (oracle.objective(patches, atoms, c, variance, 1.0) for c in (codes, exact))
    assert (best * (1 - 1e-9) <= ours).all()
    assert (ours <= best / (1 - tolerance)).all()


def test_variance_may_be_one_number_or_one_row():
    patches, atoms = edge_patches(5, SIDE), unit_atoms(ATOMS, PIXELS)
    whole = weighted_lasso(patches, atoms, np.full(patches.shape, 0.1))
    np.testing.assert_array_equal(weighted_lasso(patches, atoms, 0.1), whole)
    np.testing.assert_array_equal(weighted_lasso(patches, atoms, np.full(PIXELS, 0.1)), whole)


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000), sparsity=st.floats(0.1, 100), spread=st.floats(0.1, 100))
def test_never_worse_than_zero_and_near_the_best(seed, sparsity, spread):
    patches, atoms = edge_patches(3, 4, seed=seed), unit_atoms(20, 16, seed=seed)
    variance = known_variance(3, 16, seed=seed) * spread
    codes = weighted_lasso(patches, atoms, variance, sparsity, tolerance=1e-3, max_rounds=20_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # how near 1e-6 the reference comes does not matter
        exact = weighted_lasso(patches, atoms, variance, sparsity, tolerance=1e-6, max_rounds=20_000)
    ours, best, zero = (oracle.objective(patches, atoms, c, variance, sparsity) for c in (codes, exact, 0 * exact))
    assert (ours <= zero * (1 + 1e-12)).all()
    assert (ours <= best / (1 - 1e-3)).all()

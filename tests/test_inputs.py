"""Bad input at the door: one sentence that says what came and what to do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from conftest import edge_patches, unit_atoms
from sparsedepth import InputError, Jeffreys, Known, Stationary, energy, infer, weighted_lasso

ATOMS = unit_atoms(20, 16)
PATCHES = edge_patches(5, 4)


@pytest.mark.parametrize("solver", [infer, lambda p, d, **k: weighted_lasso(p, d, 0.1, **k)], ids=["infer", "lasso"])
@pytest.mark.parametrize(
    ("patches", "atoms", "message"),
    [
        (PATCHES[0], ATOMS, "as rows"),
        (PATCHES[:, :9], ATOMS, "9 pixels but the dictionary's atoms 16"),
        (PATCHES.astype(complex), ATOMS, "real numbers"),
        (PATCHES.astype(object), ATOMS, "real numbers"),
        (np.where(PATCHES > 1, np.inf, PATCHES), ATOMS, "NaN"),
        (np.where(PATCHES > 1, -np.inf, PATCHES), ATOMS, "NaN"),
        (PATCHES * 1e200, ATOMS, "infinite or beyond"),
        (PATCHES, ATOMS[0], "atoms in rows"),
        (PATCHES, np.where(ATOMS > 0.5, np.nan, ATOMS), "finite"),
        (PATCHES, ATOMS[:0], "atoms in rows"),
        (PATCHES, 3 * ATOMS, "divide each atom"),
        ([[1.0, 2.0], [3.0]], ATOMS, "different lengths"),
    ],
)
def test_bad_arrays(solver, patches, atoms, message):
    with pytest.raises(InputError, match=message):
        solver(patches, atoms)


@pytest.mark.parametrize("sparsity", [0, -1, np.nan, np.inf])
def test_bad_sparsity(sparsity):
    with pytest.raises(InputError, match="sparsity"):
        infer(PATCHES, ATOMS, sparsity=sparsity)


@pytest.mark.parametrize("option", ["threads", "block", "max_rounds"])
def test_counts_must_be_positive(option):
    with pytest.raises(InputError, match=option):
        partial(infer, **{option: 0})(PATCHES, ATOMS)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_bad_variances(value):
    for make in (Stationary, Jeffreys, lambda v: Jeffreys(initial=v)):
        with pytest.raises(InputError, match="positive"):
            make(value)
    if value != np.inf:
        with pytest.raises(InputError, match="positive"):
            Known(np.array([1.0, value]))


def test_a_known_variance_must_fit_the_patches():
    with pytest.raises(InputError, match="one value for each pixel"):
        infer(PATCHES, ATOMS, Known(np.ones((4, 16))))
    with pytest.raises(InputError, match="one value for each pixel"):
        weighted_lasso(PATCHES, ATOMS, np.ones(9))


def test_any_layout_and_real_type_will_do():
    """Fortran order, views, read-only arrays and integers give the result of their float64 copy; float32 stays."""
    whole = infer(PATCHES, ATOMS)
    wide = np.repeat(PATCHES, 2, axis=1)[:, ::2]
    frozen = PATCHES.copy()
    frozen.flags.writeable = False
    for patches in (np.asfortranarray(PATCHES), wide, frozen):
        np.testing.assert_array_equal(infer(patches, np.asfortranarray(ATOMS)).codes, whole.codes)
    steps: Any = np.nan_to_num(PATCHES * 4).astype(np.int16)
    np.testing.assert_array_equal(infer(steps, ATOMS).codes, infer(steps.astype(float), ATOMS).codes)
    assert infer(PATCHES.astype(np.float16), ATOMS).codes.dtype == np.float64


def test_single_atoms_and_single_pixels():
    one = infer(PATCHES, ATOMS[:1])
    assert one.codes.shape == (5, 1)
    pixel = infer(np.array([[2.0], [np.nan], [0.0]]), np.ones((1, 1)))
    np.testing.assert_allclose(pixel.codes[:, 0], [2.0 - 0.01, 0, 0], atol=1e-3)


def test_bad_noise_models_and_tolerances():
    for noise in (0.01, Jeffreys, None):
        with pytest.raises(InputError, match="noise model"):
            infer(PATCHES, ATOMS, noise)  # type: ignore[arg-type]
    for tolerance in (-1.0, np.nan, "small"):
        with pytest.raises(InputError, match="tolerance"):
            infer(PATCHES, ATOMS, tolerance=tolerance)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="too small for float32"):
        infer(PATCHES.astype(np.float32), ATOMS, Stationary(1e-50))


def test_masked_arrays_are_holes():
    masked = np.ma.masked_array(np.nan_to_num(PATCHES), np.isnan(PATCHES))
    np.testing.assert_array_equal(infer(masked, ATOMS).codes, infer(PATCHES, ATOMS).codes)


def test_energy_refuses_what_does_not_fit():
    code = infer(PATCHES, ATOMS)
    for patches, codes, variance in (
        (PATCHES[0], code.codes, code.variance),
        (PATCHES, code.codes[:1], code.variance),
        (PATCHES, code.codes, code.variance[:, :3]),
        (PATCHES, code.codes, -code.variance),
    ):
        with pytest.raises(InputError):
            energy(patches, ATOMS, codes, variance)


def test_running_out_of_rounds_is_said():
    with pytest.warns(RuntimeWarning, match="allow more"):
        weighted_lasso(PATCHES, ATOMS, 1e-4, 0.01, tolerance=1e-9, max_rounds=8)


def test_blas_threads_are_given_back_after_overlapping_calls():
    def blas_threads():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = blas_threads()
    with ThreadPoolExecutor(4) as pool:
        codes = list(pool.map(lambda _: infer(PATCHES, ATOMS, threads=2).codes, range(12)))
    assert blas_threads() == before
    assert all(np.array_equal(each, codes[0]) for each in codes)

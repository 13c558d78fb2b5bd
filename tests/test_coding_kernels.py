"""The kernels of coding: each computes what a few slow lines of NumPy do, in every layout and type."""

from __future__ import annotations

import ctypes
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsedepth.coding.admm import RELAXATION, Block, Factors, plan, ratio_of
from sparsedepth.coding.matmul import ACROSS, PLAIN_LAYOUT
from sparsedepth.kernels import patches as kernels
from sparsedepth.kernels.library import load

LAYOUTS = pytest.mark.parametrize(
    ("layout", "dtype"), tuple(product((PLAIN_LAYOUT, ACROSS), (np.float32, np.float64))), ids=str
)


def atoms(dtype, n=24, pixels=16):
    drawn = np.random.default_rng(1).standard_normal((n, pixels))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(dtype)


def some_patches(dtype, n=9, pixels=16):
    rng = np.random.default_rng(2)
    patches = rng.standard_normal((n, pixels))
    patches[rng.random(patches.shape) < 0.1] = np.nan
    return patches.astype(dtype)


def blocks(noise, layout, dtype):
    patches, price = some_patches(dtype), np.ones(24)
    price[-1], price[3] = 0, 0.5
    factors = Factors(atoms(dtype), price, layout)
    for job in plan(patches, noise, 1.0, 5):
        yield patches[job.rows], Block(patches[job.rows], noise.take(job.rows), 1.0, factors, job)


def slow_step(block, codes, dual, residual, residual_dual):
    """One iteration of ADMM in float64, for variances that are inferred."""
    phi, ratio = block.factors.atoms.astype(float), ratio_of(block._exponent)
    inverse = np.linalg.inv(phi.T @ phi + ratio * np.eye(phi.shape[1]))
    wanted, shown = block.target - residual + residual_dual, codes - dual
    gap = (wanted - shown @ phi) @ inverse
    fitted_codes, misfit = shown + gap @ phi.T, residual - residual_dual + ratio * gap
    relaxed = RELAXATION * fitted_codes + (1 - RELAXATION) * codes + dual
    dual = np.clip(relaxed, -block.factors.limits, block.factors.limits)
    pixels = RELAXATION * misfit + (1 - RELAXATION) * residual + residual_dual
    load = block._floor_load * block.noise.growth(np.square(misfit) * block._per_floor)
    return relaxed - dual, dual, pixels - pixels / (1 + load), pixels / (1 + load)


@LAYOUTS
def test_an_iteration_is_that_of_the_slow_one(noise_model, layout, dtype):
    for _, block in blocks(noise_model(9, 16), layout, dtype):
        if block.starting:
            block.leave_start()
        state = [np.zeros(shape) for shape in (*[block.code_sum.shape] * 2, *[block.target.shape] * 2)]
        for _ in range(3):
            state = slow_step(block, *state)
            block.advance(1)
        close = 2e-4 if dtype == np.float32 else 1e-9
        assert_allclose(block.codes[block.real], state[0][block.real], atol=close)
        assert_allclose(block.residual_dual[block.real], state[3][block.real], atol=close)


@LAYOUTS
def test_tightening_keeps_what_codes_explain(noise_model, layout, dtype):
    for _, block in blocks(noise_model(9, 16), layout, dtype):
        if block.starting:
            block.leave_start()
        block.advance(4)
        before, unit = block.codes[block.real], block._unit[block.real]
        block.tighten()
        assert_allclose(block.codes[block.real] * block._unit[block.real], before * unit, rtol=1e-4, atol=1e-5)


def test_patches_are_cut_without_their_medians_and_added_again():
    rng = np.random.default_rng(0)
    depth = np.where(rng.random((20, 30)) < 0.2, np.nan, rng.standard_normal((20, 30))).astype(np.float32)
    places, shape = rng.choice(13 * 23, 40, replace=False), (8, 8)
    places = (places // 23 * 30 + places % 23).astype(np.int64)
    slow = np.stack([depth[at // 30 : at // 30 + 8, at % 30 : at % 30 + 8].ravel() for at in places])
    values, centres = np.empty((40, 64), np.float32), np.empty(40, np.float32)
    valid, scratch = np.empty(40, np.int64), np.empty(65, np.float32)
    kernels.cut(40, places, *shape, 30, depth, 0.5, scratch, values, centres, valid)
    assert_allclose(centres, np.nanmedian(slow, axis=1), rtol=1e-6)
    assert_allclose(values, (slow - np.nanmedian(slow, axis=1, keepdims=True)) / 0.5, atol=1e-6)
    assert_array_equal(valid, np.isfinite(slow).sum(axis=1))
    weights, sums, total = rng.random(64), np.zeros((3, 20, 30)), np.zeros((3, 20, 30))
    known, of_patch = np.nan_to_num(values), rng.random(40)
    kernels.add(40, places, *shape, 30, 600, known, np.full(40, 2.0), centres.astype(float), of_patch, weights, sums)
    for at, patch, centre, share in zip(places, known, centres.astype(float), of_patch, strict=True):
        weight, value = share * weights.reshape(shape), patch.reshape(shape).astype(float) * 2 + centre
        total[:, at // 30 : at // 30 + 8, at % 30 : at % 30 + 8] += weight * np.stack([np.ones(shape), value, value**2])
    assert_allclose(sums, total, rtol=1e-10, atol=1e-12)


def test_both_libraries_compute_the_same_bits():
    if not load("baseline").processor_has_avx2():
        pytest.skip("this processor has one library")
    numbers = np.random.default_rng(0).standard_normal((11, 32 * 64)).astype(np.float32)
    results = []
    for level in ("baseline", "avx2"):
        step, limits = np.concatenate(numbers[:2]), np.abs(numbers[2])
        codes, difference, target, dual, carried, wanted = numbers[3:9].copy()
        arrays = (step, limits, codes, difference, target, *np.abs(numbers[9:]), dual, carried, wanted)
        addresses = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        sizes = map(ctypes.c_int64, (32, 64, 64, 0))
        load(level).admm_step_float(*sizes, *addresses, ctypes.c_float(1.7), ctypes.c_int64(2))
        results.append(np.concatenate([codes, difference, dual, carried, wanted]))
    assert_array_equal(*results)

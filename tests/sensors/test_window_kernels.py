"""The kernels of one frame's noise: each computes what slow lines of NumPy do."""

from __future__ import annotations

import ctypes
import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsedepth.kernels import library
from sparsedepth.sensors import blind
from sparsedepth.sensors.blind import ROUNDING
from sparsedepth.sensors.floor import SHOWN, NoiseFloor, least_std
from sparsedepth.sensors.laws import TableLaw
from sparsedepth.sensors.settings import DEFAULT, MAD_TO_STD
from sparsedepth.sensors.windows import fit_windows, quadratic_basis


def rough_map(height, width, missing=0.1):
    rng = np.random.default_rng(height)
    y, x = np.mgrid[:height, :width] / 40
    depth = 2 + np.sin(x) * np.cos(y) + 0.01 * rng.standard_normal((height, width))
    depth[rng.random(depth.shape) < 0.03] += 1
    depth[rng.random(depth.shape) < missing] = np.nan
    return depth


def slow_median(values):
    """Return the lower median of the valid values."""
    ordered = np.sort(values[np.isfinite(values)])
    return ordered[(len(ordered) - 1) // 2] if len(ordered) else 0.0


def slow_fit(window, settings):
    """Fit one window whose every pixel is sampled: residuals in its own spread, the spread and the inliers."""
    basis, level = quadratic_basis(settings.window_px), slow_median(window)
    spread, valid = slow_median(np.abs(window - level)), np.isfinite(window)
    values, weight = np.where(valid, (window - level) / spread, 0), valid.astype(float)
    residual, scale = values, 0.0
    for _ in range(settings.fit_iterations):
        normal = (basis.T * weight) @ basis + 1e-6 * np.eye(6)
        residual = values - basis @ np.linalg.solve(normal, basis.T @ (weight * values))
        scale = max(MAD_TO_STD * slow_median(np.where(valid, np.abs(residual), np.nan)), 1e-12)
        weight = valid * np.maximum(1 - np.square(residual / (settings.tukey * scale)), 0) ** 2
    inlier = valid & (np.abs(residual) <= settings.inlier_sigmas * scale)
    std = spread * np.sqrt(np.square(residual[inlier]).sum() / max(inlier.sum() - 6, 1))
    return np.where(valid, residual, 0), inlier, std, level


@pytest.mark.parametrize("side", [16, 17])
def test_windows_are_fitted_as_one_by_one(side):
    settings = replace(DEFAULT, window_px=side, window_stride_px=side, fit_pixels=side**2, window_inliers=0.0)
    depth = rough_map(4 * side, 3 * side)
    fits = fit_windows(depth, settings)
    windows = depth.reshape(4, side, 3, side).swapaxes(1, 2).reshape(12, side**2)
    slow = [slow_fit(window, settings) for window in windows]
    assert fits.tried == len(slow) == len(fits.std)
    for at, name in enumerate(("residual", "inlier", "std", "level")):
        assert_allclose(getattr(fits, name), np.stack([each[at] for each in slow]), rtol=1e-3, atol=2e-4)


def slow_shown(depth):
    """Compute what second differences show around each pixel."""
    padded = np.pad(depth, 1, constant_values=np.nan)
    height, width = depth.shape

    def at(down, right):
        return padded[1 + down : 1 + down + height, 1 + right : 1 + right + width]

    ways = ((0, 1), (1, 0), (1, 1), (1, -1))
    differences = np.stack([np.abs(at(down, right) + at(-down, -right) - 2 * depth) for down, right in ways])
    enough = np.isfinite(differences).sum(axis=0) > 1
    shown = np.where(enough, np.fmin.reduce(differences), np.nan)
    for _ in range(2):
        shown = slow_median_of_three(slow_median_of_three(shown).T).T
    return np.where(np.isfinite(depth), np.nan_to_num(shown) / SHOWN, np.nan)


def slow_median_of_three(values):
    padded = np.pad(values, ((0, 0), (1, 1)), constant_values=np.nan)
    left, right = padded[:, :-2], padded[:, 2:]
    centre = np.where(np.isnan(values), np.fmin(left, right), values)
    left, right = (np.where(np.isnan(side), centre, side) for side in (left, right))
    return np.maximum(np.minimum(left, centre), np.minimum(np.maximum(left, centre), right))


@pytest.mark.parametrize("shape", [(40, 50), (1, 30), (30, 1), (2, 3), (3, 3)])
@pytest.mark.parametrize("missing", [0.0, 0.3, 0.8])
def test_the_floor_is_that_of_the_slow_one(shape, missing):
    depth = rough_map(shape[0], shape[1], missing)
    assert_array_equal(least_std(depth), slow_shown(depth))


@pytest.mark.parametrize("n_steps", [1, 4])
@pytest.mark.parametrize("lengths", [(), (0.02,), (1e-3, 5e-3, 4e-2, 0.3)])
def test_variances_are_raised_as_pixel_by_pixel(n_steps, lengths):
    value, scale, centre = rough_map(60, 70) - 2, 0.7, 1.9
    law = TableLaw((0.9, 1.1, 1.9, 2.6)[: len(lengths)], lengths) if lengths else None
    rng = np.random.default_rng(n_steps)
    variance, (valid, kept) = rng.exponential(1e-3, value.shape), rng.random((2, *value.shape)) < 0.5
    variance[rng.random(value.shape) < 0.1] = np.inf
    floor = NoiseFloor(np.linspace(1.0, 2.5, n_steps), np.linspace(0.01, 0.1, n_steps), law, 0.4)
    depth = value * scale + centre
    rounding = np.where(np.isnan(depth), np.nan, np.interp(depth, floor.depths, floor.steps)) / ROUNDING
    least = np.where(valid, np.maximum(slow_shown(depth), rounding), rounding)
    if law is not None:
        least = np.where(kept, np.maximum(least, 0.4 * law(depth)), least)
    slow = np.fmax(variance, np.square(least / scale))
    assert_allclose(floor.raised(variance, value, valid, kept, scale, centre), slow, rtol=1e-13)


def test_depths_whose_logarithms_are_equal_are_one_knot():
    depths = (1.0, np.nextafter(3.0, 0), 3.0, np.nextafter(3.0, 9), 9.0)
    assert len(set(np.log(depths))) < len(depths)
    law, value = TableLaw(depths, (0.1, 0.2, 0.2, 0.2, 0.4)), np.array([[0.5, 1.0, 2.0, 3.0, 5.0, 9.0, 20.0]])
    floor, everywhere = NoiseFloor(np.zeros(1), np.zeros(1), law, 1.0), np.ones(value.shape, bool)
    with warnings.catch_warnings(action="error"):
        raised = floor.raised(np.zeros(value.shape), value, ~everywhere, everywhere)
    assert_allclose(raised, np.square(law(value)), rtol=1e-11)


@pytest.mark.parametrize("unit", [1e-150, 1e-3, 1.0, 1e4, 1e150])
def test_the_noise_of_windows_is_exact_in_any_unit(unit):
    value = np.random.default_rng(0).uniform(-1, 4, (30, 40)) * unit
    law = TableLaw(tuple(np.array([0.5, 1.0, 3.0]) * unit), tuple(np.array([1e-3, 1.0, 0.2]) * unit))
    floor, everywhere = NoiseFloor(np.zeros(1), np.zeros(1), law, 1.0), np.ones(value.shape, bool)
    raised = floor.raised(np.zeros(value.shape), value, ~everywhere, everywhere)
    assert_allclose(raised, np.square(law(value)), rtol=1e-11)


def slow_frequent(values):
    """Keep the values that are at least a tenth as frequent as that of a usual pixel of similar rank."""
    unique, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    pixels, squares = (np.concatenate([[0], np.cumsum(part)]) for part in (counts, counts**2))
    kept = np.zeros(len(unique), bool)
    for at, count in enumerate(counts):
        middle, reach = (pixels[at] + pixels[at + 1]) / 2, DEFAULT.frequent_part * len(values)
        first = max(np.flatnonzero(pixels <= middle - reach).max(initial=0), 0)
        last = min(np.flatnonzero(pixels >= middle + reach).min(initial=len(unique)), len(unique))
        usual = (squares[last] - squares[first]) / (pixels[last] - pixels[first])
        kept[at] = count >= DEFAULT.frequent_ratio * usual
    return values[kept[number]]


@pytest.mark.parametrize("levels", [1, 12, 60, 10**6])
def test_rare_values_among_frequent_ones_are_left_out(levels):
    rng = np.random.default_rng(levels)
    values = np.floor(levels * rng.random(900)) / levels
    values[rng.random(900) < 0.1] += 1e-3
    assert_array_equal(blind._frequent(values, DEFAULT), slow_frequent(values))
    assert (len(slow_frequent(values)) < 900) == (levels in (12, 60))


@pytest.mark.parametrize("levels", [1, 5, 1000])
@pytest.mark.parametrize("parts", [1, 3, 7])
def test_equal_values_are_split_in_their_order(levels, parts):
    values = np.random.default_rng(parts).integers(0, levels, 50).astype(float)
    slow = np.array_split(np.argsort(values, kind="stable"), parts)
    for found, expected in zip(blind._ranked_parts(values, parts), slow, strict=True):
        assert_array_equal(np.sort(found), np.sort(expected))


def call(level, name, *arguments):
    """Call a kernel of one library."""
    kinds = {int: ctypes.c_int64, float: ctypes.c_double, np.float32: ctypes.c_float}
    given = [kinds[type(a)](a) if type(a) in kinds else ctypes.c_void_p(a.ctypes.data) for a in arguments]
    getattr(ctypes.CDLL(library.load(level)._name), name)(*given)


def test_both_libraries_fit_windows_and_floors_with_the_same_bits():
    if not library.load("baseline").processor_has_avx2():
        pytest.skip("this processor has one library")
    depth, side, results = rough_map(50, 61), 17, []
    places, sample = np.array([0, 61 * 9 + 30, 61 * 33 + 44]), np.arange(0, side**2, 2)
    mask, steps = np.ones(depth.shape, np.uint8), np.array([[1.0, 2.0], [0.01, 0.02], [0.01, 0.0]])
    law = np.array([[-1.0, 0.2, 1.0], [-6.0, -3.0, -5.0], [2.5, -2.5, 0.0]])
    for level in ("baseline", "avx2"):
        standard, surface, counts = np.zeros((3, 3)), np.zeros((3, 7), np.float32), np.zeros((3, 2), np.int64)
        residual, inlier, sums = np.zeros((3, side**2), "f4"), np.zeros((3, side**2), "u1"), np.zeros((2, 2, 6))
        scratch, keys, raised = np.zeros(5000, np.float32), np.zeros(len(sample), np.int64), np.zeros(depth.shape)
        limits = (np.float32(1.4826), np.float32(4.685), np.float32(4), scratch, keys)
        call(
            level, "windows_fit", 3, side, 61, len(sample), depth, places, sample, 5, *limits, standard, surface, counts
        )
        fitted = (places, standard, surface, scratch)
        call(level, "windows_residuals", 3, side, 61, depth, *fitted, residual, inlier)
        call(level, "windows_products", 3, side, 6, residual, inlier, scratch, sums)
        tables = (2, steps, 3, law, 1e-6, np.zeros(13 * 61 + 2), raised)
        call(level, "floor_raise", 50, 61, depth, 0.7, 1.9, SHOWN, mask, mask, *tables)
        results.append([each.tobytes() for each in (standard, surface, counts, residual, inlier, sums, raised)])
        assert (counts[:, 0] > 100).all()
        assert np.isfinite(sums).all()
    assert results[0] == results[1]


def test_both_libraries_fill_holes_with_the_same_bits():
    if not library.load("baseline").processor_has_avx2():
        pytest.skip("this processor has one library")
    depth, results = rough_map(30, 41, 0.6), []
    missing = np.isnan(depth)
    n, pixels = int(missing.sum()), missing.size
    for level in ("baseline", "avx2"):
        number, places, ends = np.zeros((34, 45), np.int32), np.zeros(n, np.int32), np.zeros(n, np.int64)
        call(level, "plates_number", 30, 41, missing.view(np.uint8), np.zeros((2, n), np.int32), number, places, ends)
        parts = int(np.flatnonzero(ends == n)[0]) + 1
        room = (np.zeros(40 * pixels), np.zeros(40 * pixels, np.int32), np.zeros(10 * pixels, np.uint8))
        plate, limits = np.nan_to_num(depth), (np.array([300, 80]), np.array([1e-2, 5e-2]), 1e-8)
        robust = plate.copy()
        weights = (3, 0.02, -0.65)
        call(level, "plates_fill", 30, 41, number, places, parts, ends, *limits, *weights, *room, plate, robust)
        results.append((plate.tobytes(), robust.tobytes()))
        assert np.isfinite(robust).all()
    assert results[0] == results[1]

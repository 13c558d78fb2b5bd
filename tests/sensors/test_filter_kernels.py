"""The compiled filters of frames beside SciPy's, and beside themselves on other processors and flipped maps."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import ndimage

from sparsedepth.kernels import library, sensor_filters
from sparsedepth.sensors.filters import blurred, slopes, tilted_bilateral, total_variation

SHAPES = [(1, 1), (1, 7), (6, 1), (5, 4), (16, 8), (31, 45)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("std_px", [0.4, 1.5, 12.0])
def test_a_blur_is_that_of_scipy(shape, std_px, rng):
    values = rng.standard_normal(shape).astype(np.float32)
    assert_allclose(blurred(values, std_px), ndimage.gaussian_filter(values, std_px, truncate=3.0), atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_rises_are_those_of_sobel(shape, rng):
    values = rng.standard_normal(shape).astype(np.float32)
    found = np.empty_like(values), np.empty_like(values)
    sensor_filters.rises(*shape, values, *found)
    for axis in (0, 1):
        assert_allclose(found[axis], ndimage.sobel(values, axis) / 8, atol=1e-6)


def slow_total_variation(values, weight, iterations):
    """Fast gradient projection, picture by picture."""
    across, down = np.zeros_like(values), np.zeros_like(values)
    ahead, momentum = (across, down), 1.0

    def primal(across, down):
        return values + weight * (across + down - np.roll(across, 1, 1) - np.roll(down, 1, 0))

    for _ in range(iterations):
        picture = primal(*ahead) / (8 * weight)
        new = [ahead[0].copy(), ahead[1].copy()]
        new[0][:, :-1] += np.diff(picture, axis=1)
        new[1][:-1] += np.diff(picture, axis=0)
        norm = np.maximum(np.hypot(*new), 1)
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = tuple(
            n / norm + (momentum - 1) / following * (n / norm - b) for n, b in zip(new, (across, down), strict=True)
        )
        across, down, momentum = new[0] / norm, new[1] / norm, following
    return primal(across, down)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("iterations", [1, 2, 20])
def test_total_variation_is_its_definition(shape, iterations, rng):
    values = 5 * rng.standard_normal(shape)
    found = total_variation(values, 3.0, iterations)
    assert_allclose(found, slow_total_variation(values, 3.0, iterations), atol=1e-4)


@pytest.mark.parametrize("flip", [np.fliplr, np.flipud, np.transpose])
def test_filters_commute_with_flips(flip, rng):
    rows, columns = np.mgrid[:60, :50]
    values = (0.4 * rows - 0.7 * columns + 30 * (rows + columns > 50)).astype(np.float32)
    values += rng.standard_normal(values.shape).astype(np.float32)
    used, flipped = rng.random(values.shape) < 0.8, flip(values)
    pilot = blurred(values, 1.0)
    found, expected = tilted_bilateral(flipped, flip(pilot), flip(used)), tilted_bilateral(values, pilot, used)
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, flip(other), atol=2e-3)
    down, across = slopes(flip(pilot))
    assert_allclose(np.hypot(down, across), flip(np.hypot(*slopes(pilot))), atol=1e-5)


def call(level, name, *arguments):
    """Call a kernel of one library."""
    kinds = {int: ctypes.c_int64, float: ctypes.c_float}
    given = [kinds[type(a)](a) if type(a) in kinds else ctypes.c_void_p(a.ctypes.data) for a in arguments]
    getattr(ctypes.CDLL(library.load(level)._name), name)(*given)


def test_both_libraries_filter_with_the_same_bits(rng):
    if not library.load("baseline").processor_has_avx2():
        pytest.skip("this processor has one library")
    values = (20 * rng.standard_normal((37, 53))).astype(np.float32)
    weights, pushes = np.geomspace(0.2, 0.01, 6).astype(np.float32), np.linspace(0, 0.8, 9, dtype=np.float32)
    offsets = np.array([(rows, columns) for rows in (-8, 0, 3) for columns in (-60, -4, 0, 5, 9)])
    spatial = rng.random(len(offsets)).astype(np.float32)
    used = (rng.random(values.shape) < 0.7).astype(np.float32)
    results = []
    for level in ("baseline", "avx2"):
        smooth, down, across, blurry, *sums = np.empty((7, *values.shape), np.float32)
        call(level, "sensor_variation", 37, 53, values, 3.0, 9, pushes, np.zeros(4 * values.size + 212, "f4"), smooth)
        call(level, "sensor_rises", 37, 53, smooth, down, across)
        call(level, "sensor_blur", 37, 53, 5, weights, values, np.empty(2 * 58, "f4"), blurry)
        maps = (smooth, down, across, used, used * values, offsets, spatial, len(offsets), -0.125)
        call(level, "sensor_tilted", 37, 53, 0, 37, *maps, *sums)
        results.append(np.stack([smooth, down, across, blurry, *sums]))
    assert np.isfinite(results[0]).all()
    assert_array_equal(*results)

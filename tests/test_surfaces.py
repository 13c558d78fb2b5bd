"""Thin plates through the valid pixels of a map."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.ndimage import binary_erosion

from sparsedepth import surfaces
from sparsedepth.surfaces import SurfaceSettings, interpolate


def plane(shape=(40, 50)):
    y, x = np.mgrid[: shape[0], : shape[1]]
    return 0.3 * x - 0.1 * y + 2


def exact(iterations: int, tolerance: float) -> SurfaceSettings:
    """Solve the systems of both plates to a tolerance."""
    return SurfaceSettings(
        plate_iterations=iterations,
        plate_tolerance=tolerance,
        robust_iterations=iterations,
        robust_tolerance=tolerance,
    )


def test_surfaces_through_a_plane_are_the_plane():
    depth = plane()
    holes = np.random.default_rng(0).random(depth.shape) < 0.6
    for filled in interpolate(np.where(holes, np.nan, depth), settings=exact(2000, 1e-9)):
        assert_allclose(filled, depth, atol=1e-4)
        assert_array_equal(filled[~holes], depth[~holes])


def test_the_thin_plate_has_the_least_bending_energy():
    rng = np.random.default_rng(1)
    depth = rng.standard_normal((12, 12))
    holes = rng.random(depth.shape) < 0.4
    best = interpolate(np.where(holes, np.nan, depth), settings=exact(5000, 1e-10)).plate

    def bending(surface):
        rows, columns = (np.diff(surface, 2, axis=axis) for axis in (0, 1))
        return np.square(rows).sum() + np.square(columns).sum() + 2 * np.square(np.diff(np.diff(surface), axis=0)).sum()

    for _ in range(20):
        other = best + np.where(holes, 0.1 * rng.standard_normal(depth.shape), 0)
        assert bending(best) <= bending(other)


def test_the_robust_plate_follows_a_crease_that_the_thin_plate_rounds_off():
    roof = np.abs(np.arange(40.0) - 19.5) * np.ones((40, 1)) / 11.5
    holes = np.random.default_rng(2).random(roof.shape) < 0.8
    plate, robust = (np.square(each - roof).sum() for each in interpolate(np.where(holes, np.nan, roof)))
    assert robust < plate / 2


@pytest.mark.parametrize("shape", [(20, 33), (31, 17), (1, 9)])
def test_local_averages_lie_within_the_range_and_flip_with_the_map(shape):
    rng = np.random.default_rng(1)
    depth = np.where(rng.random(shape) < 0.9, np.nan, rng.random(shape))
    depth[0, 0] = 0.5
    guess = surfaces._local_averages(depth)
    assert np.nanmin(depth) <= guess.min() <= guess.max() <= np.nanmax(depth)
    assert_array_equal(guess[np.isfinite(depth)], depth[np.isfinite(depth)])
    assert_allclose(surfaces._local_averages(depth[::-1, ::-1].T), guess[::-1, ::-1].T, rtol=1e-12)


def test_without_a_valid_pixel_the_surface_is_zero():
    assert_array_equal(interpolate(np.full((4, 4), np.nan)), 0)


def slow_averages(total, weight):
    """Average sums by their weights, blended with those of half the size where the weight is below one."""
    share = np.minimum(weight, 1)
    mean = total / np.where(weight > 0, weight, 1)
    if total.size == 1 or share.min() == 1:
        return mean
    coarse = slow_averages(*(slow_half(slow_half(part).T).T for part in (total, weight)))
    coarse = slow_double(slow_double(coarse, total.shape[0]).T, total.shape[1]).T
    return coarse + share * (mean - coarse)


def slow_half(values):
    """Add pairs of rows; of an odd number, each second one and half of its neighbours."""
    if len(values) % 2 == 0 or len(values) == 1:
        return values[::2] + values[1::2] if len(values) > 1 else values
    half = values[::2].copy()
    half[1:] += values[1::2] / 2
    half[:-1] += values[1::2] / 2
    return half


def slow_double(values, size):
    """Interpolate twice as many rows."""
    if size == 1:
        return values
    double = np.empty((size, *values.shape[1:]))
    if size % 2 == 0:
        padded = np.concatenate([values[:1], values, values[-1:]])
        double[::2] = 0.75 * values + 0.25 * padded[:-2]
        double[1::2] = 0.75 * values + 0.25 * padded[2:]
    else:
        double[::2], double[1::2] = values, (values[1:] + values[:-1]) / 2
    return double


@pytest.mark.parametrize("shape", [(20, 33), (31, 17), (1, 9), (8, 1), (1, 1), (2, 2)])
def test_local_averages_are_those_of_slow_sums(shape):
    rng = np.random.default_rng(3)
    depth = np.where(rng.random(shape) < 0.7, np.nan, rng.standard_normal(shape))
    valid = np.isfinite(depth)
    slow = slow_averages(np.where(valid, depth, 0.0), valid.astype(float))
    assert_allclose(surfaces._local_averages(depth), slow, rtol=1e-12, atol=1e-12)


def second_differences(shape):
    """Return the matrix of all second differences within a map; those across count twice in squares."""
    index, rows = np.arange(shape[0] * shape[1]).reshape(shape), []
    for pixels, factors in (
        ((index[:-2], index[1:-1], index[2:]), (1, -2, 1)),
        ((index[:, :-2], index[:, 1:-1], index[:, 2:]), (1, -2, 1)),
        ((index[:-1, :-1], index[:-1, 1:], index[1:, :-1], index[1:, 1:]), np.sqrt(2) * np.array([1, -1, -1, 1])),
    ):
        row = np.zeros((pixels[0].size, index.size))
        for which, factor in zip(pixels, factors, strict=True):
            row[np.arange(len(row)), which.ravel()] = factor
        rows.append(row)
    return np.concatenate(rows)


def slow_plates(depth, settings):
    """Minimise the energy of both plates by dense least squares."""
    matrix, missing = second_differences(depth.shape), np.isnan(depth).ravel()
    filled = np.nan_to_num(depth).ravel()
    fixed, found, weights = matrix @ filled, [], np.ones(len(matrix))
    for _ in range(settings.reweightings + 1):
        root = np.sqrt(weights)
        filled[missing] = np.linalg.lstsq(root[:, None] * matrix[:, missing], -root * fixed, rcond=None)[0]
        found.append(filled.reshape(depth.shape).copy())
        weights = (1 + np.square(matrix @ filled / settings.bend_scale)) ** (settings.exponent / 2 - 1)
    return found[0], found[-1]


@pytest.mark.parametrize("fraction", [0.2, 0.6])
@pytest.mark.parametrize("shape", [(13, 17), (5, 30), (2, 9), (9, 2)])
def test_both_plates_are_those_of_dense_least_squares(shape, fraction):
    rng = np.random.default_rng(4)
    depth = np.where(rng.random(shape) < fraction, np.nan, rng.standard_normal(shape))
    depth[:, depth.shape[1] // 3] = np.nan
    depth[0, :3] = depth[-1, -2:] = rng.standard_normal()
    settings = exact(20000, 1e-12)
    for found, slow in zip(interpolate(depth, settings=settings), slow_plates(depth, settings), strict=True):
        assert_allclose(found, slow, atol=1e-4)


def test_a_hole_that_is_skipped_keeps_its_guess_far_from_its_border():
    rng, settings = np.random.default_rng(5), exact(500, 1e-6)
    depth, skip = rng.standard_normal((50, 60)).cumsum(0), np.zeros((50, 60), bool)
    skip[15:, 10:45] = True
    depth[skip] = depth[3, 5] = np.nan
    guessed = surfaces._local_averages(depth) == interpolate(depth, skip, settings).plate
    deep = binary_erosion(skip, iterations=settings.context_px, border_value=1)
    assert deep.any()
    assert_array_equal(guessed, deep | np.isfinite(depth))

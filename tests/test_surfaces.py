"""Thin plates through the valid pixels of a map."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

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

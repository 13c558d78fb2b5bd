"""Filters, warps and measurements of frames, each beside its slow definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsedepth.sensors import Correlation
from sparsedepth.sensors.estimate import binned_std, measure, unbiased_errors
from sparsedepth.sensors.filters import slopes, tilted_bilateral
from sparsedepth.sensors.settings import DEFAULT
from sparsedepth.sensors.variance import mean_correlation, squared_residual, variance_ratio
from sparsedepth.sensors.views import stacked_views, warped
from sparsedepth.sensors.windows import _autocovariance, fit_windows
from sparsedepth.vocabulary import Floats


def slow_bilateral(counted, pilot, used, settings):
    """The weighted mean over a wide grid and the adjacent pixels, pixel by pixel."""
    down, across = slopes(pilot, settings)
    steps = range(-settings.reach_px, settings.reach_px + 1, settings.stride_px)
    offsets = {(y, x): np.exp(-(y**2 + x**2) / 2 / settings.spatial_px**2) for y in steps for x in steps}
    offsets |= {(y, x): settings.near_weight for y in (-1, 0, 1) for x in (-1, 0, 1)} | {(0, 0): 1.0}
    value, samples = np.empty(pilot.shape), np.empty(pilot.shape)
    for y, x in np.ndindex(pilot.shape):
        terms = []
        for (by, bx), spatial in offsets.items():
            there = y + by, x + bx
            if min(there) < 0 or there[0] >= pilot.shape[0] or there[1] >= pilot.shape[1] or not used[there]:
                continue
            rise = (down[y, x] + down[there]) / 2 * by + (across[y, x] + across[there]) / 2 * bx
            away = (pilot[there] - pilot[y, x] - rise) / settings.range_sigmas
            terms.append((spatial * np.exp(-(away**2) / 2), counted[there] - rise))
        weight, values = np.array(terms).T
        value[y, x] = weight @ values / weight.sum()
        samples[y, x] = weight.sum() ** 2 / (weight @ weight)
    return value, samples


def test_the_tilted_filter_is_its_definition(rng):
    settings = replace(DEFAULT, reach_px=4, stride_px=2, spatial_px=3.0, slope_px=2.0)
    rows, columns = np.mgrid[:13, :17].astype(np.float32)
    pilot = 0.7 * columns - 0.4 * rows + 6 * (columns > 8) + rng.standard_normal((13, 17)).astype(np.float32)
    counted = pilot + rng.standard_normal(pilot.shape).astype(np.float32)
    used = rng.random(pilot.shape) < 0.7
    value, samples = tilted_bilateral(counted.astype(np.float32), pilot.astype(np.float32), used, settings)
    expected, expected_samples = slow_bilateral(counted, pilot, used, settings)
    assert_allclose(value, expected, atol=1e-4)
    assert_allclose(samples, expected_samples, rtol=1e-3)


@pytest.mark.parametrize("slope", [0.5, 8.0, -8.0])
@pytest.mark.parametrize("down", [False, True])
def test_a_step_does_not_change_the_slopes_beside_it(slope, down):
    columns = np.mgrid[:80, :80][1].astype(np.float32)
    surface = slope * columns + 300 * (columns >= 40)
    found = slopes(surface.T if down else surface)
    along, other = found if down else found[::-1]
    inner = slice(36, 44)
    assert_allclose(along[inner, inner], slope, atol=0.02)
    assert_allclose(other[inner, inner], 0, atol=0.02)


@pytest.mark.parametrize("size", [0.5, -2.0, 7.0])
def test_squared_residuals_of_a_constant_are_its_square_up_to_a_limit(rng, size):
    used = rng.random((40, 50)) < 0.6
    found = squared_residual(np.where(used, size, 1e6), used)
    assert_allclose(found, min(abs(size), 3.0) ** 2, rtol=1e-3)


@pytest.mark.parametrize(("length", "unseen"), [(1.0, 0.0), (2.9, 0.5), (9.0, 1.0)])
@pytest.mark.parametrize("white", [0.0, 0.4])
def test_variance_after_smoothing_is_that_of_white_correlated_and_unseen_noise(length, unseen, white):
    samples, correlation = np.array([[2.0, 9.0, 500.0]]), Correlation(length, length, 1.3, white)
    kept = np.maximum(mean_correlation(samples, correlation), unseen * DEFAULT.unseen)
    expected = DEFAULT.bias + white / samples + (1 - white) * kept
    one, used = np.ones((1, 3)), np.ones((1, 3), bool)
    assert_allclose(variance_ratio(0 * one, one, samples, used, correlation), expected, rtol=1e-6)
    for excess in (2.0, 100.0):
        rough = expected * min(excess, DEFAULT.largest_excess)
        found = variance_ratio(0 * one, excess * one, samples, used, correlation)
        assert_allclose(found, np.minimum(rough, DEFAULT.largest_ratio), rtol=1e-6)
    for residual in (-1.9, 3.0, -5.0):
        more = variance_ratio(residual * one, one, samples, used, correlation) - expected
        assert_allclose(more, DEFAULT.misfit * max(residual**2 - DEFAULT.misfit_from**2, 0), atol=1e-9)
        assert_allclose(variance_ratio(residual * one, one, samples, ~used, correlation), expected, rtol=1e-6)


def moved(surface, motion, intrinsics):
    """The map that a camera sees of points of a surface, point by point."""
    fx, fy, cx, cy = intrinsics
    seen = np.full(surface.shape, np.nan)
    for y, x in np.argwhere(np.isfinite(surface)):
        z = surface[y, x]
        there = motion[:3, :3] @ [(x - cx) / fx * z, (y - cy) / fy * z, z] + motion[:3, 3]
        if there[2] <= 0:
            continue
        column, row = round(there[0] / there[2] * fx + cx), round(there[1] / there[2] * fy + cy)
        if 0 <= row < surface.shape[0] and 0 <= column < surface.shape[1]:
            seen[row, column] = np.fmin(seen[row, column], there[2])
    return seen


@pytest.mark.parametrize(("turn", "forward"), [(0.2, 0.0), (-0.3, 0.6), (0.0, -1.5), (3.0, 0.0)])
def test_warping_moves_every_point_and_keeps_the_nearest(rng, turn, forward):
    motion = np.eye(4)
    motion[0, 0] = motion[2, 2] = np.cos(turn)
    motion[0, 2], motion[2, 0] = np.sin(turn), -np.sin(turn)
    motion[:3, 3] = 0.1, -0.2, forward
    surface, camera = 1 + rng.random((20, 30)), (25.0, 31.0, 14.3, 10.1)
    surface[3:5] = np.nan
    assert_allclose(warped(surface, motion, camera), moved(surface, motion, camera), rtol=1e-12)


def test_smooth_errors_of_poses_are_removed_and_what_does_not_fit_is_left_out(rng):
    rows, columns = np.mgrid[:48, :64]
    y, x = rows / 47 * 2 - 1, columns / 63 * 2 - 1
    inverse = 1e-3 * (1 + 0.2 * rng.random((48, 64)))
    errors = 1e-5 * rng.standard_normal((6, 7))
    errors[3] = 0
    terms = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y, inverse / 1e-3])
    frames = 1 / (inverse + np.tensordot(errors, terms, 1) + 1e-9 * rng.standard_normal((6, 48, 64)))
    frames[1, 10:14, 20:24] *= 1.3
    stack = stacked_views(list(frames), [np.eye(4)] * 6, (60.0, 60.0, 31.5, 23.5), DEFAULT)
    assert_array_equal(stack[3], frames[3])
    assert np.isnan(stack[1, 10:14, 20:24]).all()
    assert np.isfinite(stack).sum() == stack.size - 16
    assert np.nanmax(np.abs(1 / stack - inverse)) < 2e-8


def frames_of_a_room(rng, number=9):
    """Frames of a slanted wall with noise that grows with depth, missing pixels and outliers."""
    wall = 800 + 10.0 * np.arange(80) * np.ones((60, 1))
    std = 3e-6 * wall**2
    frames = wall + std * rng.standard_normal((number, *wall.shape))
    frames[rng.random(frames.shape) < 0.1] = np.nan
    return frames, wall, std


def trimmed_mean(values):
    """The mean of the values near their median."""
    values = values[np.isfinite(values)]
    middle = np.median(values)
    spread = max(1.4826 * np.median(np.abs(values - middle)), 1e-6 * middle)
    return values[np.abs(values - middle) <= max(3 * spread, 1e-3 * middle)].mean()


def autocorrelation(residual, lag, axis):
    """The mean product of clipped residuals that lie so many pixels apart, over all frames."""
    clipped = np.moveaxis(np.clip(residual, -3, 3), 1 + axis, 0)
    return np.nanmean(clipped[lag:] * clipped[: len(clipped) - lag]) / np.nanmean(clipped**2)


def test_a_measurement_is_made_of_trimmed_means_and_their_residuals(rng):
    frames, wall, std = frames_of_a_room(rng)
    found = measure(frames, None, None, DEFAULT)
    for y, x in rng.integers(0, (60, 80), (200, 2)):
        if np.isfinite(found.stack[:, y, x]).any():
            assert found.mean[y, x] == pytest.approx(trimmed_mean(found.stack[:, y, x]), rel=1e-12)
    assert_allclose(found.residual, (found.stack - found.mean) / found.total(found.mean), rtol=1e-6)
    assert_allclose(found.total(wall[0]), std[0], rtol=0.08)
    for axis, lag in ((1, 1), (1, 7), (0, 1), (0, 3)):
        expected = autocorrelation(found.residual, lag, axis)
        assert found.autocorrelation[1 - axis, lag] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("drift", "stays"), [(4.0, True), (-4.0, True), (6.0, False), (-6.0, False)])
def test_pixels_that_drift_are_left_out(rng, drift, stays):
    frames, wall, std = frames_of_a_room(rng, 10)
    gap = drift * std[30, 40] * np.sqrt(1 / 5 + 1 / 5)
    frames[:5, 30, 40], frames[5:, 30, 40] = wall[30, 40] + gap / 2, wall[30, 40] - gap / 2
    assert np.isfinite(measure(frames, None, None, DEFAULT).stack[:, 30, 40]).all() == stays


def test_a_pixel_that_varies_much_more_than_others_at_its_depth_is_left_out(rng):
    frames, wall, std = frames_of_a_room(rng, 10)
    for column, ratio in ((20, 1.5), (60, 2.6)):
        frames[::2, 30, column] = wall[30, column] + ratio * std[30, column]
        frames[1::2, 30, column] = wall[30, column] - ratio * std[30, column]
    stack = measure(frames, None, None, DEFAULT).stack
    assert np.isfinite(stack[:, 30, 20]).all()
    assert np.isnan(stack[:, 30, 60]).all()


def test_errors_from_the_mean_have_the_variance_of_the_noise(rng):
    frames, _, _ = frames_of_a_room(rng)
    errors = unbiased_errors(frames, np.nanmean(frames, axis=0))
    assert_allclose(np.nanmean(errors**2, axis=0), np.nanvar(frames, axis=0, ddof=1))


def test_standard_deviations_in_bins_are_those_of_the_noise(rng):
    depth = rng.uniform(1000, 2000, 60_000)
    depths, stds = binned_std(1e-6 * depth**2 * rng.standard_normal((2, depth.size)), depth, 10, DEFAULT)
    assert_allclose(depths, np.arange(1050, 2000, 100), rtol=0.01)
    assert_allclose(stds, 1e-6 * depths**2, rtol=0.03)


def quadric(shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    rows, columns = np.mgrid[: shape[0], : shape[1]] / 50
    terms = np.stack([np.ones(shape), rows, columns, rows**2, rows * columns, columns**2])
    return 5 + np.tensordot(rng.standard_normal(6), terms, 1)


def test_windows_show_the_standard_deviation_around_any_quadric(rng):
    surface = quadric((120, 150), rng)
    exact = fit_windows(surface, DEFAULT)
    assert len(exact.std) == exact.tried == 6 * 8
    assert exact.std.max() < 1e-4
    noisy = surface + 0.3 * rng.standard_normal(surface.shape)
    noisy[rng.random(surface.shape) < 0.1] = np.nan
    found = fit_windows(noisy, DEFAULT)
    assert np.mean(found.std**2) == pytest.approx(0.09, rel=0.02)
    assert np.mean(found.std**2 * (found.inlier.sum(1) - 6) / found.inlier.sum(1)) < 0.0902
    assert_array_equal(found.residual[~found.inlier & (found.residual == 0)], 0)
    windows = np.lib.stride_tricks.sliding_window_view(noisy, (32, 32))[::16, ::16].reshape(-1, 1024)
    assert_array_equal(np.nanmin(windows, 1) < found.level, True)
    assert np.abs(found.level - np.nanmedian(windows, 1)).max() < 0.2


@pytest.mark.parametrize(("density", "count"), [(0.76, 1), (0.84, 2)])
def test_windows_that_are_much_sparser_than_the_densest_say_nothing(rng, density, count):
    values = rng.standard_normal((32, 48))
    values[:, 32:] = np.where(np.arange(512).reshape(32, 16) < 512 * (2 * density - 1), values[:, 32:], np.nan)
    assert fit_windows(values, DEFAULT).tried == count


def test_autocovariances_of_windows_are_means_over_pairs_of_inliers(rng):
    settings = replace(DEFAULT, window_px=9, window_stride_px=9, correlation_lags=4, fit_pixels=81)
    values = rng.standard_normal((27, 27))
    values[rng.random(values.shape) < 0.1] = np.nan
    fits = fit_windows(values, settings)
    scaled = np.where(fits.inlier, fits.residual, np.nan)
    scaled = (scaled / np.sqrt(np.nanmean(scaled**2, axis=1, keepdims=True))).reshape(-1, 9, 9)
    found, zero = _autocovariance(fits, settings), np.nanmean(scaled**2)
    for lag in (1, 2, 3):
        across, down = scaled[:, :, lag:] * scaled[:, :, :-lag], scaled[:, lag:] * scaled[:, :-lag]
        assert found[0][lag - 1] == pytest.approx(np.nanmean(across) / zero, abs=1e-5)
        assert found[1][lag - 1] == pytest.approx(np.nanmean(down) / zero, abs=1e-5)

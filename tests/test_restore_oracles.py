"""Formulas of restoration, pixel by pixel: features, mixtures, bounds of noise and variances."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm

from sparsedepth import Restoration
from sparsedepth.missing import distance_to_valid, holes_containing_patch
from sparsedepth.neighbourhood import nearest_depth_distance
from sparsedepth.ranks import Steps
from sparsedepth.restore import dense, inpainting, noise_model, variance_filled
from sparsedepth.restore.artefacts import OutlierClusters, StuckPixels, small_components
from sparsedepth.restore.dense import NoiseLevel, Shrinkage, Smoothed
from sparsedepth.restore.flying import Candidates, FlyingPixels
from sparsedepth.restore.inpainting import blend_weight
from sparsedepth.restore.noise_model import ImpulseNoise, simulate
from sparsedepth.restore.outliers import OutlierModel, Posterior, shipped_classifier
from sparsedepth.restore.pipeline import Corrector, Survey, patch_coder
from sparsedepth.restore.scores import (
    PixelScores,
    difference_floor,
    quantization_step,
)
from sparsedepth.restore.settings import (
    ClusterSettings,
    DenseSettings,
    FilledVarianceSettings,
    FlyingSettings,
    GuideSettings,
    NoiseModelSettings,
    OutlierSettings,
    ScoreSettings,
    Settings,
    SimulationSettings,
    StuckSettings,
    VarianceSettings,
)
from sparsedepth.restore.variance_filled import (
    MEAN_WINDOWS_PX,
    ScatteredVariance,
    extrapolate_variance,
    features_of_filled,
)
from sparsedepth.restore.variance_measured import (
    LOG_RANGE_KNOTS,
    LocalRange,
    MapNoise,
    MeasuredCoefficients,
    MeasuredVariance,
    ambiguity,
    blend_error,
    expected_error,
    missed_outlier_error,
    pool_most_certain,
)
from sparsedepth.sensors.differences import (
    GAUSSIAN_QUANTILE,
    HIGH_QUANTILE,
    LOW_QUANTILE,
    block_depths,
    block_quantiles,
)
from sparsedepth.surfaces import interpolate
from sparsedepth.tiling import Tile

NOISE = ImpulseNoise(fraction=0.05, amplitude=0.7, score_threshold=9.0, asymmetry=0.4)


def scores_of(rng, shape, **more):
    """Scores of pixels without any meaning."""
    given = {
        "value": rng.standard_normal(shape),
        "patch_variance": 0.01 * rng.random(shape),
        "residual": rng.standard_normal(shape),
        "score": 3 * rng.random(shape),
        "local_residual": 0.02 * rng.random(shape),
        "weight": np.ones(shape),
        "near_border": rng.random(shape) < 0.2,
    }
    return PixelScores(**(given | more))


def window(values, y, x, radius, fill=np.nan):
    """The pixels around one, (2 radius + 1) squared."""
    padded = np.pad(values.astype(float), radius, constant_values=fill)
    return padded[y : y + 2 * radius + 1, x : x + 2 * radius + 1]


def around(values, y, x, radius):
    """The values around a pixel without its own."""
    found = window(values, y, x, radius).ravel()
    return np.delete(found, len(found) // 2)


def logarithm(value):
    return np.log(np.clip(value, 1e-3, 1e4))


def nearest(distances, rank):
    return np.sort(np.where(np.isnan(distances), np.inf, distances))[rank]


def middle_of(values, fraction):
    values = np.sort(values[np.isfinite(values)])
    return values[round(fraction * (len(values) - 1))] if len(values) else 0.0


def slow_features(depth, scores, y, x, floor):
    """The features of one pixel of a map."""
    size, value = abs(scores.residual[y, x]), depth[y, x]
    suspect, valid = scores.score > 1, np.isfinite(depth)
    here = [logarithm(size / NOISE.amplitude), np.log(NOISE.fraction), np.log(NOISE.amplitude)]
    here += [logarithm(scores.score[y, x]), logarithm(size / floor)]
    here += [logarithm(np.sqrt(scores.patch_variance[y, x]) / floor), logarithm(scores.local_residual[y, x] / floor)]
    here += [window(valid, y, x, side // 2, 0).sum() / side**2 for side in (3, 5)]
    for side in (5, 9, 21):
        others = np.nansum(around(suspect, y, x, side // 2))
        here.append(min(others / max(np.nansum(around(valid, y, x, side // 2)), 1), 1))
    here.append(logarithm(window(np.minimum(np.abs(scores.residual), 1), y, x, 10, 0).mean() / floor))
    for radius, ranks in ((1, (0, 1, 3)), (2, (0, 1, 2, 4, 7)), (3, (0, 3, 10))):
        distances = np.abs(around(depth, y, x, radius) - value)
        here += [logarithm(nearest(distances, rank) / floor) for rank in ranks]
    close, wide = (around(depth, y, x, radius) for radius in (1, 2))
    here += [logarithm(abs(value - middle_of(each, 0.5)) / floor) for each in (close, wide)]
    low, high = middle_of(wide, 0), middle_of(wide, 1)
    outside = max(value - high, low - value) / floor
    here += [np.sign(outside) * np.log1p(abs(outside)), logarithm((high - low) / floor)]
    here.append((np.abs(wide - value) < size / 2).sum())
    sign = np.sign(scores.residual)
    nearby = np.nansum(around(np.where(suspect, sign, 0), y, x, 10)) / (np.nansum(around(suspect, y, x, 10)) + 1)
    isolated = not scores.near_border[y, x] and scores.local_residual[y, x] <= 0.01
    here += [sign[y, x] * nearby, 0 if isolated else sign[y, x] * NOISE.asymmetry]
    ring = window(depth, y, x, 9)[::3, ::3].copy()
    ring[2:5, 2:5] = np.nan
    return [*here, *(logarithm(nearest(np.abs(ring.ravel() - value), rank) / floor) for rank in (0, 3))]


def model_of(step=0.0, enabled=True):
    return OutlierModel(NOISE, step, enabled, Settings(), shipped_classifier())


def test_features_are_their_definitions(rng):
    depth = rng.standard_normal((30, 34)).astype(np.float32)
    depth[rng.random(depth.shape) < 0.25] = np.nan
    scores, where = scores_of(rng, depth.shape), np.isfinite(depth) & (rng.random(depth.shape) < 0.2)
    found = model_of(0.1).features(Tile.full(depth), scores, where)
    floor = np.hypot(0.01, 0.3 * 0.1)
    expected = [slow_features(depth, scores, y, x, floor) for y, x in np.argwhere(where)]
    assert_allclose(found, expected, atol=2e-3)


@pytest.mark.parametrize("spread", [0.002, 0.1])
def test_a_block_is_uniform_if_its_range_is_small_beside_the_residual(rng, spread):
    depth = (rng.standard_normal((20, 25)) * spread).astype(np.float32)
    depth[rng.random(depth.shape) < 0.1] = np.nan
    scores = scores_of(rng, depth.shape, residual=0.2 * rng.standard_normal(depth.shape))
    found = model_of().in_uniform_block(Tile.full(depth), scores)
    for y, x in np.ndindex(depth.shape):
        three = window(depth, y, x, 1)
        blocks = [np.ptp(three[a : a + 2, b : b + 2]) for a in (0, 1) for b in (0, 1)]
        limit = max(0.01, 0.7 * abs(scores.residual[y, x]))
        assert found[y, x] == any(block <= limit for block in blocks)


def test_residuals_beyond_three_amplitudes_cost_log_odds(rng):
    residual = np.array([[0.0, 2.0, 2.1, 2.4, -2.8, 9.0]])
    open_sea = scores_of(rng, residual.shape, residual=residual, near_border=np.ones(residual.shape, bool))
    expected = np.clip((9 - (residual / NOISE.amplitude) ** 2) / 2, -8, 0)
    assert_allclose(model_of().amplitude_penalty(open_sea), expected)
    calm = replace(open_sea, near_border=np.zeros(residual.shape, bool), local_residual=np.full(residual.shape, 0.01))
    assert_array_equal(model_of().amplitude_penalty(calm), 0)
    rough = replace(calm, local_residual=np.full(residual.shape, 0.0101))
    assert_allclose(model_of().amplitude_penalty(rough), expected)


@pytest.mark.parametrize("sensor", [1e-4, 0.02, 0.5])
def test_a_measurement_with_a_variance_meets_codes_that_may_have_failed(rng, sensor):
    depth = np.zeros((4, 9), np.float32)
    residual = np.broadcast_to(np.linspace(-1.5, 1.5, 9), depth.shape)
    scores = scores_of(rng, depth.shape, residual=residual, score=np.zeros(depth.shape))
    found = model_of(enabled=False)(Tile.full(depth, np.full(depth.shape, sensor, np.float32)), scores).weight
    right = sensor + 3 * scores.patch_variance + 0.01**2
    fits, fails = (norm.pdf(residual, 0, np.sqrt(variance)) for variance in (right, sensor + 1))
    assert_allclose(found, sensor / right / (1 + 5e-4 * fails / fits), rtol=1e-4, atol=1e-12)


def test_a_blend_moves_by_the_weight_of_the_codes(rng):
    depth = np.array([[1.0, 2.0, np.nan]])
    scores = scores_of(rng, depth.shape, residual=np.array([[0.5, -0.5, 0.0]]))
    posterior = Posterior(np.zeros((1, 3)), np.array([[0.2, 1.0, 1.0]]))
    assert_allclose(posterior.blend(depth, scores), [[0.9, 2.5, np.nan]])
    assert_array_equal(model_of().outliers(Tile.full(depth.astype(np.float32)), posterior), [[False, True, False]])


def test_two_nearest_neighbours_in_depth_are_averaged(rng):
    depth = rng.standard_normal((15, 17)).astype(np.float32)
    depth[rng.random(depth.shape) < 0.6] = np.nan
    depth[:6, :6] = np.nan
    depth[2, 2] = 1
    found = nearest_depth_distance(depth)
    for y, x in np.ndindex(depth.shape):
        distances = np.sort(np.abs(around(depth, y, x, 2) - depth[y, x]))
        distances = distances[np.isfinite(distances)][:2]
        assert found[y, x] == pytest.approx(distances.mean() if len(distances) else 0, abs=1e-6)


def test_steps_between_pixels_are_those_of_rows_and_columns():
    depth = np.array([[0.0, 1.0, 1.0], [4.0, 3.0, np.nan]])
    assert Steps.of(depth).median == np.median([1, 0, 1, 4, 2])
    assert Steps.of(np.full((1, 1), 3.0)).median == 0
    levels = 0.25 * np.random.default_rng(0).integers(0, 3, (40, 40)) * (np.arange(40) % 4 > 0)
    assert quantization_step(Steps.of(levels), ScoreSettings()) == 0.25
    assert quantization_step(Steps.of(np.zeros((4, 4))), ScoreSettings()) == 0
    assert quantization_step(Steps.of(np.random.default_rng(0).standard_normal((40, 40))), ScoreSettings()) == 0


def test_the_floor_of_differences_is_that_of_three_independent_errors():
    tile = Tile.full(np.array([[1.0, np.nan]], np.float32), np.array([[0.04, 0.3]], np.float32))
    found = difference_floor(tile, 0.5, ScoreSettings())
    assert_allclose(found**2, [[0.01**2 + 0.15**2 + 0.04, 0.01**2 + 0.15**2 + 1]], rtol=1e-6)


def slow_candidates(depth, step, similar, settings):
    """Pixels without similar neighbours between two sides, one after the other."""
    sides = depth.copy()
    for y, x in np.ndindex(depth.shape):
        if (np.abs(around(depth, y, x, 1) - depth[y, x]) <= similar).sum() < settings.min_similar_neighbours:
            sides[y, x] = np.nan
    offsets = np.array([(a, b) for a in range(-2, 3) for b in range(-2, 3) if (a, b) != (0, 0)])
    weight = np.exp(-(offsets**2).sum(1) / 2)
    for y, x in np.ndindex(depth.shape):
        near = around(sides, y, x, 2)
        if np.isnan(depth[y, x]) or np.isfinite(sides[y, x]) or not np.isfinite(near).any():
            continue
        lowest, highest = np.nanmin(near), np.nanmax(near)
        enough = np.isfinite(around(depth, y, x, 1)).sum() >= settings.min_valid_neighbours
        if highest - lowest <= step or not enough:
            continue
        up, known = near > (lowest + highest) / 2, np.isfinite(near)
        down = known & ~up
        low, high = (np.average(near[side], weights=weight[side]) for side in (down, up))
        spread = np.where(up, near - high, near - low)[known]
        thin = min(similar, settings.max_face_spread * (highest - lowest))
        flat = ((near <= lowest + thin) | (near >= highest - thin) | ~known).all()
        faces = flat and min(up.sum(), down.sum()) >= settings.min_face_px
        variance = np.average(spread**2, weights=weight[known])
        yield y * depth.shape[1] + x, low, high, variance, faces, (depth[y, x] - low) / (high - low)


def mixed(rng, shape=(48, 40)):
    """Two depths with noise, holes and mixtures at their borders."""
    rows, columns = np.indices(shape)
    depth = np.where((rows // 8 + columns // 10) % 2, 0.0, 1.0) + 0.02 * rng.standard_normal(shape)
    depth[rng.random(shape) < 0.08] = 0.4
    depth[rng.random(shape) < 0.05] = np.nan
    depth[:, 39] = 0.5 * rng.standard_normal(shape[0])
    return depth.astype(np.float32)


@pytest.mark.parametrize(("spread", "least"), [(0.2, 10), (0.05, 3)])
def test_candidates_for_mixtures_are_those_of_the_definition(rng, spread, least):
    depth, settings = mixed(rng), FlyingSettings(max_face_spread=spread)
    found = FlyingPixels(0.3, 0.06, settings).candidates(depth)
    expected = list(slow_candidates(depth, 0.3, 0.06, settings))
    assert len(expected) > 60
    number, low, high, variance, faces, position = map(np.array, zip(*expected, strict=True))
    assert_array_equal(found.number, number)
    assert_array_equal(found.between_faces, faces)
    assert least < faces.sum() < len(faces)
    for ours, theirs in ((found.low, low), (found.high, high), (found.position, position)):
        assert_allclose(ours, theirs, atol=1e-5)
    assert_allclose(found.side_variance, variance, atol=1e-6)


def test_a_mixture_is_snapped_if_its_side_is_sure_and_else_weighted():
    settings, on = FlyingSettings(own_depth_weight=8.0), np.zeros((7, 24), bool)
    position = np.array([-0.5, 0.005, 0.2, 0.5, 0.6, 0.9, 0.995])
    number = np.arange(7) * 2
    low, high, variance = np.full(7, 1.0), np.full(7, 3.0), np.full(7, 0.01)
    found = Candidates(number, low, high, variance, on[:, 0], position, on, on)
    p = expit(8 * (position - 0.5))
    assert_allclose(found.high_probability(settings), p)
    depth = np.full((2, 7), 9.0, np.float32)
    snapped, flying, extra = found.snap(depth, settings)
    assert_array_equal(np.flatnonzero(flying), [4, 6, 8, 10])
    assert_array_equal(snapped[~flying], 9)
    inner = slice(2, 6)
    target = np.where(p > 0.8, 1, np.where(p < 0.2, 0, p))[inner]
    assert_allclose(snapped[flying], 1 + 2 * target, rtol=1e-6)
    wrong = p[inner] * (1 - target) ** 2 + (1 - p[inner]) * target**2
    assert_allclose(extra[flying], 4 * wrong + 0.01, rtol=1e-6)
    assert_array_equal(extra[~flying], 0)


def test_pixels_beside_steps_gain_the_variance_of_what_is_missed(rng):
    found = FlyingPixels(0.3, 0.06, FlyingSettings(), missed=0.02)
    depth = mixed(rng)
    removal = found.remove(Tile.full(depth))
    snapped, gained = removal.tile.depth, np.asarray(removal.variance)
    for y, x in np.argwhere(~removal.corrupted & np.isfinite(depth)):
        here = window(snapped, y, x, 1)
        step = np.nanmax(here) - np.nanmin(here)
        assert gained[y, x] == pytest.approx(0.02 * step**2 if step > 0.3 else 0, abs=1e-6)


def test_steps_are_counted_by_their_mixtures(rng):
    flying = FlyingPixels(0.3, 0.06, FlyingSettings())
    sides, depth = rng.integers(0, 2, (2, 20, 23)).astype(np.float32)
    depth = depth + 0.1 * rng.standard_normal(depth.shape).astype(np.float32)
    sides[rng.random(sides.shape) < 0.2] = np.nan
    mixtures = np.flatnonzero(rng.random(sides.size) < 0.5)
    mixed_at, counts = np.isin(np.arange(sides.size), mixtures).reshape(sides.shape), np.zeros(4, int)
    for ours, theirs, those in ((sides, depth, mixed_at), (sides.T, depth.T, mixed_at.T)):
        for y, x in np.ndindex(ours.shape):
            column, at = ours[y:, x], those[y:, x]
            counts[0] += len(column) > 1 and abs(column[1] - column[0]) > 0.3
            counts[1] += len(column) > 2 and at[1] and abs(column[2] - column[0]) > 0.3
            if len(column) > 3 and at[1] and at[2] and abs(column[3] - column[0]) > 0.3:
                ordered = (theirs[y + 2, x] - theirs[y + 1, x]) * (column[3] - column[0]) > 0
                counts[2 if ordered else 3] += 1
    assert_array_equal(flying._count_transitions(depth, sides, mixtures), counts)


def test_simulated_noise_and_held_out_pixels_are_as_frequent_as_is_said():
    chosen, tile = SimulationSettings(), Tile.full(np.zeros((90, 130), np.float32))
    runs = [simulate(tile, 1.0, np.random.default_rng(seed), chosen) for seed in range(12)]
    noise = np.concatenate([run.noise.ravel() for run in runs])
    assert (noise != 0).mean() == pytest.approx(chosen.noisy_fraction, rel=0.15)
    held_out = np.mean([run.held_out.mean() for run in runs])
    assert held_out == pytest.approx(chosen.held_out_fraction * (1 - chosen.noisy_fraction), rel=0.15)
    sizes = np.abs(noise[noise != 0])
    grid = np.linspace(0.01, 5, 2000)
    mean = np.trapezoid(grid * noise_model.magnitude_density(grid, 1.0), grid)
    assert sizes.mean() == pytest.approx(mean, rel=0.05)
    assert np.mean(sizes**2) == pytest.approx(0.5, rel=0.1)
    assert abs(noise.mean()) < 0.003


def test_many_holes_hold_out_more_pixels_and_none_by_turning():
    chosen, depth = SimulationSettings(), np.zeros((100, 100), np.float32)
    depth[:40] = np.nan
    run = simulate(Tile.full(depth), 1.0, np.random.default_rng(0), chosen)
    assert run.held_out[:, 40:].mean() == pytest.approx(chosen.held_out_fraction_many_holes, rel=0.35)
    depth[:] = 0
    depth[5:15, 20:40] = np.nan
    run = simulate(Tile.full(depth), 1.0, np.random.default_rng(0), chosen)
    assert (run.held_out | (run.noise != 0))[:, 85:95, 60:80].all()


def slow_bound(scores, n, noisy, weight, settings):
    """The least, over thresholds, of how many pixels exceed one, over how much of the noise does."""
    counting = noisy >= 0
    total, bounds = weight[counting].sum(), []
    for quantile in np.linspace(0, settings.max_quantile, settings.n_quantiles):
        left = [(score, weight[noisy >= score].sum()) for score in np.sort(noisy[counting])]
        score, mass = [each for each in left if each[1] >= total * (1 - quantile) - 1e-12][-1]
        bounds.append((((scores >= score).sum() + 1) / n / max(mass, 1e-3), score))
    least, score = min(bounds, key=lambda each: each[0])
    return min(1.0, least), score


@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_the_bound_of_the_fraction_is_its_definition(rng, scale):
    settings = replace(NoiseModelSettings(), n_quantiles=7)
    noisy = np.where(rng.random(80) < 0.1, -1, scale * rng.random(80))
    weight = rng.random(80) / 40
    scores = np.sort(rng.random(300))
    found, threshold = noise_model._bound_fraction(scores, 400, noisy, weight, settings)
    expected, score = slow_bound(scores, 400, noisy, weight, settings)
    assert found == pytest.approx(expected)
    assert threshold < score == pytest.approx(threshold)


def test_the_asymmetry_counts_signs_and_is_small_for_few():
    settings = NoiseModelSettings()
    assert noise_model._asymmetry(np.array([1.0, 2.0, -3.0, 4.0]), settings) == pytest.approx(2 / 9)
    assert noise_model._asymmetry(np.empty(0), settings) == 0


def test_blends_err_by_what_probability_and_weight_leave(rng):
    scores = scores_of(rng, (50,))
    p, weight = rng.random((2, 50))
    expected = (p * (1 - weight) ** 2 + (1 - p) * weight**2) * scores.residual**2
    assert_allclose(blend_error(scores, Posterior(p, weight)), expected)


def noise_of_map():
    coefficients = MeasuredCoefficients(
        np.linspace(-4, 0, 9), np.array([0.5, -0.2]), np.array([-3.0, 0.4]), 0.1 * np.arange(7), 0.2 * np.arange(4)
    )
    return MapNoise(NOISE, coefficients, -1.3)


def test_expected_errors_are_sums_of_what_was_missed_kept_and_corrected(rng):
    noise, settings, scores = noise_of_map(), VarianceSettings(), scores_of(rng, (40,))
    close, wide = rng.uniform(-4, 0.9, (2, 40))
    p, weight = np.where(rng.random(40) < 0.3, 0, rng.random(40)), rng.random(40)
    corrected, given = weight > 0.6, noise.coefficients
    found = expected_error(noise, LocalRange(close, wide), scores, Posterior(p, weight), corrected, settings)
    about = np.log(np.maximum(scores.local_residual, 1e-3))
    missed = np.interp(wide, LOG_RANGE_KNOTS, given.missed) + 0.5 * about - 0.2 * np.log(0.05)
    missed = np.exp(np.minimum(missed + np.log(0.05) - np.log(0.7), settings.max_log_error))
    assert_allclose(missed_outlier_error(noise, wide, about, settings), missed, rtol=2e-6)
    left = blend_error(scores, Posterior(p, weight))
    kept = np.where(p > 0, left + np.exp(-3.0) * left**0.4, left)
    some = np.clip(p, 1e-6, 1 - 1e-6)
    clean = expit(0.2 * np.log(some / (1 - some)) + 0.4 * np.log(np.maximum(scores.score, 1e-3)) + 0.6 * -1.3)
    disagreement = np.log(np.maximum(scores.patch_variance, 1e-6))
    wrong = 0.1 * about + 0.2 * disagreement + 0.3 * np.log(0.05) + 0.4 * scores.near_border + 0.5 * close + 0.6 * wide
    after = clean * (weight * scores.residual) ** 2 + (1 - clean) * expit(wrong)
    assert_allclose(found, np.where(corrected, after, missed + kept), rtol=2e-6)


def test_the_most_certain_pixels_share_the_mean_of_their_part(rng):
    settings, expected = VarianceSettings(), rng.random(1000)
    limit, pooled = pool_most_certain(expected, settings)
    assert (expected <= limit).mean() == pytest.approx(settings.pooled_fraction, abs=0.002)
    assert pooled == pytest.approx(expected[expected <= limit].mean())


def test_pixels_are_pooled_up_to_the_limit_and_not_where_they_were_corrected(rng):
    noise, settings, restored = noise_of_map(), VarianceSettings(), rng.standard_normal((8, 9))
    scores, posterior = scores_of(rng, restored.shape), Posterior(np.zeros((8, 9)), np.zeros((8, 9)))
    ranges, corrected = LocalRange.of(restored, settings.range_floor), rng.random((8, 9)) < 0.2
    expected = expected_error(noise, ranges, scores, posterior, corrected, settings)
    limit = np.sort(expected[~corrected])[20]  # that of a pixel, which is pooled as well
    found = MeasuredVariance(noise, limit, 7.0, settings)(restored, scores, posterior, corrected)
    assert_array_equal(found, np.where(corrected | (expected > limit), expected, 7.0))
    assert (found == 7).sum() == 21


def test_ambiguity_is_the_mean_of_p_times_one_minus_p_over_that_of_p(rng):
    settings, p = VarianceSettings(), rng.random(1000)
    first, second = settings.ambiguity_prior
    assert ambiguity(p, settings) == pytest.approx(np.log(((p * (1 - p)).sum() + first) / (p.sum() + second)))
    assert ambiguity(np.zeros(3), settings) == pytest.approx(np.log(first / second))


def test_the_root_of_range_noise_is_linear_in_depth():
    level = NoiseLevel(0.2, DenseSettings(), (1.0, 3.0), 2.0)
    found = level.at_depth(np.array([0.0, 1.0, 2.0, 3.0, 9.0, np.nan]))
    assert_allclose(np.sqrt(found / 0.2), [1, 1, 1.5, 2, 2, 1])
    sigmas = DenseSettings().outlier_sigmas
    assert_array_equal(level.exceeded(np.array([0.99, -1.01]) * sigmas * 0.45, np.array([2.0, 2.0])), [False, True])


def test_shrinkage_removes_the_part_of_what_smoothing_would_that_is_noise(rng):
    """Where texture has as much variance as noise, half of what is removed is noise."""
    flat, sigma = np.zeros((200, 200)), np.ones((200, 200))
    texture, noise = rng.standard_normal((2, 200, 200))
    spread = rng.random((200, 200))
    textured = np.where(spread > 0.5, 1.0, 0.0)
    once = Smoothed(textured * texture + noise, flat, spread, sigma)
    again = Smoothed(flat + noise, flat, spread, sigma)
    found = Shrinkage.fit([(once, again)], VarianceSettings())(once)
    assert np.median(found[spread > 0.6]) == pytest.approx(0.5, abs=0.05)
    assert np.median(found[spread < 0.4]) == pytest.approx(1.0, abs=0.05)


def test_the_step_of_least_squares_lies_between_none_and_all():
    step = np.array([1.0, 2.0])
    for factor, expected in ((0.3, 0.3), (-1.0, 0.0), (1.7, 1.0)):
        assert blend_weight(step, factor * step) == pytest.approx(expected)
    assert blend_weight(np.zeros(2), step) == 1


def test_holes_contain_a_patch_where_all_of_its_pixels_are_missing(rng):
    for shape in ((3, 3), (4, 6), (5, 4)):
        missing = rng.random((30, 32)) < 0.8
        missing[3:13, 5:16] = missing[25:, 27:] = True
        expected = np.zeros_like(missing)
        for y in range(30 - shape[0] + 1):
            for x in range(32 - shape[1] + 1):
                block = np.s_[y : y + shape[0], x : x + shape[1]]
                expected[block] |= missing[block].all()
        assert_array_equal(holes_containing_patch(missing, shape), expected)


def test_the_distance_to_valid_pixels_is_that_of_a_king(rng):
    missing = rng.random((20, 22)) < 0.95
    apart = np.abs(np.argwhere(np.ones_like(missing))[:, None] - np.argwhere(~missing)).max(2)
    assert_array_equal(distance_to_valid(missing).ravel(), apart.min(1))


def test_a_large_hole_goes_on_from_variances_that_a_law_explains(rng):
    """Where the variances around a hole are those of a law times a number, so are those within it."""
    settings = FilledVarianceSettings()
    filled = 0.1 * rng.standard_normal((40, 40)).cumsum(0)
    missing, inner = np.zeros((2, 40, 40), bool)
    missing[8:32, 8:32], inner[14:26, 14:26] = True, True
    law = np.array([-4.0, 0.3, 0.0, 0.0, 0.0])
    rows = features_of_filled(filled, missing, 1.0, settings, scattered=False)
    variance = np.zeros((40, 40))
    variance[missing] = 3 * np.exp(rows @ law)
    known = np.where(inner, 0, variance)
    found = extrapolate_variance(filled, missing, known, settings, law)
    assert_allclose(found[missing], variance[missing], rtol=1e-6)
    assert_array_equal(found[~missing], 0)


def test_clusters_have_the_step_around_them_over_its_spread(rng):
    settings, depth = ClusterSettings(), 0.001 * rng.standard_normal((60, 60)).astype(np.float32)
    depth[20:24, 30:35] += 0.8
    found = small_components(depth, 0.3, settings)
    assert len(found.area) == 1
    assert found.area[0] == 20
    rises, inside = [], found.number == 0
    within = []
    for y, x in np.argwhere(inside):
        for v, w in product(range(y - 1, y + 2), range(x - 1, x + 2)):
            if (v, w) != (y, x):
                (within if inside[v, w] else rises).append(float(depth[y, x] - depth[v, w]))
    assert found.offset[0] == pytest.approx(np.mean(rises), abs=1e-6)
    spread = np.var(rises) + np.mean(np.square(within)) + settings.step_floor**2
    assert found.score[0] == pytest.approx(np.mean(rises) / np.sqrt(spread), rel=1e-4)


def test_missed_clusters_are_those_that_are_not_found_again():
    settings, depth = ClusterSettings(), np.zeros((60, 80), np.float32)
    for number, offset in enumerate((0.8, -0.8, 0.8, -0.8)):
        depth[10:14, 10 + 14 * number : 14 + 14 * number] += offset
    found = OutlierClusters((0.3,), settings)
    expected = (0 * 4 + 1) / (4 + 1)
    square = 4 * 16 * 0.8**2 / depth.size
    assert found._estimate_missed(depth) == pytest.approx(square * expected / (1 - expected), rel=1e-5)
    assert found._median_offset(depth) == pytest.approx(0.8)


def smallest_window(values, valid, y, x, enough):
    """The valid values in the smallest window around a pixel that holds enough of them, or in the largest."""
    for side in MEAN_WINDOWS_PX:
        here = tuple(slice(max(at - side // 2, 0), at + side // 2 + 1) for at in (y, x))
        if side**2 >= enough and (valid[here].sum() >= enough or side == MEAN_WINDOWS_PX[-1]):
            return values[here][valid[here]]
    raise AssertionError


@pytest.mark.parametrize("scattered", [True, False])
def test_features_of_filled_pixels_are_their_definitions(rng, scattered):
    settings = replace(FilledVarianceSettings(), min_for_mean=12)
    filled, missing = rng.standard_normal((26, 30)), rng.random((26, 30)) < 0.7
    missing[8:20, 8:22] = True
    found = features_of_filled(filled, missing, 0.3, settings, scattered=scattered)
    differences = np.zeros(filled.shape)
    for y, x in np.argwhere(~missing):
        around_it = smallest_window(filled, ~missing, y, x, 3)
        count = len(around_it)
        differences[y, x] = ((filled[y, x] - around_it.mean()) * count / max(count - 1, 1)) ** 2
    close, broad = (np.pad(filled, side // 2, mode="edge") for side in (3, 15))
    for row, (y, x) in zip(found, np.argwhere(missing), strict=True):
        far = np.abs(np.argwhere(~missing) - (y, x)).max(1).min()
        wide = np.var(broad[y : y + 15, x : x + 15])
        if scattered:
            around_it = smallest_window(differences, ~missing, y, x, 12)
            wide = around_it.mean() if len(around_it) else 0.0
        near = np.var(close[y : y + 3, x : x + 3])
        share = np.pad(missing, 7, mode="edge")[y : y + 15, x : x + 15].mean()
        assert_allclose(row, [1, np.log(far), np.log1p(near / 0.3), np.log1p(wide / 0.3), share], atol=2e-3)


def test_the_line_of_a_map_is_the_likeliest_for_gamma_distributed_errors(rng):
    settings, prior = FilledVarianceSettings(), np.array([-0.5, 1.0])
    away = rng.uniform(-1, 1, 400)
    squared = np.exp(0.4 + 0.6 * away) * rng.standard_normal(400) ** 2
    line, variance = variance_filled._fit_line(away, squared, prior, settings)

    def cost(numbers):
        along = numbers[0] + numbers[1] * away
        likelihood = (along + squared * np.exp(-along)).sum() / settings.pixels_per_sample
        return likelihood + (((numbers - prior) / settings.prior_std) ** 2).sum() / 2

    assert_allclose(line, minimize(cost, prior, tol=1e-10).x, atol=1e-4)
    sums = np.array([400, (away**2).sum()]) / settings.pixels_per_sample
    assert_allclose(variance, 1 / (sums + 1 / np.square(settings.prior_std)))
    few, wide = variance_filled._fit_line(np.empty(0), np.empty(0), prior, settings)
    assert_array_equal(few, prior)
    assert_allclose(wide, np.square(settings.prior_std))


def test_a_law_of_scattered_holes_is_its_line_with_its_uncertainty(rng):
    settings, filled = FilledVarianceSettings(), 0.2 * rng.standard_normal((30, 30))
    missing = rng.random((30, 30)) < 0.4
    law = np.array([-3.0, 0.2, 0.3, 0.1, 0.4])
    given = ScatteredVariance(0.05, -2.0, np.array([-1.8, 1.3]), np.array([0.1, 0.02]), 0.004, settings, law)
    away = features_of_filled(filled, missing, 0.05, settings, scattered=True) @ law + 2
    expected = 0.05 * np.exp(-1.8 + 1.3 * away + (0.1 + 0.02 * away**2) / 2)
    assert (expected > 0.004).any()
    assert (expected < 0.004).any()
    found = given(filled, missing)
    assert_allclose(found[missing], np.minimum(expected, 0.004))
    assert_array_equal(found[~missing], 0)
    assert variance_filled.mean_held_out_error(np.array([1.0, 2.0]), settings) == pytest.approx(3.02 / 3)


def discs(above, below):
    depth = np.zeros((120, 120), np.float32)
    for number, offset in enumerate([0.8] * above + [-0.8] * below):
        y, x = 10 + 14 * (number // 7), 10 + 14 * (number % 7)
        depth[y : y + 4, x : x + 4] += offset
    return depth


@pytest.mark.parametrize(
    ("above", "below", "symmetric"), [(3, 3, True), (3, 2, False), (3, 12, True), (3, 15, False), (12, 3, True)]
)
def test_clusters_lie_on_both_sides_of_their_surroundings(above, below, symmetric):
    """12 and 3 differ by 9 < 2.5 sqrt(15); 15 and 3 by 12 > 2.5 sqrt(18)."""
    found = OutlierClusters.fit(Tile.full(discs(above, below)), 0.0, Settings())
    assert (found is not None) == symmetric
    if found is not None:
        assert found.steps == (0.15, 0.3, 0.6)
        assert found.max_offset == pytest.approx(6 * 0.8)


@pytest.mark.parametrize(("side", "compact"), [(8, True), (9, False)])
def test_a_cluster_is_at_most_eight_pixels_wide(side, compact):
    depth = np.zeros((60, 60), np.float32)
    depth[20 : 20 + side, 30:34] = 1
    assert (OutlierClusters((0.3,), ClusterSettings()).offsets(depth) != 0).any() == compact
    assert (OutlierClusters((0.3,), ClusterSettings()).offsets(depth.T) != 0).any() == compact


@pytest.mark.parametrize("limit", [0.99, 1.01])
def test_higher_components_than_clusters_usually_are_stay(limit):
    depth = np.zeros((60, 60), np.float32)
    depth[20:24, 30:34] = 1
    assert (OutlierClusters((0.3,), ClusterSettings(), limit).offsets(depth) != 0).any() == (limit > 1)


def test_stuck_pixels_hardly_ever_touch(rng):
    settings = replace(StuckSettings(), min_count=10, max_adjacent_fraction=0.25)
    for count, stuck in ((10, True), (9, False)):
        depth = 1 + rng.random((40, 50)).astype(np.float32)
        depth.ravel()[: 40 * count : 40 + 1] = 0
        assert (depth == 0).sum() == count
        found = StuckPixels.fit(Tile.full(depth), 0.0, replace(Settings(), stuck=settings))
        assert (found is not None and 0 in found.values) == stuck
    depth = 1 + rng.random((40, 80)).astype(np.float32)
    depth[1:39:3, 5:7] = 0  # in pairs, a quarter of the neighbours of stuck pixels are stuck
    assert StuckPixels.fit(Tile.full(depth), 0.0, replace(Settings(), stuck=settings)) == StuckPixels((0.0,))
    depth[1, 7] = 0
    assert StuckPixels.fit(Tile.full(depth), 0.0, replace(Settings(), stuck=settings)) is None


def test_parts_of_a_large_map_are_at_least_half_valid(rng):
    settings, depth = replace(SimulationSettings(), pixels=4 * 32**2, part_px=32), np.zeros((96, 160), np.float32)
    depth[:64, :96] = np.nan
    for seed in range(4):
        run = simulate(Tile.full(depth), 1.0, np.random.default_rng(seed), settings)
        assert run.depth.shape == (4, 32, 32)
        assert all(np.isfinite(part).all() for part in run.truth)
        assert all(top % 32 == 0 and left % 32 == 0 for top, left in run.corners)
    sparse = np.full((96, 160), np.nan, np.float32)
    sparse[:32, :32][:, :12] = sparse[32:64, 32:64][:, :6] = sparse[64:, :32][:, :5] = 0
    found = {corner for seed in range(6) for corner in simulate(
        Tile.full(sparse), 1.0, np.random.default_rng(seed), replace(settings, pixels=32**2)).corners}  # fmt: skip
    assert found == {(0, 0), (32, 32)}
    corner = np.full((96, 160), np.nan, np.float32)
    corner[64:, 128:] = 0  # the last part of the grid, which the map ends with
    assert simulate(Tile.full(corner), 1.0, np.random.default_rng(0), settings).corners == [(64, 128)]


def test_steps_in_a_map_mark_the_pixels_along_them():
    depth = np.zeros((20, 30))
    depth[:, 15:] = 1
    marked = inpainting._along_steps(depth, GuideSettings())
    assert_array_equal(np.flatnonzero(marked.all(0)), np.arange(12, 19))
    assert_array_equal(marked.any(0), marked.all(0))
    assert not inpainting._along_steps(depth, GuideSettings(step_ratio=2.01)).any()
    assert_array_equal(inpainting._along_steps(depth.T, GuideSettings()), marked.T)


def transitions(none, one, ordered, disordered, beyond=0, apart=0):
    """A map of so many steps with none, one or two mixtures, and its candidates; ``apart`` lie between no faces."""
    width = none + one + ordered + disordered
    sides = np.repeat(np.array([[0, 0, 0, 0, 1, 1, 1, 1]], np.float32).T, width, axis=1)
    depth = sides.copy()
    first, second, last = none, none + one, none + one + ordered
    sides[3, first:] = sides[4, second:] = np.nan
    depth[3, first:second] = 0.5
    depth[3:5, second:last], depth[3:5, last:] = [[0.3], [0.7]], [[0.7], [0.3]]
    number = np.flatnonzero(np.isnan(sides))
    position = np.concatenate([depth.ravel()[number], np.full(beyond, 1.5), np.full(apart, 0.5)])
    faces = np.arange(len(position)) < len(number) + beyond
    where = np.concatenate([number, np.zeros(beyond + apart, int)])
    blank, sided = np.zeros(len(where)), np.zeros((len(where), 24), bool)
    return depth, sides, Candidates(where, blank, blank + 1, blank, faces, position, sided, sided)


@pytest.mark.parametrize(
    ("made", "present"),
    [
        ((100, 20, 1, 1), True),
        ((100, 14, 0, 0), True),
        ((100, 13, 0, 0), False),
        ((99, 20, 0, 0), True),
        ((98, 20, 0, 0), False),
        ((100, 14, 10, 1), True),
        ((100, 14, 11, 1), False),
        ((100, 14, 0, 6), True),
        ((100, 14, 0, 7), False),
        ((100, 20, 0, 0, 1), True),
        ((100, 20, 0, 0, 2), False),
        ((100, 0, 1, 7, 4), True),
        ((100, 0, 1, 7, 5), False),
        ((1000, 30, 0, 0), True),
        ((1000, 29, 0, 0), False),
        ((1000, 24, 0, 3), True),
        ((100, 14, 0, 0, 0, 336), True),
        ((100, 14, 0, 0, 0, 337), False),
    ],
)
def test_mixtures_are_many_independent_and_between_faces(made, present):
    flying = FlyingPixels(0.3, 0.06, FlyingSettings())
    assert flying._is_present(*transitions(*made)) == present


@pytest.mark.slow
def test_missed_mixtures_err_as_those_that_are_made_and_not_found(rng):
    """As many pixels beside steps as were mixtures are mixed again; those not found keep their error."""
    flying, depth = FlyingPixels(0.3, 0.06, FlyingSettings()), mixed(rng, (90, 80))
    snapped, found, _ = flying.candidates(depth).snap(depth, flying.settings)
    near = np.array([window(snapped, y, x, 1) for y, x in np.ndindex(depth.shape)]).reshape(*depth.shape, 9)
    near = np.where(np.isfinite(near), near, snapped[..., None])
    low, step = near.min(2), np.ptp(near, 2)
    beside = np.flatnonzero(np.isfinite(snapped) & (step > 0.3))
    draw, position = np.random.default_rng(0).random((2, len(beside)))
    made = beside[draw * len(beside) < found.sum()]
    position = position[draw * len(beside) < found.sum()]
    again = snapped.copy()
    again.ravel()[made] = low.ravel()[made] + position * step.ravel()[made]
    seen = flying.candidates(again).snap(again, flying.settings)[1].ravel()
    truth = (snapped.ravel()[made] - low.ravel()[made]) / step.ravel()[made]
    error = ((position - truth) ** 2)[~seen[made]].sum() * found.sum() / seen[made].sum()
    expected = error / (~seen[beside]).sum()
    assert seen[made].sum() > 20
    assert flying._estimate_missed(depth, flying.candidates(depth)) == pytest.approx(expected, rel=1e-4)


def test_levels_are_scaled_to_the_flattest_blocks_by_their_quantile(rng):
    above = rng.standard_normal((3, 500)) + np.array([[0.0], [1.0], [-2.0]])
    for row, scale, loss in zip(above, *dense._fit_to_flattest(above), strict=True):
        assert scale == pytest.approx(np.percentile(row, 20))
        assert loss == pytest.approx(np.where(row > scale, 0.2 * (row - scale), 0.8 * (scale - row)).mean())
        others = (np.where(row > s, 0.2 * (row - s), 0.8 * (s - row)).mean() for s in (scale - 0.1, scale + 1))
        assert all(loss <= other + 1e-9 for other in others)


def test_a_level_with_its_growth_is_found(rng):
    depth = np.linspace(1, 3, 320)[None, :] * np.ones((200, 1))
    level = NoiseLevel(0.02, DenseSettings(), (1.0, 3.0), 1.7)
    found = NoiseLevel.fit(depth + level.at_depth(depth) * rng.standard_normal(depth.shape), DenseSettings())
    assert_allclose(found.at_depth(depth), level.at_depth(depth), rtol=0.1)


def test_what_smoothing_removes_is_in_deviations_of_the_noise(rng):
    depth, smooth, variance = rng.standard_normal((3, 8, 9))
    found = Smoothed(depth, smooth, variance**2, np.full((8, 9), 0.5))
    assert_allclose(found.removed, (depth - smooth) / 0.5)
    assert_allclose(found.disagreement, variance**2 / 0.25)


@pytest.mark.parametrize("ratio", [1.05, 1.15])
def test_texture_is_removed_if_more_than_the_noise_is(rng, ratio):
    smoother = dense.Smoother(NoiseLevel(1.0, DenseSettings()), patch_coder(None, "fast", Settings()))
    depth = np.sqrt(ratio) * 0.5 * np.sign(rng.standard_normal((20, 20)))
    depth[3:9] = np.nan
    parts = [Smoothed(depth + 3, np.full((20, 20), 3.0), depth, np.full((20, 20), 0.5)) for _ in range(3)]
    assert smoother._removes_texture(parts) == (ratio > 1.1)
    half = replace(smoother, shrinkage=lambda _: np.full((20, 20), 0.25))
    assert_allclose(half._blend(parts[0]), np.where(np.isfinite(depth), 3 + 0.75 * depth, 3))
    assert_allclose(smoother._blend(parts[0]), 3)


def test_small_steps_are_shrunk_to_nothing():
    step = np.array([-3.0, -0.1, 0.0, 0.1, 3.0])
    assert_allclose(inpainting._shrink_small(step, 0.1), [-3 * 9 / 9.01, -0.05, 0, 0.05, 3 * 9 / 9.01])


def test_pixels_are_held_out_around_holes_and_where_these_turn_to(rng):
    holes = np.zeros((30, 40), bool)
    holes[5:8, 10:14] = True
    found = inpainting._hold_out(holes, False, GuideSettings())
    expected = np.zeros_like(holes)
    expected[3:10, 8:16] = expected[22:25, 26:30] = True
    assert_array_equal(found, expected)
    many = inpainting._hold_out(np.zeros((200, 200), bool), True, GuideSettings())
    assert many.mean() == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(("blocks", "raw"), [(4, True), (3, False)])
def test_four_rough_blocks_are_a_raw_map(rng, blocks, raw):
    assert dense.is_raw_sensor_map(rng.standard_normal((7, 6 * blocks + 1)), DenseSettings()) == raw
    assert not dense.is_raw_sensor_map(np.ones((7, 6 * blocks + 1)), DenseSettings())


@pytest.mark.parametrize(
    ("slope", "step", "least", "similar"),
    [(0.0, 0.0, 0.25, 0.05), (0.1, 0.0, 0.6, 0.3), (0.0, 0.3, 1.8, 0.33), (0.1, 0.3, 1.8, 0.33), (0.1, 0.2, 1.2, 0.3)],
)
def test_sides_are_as_similar_as_the_steps_of_their_map_allow(slope, step, least, similar):
    depth = slope * np.add(*np.mgrid[:20, :20]).astype(np.float32)
    found = FlyingPixels.scaled_to(Steps.of(depth).median, step, FlyingSettings())
    assert found.step == pytest.approx(least, rel=1e-5)
    assert found.similar == pytest.approx(similar, rel=1e-5)


@pytest.mark.parametrize("shape", [(90, 90), (91, 64), (40, 131)])
def test_images_of_one_noisy_pixel_never_touch(shape):
    noise = simulate(Tile.full(np.zeros(shape, np.float32)), 1.0, np.random.default_rng(0), SimulationSettings()).noise[
        0
    ]
    padded = np.pad(noise, 1)
    for down, across in product((-1, 0, 1), repeat=2):
        if (down, across) != (0, 0):
            other = padded[1 + down : shape[0] + 1 + down, 1 + across : shape[1] + 1 + across]
            assert not ((noise != 0) & (noise == other)).any()


def test_without_codes_holes_follow_the_robust_plate_where_it_differs(rng):
    depth = np.where(np.arange(40) < 20, 0.0, 3.0) * np.ones((40, 1))
    depth[15:25, 16:26] = np.nan
    settings = replace(Settings(), inpainting=replace(Settings().inpainting, rounds=0))
    plate, robust = interpolate(depth.astype(np.float32), None, settings.surfaces)
    away = (robust - plate).astype(float)
    floor = settings.scores.difference_floor
    found = inpainting.fill_holes(depth.astype(np.float32), patch_coder(None, "fast", settings), settings, 1)
    assert_allclose(found, plate + away**3 / (away**2 + floor**2), atol=1e-5)
    assert np.abs(away).max() > 0.2


def test_the_noise_level_ignores_blocks_without_squares_of_pixels(rng):
    """Where every fourth pixel is missing, depths are known but no differences of four pixels are."""
    depth = rng.standard_normal((43, 61)) * 0.1 + np.linspace(1, 2, 61)
    scattered, without = depth.copy(), depth.copy()
    scattered[:24, :24] += 50
    scattered[:24:2, :24:2] = np.nan
    without[:24, :24] = np.nan
    assert np.isfinite(block_depths(scattered))[0, 0]
    assert not np.isfinite(block_quantiles(scattered)).all()
    assert NoiseLevel.fit(scattered, DenseSettings()) == NoiseLevel.fit(without, DenseSettings())


@pytest.mark.parametrize("tail", [0.0, 0.05, 0.1, 0.2, 0.3, 0.4])
@pytest.mark.parametrize("sigma", [0.02, 0.5])
def test_texture_has_larger_differences_than_noise_in_the_flattest_blocks(rng, tail, sigma):
    settings = DenseSettings()
    heavy = np.where(rng.random((61, 61)) < tail, 12.0, 1.0)
    depth = sigma * heavy * rng.standard_normal((61, 61)) * np.linspace(0.5, 3, 61)
    level = NoiseLevel(sigma, settings)
    crossed = np.abs(depth[1:, 1:] - depth[1:, :-1] - depth[:-1, 1:] + depth[:-1, :-1]) / 2
    ratios = []
    for row, column in product(range(10), repeat=2):
        values = np.sort(crossed[6 * row : 6 * row + 6, 6 * column : 6 * column + 6].ravel())
        low, high = values[int(LOW_QUANTILE * 36)], values[int(HIGH_QUANTILE * 36)]
        if low <= sigma * GAUSSIAN_QUANTILE and sigma > settings.min_sigma:
            ratios.append(high / sigma / GAUSSIAN_QUANTILE)
    expected = bool(ratios) and np.median(ratios) > settings.max_tail_ratio
    assert dense._is_texture(depth, level) == expected


@pytest.mark.parametrize(("side", "enough"), [(219, True), (220, False)])
def test_clusters_are_a_thousandth_of_the_map_or_more(side, enough):
    """Three discs of 16 pixels on either side."""
    depth = np.pad(discs(3, 3), ((0, side - 120), (0, side - 120)))
    assert (OutlierClusters.fit(Tile.full(depth), 0.0, Settings()) is not None) == enough


@pytest.mark.parametrize("position", [-0.05, 0.05, 0.09, 0.11, 0.5, 0.89, 0.91, 0.95, 1.05])
def test_evidence_for_mixtures_is_far_from_either_side(position):
    depth, sides, candidates = transitions(100, 20, 0, 0)
    candidates = replace(candidates, position=np.full(len(candidates.position), position))
    found = FlyingPixels(0.3, 0.06, FlyingSettings())._is_present(depth, sides, candidates)
    assert found == (0.1 < position < 0.9)


@pytest.mark.parametrize(("border", "matters"), [(0.4, False), (0.6, True)])
def test_scores_near_a_border_do_not_matter_if_most_are_not(border, matters):
    """The border of the map here, to which a large part of it is said to be near."""
    shape = (48, 60)

    def estimated(at_border):
        numbers = np.random.default_rng(1)
        simulation = simulate(Tile.full(np.zeros(shape, np.float32)), 1.0, numbers, SimulationSettings())
        many = np.broadcast_to(np.arange(shape[1]) < border * shape[1], shape)
        score = numbers.random(shape) + 20 * (numbers.random(shape) < 0.05)
        scores = scores_of(numbers, shape, score=np.where(many, at_border * score, score), near_border=many)
        again = simulation.noise != 0
        simulated = scores_of(
            numbers, simulation.noise.shape, score=numbers.random(again.shape) + 20 * again, near_border=again & False
        )
        return noise_model.estimate_impulse_noise(
            scores, np.ones(shape, bool), simulation, simulated, NoiseModelSettings()
        )

    one, other = estimated(1.0), estimated(30.0)
    assert (one.fraction != other.fraction) == matters


def test_a_map_without_steps_has_none_along_which_a_picture_is_shifted():
    assert not inpainting._along_steps(np.ones((20, 30)), GuideSettings()).any()


@pytest.mark.parametrize(("fraction", "passes"), [(0.05, 1), (0.25, 2)])
def test_suspects_of_maps_with_many_outliers_are_scored_once_more(rng, fraction, passes):
    depth = np.add.outer(np.linspace(-1, 1, 64), np.where(np.arange(64) < 30, -0.7, 0.7)).astype(np.float32)
    outlier = rng.random(depth.shape) < fraction
    depth[outlier] += 3 * rng.standard_normal(outlier.sum()).astype(np.float32)
    survey = Survey.of(Tile.full(depth), patch_coder(None, "balanced", Settings()), Settings(), 1)
    assert (survey.noise.fraction > OutlierSettings().third_pass_fraction) == (passes == 2)
    assert Corrector.fit(survey, True, 1).passes == passes
    assert Corrector.fit(survey, False, 1).passes == 0


def test_the_density_of_magnitudes_is_that_of_gaussians_of_uniform_variance():
    """A variance is uniform up to the squared amplitude: the mean over variances of half-normal densities."""
    for amplitude in (0.3, 1.0, 2.5):
        sizes = amplitude * np.array([0.05, 0.3, 1.0, 2.0, 3.0])
        std = amplitude * np.sqrt((np.arange(200_000) + 0.5) / 200_000)
        expected = [2 * norm.pdf(size / std).dot(1 / std) / len(std) for size in sizes]
        assert_allclose(noise_model.magnitude_density(sizes, amplitude), expected, rtol=2e-3)


def test_a_residual_at_the_limit_of_dense_noise_does_not_exceed_it():
    level, limit = NoiseLevel(0.25, DenseSettings()), 0.25 * DenseSettings().outlier_sigmas
    residual = np.array([-limit, limit, np.nextafter(limit, 9), -np.nextafter(limit, 9)])
    assert_array_equal(level.exceeded(residual, np.zeros(4)), [False, False, True, True])
    blocks = np.random.default_rng(0).standard_normal((25, 25))
    median = float(np.median(block_quantiles(blocks)))
    for roughness, raw in ((median, False), (np.nextafter(median, 0), True)):
        assert dense.is_raw_sensor_map(blocks, DenseSettings(raw_roughness=roughness)) == raw


def test_pixels_at_the_limits_of_outliers_are_none(rng):
    tile, model = Tile.full(np.zeros((6, 8), np.float32)), model_of()
    settings = model.settings
    scores = scores_of(rng, (6, 8), score=np.full((6, 8), settings.outliers.min_score))
    assert not model(tile, scores).probability.any()
    weight = np.full((6, 8), settings.outliers.corrected_weight)
    assert not model.outliers(tile, Posterior(weight, weight)).any()
    assert model.outliers(tile, Posterior(weight, np.nextafter(weight, 1))).all()
    floor = np.full((6, 8), settings.scores.difference_floor)
    for residual, isolated in ((floor, True), (np.nextafter(floor, 1), False)):
        near = np.arange(48).reshape(6, 8) % 3 == 0
        found = model.is_isolated(replace(scores, local_residual=residual, near_border=near))
        assert_array_equal(found, ~near & isolated)


def test_mixtures_at_the_limits_are_weighted_and_left():
    on, one, depth = np.zeros((2, 24), bool), np.ones(2), np.full((1, 2), 9.0)
    found = Candidates(np.arange(2), 0 * one, one, 0 * one, on[:, 0], np.array([0.25, 0.75]), on, on)
    p = found.high_probability(FlyingSettings())
    for sure, expected in ((p[1], [p[0], p[1]]), (p[1] - 1e-9, [0, 1])):
        snapped, flying, _ = found.snap(depth, FlyingSettings(snap_probability=sure))
        assert flying.all()
        assert_allclose(snapped[0], expected, atol=1e-12)
    for least, left in ((0.25, True), (0.25 - 1e-12, False)):
        assert (~found.snap(depth, FlyingSettings(min_mix=least))[1] == left).all()


def test_clusters_exceed_their_score_and_not_their_offset():
    depth = np.zeros((60, 60), np.float32)
    depth[20:24, 30:34] = 1
    score = float(small_components(depth, 0.3, ClusterSettings()).score[0])
    for least, found in ((score, False), (np.nextafter(score, 0), True)):
        clusters = OutlierClusters((0.3,), ClusterSettings(min_score=least), max_offset=1.0)
        assert (clusters.offsets(depth) != 0).any() == found


@pytest.mark.parametrize(("share", "step"), [(0.5, 1.0), (0.51, 0.0)])
def test_a_map_is_quantised_if_enough_neighbours_are_equal(share, step):
    settings = replace(ScoreSettings(), min_equal_fraction=share, equal_difference=0.25)
    assert quantization_step(Steps.of(np.array([[0, 0.25, 0.5, 1.5, 2.5]])), settings) == step
    assert quantization_step(Steps.of(np.array([[0, 0.25, 0.5, np.nan, 2.5]])), settings) == 0
    assert quantization_step(Steps.of(np.full((1, 1), 3.0)), settings) == 0


@pytest.fixture(scope="module")
def noisy_survey():
    """A survey of two slanted planes with many outliers, of a sensor that gives a variance."""
    rng = np.random.default_rng(0)
    depth = np.add.outer(np.linspace(-1, 1, 64), np.where(np.arange(64) < 30, -0.7, 0.7)).astype(np.float32)
    outlier = rng.random(depth.shape) < 0.15
    depth[outlier] += 3 * rng.standard_normal(outlier.sum()).astype(np.float32)
    depth[rng.random(depth.shape) < 0.05] = np.nan
    variance = np.where(rng.random(depth.shape) < 0.5, 1e-6, 0.3).astype(np.float32)
    return Survey.of(Tile.full(depth, variance), patch_coder(None, "balanced", Settings()), Settings(), 1)


@pytest.mark.slow
def test_the_residual_of_dense_noise_is_in_proportion_to_it(rng):
    slant, noise = np.add.outer(np.linspace(-1, 1, 64), np.zeros(64)), rng.standard_normal((64, 64))
    found = []
    for sigma in (0.05, 0.1):
        depth = (slant + sigma * noise).astype(np.float32)
        survey = Survey.of(Tile.full(depth), patch_coder(None, "fast", Settings()), Settings(), 1)
        assert survey.has_dense_noise()
        found.append(Corrector.fit(survey, True, 1).model.dense_residual / sigma)
        assert Corrector.fit(survey, False, 1).model.dense_residual == 0
    assert_allclose(found, Settings().dense.smooth_residual, rtol=0.1)


def with_outliers(survey, fraction=None, **changes):
    settings = replace(survey.settings, outliers=replace(survey.settings.outliers, **changes))
    noise = replace(survey.noise, fraction=survey.noise.fraction if fraction is None else fraction)
    return replace(survey, settings=settings, noise=noise)


def test_corrected_pixels_err_by_what_the_sensor_leaves_of_them(noisy_survey):
    sample = noisy_survey.sample
    corrector = Corrector.fit(noisy_survey, True, 1)
    (scores, posterior), found = corrector.judged, corrector(sample, 1)
    value = posterior.blend(sample.depth, scores)
    predicted = corrector.variance(value, scores, posterior, corrector.model.outliers(sample, posterior))
    kept = (1 - posterior.weight) ** 2 * sample.variance
    assert_allclose(found.value, value)
    for y, x in np.argwhere(sample.valid):
        assert found.variance[y, x] == max(predicted[y, x], kept[y, x])
    assert (kept > predicted)[sample.valid].any()
    assert (kept < predicted)[sample.valid].any()


def test_as_many_outliers_as_the_limits_say(noisy_survey):
    """At a limit, outliers are corrected, and scored no third time."""
    fraction, valid = noisy_survey.noise.fraction, int(noisy_survey.sample.valid.sum())
    for limit, passes in ((fraction, 1), (np.nextafter(fraction, 0), 2)):
        assert Corrector.fit(with_outliers(noisy_survey, third_pass_fraction=limit), True, 1).passes == passes
    for least, enabled in ((fraction * valid, True), (np.nextafter(fraction * valid, 1e9), False)):
        corrector = Corrector.fit(with_outliers(noisy_survey, min_count=least), True, 1)
        assert (corrector.model.enabled, corrector.passes > 0) == (enabled, enabled)


@pytest.mark.parametrize(("rough", "found", "clean"), [
    (False, 0.25, False), (False, 0.24, True), (True, 0.25, False), (True, 0.12, True),
])  # fmt: skip
def test_a_map_is_clean_if_few_of_its_outliers_are_found(noisy_survey, rng, rough, found, clean):
    survey = with_outliers(noisy_survey, 0.5, min_detected_fraction=0.5, raw_map_fraction=0.25)
    if rough:
        depth = rng.standard_normal((64, 64)).astype(np.float32)
        survey = replace(survey, sample=Tile.full(depth))
    assert survey.is_clean(np.full((64, 64), found)) == clean
    more = with_outliers(survey, 0.5, min_detected_fraction=0.0, raw_map_fraction=0.25)
    assert more.is_clean(np.full((64, 64), found)) == (rough and found < 0.25)
    assert more.is_clean(np.where(survey.sample.valid, 0.3, 0.0)) is False


def test_a_guided_pixel_errs_by_its_variance_and_by_what_the_picture_changes():
    plain = Restoration(np.array([[1.0, 2, 4]]), np.array([[0.5, np.inf, 0.25]]), np.zeros((1, 3), np.uint8))
    assert_allclose(inpainting._disagreement(np.array([[1.5, 4.0, 4.0]]), plain), [[0.75, 4.0, 0.25]])

"""The variance of measured, corrected and filled pixels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from sparsedepth import Origin, denoise, inpaint
from sparsedepth.data.crops import crops
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.simulated_scans import simulated_scans
from sparsedepth.data.synthetic import corrupted
from sparsedepth.isotonic import IsotonicCurve
from sparsedepth.missing import distance_to_valid
from sparsedepth.restore import variance_filled
from sparsedepth.restore.noise_model import ImpulseNoise
from sparsedepth.restore.outliers import Posterior
from sparsedepth.restore.scores import PixelScores
from sparsedepth.restore.settings import FilledVarianceSettings, VarianceSettings
from sparsedepth.restore.variance_filled import ScatteredVariance
from sparsedepth.restore.variance_measured import (
    LocalRange,
    MapNoise,
    MeasuredCoefficients,
    ambiguity,
    expected_error,
    pool_most_certain,
)
from sparsedepth.vocabulary import Floats, Vector

NOISE = ImpulseNoise(fraction=0.1, amplitude=1.0, score_threshold=9.0)
MEASURED, FILLED = VarianceSettings(), FilledVarianceSettings()


def test_an_isotonic_curve_follows_the_mean_of_its_target():
    rng = np.random.default_rng(4)
    predictor = rng.lognormal(0, 1, 20_000)
    curve = IsotonicCurve.fit(predictor, predictor * rng.exponential(1, predictor.shape), 30, 16)
    inner = np.array([0.3, 1.0, 3.0])
    assert_allclose(curve(inner), inner, rtol=0.15)
    assert curve(predictor).mean() == pytest.approx(predictor.mean(), rel=0.1)


def test_the_most_certain_pixels_share_their_mean():
    expected = np.random.default_rng(7).lognormal(-6, 3, 5000)
    limit, pooled = pool_most_certain(expected, MEASURED)
    shared = expected <= limit
    assert shared.mean() == pytest.approx(MEASURED.pooled_fraction, abs=1e-3)
    assert pooled * shared.sum() == pytest.approx(expected[shared].sum())
    assert pool_most_certain(np.full(9, 0.25), MEASURED) == (0.25, 0.25)
    assert pool_most_certain(np.empty(0), MEASURED) == (0.0, 0.0)


def test_the_local_range_is_that_of_valid_pixels():
    depth = np.zeros((9, 9))
    depth[4, 4], depth[0, 0] = 2.0, np.nan
    ranges = LocalRange.of(depth, MEASURED.range_floor)
    close, wide = (np.exp(log) - MEASURED.range_floor for log in (ranges.close, ranges.wide))
    for span, radius in ((close, 1), (wide, 2)):
        inside = np.zeros((9, 9), bool)
        inside[4 - radius : 5 + radius, 4 - radius : 5 + radius] = True
        assert_allclose(span, np.where(inside, 2.0, 0.0), atol=1e-6)
    nowhere = LocalRange.of(np.full((4, 4), np.nan), MEASURED.range_floor)
    assert_allclose(nowhere.wide, np.log(MEASURED.range_floor), rtol=1e-6)


def scores_of(residual: Vector, score: float = 0.0) -> PixelScores:
    """Scores of pixels in smooth surroundings, away from borders."""
    zero = np.zeros(len(residual))
    return PixelScores(
        value=zero,
        patch_variance=zero + 1e-4,
        residual=residual,
        score=zero + score,
        local_residual=zero + 0.01,
        weight=zero + 9,
        near_border=zero > 0,
    )


def ranges_of(span: float, n: int) -> LocalRange:
    logs = np.full(n, np.log(span + MEASURED.range_floor))
    return LocalRange(logs, logs)


def error_of(scores: PixelScores, probability: Vector, weight: Vector, span: float = 0.0) -> Vector:
    """Return the expected error of pixels whose neighbourhood has such a range, on a continuous map."""
    noise = MapNoise(NOISE, MeasuredCoefficients.load(quantized=False), -3.0)
    posterior, ranges = Posterior(probability, weight), ranges_of(span, len(probability))
    return expected_error(noise, ranges, scores, posterior, weight > 0.5, MEASURED)


def test_a_pixel_that_is_no_suspect_errs_by_what_was_removed_from_it():
    """As where a sensor's own variance moves every value a little."""
    zero, residual = np.zeros(50), np.random.default_rng(9).standard_normal(50)
    assert_allclose(error_of(scores_of(residual), zero, zero + 0.3), np.square(0.3 * residual), atol=1e-5)


def test_the_expected_error_grows_with_the_local_range():
    """A missed outlier has a value like its surroundings, so it errs by less than their range."""
    zero = np.zeros(1)
    spans = np.geomspace(0.01, 1, 9)
    expected = np.array([error_of(scores_of(zero), zero, zero, span)[0] for span in spans])
    assert (np.diff(expected) > 0).all()
    assert (expected < NOISE.fraction * np.square(spans)).all()


def test_a_correction_is_less_certain_on_an_ambiguous_map():
    """As in foliage, where much that looks like noise is none."""
    probability = np.zeros(1000)
    probability[:20] = 0.99
    clear = ambiguity(probability, MEASURED)
    probability[20:60] = 0.5
    assert ambiguity(probability, MEASURED) > clear + 1
    one = np.ones(1)
    scores, ranges, posterior = scores_of(one, 50), ranges_of(0.05, 1), Posterior(0.95 * one, 0.95 * one)
    for quantized in (False, True):
        coefficients = MeasuredCoefficients.load(quantized=quantized)
        sure, unsure = (
            expected_error(MapNoise(NOISE, coefficients, level), ranges, scores, posterior, one > 0, MEASURED)[0]
            for level in (-5.0, -2.0)
        )
        assert sure < unsure


@pytest.mark.slow
def test_a_suspect_that_is_kept_has_a_large_variance():
    """As a single outlier, from which no noise can be estimated, or where nothing is to be corrected."""
    zero = np.zeros(1)
    assert error_of(scores_of(zero + 3, 500), zero + 0.9, zero)[0] > 5
    y, x = np.mgrid[:40, :50]
    depth = 0.3 * x - 0.1 * y + 2
    depth[20, 20] += 30
    result = inpaint(depth)
    assert result.variance[20, 20] > 5**2
    assert result.variance[20, 20] > 100 * np.median(result.variance)


@pytest.mark.slow
def test_the_variance_of_valid_pixels_is_calibrated():
    """Over maps whose other pixels are exact, the mean squared error is that of the variances, within a factor of two.

    The variances of corrected pixels are larger, as their errors are.
    """
    maps = [crop.depth for crop in crops(motorcycle_disparity(), 3, seed=11)] + simulated_scans(3)
    squared, predicted = ({Origin.MEASURED: 0.0, Origin.CORRECTED: 0.0} for _ in range(2))
    for number, clean in enumerate(maps):
        result = denoise(corrupted(clean, 0.1, np.random.default_rng([12, number])), fill=False, sensor="clean")
        for origin in squared:
            these = np.isfinite(clean) & (result.origin == origin)
            squared[origin] += np.square(result.depth - clean)[these].mean() / np.nanvar(clean)
            predicted[origin] += result.variance[these].mean() / np.nanvar(clean)
    for origin in squared:
        assert 0.5 < squared[origin] / predicted[origin] < 2
    assert predicted[Origin.CORRECTED] > 3 * predicted[Origin.MEASURED]


def clustered_variance(filled: Floats, missing: NDArray[np.bool_]) -> Floats:
    return variance_filled.clustered_variance(filled, missing, FILLED)


def fit_scattered(
    filled: Floats, missing: NDArray[np.bool_], held_out: NDArray[np.bool_], squared: Floats
) -> ScatteredVariance:
    return ScatteredVariance.fit(filled, missing, held_out, squared, FILLED)


def test_more_error_is_expected_deep_in_holes_and_at_steps():
    missing = np.zeros((60, 60), bool)
    missing[10:19, 10:19] = missing[10:19, 46:55] = True
    filled = np.where(np.arange(60) < 50, 0.0, 1.0) * np.ones((60, 1))
    expected = clustered_variance(filled, missing)
    assert expected[14, 14] > expected[10, 10]
    assert expected[14, 50] > 10 * expected[14, 14]
    assert expected.max() <= 4
    assert_array_equal(expected[~missing], 0)


def test_holes_are_clustered_or_scattered_whatever_their_fraction():
    rng = np.random.default_rng(0)
    nothing = np.zeros((100, 100), bool)

    def are_clustered(missing, excluded):
        return variance_filled.holes_are_clustered(missing, excluded, FILLED)

    for fraction in (0.01, 0.2, 0.5, 0.95):
        assert not are_clustered(rng.random(nothing.shape) < fraction, nothing)
    strips = nothing.copy()
    strips[20:60, 30:33] = strips[70:72, :] = True
    assert are_clustered(strips, nothing)
    assert are_clustered(strips | (rng.random(nothing.shape) < 0.005), nothing)
    assert not are_clustered(strips, strips)
    assert not are_clustered(nothing, nothing)
    assert not are_clustered(~nothing, nothing)


def held_out_parts(power: float, fraction: float = 0.5) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_], Floats]:
    """Make filled parts of level maps with held-out pixels, whose squared errors grow with a power of the law."""
    rng = np.random.default_rng(0)
    missing = rng.random((2, 100, 100)) < fraction
    held_out = missing & (rng.random(missing.shape) < 0.3)
    law = np.stack([clustered_variance(np.zeros(part.shape), part) for part in missing])
    squared = np.square(rng.standard_normal(missing.shape)) * 1e-2 * (law / law[held_out].mean()) ** power
    return np.zeros(missing.shape), missing, held_out, squared


def test_held_out_pixels_that_err_twice_as_much_double_the_variance():
    filled, missing, held_out, squared = held_out_parts(1)
    once, twice = (
        fit_scattered(filled, missing, held_out, factor * squared)(filled[0], missing[0]) for factor in (1, 2)
    )
    assert_allclose(twice, 2 * once, rtol=1e-2)
    assert_array_equal(once[~missing[0]], 0)
    assert 0.8 < squared[0][missing[0]].mean() / once[missing[0]].mean() < 1.25


def test_the_order_of_held_out_pixels_does_not_matter():
    filled, missing, held_out, squared = held_out_parts(1)
    one = fit_scattered(filled, missing, held_out, squared)
    other = fit_scattered(filled, missing[::-1, :, ::-1], held_out[::-1, :, ::-1], squared[::-1, :, ::-1])
    assert_allclose(one.line, other.line, rtol=1e-4)
    assert_allclose(one.line_variance, other.line_variance, rtol=1e-4)


def test_held_out_pixels_show_how_steeply_the_variance_grows():
    powers = [fit_scattered(*held_out_parts(power, fraction=0.8)).line[1] for power in (0, 2, 8)]
    assert powers[0] < powers[1] < powers[2]


def test_without_held_out_pixels_the_law_stands_and_few_of_them_leave_it_less_certain():
    filled, missing, held_out, squared = held_out_parts(1)
    none = fit_scattered(filled, missing, np.zeros_like(held_out), squared)
    assert_array_equal(none.line, [0, 1])
    variance = none(filled[0], missing[0])
    assert ((variance[missing[0]] > 0) & (variance[missing[0]] <= 4)).all()
    few = held_out & (np.random.default_rng(1).random(held_out.shape) < 0.01)
    uncertain = [
        fit_scattered(filled, missing, some, squared).line_variance[0] for some in (held_out, few, np.zeros_like(few))
    ]
    assert uncertain[0] < uncertain[1] < uncertain[2]


def test_rough_valid_pixels_raise_the_variance_even_where_all_filled_values_are_level():
    filled, missing, held_out, squared = held_out_parts(1, fraction=0.95)
    rough = 0.3 * np.random.default_rng(1).standard_normal((100, 50))
    level = np.where(missing[0], 0, np.hstack([np.zeros_like(rough), rough]))
    alone = distance_to_valid(missing[0]) > 1
    variance = fit_scattered(filled, missing, held_out, squared)(level, missing[0])
    assert variance[:, 70:][alone[:, 70:]].min() > 2 * variance[:, :30][alone[:, :30]].max()


def test_the_variance_is_extrapolated_into_a_large_hole():
    missing = np.zeros((60, 60), bool)
    missing[10:30, 10:40] = True
    filled = np.where(np.arange(60) < 25, 0.0, 0.5) * np.ones((60, 1))
    law = clustered_variance(filled, missing)
    inner = np.zeros_like(missing)
    inner[14:26, 14:36] = True
    known = np.where(inner, 0, 0.1 * law)
    extrapolated = variance_filled.extrapolate_variance(filled, missing, known, FILLED)
    assert_allclose(extrapolated[inner], 0.1 * law[inner], rtol=0.5)
    assert_array_equal(variance_filled.extrapolate_variance(filled, missing, np.zeros_like(law), FILLED), law)

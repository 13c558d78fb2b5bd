"""Laws of the metrics."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from sparsedepth.metrics import (
    average_precision,
    bad_pixels,
    calibration,
    fixed_and_broken,
    mae,
    oracle,
    psnr,
    rmse,
    sparsification,
)
from sparsedepth.vocabulary import InputError

SEEDS = st.integers(0, 2**32 - 1)
DISTANCES = {"rmse": rmse, "mae": mae, "bad": lambda e, t, **k: bad_pixels(e, t, 0.3, **k), "psnr": psnr}


def pair(seed: int, shape: tuple[int, int] = (12, 15)) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(shape)
    estimate = truth + 0.4 * rng.standard_normal(shape)
    truth[rng.random(shape) < 0.1] = np.nan
    return estimate, truth


@given(SEEDS, st.floats(0.001, 1000), st.floats(-100, 100))
def test_units_and_offsets(seed, unit, offset):
    estimate, truth = pair(seed)
    scaled = estimate * unit + offset, truth * unit + offset
    assert psnr(*scaled) == pytest.approx(psnr(estimate, truth), rel=1e-6)
    assert rmse(*scaled) == pytest.approx(unit * rmse(estimate, truth), rel=1e-6)
    assert mae(*scaled) == pytest.approx(unit * mae(estimate, truth), rel=1e-6)
    assert bad_pixels(estimate * unit, truth * unit, 0.3 * unit) == pytest.approx(
        bad_pixels(estimate, truth, 0.3), abs=0.01
    )


@given(SEEDS)
def test_rmse_and_psnr_say_the_same_and_rmse_is_at_least_mae(seed):
    estimate, truth = pair(seed)
    peak = np.nanmax(truth) - np.nanmin(truth)
    assert psnr(estimate, truth) == pytest.approx(20 * np.log10(peak / rmse(estimate, truth)))
    assert psnr(estimate, truth, peak=10 * peak) == pytest.approx(psnr(estimate, truth) + 20)
    assert rmse(estimate, truth) >= mae(estimate, truth) > 0


@pytest.mark.parametrize("distance", DISTANCES.values(), ids=DISTANCES)
def test_unknown_truth_never_counts_and_a_missing_estimate_is_refused(distance):
    estimate, truth = pair(1)
    known = np.isfinite(truth)
    assert distance(np.where(known, estimate, 1e9), truth) == distance(estimate, truth)
    assert distance(np.where(known, estimate, np.nan), truth) == distance(estimate, truth)
    holed = estimate.copy()
    holed[3, 4:7] = np.nan
    with pytest.raises(InputError, match=r"of 1\d\d pixels whose truth is known are NaN"):
        distance(holed, truth)
    without = np.where(np.isnan(holed), np.nan, truth)
    if distance is not psnr:  # its peak is that of the whole truth
        assert distance(holed, truth, missing="ignore") == distance(estimate, without)
    for nothing in (estimate[:5], np.full_like(truth, np.nan)):
        with pytest.raises(InputError):
            distance(nothing, truth)
    with pytest.raises(InputError, match="unknown at every pixel"):
        distance(estimate, np.full_like(truth, np.nan))


def test_perfection_and_flat_truth():
    _, truth = pair(2)
    assert psnr(truth, truth) == np.inf
    assert rmse(truth, truth) == mae(truth, truth) == bad_pixels(truth, truth, 0) == 0
    with pytest.raises(InputError, match="peak"):
        psnr(np.zeros((3, 3)), np.ones((3, 3)))
    assert psnr(np.zeros((3, 3)), np.ones((3, 3)), peak=1) == 0


@given(SEEDS, st.floats(0, 2))
def test_bad_after_is_bad_before_less_fixed_plus_broken(seed, threshold):
    before, truth = pair(seed)
    after = before + 0.3 * np.random.default_rng(seed).standard_normal(before.shape)
    after[2, 2:9] = np.nan
    for missing in ("bad", "ignore"):
        change = fixed_and_broken(before, after, truth, threshold, missing=missing)
        assert change.bad_after == pytest.approx(change.bad_before - change.fixed + change.broken)
        assert 0 <= change.fixed <= change.bad_before
        assert 0 <= change.broken <= 1 - change.bad_before + 1e-12
    assert fixed_and_broken(before, truth, truth, threshold).broken == 0
    assert bad_pixels(after, truth, threshold, missing="bad") >= bad_pixels(after, truth, threshold, missing="ignore")


def test_honest_variances_are_called_honest():
    rng = np.random.default_rng(0)
    variance = 10 ** rng.uniform(-3, 1, (300, 300))
    error = rng.standard_normal(variance.shape) * np.sqrt(variance)
    error[:3], variance[3:6] = np.nan, np.inf
    honest = calibration(error, variance)
    assert len(honest.ratio) == 10
    np.testing.assert_allclose(honest.ratio, 1, atol=0.08)
    np.testing.assert_allclose(honest.squared_error, honest.variance, rtol=0.1)
    assert honest.count.sum() == 294 * 300
    assert np.ptp(honest.count) <= 1
    assert (np.diff(honest.variance) > 0).all()
    assert calibration(3 * error, variance).overall == pytest.approx(9 * honest.overall)


def test_calibration_tells_what_a_single_pixel_makes_of_it():
    error, variance = np.ones(100), np.repeat([1.0, 2.0], 50)
    error[3] = 7
    found = calibration(error, variance, bins=2)
    np.testing.assert_allclose(found.of_one, [49 / 98, 1 / 50])
    np.testing.assert_array_equal(calibration(np.zeros(4), np.ones(4)).of_one, [0])


@pytest.mark.slow
@given(SEEDS)
def test_calibration_and_sparsification_know_no_order_of_pixels(seed):
    rng = np.random.default_rng(seed)
    error, variance = rng.standard_normal(200), np.maximum(rng.random(200), 0.6)
    shuffled = rng.permutation(200)
    np.testing.assert_allclose(
        calibration(error, variance).ratio, calibration(error[shuffled], variance[shuffled]).ratio
    )
    curve, again = sparsification(error, variance), sparsification(error[shuffled], variance[shuffled])
    np.testing.assert_allclose(curve.by_variance, again.by_variance)
    assert calibration(error, variance).count.sum() == 200
    assert curve.by_variance[0] == curve.by_error[0] == pytest.approx(1)
    assert (curve.by_variance >= curve.by_error - 1e-12).all()
    assert (np.diff(curve.by_error) <= 1e-12).all()
    assert curve.area > 0
    assert sparsification(7 * error, 3 * variance).area == pytest.approx(curve.area)
    assert sparsification(error, np.exp(np.abs(error))).area == pytest.approx(0, abs=1e-12)


def test_a_constant_variance_orders_nothing():
    error = np.random.default_rng(0).standard_normal(1000)
    np.testing.assert_allclose(sparsification(error, np.ones(1000)).by_variance, 1)
    assert len(calibration(error, np.ones(1000)).ratio) == 1
    assert sparsification(np.zeros(10), np.ones(10)).area == 0


def test_variances_that_promise_the_impossible_are_refused():
    with pytest.raises(InputError, match="not positive"):
        calibration(np.ones(4), np.array([1, 0, 1, 1.0]))
    with pytest.raises(InputError, match="no pixel has both"):
        calibration(np.ones(2), np.full(2, np.inf))
    with pytest.raises(InputError, match="shape"):
        sparsification(np.ones(2), np.ones(3))


@pytest.mark.slow
@given(SEEDS, st.integers(1, 50))
def test_average_precision_equals_the_reference(seed, levels):
    rng = np.random.default_rng(seed)
    outlier = rng.random(60) < 0.3
    outlier[0] = True
    score = np.round(levels * (rng.random(60) + 0.3 * outlier))
    assert average_precision(score, outlier) == pytest.approx(average_precision_score(outlier, score))
    assert average_precision(np.exp(score / levels), outlier) == pytest.approx(average_precision(score, outlier))
    assert average_precision(np.zeros(60), outlier) == pytest.approx(outlier.mean())
    assert average_precision(outlier.astype(float), outlier) == 1


def test_average_precision_refuses_what_it_cannot_rank():
    for score, outlier in (([1.0, np.nan], [True, False]), ([1.0, 2.0], [False, False]), ([1.0], [True, False])):
        with pytest.raises(InputError):
            average_precision(score, np.array(outlier))


def test_the_oracle_finds_the_best_and_says_where():
    truth = np.arange(12.0).reshape(3, 4)
    best = oracle(lambda depth, shift: depth + shift, [-2, -1, 0, 1], truth + 0.9, truth)
    assert (best.parameter, best.at_end) == (-1, False)
    assert best.score == psnr(best.result, truth)
    assert oracle(lambda depth, shift: depth + shift, [0, 1, 2], truth, truth).at_end
    assert oracle(lambda depth, shift: depth + shift, [0, 3], truth, truth, lambda e, t: rmse(e, t)).parameter == 3
    with pytest.raises(InputError):
        oracle(lambda depth, shift: depth, [], truth, truth)

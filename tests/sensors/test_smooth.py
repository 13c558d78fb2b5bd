"""Smoothing under a sensor: error, honesty, structure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from rooms import room
from test_blind import SIMULATED, frame_of

from sparsedepth.sensors import PowerLaw, Sensor, blind
from sparsedepth.sensors.outliers import find_outliers
from sparsedepth.sensors.smooth import smooth
from sparsedepth.vocabulary import InputError

MEDIAN = 0.455
"""Median of a squared standard normal number."""


def rms99(error: np.ndarray) -> float:
    squares = np.sort(error.ravel() ** 2)
    return float(np.sqrt(squares[: int(0.99 * len(squares))].mean()))


@pytest.mark.slow
@pytest.mark.parametrize(("sensor", "near", "far"), SIMULATED, ids=lambda v: getattr(v, "name", ""))
def test_blind_smoothing_helps_and_is_honest(sensor, near, far):
    depth, truth = frame_of(sensor, near, far)
    found = blind.estimate(depth)
    assert found is not None
    value, variance = smooth(depth, found)
    std = sensor.std(truth)
    assert rms99((value - truth) / std) < 0.8 * rms99((depth - truth) / std)
    honesty = np.median((value - truth) ** 2 / variance) / MEDIAN
    assert 0.2 < honesty < 2
    assert ((value - truth) ** 2 < 4 * variance).mean() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("impulses", [0.01, 0.05])
@pytest.mark.parametrize(("sensor", "near", "far"), SIMULATED, ids=lambda v: getattr(v, "name", ""))
def test_impulses_hardly_add_to_the_error(sensor, near, far, impulses):
    errors = []
    for share in (0.0, impulses):
        depth, truth = frame_of(sensor, near, far, share)
        found = blind.estimate(depth)
        assert found is not None
        errors.append(rms99((smooth(depth, found)[0] - truth) / sensor.std(truth)))
    assert errors[1] < 1.1 * errors[0]


def test_units_commute():
    sensor = Sensor.preset("kinect_v1")
    depth, _ = frame_of(sensor, 900.0, 3000.0)
    value, variance = smooth(depth, sensor)
    metres, squared = smooth(depth / 1000, sensor.to("m"))
    np.testing.assert_allclose(metres * 1000, value, rtol=1e-5)
    np.testing.assert_allclose(squared * 1e6, variance, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("flip", [np.flipud, np.fliplr, np.transpose], ids=["rows", "columns", "transpose"])
def test_flips_commute(flip):
    sensor = Sensor(unit="mm", noise=PowerLaw(constant=5.0))
    depth, _ = frame_of(sensor, 900.0, 3000.0)
    value, variance = smooth(depth, sensor)
    flipped, its_variance = smooth(flip(depth), sensor)
    assert np.mean(np.abs(flipped - flip(value)) < 0.2 * 5) > 0.99
    assert np.median(np.abs(its_variance / flip(variance) - 1)) < 0.02


def test_steps_and_thin_structures_stay():
    sensor = Sensor.preset("kinect_v1")
    depth, truth = frame_of(sensor, 900.0, 3000.0)
    value, _ = smooth(depth, sensor)
    pole = truth == 1.1 * 900.0
    assert np.abs(value - truth)[pole].max() < 30
    assert (np.abs(value - truth) > 10 * sensor.std(truth)).mean() < 1e-3


def test_missing_stays_missing_and_outliers_follow_their_surroundings():
    depth = np.full((48, 64), 1000.0) + np.random.default_rng(0).normal(0, 2, (48, 64))
    depth[10, 10], depth[30:40, 20:30] = 3000.0, np.nan
    value, variance = smooth(depth, Sensor(unit="mm", noise=PowerLaw(constant=2.0)))
    assert (np.isnan(value) == np.isnan(depth)).all()
    assert (np.isinf(variance) == np.isnan(depth)).all()
    assert value[10, 10] == pytest.approx(1000, abs=3)
    assert variance[10, 10] > np.median(variance[np.isfinite(depth)])


def test_a_mask_says_what_is_not_believed():
    depth = np.full((48, 64), 1000.0)
    depth[20:23, 20:23] = 1100.0
    sensor = Sensor(unit="mm", noise=PowerLaw(constant=2.0))
    assert smooth(depth, sensor)[0][21, 21] > 1090
    mask = depth > 1050
    assert smooth(depth, sensor, outlier_mask=mask)[0][21, 21] == pytest.approx(1000, abs=3)


def test_no_variance_falls_below_that_of_rounding():
    sensor = Sensor(unit="mm", noise=PowerLaw(constant=0.1), step=PowerLaw(constant=10.0))
    _, variance = smooth(np.round(room(900.0, 3000.0) / 10) * 10, sensor)
    assert variance.min() >= 100 / 12 - 1e-9


def test_a_line_of_one_pixel_is_no_outlier_but_a_single_pixel_is():
    depth = np.zeros((32, 32), np.float32)
    depth[:, 12] = 100
    depth[20, 25] = 100
    found = find_outliers(depth)
    assert found[20, 25]
    assert found.sum() == 1


def test_noise_of_a_frame_in_a_lattice_is_smoothed():
    sensor = Sensor.preset("kinect_v1")
    depth, truth = frame_of(sensor, 900.0, 3000.0)
    rows, columns = (np.round(np.arange(size) * 1.64).astype(int) for size in depth.shape)
    sparse = np.full((rows[-1] + 1, columns[-1] + 1), np.nan)
    sparse[np.ix_(rows, columns)] = depth
    stretched = replace(sensor, correlation=sensor.correlation.scaled(1.64))
    value, variance = smooth(sparse, stretched)
    assert (np.isnan(value) == np.isnan(sparse)).all()
    error, std = value[np.ix_(rows, columns)] - truth, sensor.std(truth)
    assert rms99(error / std) < 0.8 * rms99((depth - truth) / std)
    assert 0.2 < np.median(error**2 / variance[np.ix_(rows, columns)]) / MEDIAN < 2


def test_what_is_no_frame_is_refused():
    sensor = Sensor.preset("kinect_v1")
    with pytest.raises(InputError, match="one map"):
        smooth(np.ones(3), sensor)
    with pytest.raises(InputError, match="positive"):
        smooth(np.zeros((8, 8)), sensor)
    value, variance = smooth(np.full((8, 8), np.nan), sensor)
    assert np.isnan(value).all()
    assert np.isinf(variance).all()


@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (3, 40), (5, 5), (33, 7)], ids=str)
def test_any_shape_is_smoothed(shape):
    depth = np.random.default_rng(0).normal(1000, 5, shape)
    value, variance = smooth(depth, Sensor.preset("kinect_v1"))
    assert value.shape == variance.shape == shape
    assert np.isfinite(value).all()
    assert (variance > 0).all()


def test_infinities_are_missing():
    depth, _ = frame_of(Sensor.preset("kinect_v1"), 900.0, 3000.0)
    holes = np.random.default_rng(0).random(depth.shape) < 0.1
    sensor = Sensor.preset("kinect_v1")
    one, other = (smooth(np.where(holes, code, depth), sensor) for code in (np.nan, np.inf))
    np.testing.assert_array_equal(one[0], other[0])
    assert blind.estimate(np.where(holes, np.nan, depth)) == blind.estimate(np.where(holes, np.inf, depth))


def test_a_sensor_without_noise_is_refused():
    with pytest.raises(InputError, match="no noise"):
        smooth(np.full((16, 16), 1000.0), Sensor())


def test_most_pixels_of_a_frame_may_be_missing():
    depth, truth = frame_of(Sensor.preset("kinect_v1"), 900.0, 3000.0)
    sensor = Sensor.preset("kinect_v1")
    for share in (0.5, 0.9, 0.99):
        sparse = np.where(np.random.default_rng(1).random(depth.shape) < share, np.nan, depth)
        value, _ = smooth(sparse, sensor)
        known = np.isfinite(sparse)
        assert (np.isfinite(value) == known).all()
        raw, left = (rms99(((m - truth) / sensor.std(truth))[known]) for m in (depth, value))
        assert left <= raw * (0.9 if share < 0.8 else 1.0)

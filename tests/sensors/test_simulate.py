"""Simulated frames have the noise of their record."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsedepth.sensors import Correlation, PowerLaw, Sensor
from sparsedepth.sensors.presets import names
from sparsedepth.sensors.simulate import correlated_noise, quantised, simulate
from sparsedepth.vocabulary import InputError


@pytest.mark.parametrize("name", names())
def test_the_noise_over_time_is_that_of_the_record(name):
    sensor = replace(Sensor.preset(name), outliers=0.0, pattern=0.0, temporal=0.0)
    depth = np.full((64, 64), np.sqrt(sensor.nearest * min(sensor.farthest, 4000.0)))
    stack = simulate(depth, sensor, np.random.default_rng(0), frames=40)
    assert np.sqrt(stack.var(axis=0, ddof=1).mean()) == pytest.approx(float(sensor.std(depth[0, 0])), rel=0.1)


def test_correlated_noise_has_its_correlation():
    correlation = Correlation(6.0, 3.0, exponent=1.2, white=0.1)
    noise = np.stack([correlated_noise((128, 128), correlation, np.random.default_rng(seed)) for seed in range(20)])
    assert noise.var() == pytest.approx(1.0, abs=0.1)
    for lag in (1, 3, 6):
        assert (noise[:, :, lag:] * noise[:, :, :-lag]).mean() == pytest.approx(float(correlation(0, lag)), abs=0.06)
        assert (noise[:, lag:] * noise[:, :-lag]).mean() == pytest.approx(float(correlation(lag, 0)), abs=0.06)


def test_codes_of_a_quadratic_law_are_uniform_in_inverse_depth():
    depth = np.linspace(900.0, 3000.0, 5000)
    codes = np.unique(1 / quantised(depth, PowerLaw(factor=2.9e-6)))
    np.testing.assert_allclose(np.diff(codes), 2.9e-6, rtol=0.02)


def test_a_fixed_pattern_stays_and_memory_shows():
    sensor = Sensor(
        unit="mm", noise=PowerLaw(constant=2.0), pattern=1.5, temporal=0.6, correlation=Correlation(2.0, 2.0)
    )
    stack = simulate(np.full((96, 96), 1000.0), sensor, np.random.default_rng(1), frames=60)
    assert stack.mean(0).std() == pytest.approx(3.0, rel=0.15)
    free = stack - stack.mean(0)
    assert (free[1:] * free[:-1]).mean() / free.var() == pytest.approx(0.6, abs=0.1)


def test_outliers_and_range():
    sensor = Sensor(unit="mm", noise=PowerLaw(constant=1.0), outliers=0.1, outlier_kind="impulse", farthest=1500.0)
    depth = np.linspace(500.0, 2000.0, 10000).reshape(100, 100)
    frame = simulate(depth, sensor, np.random.default_rng(2))[0]
    assert np.isnan(frame[depth > 1500]).all()
    near = depth <= 1500
    assert (np.abs(frame - depth)[near] > 6).mean() == pytest.approx(0.1, abs=0.02)
    with pytest.raises(InputError, match="one map"):
        simulate(depth[0], sensor, np.random.default_rng(0))

"""The estimate from one frame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from rooms import room

from sparsedepth.data import middlebury, range_scans
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.sensors import Correlation, PowerLaw, Sensor, blind, floor
from sparsedepth.sensors.simulate import simulate
from sparsedepth.vocabulary import InputError

WHITE = Sensor(name="white", unit="mm", noise=PowerLaw(factor=2e-6), step=PowerLaw(constant=1.0))
SIMULATED = [
    (Sensor.preset("kinect_v1"), 900.0, 3000.0),
    (Sensor.preset("realsense_d435"), 700.0, 4000.0),
    (replace(Sensor.preset("realsense_d455"), pattern=0.0), 500.0, 3500.0),
    (Sensor.preset("pico_zense"), 680.0, 1250.0),
    (WHITE, 800.0, 3000.0),
]


def frame_of(sensor: Sensor, near: float, far: float, impulses: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    truth = room(near, far)
    depth = simulate(truth, replace(sensor, outliers=0.0), rng)[0]
    hit = rng.random(depth.shape) < impulses
    return np.where(hit, rng.uniform(near, far, depth.shape), depth), truth


@pytest.mark.slow
@pytest.mark.parametrize("impulses", [0.0, 0.05])
@pytest.mark.parametrize(("sensor", "near", "far"), SIMULATED, ids=lambda v: getattr(v, "name", ""))
def test_the_level_is_found_with_and_without_impulses(sensor, near, far, impulses):
    depth, truth = frame_of(sensor, near, far, impulses)
    found = blind.estimate(depth)
    assert found is not None
    ratio = found.std(truth) / sensor.std(truth)
    assert 0.75 < np.median(ratio) < 1.3
    assert np.quantile(ratio, 0.05) > 0.5
    assert np.quantile(ratio, 0.95) < 2


@pytest.mark.parametrize("impulses", [0.0, 0.05])
def test_the_step_is_found_with_and_without_impulses(impulses):
    depth, truth = frame_of(Sensor.preset("kinect_v1"), 900.0, 3000.0, impulses)
    law = blind.step_law(depth)
    assert law is not None
    inner = truth[(truth > 1000) & (truth < 2600)]
    np.testing.assert_allclose(np.median(law(inner) / (2.9e-6 * inner**2)), 1.0, atol=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("length", [2.0, 5.0, 9.0])
def test_the_correlation_is_found(length):
    sensor = Sensor(unit="mm", noise=PowerLaw(constant=5.0), correlation=Correlation(length, length, 1.4))
    depth = simulate(room(1000.0, 2500.0, (480, 640)), sensor, np.random.default_rng(5))[0]
    found = blind.estimate(depth)
    assert found is not None
    assert found.correlation.along_rows == pytest.approx(length, rel=0.3)
    assert found.correlation.along_columns == pytest.approx(length, rel=0.3)


def test_white_noise_is_called_white():
    depth, _ = frame_of(WHITE, 800.0, 3000.0)
    found = blind.estimate(depth)
    assert found is not None
    assert float(found.correlation(0.0, 1.0)) < 0.1


@pytest.mark.parametrize("flip", [np.flipud, np.fliplr], ids=["rows", "columns"])
def test_flips_do_not_matter(flip):
    depth, truth = frame_of(Sensor.preset("kinect_v1"), 900.0, 3000.0)
    one, other = blind.estimate(depth), blind.estimate(flip(depth))
    assert one is not None
    assert other is not None
    np.testing.assert_allclose(one.std(truth), other.std(truth), rtol=0.03)


def test_the_unit_does_not_matter():
    depth, truth = frame_of(Sensor.preset("kinect_v1"), 900.0, 3000.0)
    one, other = blind.estimate(depth), blind.estimate(depth / 1000)
    assert one is not None
    assert other is not None
    np.testing.assert_allclose(one.std(truth), other.std(truth / 1000) * 1000, rtol=0.01)


def test_a_lattice_of_valid_pixels_shows_the_same_level():
    depth, truth = frame_of(Sensor.preset("kinect_v1"), 900.0, 3000.0)
    rows, columns = (np.round(np.arange(size) * 1.64).astype(int) for size in depth.shape)
    sparse = np.full((rows[-1] + 1, columns[-1] + 1), np.nan)
    sparse[np.ix_(rows, columns)] = depth
    one, other = blind.estimate(depth), blind.estimate(sparse)
    assert one is not None
    assert other is not None
    assert 0.7 < np.median(other.std(truth) / one.std(truth)) < 1.5


@pytest.mark.parametrize(
    "clean",
    [
        room(900.0, 3000.0),
        room(900.0, 3000.0).astype(np.float32),
        np.round(room(900.0, 3000.0)),
        np.full((64, 64), 3.0),
        1000 + np.add.outer(np.arange(96.0), np.arange(96.0)) ** 1.5,
        motorcycle_disparity(),
    ],
    ids=["room", "float32", "rounded", "constant", "curved", "motorcycle"],
)
def test_clean_maps_have_no_dense_noise(clean):
    assert blind.estimate(clean) is None


@pytest.mark.parametrize(
    "nothing", [np.full((40, 40), np.nan), np.zeros((40, 40)), -np.ones((40, 40)), np.ones((4, 4))]
)
def test_maps_that_show_nothing_give_nothing(nothing):
    assert blind.estimate(nothing) is None


def test_a_frame_is_a_map():
    with pytest.raises(InputError, match="one map"):
        blind.estimate(np.zeros(5))


@pytest.mark.slow
def test_real_clean_maps_have_no_dense_noise(real_data):
    maps = [*middlebury.disparities(2005)[::2], *middlebury.disparities(2006)[::6]]
    maps += [range_scans.scan(name)[:, :640] for name in range_scans.SCANS]
    assert sum(blind.estimate(depth) is not None for depth in maps) == 0


def test_the_least_standard_deviation_covers_rounding_and_roughness():
    rng = np.random.default_rng(0)
    noisy = 1000.0 + rng.normal(0, 4.0, (64, 64))
    least = floor.least_std(noisy)
    assert 0.4 * 4.0 < np.median(least) < 1.2 * 4.0
    holes = np.where(rng.random(noisy.shape) < 0.3, np.nan, np.round(room(900.0, 3000.0)[:64, :64]))
    assert (np.isnan(floor.least_std(holes)) == np.isnan(holes)).all()
    assert np.nanmin(floor.least_std(holes)) >= 1 / np.sqrt(12) - 1e-12

"""Simulated frames obey the measured laws of their sensors: noise, correlation, codes, shadows, outliers."""

from __future__ import annotations

import numpy as np
import pytest

from sparsedepth.data.rooms import depth_of_disparity, room
from sparsedepth.data.simulated_sensors import OPTICS, SIMULATED, rounded, simulated_frame, with_impulses
from sparsedepth.sensors import Sensor
from sparsedepth.vocabulary import InputError

AUTOCORRELATION = {
    "kinect_v1": (0.76, 0.65, 0.56, 0.48),
    "realsense_d435": (0.96, 0.93, 0.89, 0.84),
    "realsense_d455": (0.94, 0.90, 0.86, 0.80),
    "pico_zense": (0.78, 0.54, 0.34, 0.13),
}
"""Measured on real frames along rows, lags of 1 to 4 pixels."""
VISIBLE = {"kinect_v1": 0.63, "realsense_d435": 0.30, "realsense_d455": 0.39, "pico_zense": 0.71}
"""Measured on real frames: standard deviation inside windows of 8 x 8 pixels without their plane, over the whole."""
TOTAL = {"kinect_v1": lambda z: 0.53 + 1.56e-6 * z**2, "realsense_d455": lambda z: 2.6e-6 * z**2 * np.hypot(1, 1.1)}
"""Measured standard deviation where the preset splits it into parts."""
STEREO = [name for name in SIMULATED if OPTICS[name].baseline_mm]


def frame_of(name, truth, seed=0):
    return simulated_frame(name, truth, np.random.default_rng(seed))


def plane(depth, shape=(240, 320), slope=0.02):
    """A slightly slanted plane, so that codes of all phases occur."""
    return depth * (1 + slope * np.linspace(-0.5, 0.5, shape[1]))[None, :] + np.zeros(shape)


def scene(name, seed=0):
    return room(*OPTICS[name].range_mm, np.random.default_rng(seed), (360, 480))


def relative_error(frame):
    """Errors in standard deviations; NaN at holes and outliers."""
    return np.where(frame.outlier_mask, np.nan, (frame.depth - frame.truth) / frame.std)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATED)
def test_the_standard_deviation_follows_the_law_of_depth(name):
    near, far = OPTICS[name].range_mm
    sensor = Sensor.preset(name)
    for depth in np.linspace(near * 1.05, far * 0.95, 4):
        frames = [frame_of(name, plane(depth), seed) for seed in range(6)]
        found = np.sqrt(np.mean([float(np.nanmean((f.depth - f.truth) ** 2)) for f in frames]))
        law = TOTAL[name](depth) if name in TOTAL else sensor.std(depth)
        seen = np.sqrt(np.mean([float(np.mean(f.std[np.isfinite(f.depth)] ** 2)) for f in frames]))
        assert found == pytest.approx(seen, rel=0.1)
        if name != "pico_zense" or depth < 1000:  # far echoes of dark surfaces are missing, and with them their noise
            assert found == pytest.approx(float(law), rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATED)
def test_the_noise_is_correlated_as_measured(name):
    depth = np.mean(OPTICS[name].range_mm)
    error = np.stack([relative_error(frame_of(name, plane(depth), seed)) for seed in range(6)])
    products = [error[:, :, lag:] * error[:, :, :-lag] for lag in range(1, 5)]
    found = [float(np.nanmean(product) / np.nanmean(error**2)) for product in products]
    np.testing.assert_allclose(found, AUTOCORRELATION[name], atol=0.08)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATED)
def test_small_windows_show_as_little_of_the_noise_as_measured(name):
    depth = np.mean(OPTICS[name].range_mm)
    error = np.stack([relative_error(frame_of(name, plane(depth), seed)) for seed in range(4)])
    windows = np.nan_to_num(error).reshape(4, 30, 8, 40, 8).transpose(0, 1, 3, 2, 4).reshape(-1, 64)
    rows, columns = np.mgrid[:8, :8]
    basis = np.linalg.qr(np.column_stack([np.ones(64), rows.ravel(), columns.ravel()]))[0]
    left = windows - windows @ basis @ basis.T
    assert np.sqrt((left**2).sum() / len(left) / 61) / np.nanstd(error) == pytest.approx(VISIBLE[name], abs=0.08)


def test_half_of_the_codes_of_kinect_are_those_nearest_to_the_truth():
    sensor = Sensor.preset("kinect_v1")
    for seed in range(3):
        frame = frame_of("kinect_v1", scene("kinect_v1", seed), seed)
        valid = np.isfinite(frame.depth) & ~frame.outlier_mask
        assert 0.50 <= np.mean((frame.depth == rounded(frame.truth, sensor))[valid]) <= 0.61


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATED)
def test_values_are_codes(name):
    frame = frame_of(name, scene(name))
    valid = frame.depth[np.isfinite(frame.depth)]
    np.testing.assert_array_equal(valid, np.rint(valid))
    expected = Sensor.preset(name).step(2000.0)
    values = np.unique(frame_of(name, plane(2000.0, slope=0.2)).depth if name in STEREO else valid)
    assert np.nanmedian(np.diff(values)) == pytest.approx(max(float(expected), 1.0), abs=0.7)


@pytest.mark.parametrize("name", STEREO)
def test_a_shadow_is_background_to_the_left_of_a_near_object(name):
    near, far = 1000.0, 2500.0
    truth = np.full((60, 200), far)
    truth[:, 90:120] = near
    frame = frame_of(name, truth)
    width = OPTICS[name].focal_px * OPTICS[name].baseline_mm * (1 / near - 1 / far)
    shadow = frame.shadow_mask
    assert np.isnan(frame.depth[shadow]).all()
    assert (truth[shadow] == far).all()
    assert not shadow[:, 90:].any()
    np.testing.assert_allclose(shadow.sum(axis=1), width, atol=1.5)
    assert shadow[:, 89].all()


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATED)
def test_flying_pixels_lie_between_both_sides_of_a_step(name):
    near, far = OPTICS[name].range_mm
    truth = np.full((240, 320), far - 50.0)
    truth[:, 160:] = near + 50.0
    frames = [frame_of(name, truth, seed) for seed in range(8)]
    flying = np.stack([f.outlier_mask for f in frames])
    assert not flying[:, :, :159].any()
    assert not flying[:, :, 161:].any()
    values = np.stack([f.depth for f in frames])[flying]
    assert values.size > 0
    assert ((values > near) & (values < far)).all()


def test_frames_of_time_of_flight_repeat_the_noise_of_pixels_as_real_ones_do():
    """On real frames, the differences of differences of adjacent pixels are zero at 76 % of the pixels."""
    depth = frame_of("pico_zense", plane(900.0, slope=0.0)).depth
    crossed = depth[1:, 1:] - depth[1:, :-1] - depth[:-1, 1:] + depth[:-1, :-1]
    assert (crossed == 0)[np.isfinite(crossed)].mean() == pytest.approx(0.76, abs=0.06)


def test_noise_of_time_of_flight_varies_at_one_depth_and_faint_echoes_are_missing():
    frame = frame_of("pico_zense", plane(900.0, slope=0.0))
    assert np.percentile(frame.std, 90) > 1.5 * np.percentile(frame.std, 10)
    far = frame_of("pico_zense", plane(1280.0, slope=0.0))
    assert np.isnan(far.depth).mean() > 3 * np.isnan(frame.depth).mean()
    lost = np.isnan(far.depth)
    assert np.median(far.std[lost]) > np.median(far.std[~lost])


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATED)
def test_a_frame_has_as_many_holes_as_real_ones(name):
    holes = [np.isnan(frame_of(name, scene(name, seed), seed).depth).mean() for seed in range(4)]
    assert 0.01 < np.mean(holes) < 0.30


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATED)
def test_the_seed_decides_and_the_truth_is_kept(name):
    truth = scene(name)
    truth[10:20, 30:40] = np.nan
    before = truth.copy()
    first, again, other = (frame_of(name, truth, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(truth, before)
    np.testing.assert_array_equal(first.depth, again.depth)
    assert not np.array_equal(first.depth, other.depth, equal_nan=True)
    assert np.isnan(first.depth[np.isnan(truth)]).all()


def test_impulses_hit_valid_pixels_only_and_are_outliers():
    frame = frame_of("kinect_v1", scene("kinect_v1"))
    hit = with_impulses(frame, 0.05, np.random.default_rng(3))
    changed = (hit.depth != frame.depth) & np.isfinite(frame.depth)
    np.testing.assert_array_equal(np.isnan(hit.depth), np.isnan(frame.depth))
    assert changed.sum() / np.isfinite(frame.depth).sum() == pytest.approx(0.05, abs=0.005)
    assert hit.outlier_mask[changed].all()
    assert with_impulses(frame, 0.0, np.random.default_rng(3)).outlier_mask.sum() == frame.outlier_mask.sum()


def test_disparities_become_depths_with_the_median_asked_for():
    disparity = np.array([[4.0, 8.0, 16.0, np.nan, 0.0]])
    np.testing.assert_allclose(depth_of_disparity(disparity, 1500.0), [[3000.0, 1500.0, 750.0, np.nan, np.nan]])


def test_what_no_simulator_can_use_is_refused():
    with pytest.raises(InputError, match="no simulated sensor 'lidar'"):
        frame_of("lidar", np.ones((4, 4)))
    with pytest.raises(InputError, match=r"shape \(4,\)"):
        frame_of("kinect_v1", np.ones(4))

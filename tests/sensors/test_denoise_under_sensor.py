"""Restoration under a sensor: the way from a user's words to a restored map."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from rooms import room
from test_blind import SIMULATED, frame_of

from sparsedepth import DepthImage, InputError, Origin, Restorer, Sensor, believe, denoise, inpaint, match
from sparsedepth.restore import Settings
from sparsedepth.sensors import PowerLaw
from sparsedepth.sensors.floor import least_std
from sparsedepth.tiling import TilingSettings

KINECT = Sensor.preset("kinect_v1")


def kinect_frame():
    return frame_of(KINECT, 900.0, 3000.0)


@pytest.mark.slow
@pytest.mark.parametrize(("sensor", "near", "far"), SIMULATED, ids=lambda v: getattr(v, "name", ""))
def test_a_camera_needs_no_words(sensor, near, far):
    depth, truth = frame_of(sensor, near, far)
    result = denoise(depth, quality="fast")
    known = np.isfinite(depth)
    before, after = (np.median(np.abs(values - truth)[known]) for values in (depth, result.depth))
    assert after < 0.9 * before
    assert (result.origin[known] == Origin.SMOOTHED).mean() > 0.9
    assert 0.2 < np.median(((result.depth - truth) ** 2 / result.variance)[known]) / 0.455 < 2


def test_units_are_explicit():
    depth, _ = kinect_frame()
    millimetres = denoise(depth, sensor="kinect_v1", unit="mm")
    metres = denoise(DepthImage(depth / 1000, unit="m"), sensor=KINECT)
    np.testing.assert_allclose(metres.depth * 1000, millimetres.depth, rtol=1e-4)
    np.testing.assert_allclose(np.median(metres.variance * 1e6 / millimetres.variance), 1, rtol=1e-2)
    with pytest.raises(InputError, match="no unit"):
        denoise(depth, sensor="kinect_v1")
    with pytest.raises(InputError, match="drop unit="):
        denoise(DepthImage(depth, unit="mm"), sensor=KINECT, unit="m")
    with pytest.raises(InputError, match="describes depths"):
        denoise(DepthImage(depth, unit="px", kind="disparity"), sensor=KINECT)


def test_stored_numbers_have_a_meaning():
    depth, _ = kinect_frame()
    restorer = Restorer(sensor="kinect_v1", quality="fast")
    stored = restorer(depth * 5, unit="mm", numbers_per_unit=5.0)
    np.testing.assert_allclose(stored.depth / 5, restorer(depth, unit="mm").depth, rtol=1e-4)


def test_a_sensor_is_a_record_a_name_a_file_or_json(tmp_path):
    depth, _ = kinect_frame()
    KINECT.save(tmp_path / "camera.json")
    wanted = denoise(depth, sensor=KINECT, unit="mm").depth
    for choice in ("kinect_v1", str(tmp_path / "camera.json"), KINECT.to_json()):
        np.testing.assert_array_equal(denoise(depth, sensor=choice, unit="mm").depth, wanted)
    with pytest.raises(InputError, match="there is no sensor"):
        denoise(depth, sensor="kinect_v9", unit="mm")
    with pytest.raises(InputError, match="give a Sensor"):
        denoise(depth, sensor=3, unit="mm")  # pyright: ignore[reportArgumentType]


def test_contradictions_are_refused():
    depth, _ = kinect_frame()
    with pytest.raises(InputError, match="the same twice"):
        denoise(depth, sensor=KINECT, unit="mm", variance=np.ones(depth.shape))
    with pytest.raises(InputError, match="paper"):
        denoise(depth, sensor=KINECT, unit="mm", method="paper")
    with pytest.raises(InputError, match="fill is"):
        denoise(depth, fill="sideways")


def test_a_clean_map_keeps_its_values_but_is_not_called_exact():
    clean = np.round(room(900.0, 3000.0))
    result = denoise(clean, quality="fast")
    assert np.abs(result.depth - clean).max() < 1e-3
    assert (np.sqrt(result.variance) >= 0.99 * least_std(clean)).all()
    assert np.median(denoise(clean, quality="fast", sensor="clean").variance) < np.median(result.variance)


def test_inpainting_keeps_measured_pixels_with_the_noise_of_one_measurement():
    depth, _ = kinect_frame()
    depth = depth.astype(np.float32)
    depth[100:110, 50:90] = np.nan
    result = inpaint(depth, sensor=KINECT, unit="mm")
    known = np.isfinite(depth)
    np.testing.assert_allclose(result.depth[known], depth[known], rtol=1e-6)
    assert (result.origin[known] == Origin.MEASURED).mean() > 0.999
    assert np.median(np.sqrt(result.variance[known]) / KINECT.std(depth[known])) == pytest.approx(1, rel=1e-3)
    assert (result.origin[~known] == Origin.FILLED).all()


@pytest.mark.slow
def test_tiles_agree_with_the_whole():
    depth, _ = kinect_frame()
    depth[60:70, 40:80] = np.nan
    small = replace(Settings(), tiling=TilingSettings(max_untiled_pixels=2000, tile_px=160, sample_px=200))
    tiled = Restorer(sensor=KINECT, unit="mm", settings=small)(depth)
    whole = denoise(depth, sensor=KINECT, unit="mm")
    known = np.isfinite(depth)
    away = np.abs(tiled.depth - whole.depth)[known] / np.sqrt(whole.variance[known])
    assert np.quantile(away, 0.99) < 0.1
    assert np.median(tiled.variance[known] / whole.variance[known]) == pytest.approx(1, rel=0.15)
    assert (tiled.origin == whole.origin).mean() > 0.99


def test_shadows_are_filled_from_the_background():
    scene = np.where(np.arange(160) < 80, 1000.0, 2000.0) * np.ones((120, 1))
    sensor = Sensor(unit="mm", noise=PowerLaw(factor=2e-6), domain="1/z")
    depth = scene + np.random.default_rng(0).normal(0, 1, scene.shape) * sensor.std(scene)
    depth[:, 80:95] = np.nan
    near, far = (denoise(depth, sensor=sensor, unit="mm", fill=side) for side in ("nearest", "auto"))
    assert np.abs(far.depth[:, 80:95] - 2000).max() < 100
    assert np.abs(near.depth[5:-5, 81] - 1000).max() < 100
    assert (denoise(depth, sensor=sensor, unit="mm", fill=False).origin[:, 80:95] == Origin.REFUSED).all()


def test_all_holes_are_filled_with_less_certainty_inwards():
    depth, _ = kinect_frame()
    depth[40:180, 60:200] = np.nan
    some, every = (denoise(depth, sensor=KINECT, unit="mm", holes=holes) for holes in ("auto", "all"))
    assert (some.origin == Origin.REFUSED).any()
    assert not (every.origin == Origin.REFUSED).any()
    assert np.isfinite(every.depth).all()
    assert every.variance[110, 130] > every.variance[42, 130]


def test_the_belief_of_the_paper_takes_a_sensor():
    depth, truth = kinect_frame()
    part = (slice(0, 64), slice(0, 64))
    plain, under = believe(depth[part], stride=4), believe(depth[part], stride=4, sensor=KINECT, unit="mm")
    errors = [np.sqrt(np.mean((found.mean - truth[part]) ** 2)) for found in (plain, under)]
    assert errors[1] < errors[0]


def test_matching_takes_a_sensor_in_pixels():
    scene = np.random.default_rng(0).integers(0, 255, (24, 60), np.uint8)
    views = scene[:, 4:50], scene[:, 7:53]
    sensor = Sensor(unit="px", noise=PowerLaw(constant=0.3))
    plain, under = (match(*views, max_disparity=8, sensor=choice) for choice in (None, sensor))
    np.testing.assert_array_equal(plain.disparity, under.disparity)
    assert (plain.variance != under.variance).any()
    with pytest.raises(InputError, match="disparities are in px"):
        match(*views, max_disparity=8, sensor="kinect_v1")

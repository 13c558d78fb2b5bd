"""Crops by seed, and what each data set promises: units, size, which way is up, how much is missing."""

from __future__ import annotations

import re

import numpy as np
import pytest

from sparsedepth.data import data_folder, kinect, middlebury, range_scans, time_of_flight
from sparsedepth.data.crops import crops
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.vocabulary import InputError

LOADERS = {
    "laser": lambda: range_scans.scan("walkway"),
    "time of flight": time_of_flight.mug,
    "simulated time of flight": lambda: time_of_flight.simulated("Art", 4),
    "kinect": kinect.frames,
    "benchmark": lambda: middlebury.benchmark_scene("Teddy"),
    "full size": middlebury.full_size_art,
    "middlebury": lambda: middlebury.disparities(2005),
}


def missing(depth: np.ndarray) -> float:
    return float(np.isnan(depth).mean())


@pytest.mark.parametrize("load", LOADERS.values(), ids=LOADERS)
def test_absent_data_is_said_to_be_absent(load, monkeypatch, tmp_path):
    monkeypatch.setenv("SPARSEDEPTH_DATA", str(tmp_path))
    with pytest.raises(InputError, match=re.escape(str(tmp_path))):
        load()
    monkeypatch.delenv("SPARSEDEPTH_DATA")
    with pytest.raises(InputError, match="set SPARSEDEPTH_DATA"):
        load()


@pytest.mark.parametrize(
    "load",
    [
        lambda: range_scans.scan("moon"),
        lambda: time_of_flight.simulated("Moon", 4),
        lambda: time_of_flight.simulated("Art", 3),
        lambda: middlebury.benchmark_scene("Art"),
    ],
)
def test_an_unknown_name_lists_the_known_ones(load):
    with pytest.raises(InputError, match="choose one of"):
        load()


def test_an_empty_sequence_is_refused(monkeypatch, tmp_path):
    (tmp_path / "kinect" / "tum_freiburg3_sitting_rpy").mkdir(parents=True)
    monkeypatch.setenv("SPARSEDEPTH_DATA", str(tmp_path))
    with pytest.raises(InputError, match="no frames"):
        kinect.frames()


def test_crops_keep_their_promises():
    depth = motorcycle_disparity()
    found = crops(depth, 6, seed=4, most_missing=0.02, least_spread=0.3)
    again = crops(depth, 6, seed=4, most_missing=0.02, least_spread=0.3)
    assert [(c.top, c.left) for c in found] == [(c.top, c.left) for c in again]
    assert [(c.top, c.left) for c in found] != [(c.top, c.left) for c in crops(depth, 6, seed=5)]
    covered = np.zeros(depth.shape, int)
    for crop in found:
        window = slice(crop.top, crop.top + 100), slice(crop.left, crop.left + 100)
        np.testing.assert_array_equal(crop.depth, depth[window])
        covered[window] += 1
        assert missing(crop.depth) <= 0.02
        assert np.nanstd(crop.depth) >= 0.3 * np.nanstd(depth) - 1e-5
    assert covered.max() == 1
    found[0].depth[:] = 0
    assert not (depth == 0).any()


def test_the_first_crops_do_not_depend_on_how_many_are_asked_for():
    depth = motorcycle_disparity()
    places = [[(c.top, c.left) for c in crops(depth, n, 60, seed=1)] for n in (2, 5)]
    assert places[0] == places[1][:2]


def test_units_do_not_move_crops():
    depth = motorcycle_disparity().astype(np.float64)
    places = [[(c.top, c.left) for c in crops(d, 3, 80, seed=2)] for d in (depth, 1000 * depth, depth + 7)]
    assert places[0] == places[1] == places[2]


def test_crops_at_the_bounds():
    whole = np.arange(16.0).reshape(4, 4)
    assert [(c.top, c.left) for c in crops(whole, 1, 4, seed=0, least_spread=1)] == [(0, 0)]
    holed = whole.copy()
    holed[0, 0] = np.nan
    assert len(crops(holed, 1, 4, seed=0, most_missing=1 / 16)) == 1
    for call in (
        lambda: crops(holed, 1, 4, seed=0, most_missing=1 / 17),
        lambda: crops(whole, 1, 5, seed=0),
        lambda: crops(whole, 17, 1, seed=0, least_spread=0),
        lambda: crops(np.full((4, 4), np.nan), 1, 2, seed=0, most_missing=1),
        lambda: crops(np.eye(6), 1, 3, seed=0, least_spread=5),
    ):
        with pytest.raises(InputError):
            call()


@pytest.mark.usefixtures("real_data")
@pytest.mark.parametrize(
    ("name", "shape", "share"),
    [
        ("street_trees_os2", (128, 1024), 0.087),
        ("street_os0", (128, 1024), 0.258),
        ("corner_os1_a", (128, 1024), 0.179),
        ("trees_os1_sparse", (128, 2048), 0.463),
        ("walkway", (226, 360), 0.0426),
    ],
)
def test_laser_scans(name, shape, share):
    ranges = range_scans.scan(name)
    assert ranges.shape == shape
    assert ranges.dtype == np.float32
    assert missing(ranges) == pytest.approx(share, abs=0.001)
    assert np.nanmin(ranges) >= (0.3 if name == "walkway" else 0.24)
    assert 20 < np.nanmax(ranges) < 400, "metres"
    assert 1 < np.nanmedian(ranges) < 30, "metres"
    bottom, middle = ranges[-10:], ranges[len(ranges) // 3 : len(ranges) // 2]
    assert np.nanmedian(bottom) < np.nanmedian(middle), "the ground is near: it must be at the bottom"
    np.testing.assert_allclose(np.exp(range_scans.log_scan(name)), ranges, rtol=1e-5)


@pytest.mark.usefixtures("real_data")
def test_laser_scans_have_room_for_crops():
    for name in ("street_trees_os2", "street_os0", "corner_os1_a", "walkway"):
        assert len(crops(range_scans.log_scan(name), 1, seed=0)) == 1


@pytest.mark.usefixtures("real_data")
def test_the_time_of_flight_frame():
    frame = time_of_flight.mug()
    assert frame.depth.shape == frame.infrared.shape == (576, 640)
    assert 0.1 < np.nanmin(frame.depth) < np.nanmax(frame.depth) < 4, "metres"
    assert missing(frame.depth) == pytest.approx(0.235, abs=0.001)
    assert np.isnan(frame.depth[np.isnan(frame.infrared)]).all()
    assert np.nanmedian(frame.depth[400:480, 170:230]) < 0.6, "the mug is near, at the lower left"


@pytest.mark.usefixtures("real_data")
@pytest.mark.parametrize("scene", time_of_flight.SIMULATED)
def test_simulated_time_of_flight_has_the_noise_that_is_said(scene):
    for factor in time_of_flight.FACTORS:
        maps = time_of_flight.simulated(scene, factor)
        assert maps.full_truth.shape == (1088, 1376)
        assert maps.noisy.shape == maps.truth.shape == (1088 // factor, 1376 // factor)
        noise = maps.noisy - maps.truth
        assert np.std(noise) == pytest.approx(5, abs=0.25)
        assert np.mean(noise) == pytest.approx(0, abs=0.15)


@pytest.mark.usefixtures("real_data")
def test_kinect_frames():
    frames = kinect.frames()
    assert len(frames) == 8
    for frame in frames:
        assert frame.shape == (480, 640)
        assert 0.5 < np.nanmin(frame) < np.nanmax(frame) < 10, "metres"
        assert 0.15 < missing(frame) < 0.22
    change = np.abs(frames[1] - frames[0])
    assert np.nanmedian(change) < 0.02, "they follow one another"


@pytest.mark.usefixtures("real_data")
@pytest.mark.parametrize(
    ("name", "shape", "nearest", "farthest"),
    [
        ("Teddy", (375, 450), 52.75, 12.5),
        ("Cones", (375, 450), 55, 5.5),
        ("Venus", (383, 434), 19.75, 3),
        ("Tsukuba", (288, 384), 14, 5),
    ],
)
def test_benchmark_scenes(name, shape, nearest, farthest):
    scene = middlebury.benchmark_scene(name)
    assert scene.disparity.shape == scene.evaluated.shape == shape
    assert np.nanmax(scene.disparity) == nearest
    assert np.nanmin(scene.disparity) == pytest.approx(farthest, abs=0.6)
    assert np.isfinite(scene.disparity[scene.evaluated]).all()
    assert (scene.unoccluded <= scene.evaluated).all()
    assert (scene.discontinuous <= scene.unoccluded).all()
    assert 0.03 < scene.discontinuous.mean() < 0.4


@pytest.mark.usefixtures("real_data")
def test_full_size_art_is_the_same_scene_as_a_third_of_it():
    full = middlebury.full_size_art()
    assert full.shape == (1110, 1390)
    files = [file.parts[-2:] for file in middlebury.disparity_files(2005)]
    third = middlebury.disparities(2005)[files.index(("Art", "disp1.png"))]
    sampled = full[1::3, 1::3][: third.shape[0], : third.shape[1]]
    assert np.nanmedian(np.abs(sampled / 3 - third)) < 0.35
    assert data_folder().is_dir()

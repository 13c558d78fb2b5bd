"""Calibrations of stereo pairs, and depths with variances in metres."""

from __future__ import annotations

import numpy as np
import pytest

from sparsedepth import InputError, Match, Origin, StereoCalibration

MIDDLEBURY = """cam0=[3979.911 0 1244.772; 0 3979.911 1019.507; 0 0 1]
cam1=[3979.911 0 1369.115; 0 3979.911 1019.507; 0 0 1]
doffs=124.343
baseline=193.001
width=2964
height=1988
ndisp=270
"""
CAMERA_INFO = """image_width: 640
image_height: 480
camera_name: right
projection_matrix:
  rows: 3
  cols: 4
  data: [500.0, 0., 320.0, -60.0, 0., 500.0, 240.0, 0., 0., 0., 1., 0.]
"""


def written(folder, text):
    path = folder / "calib"
    path.write_text(text)
    return path


def test_middlebury_has_offset_and_millimetres(tmp_path):
    path = written(tmp_path, MIDDLEBURY)
    assert StereoCalibration.from_file(path) == StereoCalibration(3979.911, 0.193001, 124.343)
    quarter = StereoCalibration.from_file(path, shape=(497, 741))
    assert quarter.focal_px == pytest.approx(3979.911 / 4)
    assert quarter.doffs_px == pytest.approx(124.343 / 4)
    assert quarter.baseline_m == 0.193001
    without = MIDDLEBURY.replace("doffs=124.343\n", "")
    assert StereoCalibration.from_file(written(tmp_path, without)).doffs_px == pytest.approx(124.343)


@pytest.mark.parametrize("name", ["projection_matrix", "P", "block"])
def test_camera_info_of_the_right_camera_has_the_baseline(tmp_path, name):
    text = CAMERA_INFO
    if name == "P":
        text = "width: 640\nheight: 480\nP: [500.0, 0., 320.0, -60.0, 0., 500.0, 240.0, 0., 0., 0., 1., 0.]\n"
    if name == "block":
        numbers = ["500.0", "0.0", "320.0", "-60.0", "0.0", "500.0", "240.0", "0.0", "0.0", "0.0", "1.0", "0.0"]
        text = "width: 640\nheight: 480\np:\n" + "".join(f"- {number}\n" for number in numbers)
    assert StereoCalibration.from_file(written(tmp_path, text)) == StereoCalibration(500.0, 0.12)
    assert StereoCalibration.from_file(written(tmp_path, text), (240, 320)).focal_px == 250


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CAMERA_INFO.replace("-60.0", "0.0"), "give camera_info of the right one"),
        ("hello", "no calibration of a pair"),
        (MIDDLEBURY.replace("baseline=193.001\n", ""), "no calibration of a pair"),
        (MIDDLEBURY.replace("193.001", "-3"), "positive"),
    ],
)
def test_what_is_no_calibration_of_a_pair_is_refused(tmp_path, text, said):
    with pytest.raises(InputError, match=said):
        StereoCalibration.from_file(written(tmp_path, text))
    with pytest.raises(InputError, match="no file"):
        StereoCalibration.from_file(tmp_path / "nothing")


@pytest.mark.parametrize("wrong", [(0.0, 0.1), (500.0, -1.0), (500.0, 0.1, float("nan")), (float("inf"), 0.1)])
def test_numbers_that_cannot_be_are_refused(wrong):
    with pytest.raises(InputError, match="calibration"):
        StereoCalibration(*wrong)


@pytest.mark.parametrize(("deviation", "tolerance"), [(0.1, 0.01), (1.0, 0.015), (4.0, 0.1)])
def test_the_variance_is_that_of_sampled_disparities(deviation, tolerance):
    calibration = StereoCalibration(800.0, 0.15, doffs_px=5.0)
    found = Match(np.full((1, 1), 35.0), np.full((1, 1), deviation**2), np.zeros((1, 1), np.uint8))
    metres = calibration.depth(found)
    assert metres.depth[0, 0] == pytest.approx(3.0)
    sampled = np.random.default_rng(0).normal(35.0, deviation, 400_000)
    deviations = 800.0 * 0.15 / (sampled + 5) - metres.depth[0, 0]
    assert metres.variance[0, 0] == pytest.approx(np.mean(deviations**2), rel=tolerance)


@pytest.mark.parametrize("doffs", [0.0, 20.0])
def test_the_variance_is_that_of_pixels_that_were_taken_for_another_surface(doffs):
    """Half of the variance is normal; with the chance that makes up the rest, the true disparity is another pixel's."""
    rng = np.random.default_rng(1)
    disparity = rng.choice([20.0, 30.0, 45.0, 60.0], (40, 50))
    found = Match(disparity, np.full(disparity.shape, 4.0), np.zeros(disparity.shape, np.uint8))
    metres = StereoCalibration(800.0, 0.15, doffs).depth(found)
    for here in np.unique(disparity):
        apart = np.mean((disparity - here) ** 2)
        elsewhere = rng.random(400_000) < 2.0 / apart
        normal = rng.normal(here, np.sqrt(2.0), 400_000)
        other = rng.choice(disparity.ravel(), 400_000)
        depths = 800.0 * 0.15 / (np.stack([normal, other, np.full(400_000, here)]) + doffs)
        mean_square = np.mean((depths[0] - depths[2]) ** 2 + elsewhere * (depths[1] - depths[2]) ** 2)
        assert metres.variance[disparity == here][0] == pytest.approx(mean_square, rel=0.03)


def test_pixels_that_were_filled_are_no_surface_of_others():
    disparity, variance = np.array([[40.0, 40.0, 10.0]]), np.ones((1, 3))
    calibration = StereoCalibration(800.0, 0.15)
    seen = calibration.depth(Match(disparity, variance, np.zeros((1, 3), np.uint8)))
    filled = calibration.depth(Match(disparity, variance, np.array([[0, 0, Origin.FILLED]], np.uint8)))
    assert seen.variance[0, 0] > filled.variance[0, 0] == pytest.approx(9 / 1600 * (1 + 3 / 1600))


def test_infinity_is_unknown_and_an_offset_brings_it_near():
    found = Match(np.array([[0.0, 2.0]]), np.ones((1, 2)), np.array([[Origin.FILLED, Origin.MEASURED]], np.uint8))
    plain = StereoCalibration(100.0, 0.1).depth(found)
    assert np.isnan(plain.depth[0, 0])
    assert np.isinf(plain.variance[0, 0])
    assert plain.origin.tolist() == [[Origin.REFUSED, Origin.MEASURED]]
    assert plain.unit == "m"
    offset = StereoCalibration(100.0, 0.1, doffs_px=2.0).depth(found)
    assert offset.depth[0, 0] == pytest.approx(5.0)
    assert offset.origin[0, 0] == Origin.FILLED

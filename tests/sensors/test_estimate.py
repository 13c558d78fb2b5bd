"""Calibration from several frames."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from rooms import room

from sparsedepth.sensors import Sensor
from sparsedepth.sensors.estimate import estimate
from sparsedepth.sensors.simulate import simulate
from sparsedepth.sensors.smooth import smooth
from sparsedepth.sensors.views import warped
from sparsedepth.vocabulary import InputError

RANGES = {"kinect_v1": (900.0, 3000.0), "realsense_d455": (500.0, 3500.0), "pico_zense": (680.0, 1250.0)}


def stack_of(name: str, frames: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, Sensor]:
    sensor = replace(Sensor.preset(name), pattern=0.0)
    truth = room(*RANGES[name])
    return simulate(truth, sensor, np.random.default_rng(seed), frames=frames), truth, sensor


@pytest.mark.slow
@pytest.mark.parametrize("name", RANGES)
def test_the_record_comes_back(name):
    stack, truth, sensor = stack_of(name, 10)
    found = estimate(stack, unit="mm")
    ratio = found.std(truth) / sensor.std(truth)
    assert 0.85 < np.median(ratio) < 1.2
    assert found.correlation.along_rows == pytest.approx(sensor.correlation.along_rows, rel=0.4)
    assert found.temporal == pytest.approx(sensor.temporal, abs=0.12)
    assert found.outliers < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("name", RANGES)
def test_a_calibrated_variance_is_honest(name):
    stack, truth, _ = stack_of(name, 8)
    value, variance = smooth(stack[0], estimate(stack[2:], unit="mm"))
    honesty = np.median((value - truth) ** 2 / variance) / 0.455
    assert 0.4 < honesty < 1.6


def test_a_moving_scene_is_refused():
    truth = room(900.0, 3000.0, (120, 400))
    sensor = Sensor.preset("kinect_v1")
    views = [simulate(truth[:, 8 * n : 8 * n + 160], sensor, np.random.default_rng(n))[0] for n in range(8)]
    with pytest.raises(InputError, match="moves"):
        estimate(views, unit="mm")


def test_repeated_and_few_frames_are_refused():
    stack, _, _ = stack_of("kinect_v1", 5)
    with pytest.raises(InputError, match="distinct"):
        estimate([stack[0]] * 10)
    with pytest.raises(InputError, match="one shape"):
        estimate([stack[0], stack[1][:10]])
    with pytest.raises(InputError, match="poses"):
        estimate(stack, poses=[np.eye(4)])
    with pytest.raises(InputError, match="measured"):
        estimate(np.where(np.arange(5)[:, None, None] == 3, np.nan, stack))


def test_poses_bring_frames_to_one_view():
    sensor = replace(Sensor.preset("kinect_v1"), temporal=0.0, outliers=0.0)
    columns = np.mgrid[:160, :200][1]
    intrinsics = (200.0, 200.0, 100.0, 80.0)
    poses, views = [], []
    for n in range(7):
        pose = np.eye(4)
        pose[2, 3] = 8.0 * n
        poses.append(pose)
        wall = (2000.0 - 8.0 * n) / (1 + 0.3 * (columns - 100) / 200)
        views.append(simulate(wall, sensor, np.random.default_rng(n))[0])
    found = estimate(views, unit="mm", poses=poses, intrinsics=intrinsics)
    assert float(found.std(1900.0)) == pytest.approx(float(sensor.std(1900.0)), rel=0.3)


def test_warping_forth_and_back_is_nothing():
    depth = np.full((40, 60), 1000.0)
    motion = np.eye(4)
    motion[0, 3] = 50.0
    there = warped(depth, motion, (100.0, 100.0, 30.0, 20.0))
    assert np.isnan(there[:, :5]).all()
    assert (there[:, 5:] == 1000).all()


@pytest.mark.slow
def test_the_record_is_at_hand():
    stack, _, _ = stack_of("pico_zense", 5)
    assert Sensor.estimate(stack, unit="mm").unit == "mm"

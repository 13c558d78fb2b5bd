"""Real frames of four sensors with references: error left, honesty, coverage. Skipped without the data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sparsedepth.sensors import Sensor, blind
from sparsedepth.sensors.smooth import smooth
from sparsedepth.vocabulary import InputError

FRAMES = {
    "kinect_v1_7scenes": (240, 425),
    "realsense_d4xx_aims": (92, 104),
    "realsense_d4xx_cup": (32, 77),
    "tof_pico_zense": (2, 7),
}
PRESETS = {
    "kinect_v1_7scenes": "kinect_v1",
    "realsense_d4xx_aims": "realsense_d435",
    "realsense_d4xx_cup": "realsense_d455",
    "tof_pico_zense": "pico_zense",
}
MOST_LEFT = {
    "kinect_v1_7scenes": 0.72,
    "realsense_d4xx_aims": 0.84,
    "realsense_d4xx_cup": 0.90,
    "tof_pico_zense": 0.52,
}


@dataclass(frozen=True)
class Result:
    left: float
    honesty: float
    within: float


def load(path: Path) -> np.ndarray:
    values = np.asarray(Image.open(path)).astype(np.float32)
    return np.where((values == 0) | (values == 65535), np.nan, values)


def rms99(error: np.ndarray) -> float:
    squares = np.sort(error**2)
    return float(np.sqrt(squares[: int(0.99 * len(squares))].mean()))


def judge(folder: Path, number: int, sensor: Sensor | None, preset: Sensor) -> Result:
    depth = load(folder / "frames" / f"{number:06d}_depth.png")
    reference = load(folder / "frames" / f"{number:06d}_ref.png") / 10
    found = blind.estimate(depth) if sensor is None else sensor
    assert found is not None
    value, variance = smooth(depth, found)
    known = np.isfinite(depth + reference)
    before, after = ((m - reference)[known] / preset.std(reference[known]) for m in (depth, value))
    ratio = (value - reference)[known] ** 2 / variance[known]
    return Result(rms99(after) / rms99(before), float(np.median(ratio)) / 0.455, float((ratio < 4).mean()))


@pytest.mark.slow
@pytest.mark.parametrize("name", FRAMES)
def test_blind(name, real_data):
    preset = Sensor.preset(PRESETS[name])
    results = [judge(real_data / "sensors" / name, number, None, preset) for number in FRAMES[name]]
    assert np.mean([result.left for result in results]) < MOST_LEFT[name]
    assert all(0.5 < result.honesty < 2 for result in results)
    assert 0.88 < np.mean([result.within for result in results]) < 0.985


@pytest.mark.slow
@pytest.mark.parametrize("name", FRAMES)
def test_with_the_preset(name, real_data):
    preset = Sensor.preset(PRESETS[name])
    results = [judge(real_data / "sensors" / name, number, preset, preset) for number in FRAMES[name]]
    assert np.mean([result.left for result in results]) < MOST_LEFT[name]
    assert 0.65 < np.median([result.honesty for result in results]) < 1.4


@pytest.mark.slow
def test_a_static_camera_is_calibrated(real_data):
    folder = real_data / "sensors" / "tof_pico_zense"
    frames = [load(path) for path in sorted((folder / "frames").glob("*_depth.png"))]
    sensor = Sensor.estimate(frames[4:], unit="mm")
    assert float(sensor.std(800.0)) == pytest.approx(8.5, rel=0.2)
    result = judge(folder, 1, sensor, Sensor.preset("pico_zense"))
    assert 0.7 < result.honesty < 1.4


@pytest.mark.slow
def test_a_moving_camera_without_poses_is_refused(real_data):
    paths = sorted((real_data / "sensors" / "kinect_v1_7scenes" / "sequence").glob("*_depth.png"))
    with pytest.raises(InputError, match="moves"):
        Sensor.estimate([load(path) for path in paths[::2]], unit="mm")

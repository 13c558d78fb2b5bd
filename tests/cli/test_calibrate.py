"""calibrate: the record of a camera from frames on disk, how sure it is, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from scipy.spatial.transform import Rotation

from outputs import files_below
from sparsedepth.files import DepthImage, write
from sparsedepth.sensors import Correlation, PowerLaw, Sensor, calibrate
from sparsedepth.sensors.simulate import simulate

CAMERA = Sensor(
    unit="mm", noise=PowerLaw(factor=4e-6), step=PowerLaw(constant=1.0), correlation=Correlation(2.0, 2.0), domain="1/z"
)
INTRINSICS = (100.0, 100.0, 63.5, 47.5)


def scene(shape=(96, 128)) -> np.ndarray:
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    return np.where(columns < 50, 1200.0 + rows, 1700.0 + 5.0 * columns)


def frames_of(depth=None, count=8, seed=0) -> np.ndarray:
    return simulate(scene() if depth is None else depth, CAMERA, np.random.default_rng(seed), frames=count)


def save(folder, frames, unit="mm") -> None:
    folder.mkdir(exist_ok=True)
    for number, frame in enumerate(frames):
        Image.fromarray(np.nan_to_num(np.round(frame)).astype(np.uint16)).save(folder / f"{number:03d}_depth.png")


@pytest.fixture
def static(tmp_path):
    save(tmp_path / "in", frames_of())
    return tmp_path


def moving_views(count=7) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Frames of a slanted wall before a camera that moves along its axis and sideways, and its poses in mm."""
    fx, fy, cx, cy = INTRINSICS
    rows, columns = np.mgrid[:96, :128]
    x, y = (columns - cx) / fx, (rows - cy) / fy
    views, poses = [], []
    for number in range(count):
        pose = np.eye(4)
        pose[:3, 3] = 15.0 * number, 0.0, 25.0 * number
        depth = (1500.0 + 0.4 * pose[0, 3] - pose[2, 3]) / (1 - 0.4 * x + 0.0 * y)
        views.append(simulate(depth, CAMERA, np.random.default_rng(number))[0])
        poses.append(pose)
    return views, poses


def test_frames_become_a_record(command, static):
    ended = command("calibrate", static / "in", "-o", static / "camera.json", "--profile", "mm", "--name", "mine")
    assert ended.code == 0, ended.err
    sensor = Sensor.load(static / "camera.json")
    assert (sensor.name, sensor.unit) == ("mine", "mm")
    assert sensor.std(1250.0) == pytest.approx(CAMERA.std(1250.0), rel=0.2)
    for words in ("8 frames", "pixels", "statistical error", "Not measured"):
        assert words in ended.out
    assert files_below(static) == sorted([f"in/{n:03d}_depth.png" for n in range(8)] + ["camera.json"])


@pytest.mark.slow
def test_the_facts_as_json_and_the_picture(command, static):
    options = ("-o", static / "camera.json", "--plot", static / "camera.png", "--json")
    ended = command("calibrate", f"{static}/in/*_depth.png", *options)
    assert ended.code == 0, ended.err
    facts = json.loads(ended.out)
    assert facts["frames"] == 8
    assert facts["unit"] == "mm"
    assert 0 < facts["standard_error"] < 0.2 * facts["std"]
    assert facts["nearest"] < facts["median"] < facts["farthest"]
    assert any("as depth in mm" in sentence for sentence in facts["assumed"])
    with Image.open(static / "camera.png") as picture:
        assert picture.size == (1100, 760)


def test_nothing_is_overwritten(command, static):
    (static / "camera.json").write_text("mine")
    arguments = ("calibrate", static / "in", "-o", static / "camera.json", "--profile", "mm")
    ended = command(*arguments)
    assert ended.code == 2
    assert "--force" in ended.err
    assert (static / "camera.json").read_text() == "mine"
    assert command(*arguments, "--force").code == 0
    assert Sensor.load(static / "camera.json").unit == "mm"
    ended = command(*arguments, "--force", "--plot", static / "in/000_depth.png")
    assert ended.code == 2
    assert "never overwritten" in ended.err


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["m", "mm"])
@pytest.mark.parametrize("form", ["folder", "stacked", "TUM"])
def test_a_moving_camera_has_poses(command, tmp_path, form, unit):
    views, poses = moving_views()
    save(tmp_path / "in", views)
    given = tmp_path / ("poses" if form == "folder" else "poses.txt")
    scaled = [pose * np.where(np.eye(4)[3] > 0, 1 if unit == "mm" else 1e-3, 1) for pose in poses]
    for pose in scaled:
        pose[3, 3] = 1
    if form == "folder":
        given.mkdir()
        for number, pose in enumerate(scaled):
            np.savetxt(given / f"{number:03d}{'.pose' if number % 2 else '_pose'}.txt", pose)
    elif form == "stacked":
        np.savetxt(given, np.concatenate(scaled))
    else:
        quaternions = [Rotation.from_matrix(pose[:3, :3]).as_quat() for pose in scaled]
        lines = [[n, *pose[:3, 3], *q] for n, (pose, q) in enumerate(zip(scaled, quaternions, strict=True))]
        np.savetxt(given, lines, header="timestamp tx ty tz qx qy qz qw")
    focal = ",".join(map(str, INTRINSICS))
    common = ("calibrate", tmp_path / "in", "--profile", "mm", "-o", tmp_path / "camera.json", "--json")
    ended = command(*common, "--poses", given, "--pose-unit", unit, "--intrinsics", focal)
    assert ended.code == 0, ended.err
    assert any("the camera moved" in sentence for sentence in json.loads(ended.out)["not_measured"])
    assert Sensor.load(tmp_path / "camera.json").std(1400.0) == pytest.approx(CAMERA.std(1400.0), rel=0.35)


def test_a_moving_camera_without_poses_is_refused(command, tmp_path):
    save(tmp_path / "in", moving_views()[0])
    ended = command("calibrate", tmp_path / "in", "-o", tmp_path / "camera.json", "--profile", "mm")
    assert ended.code == 2
    assert "moves" in ended.err
    assert "pose" in ended.err
    assert not (tmp_path / "camera.json").exists()


def refused(command, folder, *options) -> str:
    ended = command("calibrate", folder / "in", "-o", folder / "camera.json", *options)
    assert ended.code == 2
    assert not (folder / "camera.json").exists()
    assert "Traceback" not in ended.err
    return ended.err


def test_frames_that_cannot_calibrate(command, tmp_path):
    save(tmp_path / "in", frames_of(count=3))
    assert "3 distinct frames" in refused(command, tmp_path, "--profile", "mm")
    save(tmp_path / "in", [frames_of()[0]] * 8)
    assert "1 distinct frames came (8 in all)" in refused(command, tmp_path, "--profile", "mm")
    assert "holds disparity" in refused(command, tmp_path, "--profile", "kitti-disparity")
    save(tmp_path / "in", [frames_of()[0][:50]])
    sentence = refused(command, tmp_path, "--profile", "mm")
    assert "001_depth.png has 96 x 128" in sentence
    assert "000_depth.png has 50 x 128" in sentence


def test_frames_without_a_unit_are_refused(command, tmp_path):
    (tmp_path / "in").mkdir()
    for number, frame in enumerate(frames_of()):
        np.save(tmp_path / "in" / f"{number}.npy", frame / 1000)
    assert "--profile m" in refused(command, tmp_path)
    assert command("calibrate", tmp_path / "in", "-o", tmp_path / "camera.json", "--profile", "m").code == 0
    assert Sensor.load(tmp_path / "camera.json").unit == "m"


def test_units_of_frames_may_differ(command, tmp_path):
    (tmp_path / "in").mkdir()
    for number, frame in enumerate(frames_of()):
        image = DepthImage(frame, "mm")
        write(tmp_path / "in" / f"{number}.tiff", image if number % 2 else image.to("m"))
    ended = command("calibrate", tmp_path / "in", "-o", tmp_path / "camera.json")
    assert ended.code == 0, ended.err
    assert Sensor.load(tmp_path / "camera.json").std(1.25) == pytest.approx(float(CAMERA.std(1250.0)) / 1000, rel=0.2)


POSES = {
    "too few": (np.tile(np.eye(4), (5, 1)), "5 poses and there are 8 frames"),
    "not rigid": (np.tile(2 * np.eye(4), (8, 1)), "pose 1 of"),
    "a wrong table": (np.ones((8, 5)), "8 lines of 5 numbers"),
    "no rotation": (np.zeros((8, 8)), "without a rotation"),
    "lost tracking": (np.full((8, 8), np.nan), "without a rotation"),
}


@pytest.mark.parametrize("name", POSES)
def test_poses_that_are_none(command, static, name):
    table, sentence = POSES[name]
    np.savetxt(static / "poses.txt", table)
    said = refused(command, static, "--profile", "mm", "--poses", static / "poses.txt", "--intrinsics", "1,1,1,1")
    assert sentence in said


def test_poses_that_are_missing(command, static):
    (static / "poses").mkdir()
    common = ("--profile", "mm", "--intrinsics", "1,1,1,1", "--poses")
    assert "no .txt files" in refused(command, static, *common, static / "poses")
    np.savetxt(static / "poses/000_pose.txt", np.eye(4))
    sentence = refused(command, static, *common, static / "poses")
    assert "7 of 8 frames, first 001_depth.png" in sentence
    assert "000_pose.txt" in sentence
    assert "no file" in refused(command, static, *common, static / "nowhere.txt")
    (static / "poses/words.txt").write_text("one two")
    assert "no table of numbers" in refused(command, static, *common, static / "poses/words.txt")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--poses", "x"), "--intrinsics FX,FY,CX,CY is missing"),
        (("--intrinsics", "1,1,1,1"), "--poses is missing"),
        (("--poses", "x", "--intrinsics", "1,1,1"), "four numbers"),
        (("--poses", "x", "--intrinsics", "0,1,1,1"), "positive"),
        (("--pose-unit", "inch"), "choose m or mm"),
        (("--plot", "x.jpg"), "must end in .png"),
    ],
)
def test_options_that_cannot_be_met(command, static, options, sentence):
    assert sentence in refused(command, static, *options)


# --- the same in Python ----------------------------------------------------------------------------------------------


def test_the_record_is_that_of_the_estimate():
    frames = frames_of()
    assert calibrate(frames, unit="mm", name="x").sensor == Sensor.estimate(frames, unit="mm", name="x")


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [Correlation(), Correlation(3.0, 3.0)], ids=["white", "correlated"])
def test_the_standard_error_is_that_of_repeated_calibrations(correlation):
    camera = replace(CAMERA, correlation=correlation)
    found = [calibrate(simulate(scene(), camera, np.random.default_rng(n), frames=6), unit="mm") for n in range(10)]
    stds = [float(each.temporal_std(1300.0)) / 1300.0**2 for each in found]
    stated = np.mean([each.standard_error / each.evidence.median**2 for each in found])
    assert 0.4 < np.std(stds, ddof=1) / stated < 2.0


def test_what_the_frames_cannot_show_is_said():
    wall = replace(CAMERA, step=PowerLaw())
    flat = calibrate(simulate(np.full((96, 128), 1000.0), wall, np.random.default_rng(0), frames=6), unit="mm")
    assert any("one depth" in sentence for sentence in flat.not_measured)
    assert any("quantisation" in sentence for sentence in flat.not_measured)
    deep = calibrate(frames_of(), unit="mm")
    assert not any("one depth" in sentence or "quantisation" in sentence for sentence in deep.not_measured)


def test_the_fixed_pattern_is_a_picture():
    camera = replace(CAMERA, pattern=1.0)
    found = calibrate(simulate(scene(), camera, np.random.default_rng(0), frames=10), unit="mm").evidence.pattern
    none = calibrate(frames_of(count=10), unit="mm").evidence.pattern
    assert found.shape == (96, 128)
    assert np.nanmedian(np.abs(found)) > 1.5 * np.nanmedian(np.abs(none))


def test_the_steps_of_a_moving_camera_are_those_of_its_frames():
    views, poses = moving_views()
    coarse = [np.round(view / 8) * 8 for view in views]
    sensor = calibrate(coarse, unit="mm", poses=poses, intrinsics=INTRINSICS).sensor
    assert float(sensor.step(1400.0)) == pytest.approx(8.0, rel=0.01)

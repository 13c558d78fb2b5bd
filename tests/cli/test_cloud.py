"""cloud: a map or a result as points, from the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from sparsedepth import Intrinsics, Match, denoise, point_cloud
from sparsedepth.files import DepthImage, read, read_array, write
from sparsedepth.stereo.calibration import StereoCalibration

Y, X = np.mgrid[:20, :30]
DEPTH = np.where((X < 3) & (Y < 3), np.nan, 1000 + 5.0 * X + 2 * Y)
CAMERA = ("--intrinsics", "25,25,14.5,9.5")


@pytest.fixture
def frame(tmp_path):
    write(tmp_path / "frame.png", DepthImage(DEPTH, "mm"), profile="mm")
    return tmp_path / "frame.png"


def test_a_map_and_a_result_become_points(command, frame, tmp_path):
    ended = command("cloud", frame, "-o", tmp_path / "x.ply", "--profile", "mm", *CAMERA)
    assert (ended.code, ended.err) == (0, "")
    assert "591 points in mm" in ended.out
    point_cloud(read(frame, "mm"), (25, 25, 14.5, 9.5)).write(tmp_path / "expected.ply")
    assert (tmp_path / "x.ply").read_bytes() == (tmp_path / "expected.ply").read_bytes()
    result = denoise(read(frame, "mm"), quality="fast")
    write(tmp_path / "result.npz", result)
    ended = command("cloud", tmp_path / "result.npz", "-o", tmp_path / "y.pcd", *CAMERA, "--json")
    assert json.loads(ended.out)["points"] == np.isfinite(result.depth).sum()
    point_cloud(result, (25, 25, 14.5, 9.5)).write(tmp_path / "expected.pcd")
    assert (tmp_path / "y.pcd").read_bytes() == (tmp_path / "expected.pcd").read_bytes()
    assert np.isfinite(read_array(tmp_path / "result.npz", name="variance")).any()


def test_calibration_files_colours_and_units(command, frame, tmp_path):
    (tmp_path / "info.yaml").write_text("height: 40\nwidth: 60\nK: [50, 0, 29.5, 0, 50, 19.5, 0, 0, 1]\nD: [0.1]\n")
    picture = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    Image.fromarray(picture).save(tmp_path / "colour.png")
    words = ("--intrinsics", tmp_path / "info.yaml", "--colour", tmp_path / "colour.png", "--to", "m")
    ended = command("cloud", frame, "-o", tmp_path / "x.ply", "--profile", "mm", *words)
    assert ended.code == 0
    assert "distortion" in ended.err
    expected = point_cloud(read(frame, "mm"), Intrinsics(25, 25, 14.5, 9.5), picture).to("m")
    expected.write(tmp_path / "expected.ply")
    assert (tmp_path / "x.ply").read_bytes() == (tmp_path / "expected.ply").read_bytes()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("-o", "x.stl", *CAMERA), "ply or .pcd"),
        (("-o", "x.ply", "--intrinsics", "1,2,3"), "four numbers"),
        (("-o", "x.ply", "--intrinsics", "none.yaml"), "no such file"),
        (("-o", "x.ply", *CAMERA, "--to", "inch"), "m or mm"),
        (("-o", "there.ply", *CAMERA), "--force"),
    ],
)
def test_mistakes_are_one_sentence(command, frame, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.ply").write_text("")
    ended = command("cloud", frame, *words)
    assert ended.code == 2
    assert sentence in ended.err


CALIB = "cam0=[50 0 29.5; 0 50 19.5; 0 0 1]\ncam1=[50 0 33.5; 0 50 19.5; 0 0 1]\ndoffs=4\nbaseline=120\n"


def test_disparities_become_points_by_their_calibration(command, tmp_path):
    disparity = np.round(30 - 0.5 * X, 1).astype(np.float32)
    found = Match(disparity, np.full(X.shape, 0.04), np.zeros(X.shape, np.uint8))
    found.save(tmp_path / "match.npz")
    (tmp_path / "calib.txt").write_text(CALIB + "width=60\nheight=40\n")
    ended = command("cloud", tmp_path / "match.npz", "-o", tmp_path / "x.ply", "--calib", tmp_path / "calib.txt")
    assert (ended.code, ended.err) == (0, "")
    assert "600 points in m, give or take" in ended.out
    expected = StereoCalibration(25.0, 0.12, 2.0).depth(found)
    point_cloud(expected, Intrinsics(25, 25, 14.5, 9.5)).write(tmp_path / "expected.ply")
    assert (tmp_path / "x.ply").read_bytes() == (tmp_path / "expected.ply").read_bytes()


def test_a_calibration_of_a_pair_is_for_disparities(command, frame, tmp_path):
    (tmp_path / "calib.txt").write_text(CALIB)
    words = ("-o", tmp_path / "x.ply", "--profile", "mm")
    ended = command("cloud", frame, *words, "--calib", tmp_path / "calib.txt")
    assert (ended.code, "for disparities" in ended.err) == (2, True)
    ended = command("cloud", frame, *words)
    assert (ended.code, "needs the camera" in ended.err) == (2, True)


def test_disparities_are_refused(command, tmp_path):
    write(tmp_path / "x.pfm", DepthImage(np.ones((4, 4)), "px", "disparity"))
    ended = command("cloud", tmp_path / "x.pfm", "-o", tmp_path / "x.ply", "--profile", "px", *CAMERA)
    assert ended.code == 2
    assert "--calib" in ended.err

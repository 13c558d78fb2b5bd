"""The command stream: folders, bags, poses, videos, and what it refuses."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from bags import write_plain, write_realsense_1
from sparsedepth import Origin, Sensor
from sparsedepth.data.rooms import room
from sparsedepth.files import read, read_array, write
from sparsedepth.sensors.simulate import simulate

N_FRAMES = 8


@pytest.fixture(scope="module")
def scene():
    return room(900.0, 3000.0, np.random.default_rng(0), (240, 320))


@pytest.fixture(scope="module")
def frames(scene):
    return simulate(scene, Sensor.preset("kinect_v1"), np.random.default_rng(1), frames=N_FRAMES)


@pytest.fixture
def folder(tmp_path, frames):
    (tmp_path / "in").mkdir()
    for number, frame in enumerate(frames):
        write(tmp_path / "in" / f"{number:06d}.png", frame, profile="mm")
    return tmp_path


@pytest.mark.slow
def test_a_folder_of_frames_becomes_surer(command, folder, scene, frames):
    ended = command("stream", folder / "in", "-o", folder / "out", "--profile", "mm", "--json")
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert (told["frames"], told["state"]) == (N_FRAMES, "static")
    first, last = (read(folder / "out" / f"{number:06d}.npz") for number in (0, N_FRAMES - 1))
    assert (first.unit, last.unit) == ("mm", "mm")
    errors = [np.nanmedian(np.abs(values - scene)) for values in (frames[-1], first.values, last.values)]
    assert errors[2] < errors[1] < errors[0]
    origin = read_array(folder / "out" / f"{N_FRAMES - 1:06d}.npz", name="origin")
    assert set(np.unique(origin)) <= {int(each) for each in Origin}


@pytest.mark.slow
def test_a_video_shows_every_frame(command, folder):
    ended = command("stream", folder / "in", "-o", folder / "out", "--profile", "mm", "--video", folder / "v.gif")
    assert ended.code == 0, ended.err
    with Image.open(folder / "v.gif") as video:
        assert getattr(video, "n_frames", 1) > 1
        assert video.size == (3 * 320, 240)


@pytest.mark.slow
def test_existing_results_stay_without_force(command, folder):
    arguments = ("stream", folder / "in", "-o", folder / "out", "--profile", "mm")
    assert command(*arguments).code == 0
    assert command(*arguments).code == 2
    assert command(*arguments, "--force").code == 0


def test_a_wrong_number_of_poses_is_refused(command, folder):
    matrix = "1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n"
    (folder / "poses.txt").write_text(3 * matrix)
    more = ("--poses", folder / "poses.txt", "--intrinsics", "280,280,160,120")
    ended = command("stream", folder / "in", "-o", folder / "out", "--profile", "mm", *more)
    assert ended.code == 2
    assert "poses" in ended.err


@pytest.mark.slow
def test_a_bag_is_read(command, tmp_path, frames):
    stored = [np.nan_to_num(frame).astype(np.uint16) for frame in frames[:4]]
    write_plain(tmp_path / "walk", stored)
    ended = command("stream", tmp_path / "walk", "-o", tmp_path / "out", "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["frames"] == 4
    assert "/camera/depth/image_raw" in ended.err
    assert len(list((tmp_path / "out").glob("*.npz"))) == 4


@pytest.mark.slow
def test_a_stack_and_a_zip_are_streams_too(command, folder, frames):
    np.savez_compressed(folder / "stack.npz", depth=np.nan_to_num(frames[:3]).astype(np.uint16))
    shutil.make_archive(str(folder / "zipped"), "zip", folder / "in")
    for name, n_frames in (("stack.npz", 3), ("zipped.zip", N_FRAMES)):
        ended = command("stream", folder / name, "-o", folder / f"{name}-out", "--json")
        assert ended.code == 0, ended.err
        assert json.loads(ended.out)["frames"] == n_frames == len(list((folder / f"{name}-out").iterdir()))


@pytest.mark.slow
def test_a_realsense_recording_is_in_its_own_unit(command, tmp_path, frames):
    stored = [(4 * np.nan_to_num(frame)).astype(np.uint16) for frame in frames[:2]]
    write_realsense_1(tmp_path / "rec.bag", stored, 0.00025)
    ended = command("stream", tmp_path / "rec.bag", "-o", tmp_path / "out")
    assert ended.code == 0, ended.err
    assert "0.25 mm" in ended.err
    first = read(sorted((tmp_path / "out").iterdir())[0])
    assert np.nanmedian(first.values) == pytest.approx(np.nanmedian(frames[0]), rel=0.01)


@pytest.mark.slow
def test_a_camera_streams_until_its_time_is_over(command, tmp_path):
    arguments = ("stream", "--camera", "simulated", "-o", tmp_path / "out", "--seconds", "0.4", "--json")
    ended = command(*arguments)
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)
    assert told["frames"] == len(list((tmp_path / "out").glob("*.npz"))) >= 1
    assert told["dropped"] >= 0
    assert command(*arguments).code == 2, "frames of another time are not mixed in"


@pytest.mark.slow
def test_ctrl_c_ends_a_camera_with_all_written(tmp_path):
    arguments = ("stream", "--camera", "simulated:2", "-o", "out", "--video", "look.gif", "--json")
    process = subprocess.Popen(
        [sys.executable, "-m", "sparsedepth", *arguments], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 60
    while len(list(tmp_path.glob("out/*.npz"))) < 2 and time.monotonic() < end and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    files = sorted(tmp_path.glob("out/*"))
    assert json.loads(out)["frames"] == len(files) >= 2
    assert all(np.isfinite(read(file).values).any() for file in files)
    assert (tmp_path / "look.gif").stat().st_size > 1000


@pytest.mark.parametrize(
    "arguments",
    [(), ("x.png", "--camera", "simulated"), ("--camera", "webcam"), ("--camera", "simulated", "--topic", "/depth")],
)
def test_one_source_is_named(command, tmp_path, arguments):
    ended = command("stream", *arguments, "-o", tmp_path / "out")
    assert ended.code == 2
    assert "camera" in ended.err

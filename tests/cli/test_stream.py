"""The command stream: folders, bags, poses, videos, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from sparsedepth import Origin, Sensor
from sparsedepth.data.rooms import room
from sparsedepth.files import read, read_array, write
from sparsedepth.files.bags import read_bag
from sparsedepth.sensors.simulate import simulate
from sparsedepth.vocabulary import InputError

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


def test_a_video_shows_every_frame(command, folder):
    ended = command("stream", folder / "in", "-o", folder / "out", "--profile", "mm", "--video", folder / "v.gif")
    assert ended.code == 0, ended.err
    with Image.open(folder / "v.gif") as video:
        assert getattr(video, "n_frames", 1) > 1
        assert video.size == (3 * 320, 240)


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


def write_bag(path, frames):
    from rosbags.rosbag2 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    names = ("sensor_msgs/msg/Image", "std_msgs/msg/Header", "builtin_interfaces/msg/Time")
    image, header, time = (store.types[name] for name in names)
    with Writer(path, version=9) as bag:
        connection = bag.add_connection("/camera/depth", image.__msgtype__, typestore=store)
        for number, frame in enumerate(frames):
            pixels = np.nan_to_num(frame).astype("<u2")
            data = pixels.view(np.uint8).ravel()
            message = image(header(time(number, 0), "c"), *pixels.shape, "16UC1", 0, pixels.strides[0], data)
            bag.write(connection, number, store.serialize_cdr(message, image.__msgtype__))


def test_a_bag_is_read(command, tmp_path, frames):
    write_bag(tmp_path / "walk", frames[:4])
    ended = command("stream", tmp_path / "walk", "-o", tmp_path / "out", "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["frames"] == 4
    assert len(list((tmp_path / "out").glob("*.npz"))) == 4
    with pytest.raises(InputError, match="topic"):
        next(read_bag(tmp_path / "walk", "/camera/colour"))


def test_what_is_no_bag_is_refused(tmp_path):
    (tmp_path / "no.bag").write_bytes(b"this is no bag")
    with pytest.raises(InputError, match="bag"):
        next(read_bag(tmp_path / "no.bag"))

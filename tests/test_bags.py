"""Bags: the depth is found by itself, with its unit and its camera, whoever wrote it."""

from __future__ import annotations

import numpy as np
import pytest

from bags import INTRINSICS, write_compressed_floats, write_plain, write_realsense_1, write_realsense_2
from sparsedepth.files.bags import describe_bag, read_bag
from sparsedepth.vocabulary import InputError

RNG = np.random.default_rng(0)
FRAMES = [RNG.integers(0, 9000, (48, 64)).astype(np.uint16) for _ in range(3)]
RECORDERS = {
    "ROS 2": (lambda path: write_plain(path, FRAMES), 0.001),
    "RealSense, ROS 1": (lambda path: write_realsense_1(path, FRAMES, 0.00025), 0.00025),
    "RealSense, ROS 1, without the option": (lambda path: write_realsense_1(path, FRAMES, 1e-4, option=False), 1e-4),
    "RealSense, ROS 1, millimetres": (lambda path: write_realsense_1(path, FRAMES, 0.001), 0.001),
    "RealSense, ROS 2": (lambda path: write_realsense_2(path, FRAMES, 0.00025), 0.00025),
}


@pytest.mark.slow
@pytest.mark.parametrize("recorder", RECORDERS)
def test_depth_unit_and_camera_are_found(tmp_path, recorder):
    write, unit_m = RECORDERS[recorder]
    path = tmp_path / ("rec.bag" if "ROS 1" in recorder else "rec")
    write(path)
    told = describe_bag(path)
    assert "depth" in told.topic.lower()
    assert (told.frames, told.shape, told.intrinsics) == (3, (48, 64), INTRINSICS)
    assert told.unit_m == pytest.approx(unit_m, rel=1e-6)
    images = [image for _, image in read_bag(path)]
    for image, raw in zip(images, FRAMES, strict=True):
        expected = np.where(raw == 0, np.nan, raw * (1000 * unit_m))
        np.testing.assert_allclose(image.values, expected, rtol=1e-6)
        assert image.unit == "mm"
        assert image.profile is not None
        assert image.profile.scale == pytest.approx(0.001 / unit_m)


def test_floats_are_metres(tmp_path):
    metres = [np.linspace(0.5, 4, 48 * 64, dtype=np.float32).reshape(48, 64) for _ in range(2)]
    metres[0][0, 0] = np.nan
    write_plain(tmp_path / "plain", metres, "32FC1")
    first = next(read_bag(tmp_path / "plain"))[1]
    np.testing.assert_array_equal(first.values, metres[0])
    write_compressed_floats(tmp_path / "compressed", metres[1:], 30000.0, 10.0)
    ((_, found),) = read_bag(tmp_path / "compressed")
    assert found.unit == "m"
    np.testing.assert_allclose(1 / found.values, 1 / metres[1], atol=0.51 / 30000)


def test_a_camera_of_another_size_is_not_that_of_the_images(tmp_path):
    write_plain(tmp_path / "rec", FRAMES)
    assert describe_bag(tmp_path / "rec", "/camera/depth/image_raw").intrinsics == INTRINSICS
    write_realsense_1(tmp_path / "rec.bag", FRAMES, 0.001)
    assert describe_bag(tmp_path / "rec.bag", "/device_0/sensor_0/Infrared_1/image/data").intrinsics is None


@pytest.mark.parametrize("topic", ["/camera/color/image_raw", "/nowhere"])
def test_topics_without_depth_are_refused(tmp_path, topic):
    write_plain(tmp_path / "rec", FRAMES)
    with pytest.raises(InputError, match=r"rgb8|topic"):
        describe_bag(tmp_path / "rec", topic)


def test_broken_pictures_are_refused(tmp_path):
    write_realsense_2(tmp_path / "rec", FRAMES, 0.001)
    (found,) = (tmp_path / "rec").glob("*.db3")
    content = found.read_bytes()
    found.write_bytes(content.replace(b"\x89PNG", b"\x89PNX"))
    with pytest.raises(InputError, match="broken"):
        list(read_bag(tmp_path / "rec"))


@pytest.mark.parametrize("name", ["no.bag", "none.bag"])
def test_what_is_no_bag_is_refused(tmp_path, name):
    (tmp_path / "no.bag").write_bytes(b"this is no bag")
    with pytest.raises(InputError, match="bag"):
        next(read_bag(tmp_path / name))

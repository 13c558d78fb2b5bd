"""Live cameras: the protocol, the newest frame, and drivers on stand-ins for the vendors' packages."""

from __future__ import annotations

import itertools
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from fake_cameras import FakeOpenNI, FakeRealSense, raw_frames
from sparsedepth import Sensor
from sparsedepth.cameras import CAMERAS, CameraFrame, NewestFrames, SimulatedCamera, open_camera
from sparsedepth.cameras.openni_device import OpenNICamera
from sparsedepth.cameras.realsense import RealSenseCamera
from sparsedepth.sensors.simulate import simulate_each
from sparsedepth.vocabulary import DepthImage, InputError


def frame(number: int) -> CameraFrame:
    return CameraFrame(DepthImage(np.full((2, 2), 1000.0 + number), "mm"), number)


class ByHand:
    """A camera that gives a frame when the test says so."""

    intrinsics = None

    def __init__(self) -> None:
        self.gate, self.given = threading.Semaphore(0), threading.Semaphore(0)
        self.end = False

    def __enter__(self):
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self):
        for number in itertools.count():
            if number:
                self.given.release()
            self.gate.acquire()
            if self.end:
                raise InputError("the camera fell off the table")
            yield frame(number)

    def give(self, n: int) -> None:
        for _ in range(n):
            self.gate.release()
            self.given.acquire()


@pytest.mark.parametrize(("waiting", "given"), [(1, 1), (1, 5), (2, 5), (3, 2)])
def test_the_newest_frames_are_taken_and_the_others_counted(waiting, given):
    camera = ByHand()
    with NewestFrames(camera, waiting) as newest:
        camera.give(given)
        taken = [each.stamp_ns for each in itertools.islice(newest, min(waiting, given))]
        assert taken == list(range(given))[-waiting:]
        assert newest.dropped == max(given - waiting, 0)
        newest.stop()
        camera.gate.release()


def test_an_error_of_the_camera_comes_after_its_last_frame():
    camera = ByHand()
    with NewestFrames(camera, 2) as newest:
        camera.give(2)
        camera.end = True
        camera.gate.release()
        frames = iter(newest)
        assert [next(frames).stamp_ns for _ in range(2)] == [0, 1]
        with pytest.raises(InputError, match="fell off"):
            next(frames)
    assert newest.dropped == 0


def test_stopping_ends_the_iteration():
    with SimulatedCamera(paced=False, shape=(24, 32)) as camera, NewestFrames(camera) as newest:
        for each in newest:
            assert each.depth.unit == "mm"
            newest.stop()


@pytest.mark.parametrize("seed", [0, 3])
def test_a_simulated_camera_repeats_itself(seed):
    def stack() -> np.ndarray:
        with SimulatedCamera(seed, frames=3, paced=False, shape=(60, 80)) as camera:
            return np.stack([each.depth.values for each in camera])

    first = stack()
    np.testing.assert_array_equal(first, stack())
    assert (first[0] != first[1]).mean() > 0.1, "every frame has its noise"
    assert np.isfinite(first).mean() > 0.9


def test_simulated_frames_have_the_law_of_their_sensor():
    """The deviation over time is the law's; the fixed pattern stays."""
    sensor = Sensor.preset("kinect_v1")
    scenes = itertools.repeat(np.full((48, 64), 2000.0), 60)
    stack = np.stack(list(simulate_each(scenes, sensor, np.random.default_rng(0))))
    over_time = float(np.median(stack.std(axis=0)))
    step = float(sensor.step(np.array(2000.0)))
    expected = np.hypot(float(sensor.noise(np.array(2000.0))), step / np.sqrt(12))
    assert over_time == pytest.approx(expected, rel=0.25)


def test_a_camera_in_real_time_keeps_its_pace():
    import time

    with SimulatedCamera(frames=4, shape=(24, 32), frames_per_second=20) as camera:
        began = time.monotonic()
        assert len(list(camera)) == 4
    assert time.monotonic() - began >= 3 / 20


@pytest.mark.parametrize("name", ["webcam", "simulated:x", ""])
def test_unknown_cameras_are_refused(name):
    with pytest.raises(InputError, match="camera"):
        open_camera(name)


def test_a_realsense_camera(monkeypatch):
    fake = FakeRealSense(raw_frames(3))
    monkeypatch.setitem(sys.modules, "pyrealsense2", fake)
    with RealSenseCamera("817", (6, 8), 30, colour=True) as camera:
        assert camera.intrinsics is not None
        assert (camera.intrinsics.fx, camera.intrinsics.cy) == (60.5, 2.5)
        frames = iter(camera)
        taken = [next(frames) for _ in range(3)]
        with pytest.raises(InputError, match="gave no frame"):
            next(frames)
    assert [each.stamp_ns for each in taken] == [0, 33333333, 66666666]
    assert taken[1].depth.unit == "mm"
    assert taken[1].depth.values[3, 3] == 4001 / 4
    assert np.isnan(taken[1].depth.values[0, 0])
    assert taken[0].depth.profile is not None
    assert taken[0].depth.profile.scale == 4
    assert taken[0].colour is not None
    assert taken[0].colour.shape == (6, 8, 3)
    assert fake.asked[:3] == [("device", "817"), ("depth", 8, 6, "z16", 30), ("color", "rgb8")]
    assert fake.stopped == 1


def test_an_openni_camera(monkeypatch):
    fake = FakeOpenNI(raw_frames(2))
    monkeypatch.setitem(sys.modules, "openni", SimpleNamespace(openni2=fake))
    with OpenNICamera() as camera:
        assert camera.intrinsics is not None
        found = (camera.intrinsics.fx, camera.intrinsics.fy, camera.intrinsics.cx, camera.intrinsics.cy)
        assert found == pytest.approx((8.0, 8.0, 3.5, 2.5))
        frames = iter(camera)
        first, second = next(frames), next(frames)
        with pytest.raises(InputError, match="no frame"):
            next(frames)
    assert first.depth.values[3, 3] == pytest.approx(400.0)
    assert np.isnan(first.depth.values[0, 0])
    assert second.stamp_ns == 33333000
    assert fake.opened == [None]
    assert (fake.started, fake.loaded) == (0, 0)


@pytest.mark.parametrize("name", ["openni", "primesense"])
def test_openni_goes_by_two_names(monkeypatch, name):
    for each in ("openni", "primesense"):
        fake = SimpleNamespace(openni2=FakeOpenNI(raw_frames(1), pixel_format=100)) if each == name else None
        monkeypatch.setitem(sys.modules, each, fake)
    with open_camera("openni:freenect://0") as camera:
        assert next(iter(camera)).depth.values[3, 3] == 4000


@pytest.mark.parametrize(
    ("name", "module", "fake", "words"),
    [
        ("realsense", "pyrealsense2", None, "pip install"),
        ("realsense", "pyrealsense2", FakeRealSense([], plugged=False), "No device connected"),
        ("openni", "openni", None, "pip install"),
        ("openni", "openni", SimpleNamespace(openni2=FakeOpenNI([], plugged=False)), "no devices found"),
        ("openni", "openni", SimpleNamespace(openni2=FakeOpenNI([], depth=False)), "no depth"),
    ],
)
def test_what_is_missing_is_said(monkeypatch, name, module, fake, words):
    monkeypatch.setitem(sys.modules, module, fake)
    monkeypatch.setitem(sys.modules, "primesense", None)
    with pytest.raises(InputError, match=words), open_camera(name):
        pass


def test_every_camera_is_listed():
    assert set(CAMERAS) == {"realsense", "openni", "simulated"}

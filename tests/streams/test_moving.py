"""A moving camera: poses, alignment, the lost state; bounded memory."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from cameras import STEREO, Camera, error, honesty, wall
from threadpoolctl import threadpool_limits

from sparsedepth import InputError, Intrinsics, Origin, Stream
from sparsedepth.data.posed_rooms import BALLS_M, room_view, turned
from sparsedepth.data.simulated_streams import STREAM_SENSORS, StreamScene
from sparsedepth.streams.settings import DEFAULT

CAMERA = (240.0, 240.0, 127.5, 95.5)
SHAPE = (192, 256)


def turning(frames: int = 14):
    """Poses, true depths in mm and frames of a camera that turns and moves aside."""
    camera = Camera(STEREO)
    for number in range(frames):
        pose = turned(0.01 * number, (0.01 * number, 0.0, 0.0))
        view = 1000 * room_view(pose, CAMERA, SHAPE)
        yield pose, view, camera(view)


def test_poses_let_a_turning_camera_converge():
    stream = Stream(STEREO, Intrinsics(*CAMERA), unit="mm")
    views = list(turning())
    result, view = [stream.push(frame, pose=pose) for pose, _, frame in views][-1], views[-1][1]
    assert stream.state == "tracking"
    assert error(result.depth, view, STEREO) < 0.5
    assert 0.3 < honesty(result, view) < 2


def test_a_camera_without_poses_is_aligned():
    stream = Stream(STEREO, Intrinsics(*CAMERA), unit="mm")
    views = list(turning())
    result, view = [stream.push(frame) for _, _, frame in views][-1], views[-1][1]
    assert stream.state == "tracking"
    assert error(result.depth, view, STEREO) < 0.55


def test_alignment_of_single_frames_is_nearly_as_good_as_their_poses():
    views, errors = list(turning(2)), []
    for posed in (True, False):
        stream = Stream(STEREO, Intrinsics(*CAMERA), unit="mm")
        result = [stream.push(frame, pose=pose if posed else None) for pose, _, frame in views][-1]
        errors.append(error(result.depth, views[-1][1], STEREO))
    assert errors[1] < 1.1 * errors[0]


@pytest.mark.slow
@pytest.mark.parametrize("sensor", [STEREO, None], ids=["known", "unknown"])
def test_a_moving_camera_without_intrinsics_is_no_worse_than_single_frames(sensor):
    stream = Stream(sensor, unit="mm")
    for _, view, frame in turning():
        result, single = stream.push(frame), Stream(sensor, unit="mm").push(frame)
        assert error(result.depth, view, STEREO) < 1.05 * error(single.depth, view, STEREO)
    assert stream.state == "lost"


def test_a_large_object_that_moves_does_not_lose_a_camera_that_stands_still():
    stream, camera, states = Stream(STEREO, Intrinsics(*CAMERA), unit="mm"), Camera(STEREO), []
    for number in range(16):
        ball = (-1.0 + 0.12 * number, 0.0, 1.3, 0.3)  # up to a fifth of the picture
        stream.push(camera(1000 * room_view(np.eye(4), CAMERA, SHAPE, (*BALLS_M, ball))))
        states.append(stream.state)
    assert states.count("lost") <= 1
    assert stream.age[165:, :40].min() > 12


def test_a_camera_that_only_seemed_to_move_loses_no_frame():
    view, camera = 1000 * room_view(np.eye(4), CAMERA, SHAPE), Camera(STEREO)
    frames = [camera(view) for _ in range(8)]
    doubtful, plain = (Stream(STEREO, unit="mm", settings=replace(DEFAULT, motion_square=limit)) for limit in (0, 9))
    results = [(doubtful.push(frame), doubtful.state, plain.push(frame)) for frame in frames]
    assert results[1][1] == "lost"
    assert results[-1][1] == "static"
    np.testing.assert_array_equal(results[-1][0].depth, results[-1][2].depth)


@pytest.mark.parametrize("intrinsics", [None, Intrinsics(*CAMERA)])
def test_a_camera_that_looks_elsewhere_is_lost_and_starts_anew(intrinsics):
    stream, camera = Stream(STEREO, intrinsics, unit="mm"), Camera(STEREO)
    views = [1000 * room_view(turned(0.0), CAMERA, SHAPE)] * 3
    views.append(700 * room_view(turned(0.3, (0.5, 0.3, -1.0)), CAMERA, SHAPE, ((0.0, 0.0, 1.0, 0.8),)))
    frames = [camera(view) for view in views]
    result = list(stream.each(frames))[-1]
    assert stream.state == "lost"
    assert error(result.depth, views[-1], STEREO) <= 1.05 * error(frames[-1], views[-1], STEREO)


def test_a_camera_that_stands_still_needs_no_warping():
    stream, camera = Stream(STEREO, Intrinsics(*CAMERA), unit="mm"), Camera(STEREO)
    view = 1000 * room_view(np.eye(4), CAMERA, SHAPE)
    for _ in range(4):
        stream.push(camera(view), pose=np.eye(4))
    assert stream.state == "static"


@pytest.mark.parametrize(
    ("intrinsics", "unit", "pose", "words"),
    [
        (None, "mm", np.eye(4), "intrinsics"),
        (Intrinsics(*CAMERA), "", np.eye(4), "unit="),
        (Intrinsics(*CAMERA), "mm", np.eye(3), "4, 4"),
        (Intrinsics(*CAMERA), "mm", np.full((4, 4), np.nan), "finite"),
        (Intrinsics(*CAMERA), "mm", 2 * np.eye(4), "orthonormal"),
    ],
)
def test_wrong_poses_are_refused(intrinsics, unit, pose, words):
    with pytest.raises(InputError, match=words):
        Stream(None, intrinsics, unit=unit).push(wall(), pose=pose)


def test_poses_come_with_every_frame_or_with_none():
    stream = Stream(STEREO, Intrinsics(*CAMERA), unit="mm")
    stream.push(wall(), pose=np.eye(4))
    with pytest.raises(InputError, match="one each"):
        stream.push(wall() + 1)


@pytest.mark.slow
@pytest.mark.parametrize("posed", [True, False])
def test_bits_do_not_depend_on_threads(posed):
    views, results = list(turning(4)), []
    for threads in (1, 2):
        stream = Stream(None, Intrinsics(*CAMERA), unit="mm")
        with threadpool_limits(threads):
            results.append([stream.push(frame, pose=pose if posed else None) for pose, _, frame in views][-1])
    np.testing.assert_array_equal(results[0].depth, results[1].depth)
    np.testing.assert_array_equal(results[0].variance, results[1].variance)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_stream():
    stream, camera = Stream(STEREO, Intrinsics(60.0, 60.0, 31.5, 23.5), unit="mm"), Camera(STEREO)
    sizes = []
    tracemalloc.start()
    for number in range(200):
        pose = turned(0.02 * np.sin(number / 7))
        stream.push(camera(1000 * room_view(pose, (60.0, 60.0, 31.5, 23.5), (48, 64))), pose=pose)
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert max(sizes[100:]) - max(sizes[20:100]) < 200_000  # a leak of one map a frame has 1.2 MB


def test_a_camera_that_turns_too_fast_to_be_aligned_is_no_worse_than_single_frames():
    stream, camera = Stream(STEREO, Intrinsics(*CAMERA), unit="mm"), Camera(STEREO)
    for number in range(8):
        view = 1000 * room_view(turned(0.2 * number), CAMERA, SHAPE)
        frame = camera(view)
        result, single = stream.push(frame), Stream(STEREO, unit="mm").push(frame)
        assert error(result.depth, view, STEREO) < 1.05 * error(single.depth, view, STEREO)


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAM_SENSORS)
def test_a_passing_object_does_not_change_what_is_learned_of_an_unknown_sensor(name):
    """The object is the only thing at its depth, and every pixel there moves."""
    scene = StreamScene(STREAM_SENSORS[name], (1, 1), (120, 160))
    stream, frames = Stream(unit="mm"), scene.passing_object()[:24]
    for frame in frames:
        stream.push(frame.depth)
    depths = np.quantile(frames[-1].truth, (0.05, 0.5, 0.95))
    assert stream.sensor is not None
    ratio = stream.sensor.std(depths) / scene.sensor.std(depths)
    assert ratio.min() > 0.5
    assert ratio.max() < 2.5


@pytest.mark.slow
@pytest.mark.parametrize("seed", [(1, 1), (2, 0)])
@pytest.mark.parametrize("name", STREAM_SENSORS)
def test_an_object_that_has_passed_is_not_remembered_in_its_shadow(name, seed):
    """A shadow that follows the object lies where the object was seen for several frames."""
    scene = StreamScene(STREAM_SENSORS[name], seed, (120, 160))
    stream, wrong, shadow = Stream(scene.sensor, unit="mm"), 0, 0
    for frame in scene.passing_object():
        result = stream.push(frame.depth)
        remembered = frame.shadow_mask & (result.origin == Origin.REMEMBERED)
        wrong += int((np.abs(result.depth - frame.truth) > 5 * frame.std)[remembered].sum())
        shadow += int(frame.shadow_mask.sum())
    coarse = name == "time of flight"  # surfaces close behind the object are within its noise
    assert wrong <= (0.01 * shadow if coarse else 0)


def test_missing_pixels_of_a_still_scene_are_remembered():
    scene = StreamScene(STREAM_SENSORS["kinect_v1"], (1, 1), (120, 160))
    stream, frames = Stream(scene.sensor, unit="mm"), scene.static(12)
    results = [stream.push(frame.depth) for frame in frames]
    missing = ~np.isfinite(frames[-1].depth)
    assert (results[-1].origin[missing] == Origin.REMEMBERED).mean() > 0.97

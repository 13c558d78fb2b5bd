"""A static camera: convergence, honesty, memory of holes, change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cameras import SIMPLE, STEREO, Camera, error, honesty, wall

from sparsedepth import DepthImage, InputError, Intrinsics, Origin, Sensor, Stream
from sparsedepth.data.posed_rooms import BALLS_M, room_view
from sparsedepth.sensors import Correlation, PowerLaw
from sparsedepth.streams.settings import DEFAULT


def followed(stream: Stream, camera: Camera, scenes) -> list:
    return [(stream.push(camera(scene)), scene) for scene in scenes]


@pytest.mark.parametrize("sensor", [SIMPLE, STEREO])
def test_a_static_scene_converges_as_theory_says(sensor):
    results = followed(Stream(sensor, unit="mm"), Camera(sensor), [wall()] * 16)
    for number in (4, 9, 16):
        result, scene = results[number - 1]
        assert error(result.depth, scene, sensor) < 1.25 * np.sqrt(
            (1 + sensor.temporal) / (1 - sensor.temporal) / number
        )
        assert 0.3 < honesty(result, scene) < 2


def test_frames_that_are_correlated_in_time_get_a_larger_variance():
    sensor = replace(SIMPLE, temporal=0.5, correlation=Correlation(3.0, 3.0))
    white = replace(sensor, temporal=0.0)
    scenes = [Camera(white, 0)(wall()) for _ in range(1)] + [Camera(white, seed)(wall()) for seed in range(1, 8)]
    last = [list(Stream(each, unit="mm").each(scenes))[-1] for each in (white, sensor)]
    assert np.median(last[1].variance) > 1.8 * np.median(last[0].variance)


@pytest.mark.slow
def test_no_variance_falls_below_the_fixed_pattern_and_rounding():
    sensor = replace(SIMPLE, pattern=1.1, step=PowerLaw(constant=4.0))
    result, scene = followed(Stream(sensor, unit="mm"), Camera(sensor), [wall()] * 40)[-1]
    least = (1.1 * sensor.noise(scene)) ** 2 + 4.0**2 / 12
    assert (result.variance >= 0.99 * least).all()


def test_a_single_outlier_is_corrected():
    stream, camera = Stream(SIMPLE, unit="mm"), Camera()
    followed(stream, camera, [wall()] * 5)
    frame = camera(wall())
    frame[40, 50] = 3000.0
    result = stream.push(frame)
    assert result.origin[40, 50] == Origin.CORRECTED
    assert abs(result.depth[40, 50] - wall()[40, 50]) < 10
    assert result.variance[40, 50] > 10 * np.median(result.variance)


def test_a_pixel_that_stays_changed_is_followed_within_two_frames():
    stream, camera, scene = Stream(SIMPLE, unit="mm"), Camera(), wall()
    followed(stream, camera, [scene] * 10)
    changed = scene.copy()
    changed[40, 50] += 400
    results = followed(stream, camera, [changed] * 2)
    assert abs(results[-1][0].depth[40, 50] - changed[40, 50]) < 20


@pytest.mark.slow
@pytest.mark.parametrize("sensor", [SIMPLE, STEREO])
def test_a_moving_object_leaves_no_ghost_after_two_frames(sensor):
    stream, camera = Stream(sensor, unit="mm"), Camera(sensor)
    intrinsics = (180.0, 180.0, 99.5, 74.5)
    views = [
        1000 * room_view(np.eye(4), intrinsics, (150, 200), (*BALLS_M, (-1.0 + 0.12 * number, 0.0, 1.2, 0.25)))
        for number in range(18)
    ]
    empty = 1000 * room_view(np.eye(4), intrinsics, (150, 200))
    left, raw = [], []
    for number, view in enumerate(views):
        frame = camera(view)
        result = stream.push(frame)
        if number > 6:
            covered = [views[number - ago] < empty - 10 for ago in (3, 2, 1, 0)]
            uncovered = covered[0] & ~covered[1] & ~covered[2] & ~covered[3]
            left.append(((result.depth - view) / sensor.std(view))[uncovered])
            raw.append(((frame - view) / sensor.std(view))[uncovered])
    left, raw = np.concatenate(left), np.concatenate(raw)
    assert np.sqrt(np.mean(left**2)) < 1.1 * np.sqrt(np.mean(raw**2))


def test_flicker_of_static_pixels_is_a_fifth_of_the_raw_one():
    stream, camera = Stream(STEREO, unit="mm"), Camera(STEREO)
    frames = [camera(wall()) for _ in range(20)]
    results = [result.depth for result in stream.each(frames)]
    assert np.std(results[-1] - results[-2]) < 0.2 * np.std(frames[-1] - frames[-2])


@pytest.mark.slow
@pytest.mark.parametrize("sensor", [SIMPLE, STEREO])
@pytest.mark.parametrize("speed", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("part", [slice(None), slice(64, 192)])
def test_slow_change_does_not_lag(sensor, speed, part):
    stream, camera, scene = Stream(sensor, unit="mm"), Camera(sensor), wall((192, 256))
    errors, raws, honest = [], [], []
    for number in range(32):
        moved = scene.copy()
        moved[:, part] -= speed * max(number - 10, 0) * sensor.std(scene)[:, part]
        frame = camera(moved)
        result = stream.push(frame)
        if number > 10:
            errors.append(error(result.depth, moved, sensor, (slice(None), part)))
            raws.append(error(frame, moved, sensor, (slice(None), part)))
            honest.append(honesty(result, moved, (slice(None), part)))
    assert np.sqrt(np.mean(np.square(errors))) < 1.1 * np.sqrt(np.mean(np.square(raws)))
    assert 0.3 < np.median(honest) < 3


@pytest.mark.slow
def test_a_hole_is_remembered_with_growing_variance_and_forgotten_in_time():
    stream, camera = Stream(SIMPLE, unit="mm"), Camera()
    before = followed(stream, camera, [wall()] * 6)[-1][0]
    holed = [np.where((np.arange(128) > 60) & (np.arange(128) < 70), np.nan, camera(wall())) for _ in range(32)]
    results = list(stream.each(holed))
    hole = (slice(None), slice(61, 70))
    assert (results[0].origin[hole] == Origin.REMEMBERED).all()
    assert error(results[0].depth, wall(), SIMPLE, hole) < 0.7
    assert before.variance[hole].mean() < results[0].variance[hole].mean() < results[9].variance[hole].mean()
    assert (results[-1].origin[hole] == Origin.REFUSED).all()
    assert np.isnan(results[-1].depth[hole]).all()
    assert np.isinf(results[-1].variance[hole]).all()


def test_memory_next_to_a_new_surface_is_forgotten():
    stream, camera = Stream(SIMPLE, unit="mm"), Camera()
    followed(stream, camera, [wall()] * 6)
    scene = wall()
    scene[30:60, 40:60] = 700.0  # an object
    scene[30:60, 60:68] = np.nan  # and its shadow
    frame = camera(scene)
    result = stream.push(frame)
    assert (result.origin[30:60, 60:68] == Origin.REFUSED).all()


def test_the_noise_of_an_unknown_sensor_is_learned():
    truth = replace(STEREO, temporal=0.0)
    stream, camera = Stream(unit="mm"), Camera(truth)
    scene = 1000 * room_view(np.eye(4), (240.0, 240.0, 127.5, 95.5), (192, 256))
    followed(stream, camera, [scene] * 12)
    assert stream.sensor is not None
    for depth in (1500.0, 2400.0):
        assert float(stream.sensor.std(depth)) == pytest.approx(float(truth.std(depth)), rel=0.15)


def test_units_do_not_matter():
    frames = [Camera(STEREO, seed)(wall()) for seed in range(6)]
    in_mm = list(Stream(STEREO, unit="mm").each(frames))[-1]
    in_m = list(Stream(STEREO, unit="m").each(frame / 1000 for frame in frames))[-1]
    np.testing.assert_allclose(in_m.depth * 1000, in_mm.depth, rtol=1e-5)
    np.testing.assert_allclose(in_m.variance * 1e6, in_mm.variance, rtol=1e-2)


def test_the_same_frames_give_the_same_bits():
    frames = [Camera(STEREO, seed)(wall()) for seed in range(5)]
    first, second = (list(Stream(STEREO, unit="mm").each(frames))[-1] for _ in range(2))
    for one, other in zip(
        (first.depth, first.variance, first.origin), (second.depth, second.variance, second.origin), strict=False
    ):
        np.testing.assert_array_equal(one, other)


def test_a_repeated_frame_tells_nothing_new():
    stream, frame = Stream(SIMPLE, unit="mm"), Camera()(wall())
    first = stream.push(frame)
    assert stream.push(frame.copy()) is first
    assert stream.age.max() == 1


def test_a_frame_keeps_what_its_numbers_mean():
    image = DepthImage(Camera()(wall()) / 1000, unit="m")
    result = Stream(SIMPLE).push(image)
    assert result.unit == "m"
    assert result.kind == "depth"


def test_a_given_variance_counts():
    stream, camera, scene = Stream(SIMPLE, unit="mm"), Camera(), wall()
    variance = np.where(np.arange(128) < 64, 25.0, 2500.0) * np.ones((96, 1))
    result = [stream.push(camera(scene), variance=variance) for _ in range(4)][-1]
    assert np.median(result.variance[:, 64:]) > 50 * np.median(result.variance[:, :64])


@pytest.mark.parametrize("quality", ["live", "best"])
def test_young_pixels_are_smoothed(quality):
    sensor = replace(STEREO, correlation=Correlation(1.0, 1.0))
    scene = wall()
    result = Stream(sensor, unit="mm", quality=quality).push(Camera(sensor)(scene))
    assert error(result.depth, scene, sensor) < 0.75
    assert 0.3 < honesty(result, scene) < 2.5


def hole_in_a_wall(frames: int, shown: int = -1):
    """Frames of a wall with a hole that is never measured, but in one frame."""
    camera = Camera()
    for number in range(frames):
        frame = camera(wall())
        if number != shown:
            frame[40:50, 60:70] = np.nan
        yield frame


def test_live_streams_fill_holes_on_key_frames():
    stream = Stream(SIMPLE, unit="mm")
    results = list(stream.each(hole_in_a_wall(16, shown=15)))
    due = DEFAULT.key_first_frames + DEFAULT.key_delay_frames
    assert results[due - 2].origin[45, 65] == Origin.REFUSED
    filled = results[due - 1]
    assert (filled.origin[40:50, 60:70] == Origin.FILLED).all()
    assert np.abs(filled.depth - wall())[40:50, 60:70].max() < 3 * np.sqrt(filled.variance[40:50, 60:70].min())
    assert stream.age[45, 65] == 1  # the first measurement replaces what was filled
    assert results[-1].origin[45, 65] in (Origin.MEASURED, Origin.SMOOTHED)


def test_holes_stay_missing_where_nobody_wants_them_filled():
    results = list(Stream(SIMPLE, unit="mm", fill="none").each(hole_in_a_wall(16)))
    assert all(result.origin[45, 65] == Origin.REFUSED for result in results)


def test_what_was_filled_near_a_new_surface_is_not_added():
    frames = list(hole_in_a_wall(16))
    for frame in frames[8:]:
        frame[30:60, 72:90] = 800.0
    result = list(Stream(SIMPLE, unit="mm").each(frames))[-1]
    assert result.origin[45, 69] == Origin.REFUSED


@pytest.mark.slow
@pytest.mark.parametrize("age", [1, 4, 12])
def test_best_is_no_worse_than_live_at_any_age(age):
    camera, scene = Camera(STEREO), 1000 * room_view(np.eye(4), (120.0, 120.0, 79.5, 59.5), (120, 160))
    frames = [camera(scene) for _ in range(age)]
    best, live = (list(Stream(STEREO, unit="mm", quality=name).each(frames))[-1] for name in ("best", "live"))
    assert error(best.depth, scene, STEREO) < 1.05 * error(live.depth, scene, STEREO)


def test_best_fills_all_holes_and_remembers_first():
    stream, camera = Stream(SIMPLE, unit="mm", quality="best"), Camera()
    always = np.zeros((96, 128), bool)
    always[10:14, 10:14] = True
    followed(stream, camera, [np.where(always, np.nan, wall())] * 3)
    now = always.copy()
    now[60:64, 80:84] = True
    result = stream.push(np.where(now, np.nan, camera(wall())))
    assert (result.origin[always] == Origin.FILLED).all()
    assert (result.origin[60:64, 80:84] == Origin.REMEMBERED).all()


@pytest.mark.parametrize(
    ("make", "frames", "words"),
    [
        (lambda: Stream("kinect_v1"), [np.ones((8, 8))], "unit="),
        (lambda: Stream("clean"), [], "clean"),
        (lambda: Stream(quality="fast"), [], "live"),
        (lambda: Stream(unit="px"), [], "unit"),
        (lambda: Stream(SIMPLE, unit="mm"), [np.ones((8, 8)), np.ones((8, 9))], "new Stream"),
        (lambda: Stream(SIMPLE, unit="mm"), [np.ones(8)], "height, width"),
        (lambda: Stream(SIMPLE, unit="mm"), [DepthImage(np.ones((8, 8)), unit="m")], "convert"),
        (lambda: Stream(SIMPLE, np.eye(3)), [], "Intrinsics"),  # pyright: ignore[reportArgumentType]
        (lambda: Stream(SIMPLE, Intrinsics(0.0, 1.0, 2.0, 3.0)), [], "positive focal"),
    ],
)
def test_mistakes_are_sentences(make, frames, words):
    with pytest.raises(InputError, match=words):
        list(make().each(frames))


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (7, 5)])
def test_any_shape_is_restored(shape):
    stream = Stream(SIMPLE, unit="mm")
    result = list(stream.each(np.random.default_rng(seed).normal(1000.0, 5.0, shape) for seed in range(3)))[-1]
    assert result.depth.shape == shape
    assert np.isfinite(result.depth).all()


def test_frames_without_any_value_are_refused_pixel_by_pixel():
    for sensor in (SIMPLE, None):
        stream = Stream(sensor, unit="mm")
        result = stream.push(np.full((40, 50), np.nan))
        assert (result.origin == Origin.REFUSED).all()
        np.testing.assert_allclose(stream.push(wall((40, 50))).depth, wall((40, 50)), rtol=0.01)


def test_sensor_is_the_one_that_was_given():
    stream = Stream(Sensor.preset("kinect_v1"), unit="m")
    assert stream.state == "empty"
    stream.push(np.full((20, 30), 1.5))
    assert stream.sensor is not None
    assert stream.sensor.unit == "m"


def test_results_have_the_unit_of_the_stream_or_of_its_frames():
    arrays, images = Stream(SIMPLE, unit="mm"), Stream(SIMPLE)
    assert arrays.push(wall()).unit == "mm"
    assert images.push(DepthImage(wall(), "mm")).unit == "mm"
    assert Stream(Sensor(noise=PowerLaw(constant=5.0))).push(wall()).unit == ""

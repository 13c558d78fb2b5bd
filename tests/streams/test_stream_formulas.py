"""Alignment, disagreement, motion and changes of streams, each beside its definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.ndimage import gaussian_filter, map_coordinates

from sparsedepth import Origin, Stream
from sparsedepth.geometry import Intrinsics
from sparsedepth.sensors import Correlation, PowerLaw, Sensor
from sparsedepth.streams.align import _averaged, _Surface, align
from sparsedepth.streams.axis import Axis
from sparsedepth.streams.belief import Belief, Change, Updater
from sparsedepth.streams.changes import Arrivals, follow_surfaces
from sparsedepth.streams.disagreement import remove_disagreement
from sparsedepth.streams.drifts import Drifts
from sparsedepth.streams.flow import shows_motion
from sparsedepth.streams.learning import learned
from sparsedepth.streams.report import Reporter
from sparsedepth.streams.settings import DEFAULT
from sparsedepth.streams.stillness import Stillness
from sparsedepth.streams.warp import View

SHAPE = (120, 150)
VIEW = View(Intrinsics(140.0, 150.0, 70.3, 62.1), SHAPE)
DOMAINS = ("z", "log z", "1/z")


def axis_of(domain, depth, std=0.004):
    """The axis of a sensor whose noise is about as large at all of these depths."""
    return Axis.of(Sensor(noise=PowerLaw(constant=std), domain=domain), depth, DEFAULT)


def belief_of(mean, variance):
    belief = Belief.empty(mean.size)
    belief.renew(np.ones(mean.size, bool), mean.ravel(), np.broadcast_to(np.float32(variance), mean.size))
    return belief


def aligned(belief, value, noise, axis, settings=DEFAULT, view=VIEW):
    flat = [np.asarray(each, np.float32).ravel() for each in (value, noise)]
    return align(belief, flat[0], flat[1], view, axis, settings)


def rigid(step):
    """The rigid motion of a translation and a rotation vector, by the series of its exponential."""
    generator, motion, power = np.zeros((4, 4)), np.eye(4), np.eye(4)
    a, b, c = step[3:]
    generator[:3] = [[0, -c, b, step[0]], [c, 0, -a, step[1]], [-b, a, 0, step[2]]]
    for number in range(1, 9):
        power = power @ generator / number
        motion = motion + power
    return motion


def height(x, y):
    """A smooth surface z of points (x, y), which shows all six numbers of a motion."""
    return 1.5 + 0.25 * np.sin(4 * x + 1) * np.cos(3 * y) + 0.15 * x * y + 0.2 * np.sin(5 * y)


def seen_by(motion):
    """Depths of the surface in a camera: points of the world are moved by the motion first."""
    rows, columns = np.mgrid[: SHAPE[0], : SHAPE[1]]
    camera, back = VIEW.intrinsics, np.linalg.inv(motion)
    rays = np.stack([(columns - camera.cx) / camera.fx, (rows - camera.cy) / camera.fy, np.ones(SHAPE)])
    depth = np.full(SHAPE, 1.5)
    for _ in range(60):
        x, y, z = np.tensordot(back[:3, :3], rays * depth, 1) + back[:3, 3, None, None]
        depth = depth - 0.4 * (z - height(x, y))
    return depth


STEPS = [
    (0.02, 0, 0, 0, 0, 0),
    (0, -0.02, 0, 0, 0, 0),
    (0, 0, 0.03, 0, 0, 0),
    (0, 0, 0, 0.01, 0, 0),
    (0, 0, 0, 0, -0.01, 0),
    (0, 0, 0, 0, 0, 0.02),
    (0.01, 0.01, -0.02, 0.005, 0.006, -0.01),
]


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("step", STEPS)
def test_two_steps_of_alignment_find_a_small_motion(domain, step):
    before, motion = seen_by(np.eye(4)), rigid(np.array(step, float))
    after, std = seen_by(motion), 0.02
    axis = axis_of(domain, before)
    noise = (std * axis.slope(after)).ravel() ** 2
    belief = belief_of(axis.count(before), 0.0)
    belief.variance[:] = noise
    settings = replace(DEFAULT, align_iterations=2)
    found = aligned(belief, axis.count(after), noise, axis, settings)
    assert_allclose(found.motion, motion, atol=2.2e-3)
    assert found.cost < 0.02 * found.start_cost
    assert found.fits


@pytest.mark.parametrize("sigmas", [0.5, 2.0, 3.5])
def test_the_cost_of_a_view_is_the_mean_limited_square_of_its_innovations(sigmas):
    flat = np.full(SHAPE, 1.0)
    axis = axis_of("z", flat)
    value = axis.count(flat) + sigmas * np.sqrt(3e-4)
    rows = np.mgrid[: SHAPE[0], : SHAPE[1]][0]
    value[rows >= 60] = axis.count(flat)[0, 0] + 1.0
    found = aligned(belief_of(axis.count(flat), 1e-4), value, np.full(flat.size, 2e-4), axis)
    limit = DEFAULT.align_sigmas**2
    kept = rows[::6, ::6][:, :25].ravel() < 60
    assert found.start_cost == pytest.approx(np.where(kept, min(sigmas**2, limit), limit).mean(), rel=0.06)


@pytest.mark.parametrize(("share", "fits"), [(0.9, True), (0.7, True), (0.5, False)])
def test_a_view_fits_if_most_of_it_agrees(rng, share, fits):
    flat = np.full(SHAPE, 1.0)
    axis = axis_of("z", flat)
    value = 1 + 0.01 * rng.standard_normal(SHAPE)
    value[:, int(share * SHAPE[1]) :] += 0.5
    assert aligned(belief_of(flat, 1e-5), value, np.full(flat.size, 1e-4), axis).fits == fits


def quadric(shape, mean, numbers):
    y, x = np.mgrid[: shape[0], : shape[1]] / np.array(shape)[:, None, None] - 0.5
    return np.tensordot(numbers, np.stack([np.ones(shape), x, y, x * x, x * y, y * y, mean, mean**2]), 1)


@pytest.mark.parametrize("term", range(8))
def test_a_quadric_in_the_picture_and_in_depth_is_removed(rng, term):
    mean = 1 + 0.2 * gaussian_filter(rng.standard_normal(SHAPE), 4) / 0.07
    expected = mean + quadric(SHAPE, mean, 0.05 * (np.arange(8) == term) + 0.002)
    value, noise = expected.copy(), np.full(mean.size, 1e-3, np.float32)
    value[rng.random(SHAPE) < 0.1] += 5
    value[rng.random(SHAPE) < 0.1] = np.nan
    belief = belief_of(mean, 1e-3)
    remove_disagreement(belief, value.ravel().astype(np.float32), noise, SHAPE, DEFAULT)
    assert_allclose(belief.mean.reshape(SHAPE), expected, atol=3e-4)


def test_one_sided_deviations_within_the_gate_hardly_move_a_view(rng):
    mean, std = np.ones(SHAPE), 0.01
    value = mean + 0.2 * std * rng.standard_normal(SHAPE)
    value[rng.random(SHAPE) < 0.1] += 6 * std
    belief = belief_of(mean, std**2 / 2)
    remove_disagreement(belief, value.ravel(), np.full(mean.size, std**2 / 2), SHAPE, DEFAULT)
    away = (belief.mean - 1).mean() / std
    assert 0.05 < away < 0.3  # the mean of all is 0.6; Huber's weights give (0.1 / 0.9) times 1.5


def test_precise_pixels_decide_where_a_view_disagrees():
    mean = np.ones(SHAPE)
    value, noise = np.full(SHAPE, 1.01), np.full(SHAPE, 1e-4)
    value[::8], noise[::8] = 1.03, 1e-2
    belief = belief_of(mean, 0.0)
    remove_disagreement(belief, value.ravel(), noise.ravel(), SHAPE, DEFAULT)
    assert belief.mean.mean() == pytest.approx(1.01 + 0.02 * 0.01 / 1.01, abs=3e-4)


def texture(rng):
    return 1 + 0.1 * gaussian_filter(rng.standard_normal(SHAPE), 12) / 0.0235


def resampled(picture, motion):
    """A picture that is shifted, turned and enlarged about its centre."""
    shift_down, shift_across, turn, zoom = motion
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]].astype(float)
    down, across = y - SHAPE[0] / 2, x - SHAPE[1] / 2
    places = [y - shift_down - turn * across - zoom * down, x - shift_across + turn * down - zoom * across]
    return map_coordinates(picture, places, order=3, mode="nearest")


MOTIONS = [(0, 0.7, 0, 0), (-0.7, 0, 0, 0), (0.5, 0.5, 0, 0), (0, 0, 0.015, 0), (0, 0, 0, -0.015), (0, 0, 0, 0.015)]


@pytest.mark.parametrize("motion", MOTIONS)
def test_a_picture_that_moves_is_told_from_one_that_stands_still(rng, motion):
    mean, std = texture(rng), 0.004
    noise = np.full(mean.size, std**2, np.float32)
    for picture, moves in ((resampled(mean, motion), True), (mean, False)):
        value = (picture + std * rng.standard_normal(SHAPE)).ravel().astype(np.float32)
        assert shows_motion(belief_of(mean, std**2 / 9), value, noise, SHAPE, DEFAULT) == moves


@pytest.mark.parametrize("change", [0.0, 0.01, -0.01])
def test_a_plane_and_an_error_in_proportion_are_no_motion(rng, change):
    mean, std = texture(rng), 0.004
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]] / 150 - 0.5
    value = mean * (1 + change) + change * (x + 2 * y) + std * rng.standard_normal(SHAPE)
    noise = np.full(mean.size, std**2, np.float32)
    assert not shows_motion(belief_of(mean, std**2 / 9), value.ravel().astype(np.float32), noise, SHAPE, DEFAULT)


def change_of(jumped, noise):
    blank = np.zeros((1, 1), np.float32)
    return Change(jumped, np.zeros(jumped.size, np.float32), noise, blank, blank)


def test_pixels_that_jump_together_are_a_new_surface(rng):
    height, width = 40, 57
    jumped = rng.random((height, width)) < 0.6
    value = (rng.integers(0, 3, (height, width)) * 0.9 + 0.1 * rng.random((height, width))).astype(np.float32)
    noise = np.full(value.shape, 0.01, np.float32)
    noise[:, 30:] = 0.04
    belief = belief_of(np.zeros((height, width)), 1e-3)
    new, alone = follow_surfaces(
        belief, value.ravel(), change_of(jumped.ravel(), noise.ravel()), (height, width), DEFAULT
    )
    expected = []
    for y, x in np.argwhere(jumped):
        tolerance = 2 * DEFAULT.candidate_sigmas * np.sqrt(2 * noise[y, x])
        rows, columns = slice(max(y - 1, 0), y + 2), slice(max(x - 1, 0), x + 2)
        alike = jumped[rows, columns] & (np.abs(value[rows, columns] - value[y, x]) <= tolerance)
        if alike.sum() - 1 >= DEFAULT.support:
            expected.append(y * width + x)
    assert_array_equal(new, expected)
    assert_array_equal(np.sort(np.concatenate([new, alone])), np.flatnonzero(jumped))
    assert_array_equal(belief.mean[new], value.ravel()[new])
    assert_array_equal(belief.variance[new], noise.ravel()[new])


@pytest.mark.parametrize(("row", "column"), [(20, 30), (61, 75), (3, 5), (117, 146)])
def test_memory_is_forgotten_within_the_reach_of_a_shadow(row, column):
    value, noise = np.full(SHAPE, np.nan, np.float32), np.full(SHAPE, 0.01, np.float32)
    surface = np.zeros(SHAPE, bool)
    surface[row : row + 3, column : column + 3] = True
    value[surface] = 2
    belief = belief_of(np.ones(SHAPE), 0.01)
    follow_surfaces(belief, value.ravel(), change_of(surface.ravel(), noise.ravel()), SHAPE, DEFAULT)
    rows, columns = (np.arange(size) // DEFAULT.block_px for size in SHAPE)
    reach = DEFAULT.shadow_px // DEFAULT.block_px
    far_down = np.abs(rows[:, None] - np.unique(rows[row : row + 3])).min(1) > reach
    far_across = np.abs(columns[:, None] - np.unique(columns[column : column + 3])).min(1) > reach
    kept = far_down[:, None] | far_across[None, :] | surface
    assert_array_equal(np.isfinite(belief.mean).reshape(SHAPE), kept)


@pytest.mark.parametrize(("sigmas", "forgotten"), [(4.1, False), (-4.1, False), (4.4, True), (-4.4, True)])
def test_missing_pixels_are_forgotten_if_another_surface_came_lately(sigmas, forgotten):
    one, noise = np.ones(1, np.float32), np.full(1, 0.01, np.float32)
    arrivals, belief = Arrivals(1, DEFAULT), belief_of(one, 1e-3)
    arrivals.forget_passing(belief, one, noise)
    belief.mean[:] += sigmas * 0.1
    arrivals.forget_passing(belief, belief.mean.copy(), noise)
    for _ in range(DEFAULT.memory_frames - 2):
        arrivals.forget_passing(belief, belief.mean.copy(), noise)
    arrivals.forget_passing(belief, np.full(1, np.nan, np.float32), noise)
    assert np.isnan(belief.mean[0]) == forgotten
    belief.renew(np.ones(1, bool), one * (1 + sigmas * 0.1), noise)
    arrivals.forget_passing(belief, np.full(1, np.nan, np.float32), noise)
    assert np.isfinite(belief.mean[0])


def mean_std(correlation, side):
    """The standard deviation of the mean of a square of correlated noise."""
    place = np.arange(side)
    lag = np.abs(np.subtract.outer(place, place))
    return float(np.sqrt(correlation(lag[:, None, :, None], lag[None, :, None, :]).mean()))


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize(("now", "over_time"), [(0.3, 0.1), (0.0, -0.21), (-0.36, 0.2), (0.16, 0.0), (0.5, -0.5)])
def test_evidence_of_slow_change_is_how_far_the_mean_of_a_region_exceeds_its_limit(now, over_time, share):
    settings, correlation = replace(DEFAULT, drift_regions=((3, 0.5),)), Correlation(3.0, 3.0)
    drifts, blocks = Drifts((48, 64), correlation, 0.5, settings), np.ones((6, 8), np.float32) * 64
    evidence, lag = drifts.found(np.stack([share * blocks, now * share * blocks, over_time * blocks]))
    std = mean_std(correlation, 24)
    means = (over_time / std / 0.5, now / std)
    found = [
        np.sign(mean) * np.clip(abs(mean) - limit - 0.5, 0, 1)
        for mean, limit in zip(means, (settings.drift_sigmas, settings.onset_sigmas), strict=True)
    ]
    expected = max(found, key=abs)
    assert_allclose(evidence, expected, atol=1e-4)
    excess = max(means[1] ** 2 - settings.lag_sigmas**2, 0) * std**2
    assert_allclose(lag, excess * (1 - abs(expected)), atol=1e-4)


def test_values_of_blocks_reach_to_the_borders():
    drifts = Drifts((20, 27), Correlation(), 0.5, DEFAULT)
    blocks = np.arange(6, dtype=np.float32).reshape(2, 3)
    expected = np.repeat(np.repeat(blocks, 8, 0), 8, 1)
    assert_array_equal(drifts.spread(blocks).reshape(20, 27), np.pad(expected, ((0, 4), (0, 3)), "edge"))


@pytest.mark.parametrize("domain", DOMAINS)
def test_an_axis_is_a_transform_of_depth_with_its_noise(domain):
    sensor = Sensor(noise=PowerLaw(factor=3e-6), step=PowerLaw(constant=6.0), pattern=0.5, domain=domain)
    depth = np.linspace(900.0, 2500.0, 50)
    axis = Axis.of(sensor, depth, DEFAULT)
    value = axis.count(depth)
    assert_allclose(axis.depth(value), depth)
    assert_allclose(axis.slope(depth), np.abs(axis.count(depth + 0.01) - axis.count(depth - 0.01)) / 0.02, rtol=1e-4)
    places, noise, rounding = axis.places(value.astype(np.float32)), (3e-6 * depth**2) ** 2, 3.0
    scale = axis.slope(depth) ** 2
    assert_allclose(axis.noise[places], scale * (noise + rounding), rtol=0.01)
    assert_allclose(axis.pattern[places], scale * (noise / 4 + rounding / 4), rtol=0.01)
    assert_allclose(axis.floor[places], scale * (noise / 4 + rounding), rtol=0.01)
    ends = np.array([900.0 / DEFAULT.table_reach, 2500.0 * DEFAULT.table_reach])
    assert_array_equal(np.sort(axis.places(axis.count(ends).astype(np.float32))) // 10, [0, 409])
    assert_array_equal(axis.places(np.array([np.nan, -1e9, 1e9], np.float32))[1:], [0, 4095])


def test_learned_noise_grows_with_the_square_of_depth_beyond_what_was_seen(rng):
    depth = rng.uniform(1000, 2000, 30_000)
    squares = np.square(rng.standard_normal(depth.size))
    found = learned(Sensor(noise=PowerLaw(constant=2.0)), depth, squares, squares, 20, DEFAULT).noise
    ends = np.array([np.median(depth[depth < 1100]), np.median(depth[depth > 1900])])
    assert_allclose(found(np.array([500.0])), 2 * (500 / ends[0]) ** 2, rtol=0.15)
    assert_allclose(found(np.array([4000.0])), 2 * (4000 / ends[1]) ** 2, rtol=0.15)
    assert_allclose(found(np.array([500.0, 4000.0])) * 4, found(np.array([1000.0, 8000.0])) * [4 / 4, 1], rtol=0.3)


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.5])
def test_the_correlation_of_frames_is_what_their_differences_lack(rng, correlation):
    depth = rng.uniform(1000, 1100, 30_000)
    squares, successive = (np.square(rng.standard_normal(depth.size)) for _ in range(2))
    found = learned(Sensor(noise=PowerLaw(constant=2.0)), depth, squares, (1 - correlation) * successive, 20, DEFAULT)
    assert found.temporal == pytest.approx(correlation, abs=0.03)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_scene_that_goes_on_by_a_fraction_of_its_noise_moves(rng, missing):
    shape, noise = (128, 160), np.full(128 * 160, 0.5, np.float32)
    for speed, moves in ((0.5, True), (-0.5, True), (0.0, False)):
        still = Stillness(shape, DEFAULT)
        frames = [
            (speed * step + np.sqrt(0.5) * rng.standard_normal(shape)).astype(np.float32).ravel() for step in range(3)
        ]
        for frame in frames:
            frame[rng.random(frame.size) < missing] = np.nan
        assert still.moving(frames[1], frames[0], noise) is None
        found = still.moving(frames[2], frames[1], noise)
        assert found is not None
        assert found.all() if moves else not found.any()


@pytest.mark.parametrize(
    ("row", "column", "counts"),
    [
        (0, 50, False), (1, 50, True), (117, 50, True), (118, 50, False),
        (50, 0, False), (50, 1, True), (50, 147, True), (50, 148, False),
    ],
)  # fmt: skip
def test_pixels_are_compared_that_have_neighbours_on_all_sides(row, column, counts):
    flat = np.full(SHAPE, 1.0)
    axis, value = axis_of("z", flat), flat.copy()
    value[row, column] += 0.1
    settings = replace(DEFAULT, align_stride_px=1, cell_px=1)
    view = View(Intrinsics(128.0, 128.0, 64.0, 64.0), SHAPE)  # places are whole numbers, exactly
    found = aligned(belief_of(flat, 1e-4), value, np.full(flat.size, 1e-4), axis, settings, view)
    assert (found.start_cost > 1e-9) == counts


@pytest.mark.parametrize(("points", "known"), [(100, True), (99, False)])
def test_a_hundred_points_align_a_view(points, known):
    flat = np.full(SHAPE, np.nan)
    flat[6:66:6, 6:66:6] = 1
    flat[60, 60] = flat[60, 60] if points == 100 else np.nan
    axis, whole = axis_of("z", np.ones(SHAPE)), np.ones(SHAPE)
    found = aligned(belief_of(whole, 1e-4), flat, np.full(flat.size, 1e-4), axis)
    assert np.isfinite(found.start_cost) == known


def test_points_on_steep_surfaces_are_not_compared():
    """Steeper than three standard deviations a pixel, a surface is an edge."""
    columns = np.mgrid[: SHAPE[0], : SHAPE[1]][1]
    noise = np.full(columns.size, 1e-4)
    for slope, counts in ((2.9, True), (-2.9, True), (3.1, False)):
        plane = 2 + 0.01 * slope * (columns - 75)
        axis = axis_of("z", plane)
        mean = axis.count(plane)
        scaled = noise * axis.slope(np.ones(1))[0] ** 2
        found = aligned(belief_of(mean, scaled[0]), mean, scaled, axis)
        assert np.isfinite(found.start_cost) == counts


@pytest.mark.parametrize("ratio", [0.3, 1.0, 3.0])
def test_a_belief_is_rescaled_with_the_noise_of_its_sensor(rng, ratio):
    """Innovations of other noise than expected rescale what is believed, so that it does not change."""
    stream = Stream(None, unit="mm")
    for _ in range(3):
        stream.push(1000 + 5 * ratio * rng.standard_normal((96, 128)))
    assert stream.sensor is not None
    assert stream.sensor.std(1000.0) == pytest.approx(5 * ratio, rel=0.15)


def test_variances_of_results_are_in_squared_units_of_the_map(rng):
    sensor = Sensor(unit="mm", noise=PowerLaw(constant=4.0), domain="1/z")
    settings = replace(DEFAULT, smooth_px=(2,), young_ratio=1e9)  # no pixel is young
    stream = Stream(sensor, unit="mm", settings=settings)
    for number in range(1, 5):
        result = stream.push(1000 + 4 * rng.standard_normal((48, 64)))
        assert np.median(result.variance) == pytest.approx(16 / number, rel=0.05)
        error = (result.depth - 1000) ** 2 / result.variance
        assert np.mean(error) == pytest.approx(1, abs=0.1)


def test_a_given_variance_is_that_of_the_measurement(rng):
    sensor = Sensor(unit="mm", noise=PowerLaw(constant=4.0))
    stream = Stream(sensor, unit="mm", settings=replace(DEFAULT, young_ratio=1e9))
    given = np.where(np.arange(64) < 32, 9.0, 100.0) * np.ones((48, 1))
    result = stream.push(1000 + np.sqrt(given) * rng.standard_normal((48, 64)), variance=given)
    assert_allclose(result.variance, given, rtol=1e-3)


def test_a_pixel_that_jumps_alone_is_uncertain_by_its_jump():
    sensor = Sensor(unit="mm", noise=PowerLaw(constant=4.0))
    stream = Stream(sensor, unit="mm", settings=replace(DEFAULT, young_ratio=1e9))
    wall = np.full((48, 64), 1000.0)
    before = [stream.push(wall + 0.01 * number).variance[20, 30] for number in range(6)][-1]
    spike = wall.copy()
    spike[20, 30] += 80
    result = stream.push(spike)
    assert result.origin[20, 30] == Origin.CORRECTED
    assert result.depth[20, 30] == pytest.approx(1000, abs=1)
    assert result.variance[20, 30] == pytest.approx(before + DEFAULT.outlier_risk * 80**2, rel=0.05)


@pytest.mark.parametrize(("moved", "state"), [(0.0004, "static"), (0.0006, "tracking")])
def test_a_motion_below_a_twentieth_of_a_pixel_is_none(moved, state):
    """At 1.2 m and 100 pixels, 0.6 mm move the picture by 0.05 pixels."""
    stream = Stream(Sensor(unit="mm", noise=PowerLaw(constant=4.0)), Intrinsics(100.0, 100.0, 31.5, 23.5), unit="mm")
    pose = np.eye(4)
    stream.push(np.full((48, 64), 1200.0), pose=pose)
    pose = np.eye(4)
    pose[0, 3] = moved * 1.02
    stream.push(np.full((48, 64), 1200.1), pose=pose)
    assert stream.state == state


@pytest.mark.parametrize(("shift", "moves"), [(0.0, False), (0.1, True)])
def test_in_a_large_picture_a_small_part_of_the_innovations_shows_motion(rng, shift, moves):
    """Less than the largest fraction that chance may explain, but far more than it does explain."""
    shape, std = (320, 400), 0.004
    mean = 1 + 0.1 * gaussian_filter(rng.standard_normal(shape), 12) / 0.0235
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    value = map_coordinates(mean, [rows, columns - shift], order=3, mode="nearest") + std * rng.standard_normal(shape)
    noise = np.full(mean.size, std**2, np.float32)
    assert shows_motion(belief_of(mean, std**2 / 9), value.ravel().astype(np.float32), noise, shape, DEFAULT) == moves


@pytest.mark.parametrize(("pixels", "moved"), [(500, True), (499, False)])
def test_five_hundred_pixels_show_a_disagreement(pixels, moved):
    value = np.full(SHAPE, np.nan, np.float32)
    compared = np.zeros(SHAPE, bool)
    compared[::4, ::4] = True
    value.ravel()[np.flatnonzero(compared)[:pixels]] = 1.1
    belief = belief_of(np.ones(SHAPE), 1e-3)
    remove_disagreement(belief, value.ravel(), np.full(value.size, 1e-3, np.float32), SHAPE, DEFAULT)
    assert (belief.mean[0] > 1.01) == moved


def test_cells_are_seen_along_the_mean_ray_of_their_pixels():
    flat = np.ones(SHAPE, np.float32).ravel()
    cells = _averaged(_Surface(flat, flat, VIEW, 1), DEFAULT)
    for ours, rays in zip(cells.view.intrinsics.rays(cells.view.shape), VIEW.intrinsics.rays(SHAPE), strict=True):
        every = np.broadcast_to(rays, SHAPE).reshape(40, 3, 50, 3).mean((1, 3))
        assert_allclose(np.broadcast_to(ours, (40, 50)), every, atol=1e-6)


@pytest.mark.parametrize("level", [1.0, 0.3])
def test_what_frames_leave_is_a_part_of_the_noise_at_every_depth(level):
    sensor = Sensor(noise=PowerLaw(constant=2.0, factor=3e-6), step=PowerLaw(constant=1.0))
    depth = np.linspace(600.0, 3000.0, 50)
    axis = Axis.of(sensor, depth, DEFAULT)
    updater = Updater((8, 8), 0.0, Correlation(), DEFAULT)
    found = Reporter(sensor, axis, updater, None, DEFAULT)._after_frames(depth, level)
    assert_allclose(found.std(depth), level * sensor.std(depth), rtol=5e-4)

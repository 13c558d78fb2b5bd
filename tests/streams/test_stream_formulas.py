"""Alignment, disagreement, motion and changes of streams, each beside its definition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.ndimage import gaussian_filter, map_coordinates

from sparsedepth import InputError, Origin, Restoration, Stream
from sparsedepth.geometry import Intrinsics
from sparsedepth.hole_filling import Filling
from sparsedepth.sensors import Correlation, PowerLaw, Sensor
from sparsedepth.sensors.smooth import smooth
from sparsedepth.streams.align import _averaged, _judge, _points, _residuals, _Surface, align
from sparsedepth.streams.axis import Axis
from sparsedepth.streams.belief import Belief, Change, Updater
from sparsedepth.streams.camera import moved_px
from sparsedepth.streams.cells import average_cells
from sparsedepth.streams.changes import Arrivals, follow_surfaces
from sparsedepth.streams.disagreement import remove_disagreement
from sparsedepth.streams.drifts import Drifts
from sparsedepth.streams.flow import _Cells, _cells, _explained, _squares_left, shows_motion
from sparsedepth.streams.frames import LARGEST, SMALLEST, frame_from
from sparsedepth.streams.key_frames import KeyFrames
from sparsedepth.streams.learning import first_guess, learned, settled
from sparsedepth.streams.report import Reporter
from sparsedepth.streams.settings import DEFAULT
from sparsedepth.streams.stillness import Stillness
from sparsedepth.streams.tracker import Tracker
from sparsedepth.streams.warp import View, warp
from sparsedepth.streams.young import PairSmoother

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


@pytest.mark.parametrize("term", range(4))
def test_a_plane_is_no_motion_where_the_noise_differs(rng, term):
    """The slopes of a bowl are those of a plane, so a plane looks like a motion unless it is fitted before."""
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]] / 150 - 0.5
    mean = 1 + 0.1 * (x * x + y * y)
    std = 0.004 * np.where(x < 0, 1, 4) * np.where(y < 0, 2, 1)
    value = mean + (np.full(SHAPE, 0.02), 0.02 * x, 0.02 * y, 0.02 * mean)[term] + std * rng.standard_normal(SHAPE)
    noise = np.square(std).ravel().astype(np.float32)
    assert not shows_motion(belief_of(mean, noise / 9), value.ravel().astype(np.float32), noise, SHAPE, DEFAULT)


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
@pytest.mark.parametrize(
    ("now", "over_time"),
    [(0.3, 0.1), (0.0, -0.21), (-0.36, 0.2), (0.16, 0.0), (0.5, -0.5), (0.7, 0.0), (1.0, 0.1), (-1.2, 0.3), (1.5, 0.2)],
)
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


@pytest.mark.parametrize("step", [0.0, 6.0, 12.0])
def test_rounding_is_no_part_of_the_noise_that_is_learned(rng, step):
    depth, sensor = rng.uniform(1000, 1100, 30_000), Sensor(noise=PowerLaw(constant=2.0), step=PowerLaw(constant=step))
    squares = np.square(rng.standard_normal(depth.size))
    for scale in (0.75, 1.5):  # innovations over those that noise and rounding predict
        found = learned(sensor, depth, scale * squares, scale * squares, 20, DEFAULT).noise(np.array([1050.0]))
        total = scale * (2.0**2 + step**2 / 12)
        assert_allclose(np.square(found), max(total - step**2 / 12, 0.01 * total), rtol=0.15, atol=0.15)


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


def test_the_fixed_pattern_is_a_part_of_every_variance():
    still = Stream(Sensor(unit="mm", noise=PowerLaw(constant=2.0)), unit="mm")
    patterned = Stream(Sensor(unit="mm", noise=PowerLaw(constant=2.0), pattern=0.5), unit="mm")
    for number in range(4):
        wall = np.full((48, 64), 1000.0) + 0.01 * number
        found, more = still.push(wall).variance, patterned.push(wall).variance
        assert_allclose(more - found, (0.5 * 2.0) ** 2, rtol=0.05)


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


def test_the_slopes_of_residuals_are_those_of_small_motions(rng):
    """Within a cell of the grid a residual is smooth: central differences along all six motions are its slopes."""
    rows, columns = np.mgrid[: SHAPE[0], : SHAPE[1]]
    for domain in DOMAINS:
        depth = 2 + 0.004 * (columns - 70) - 0.003 * (rows - 50) + 1e-5 * columns * rows
        axis = axis_of(domain, depth)
        flat = axis.count(depth).ravel()
        belief, frame = (_Surface(flat, np.full(flat.size, 1e-2), VIEW, 1) for _ in range(2))
        points, back = _points(frame, axis, 7), rigid(0.05 * rng.standard_normal(6))
        _, slopes, _, counts = _residuals(points, belief, back, axis)
        assert counts.all()
        for number, step in enumerate(1e-6 * np.eye(6)):
            ahead, behind = (_residuals(points, belief, rigid(way * step) @ back, axis)[0] for way in (1, -1))
            near = np.abs((ahead - behind) / 2e-6 - slopes[:, number]) < 1e-3 * np.abs(slopes[:, number]).max()
            assert near.mean() > 0.97, "but for points on the border of a cell"


@pytest.mark.parametrize("sigmas", [0.5, 2.9, 3.1, 4.5, 7.9, 8.1])
@pytest.mark.parametrize("share", [0.02, 0.07, 0.15, 0.3, 0.5])
def test_a_view_fits_if_its_near_pixels_agree_and_deviate_little(rng, sigmas, share):
    flat, s = np.ones(SHAPE, np.float32), DEFAULT
    axis = axis_of("z", flat)
    deviation = sigmas * np.where(rng.random(SHAPE) < share, 1.0, 0.0)
    value = axis.count(flat) + 0.01 * deviation
    still = _Surface(axis.count(flat).ravel(), np.full(flat.size, 0.6e-4), VIEW, 1)
    points = _points(_Surface(value.astype(np.float32).ravel(), np.full(flat.size, 0.4e-4), VIEW, 1), axis, 3)
    cost, fits = _judge(points, still, np.eye(4), axis, s)
    size = deviation[3::3, 3::3].ravel() ** 2  # without the borders, where nothing can be compared
    near = size[size < s.gate_sigmas**2]
    limited = np.minimum(near, s.align_sigmas**2).mean()
    assert cost == pytest.approx(np.minimum(size, s.align_sigmas**2).mean(), rel=1e-3)
    agrees = (near < s.agreement_sigmas**2).mean() >= s.align_agreement
    assert fits == (len(near) / len(size) >= s.least_agreement and agrees and limited <= s.align_cost)


@pytest.mark.parametrize("lengths", [(0.5, 0.5), (3.0, 3.0), (1.0, 6.0)])
def test_smoothing_leaves_the_variance_of_a_mean_of_the_centre_and_pairs(lengths):
    correlation = Correlation(*lengths)
    smoother = PairSmoother.of(correlation, DEFAULT)
    pairs = [[(0, 0)], *([(down, across), (-down, -across)] for down, across in smoother.offsets)]

    def covariance(one, other):
        return np.mean([correlation(y - v, x - u) for y, x in one for v, u in other])

    expected = np.mean([[covariance(one, other) for other in pairs] for one in pairs])
    assert smoother.left == pytest.approx(expected)


@pytest.mark.parametrize("temporal", [0.0, 0.3, 0.5])
def test_a_stream_learns_the_correlation_of_its_frames(rng, temporal):
    stream, noise = Stream(None, unit="mm"), np.float64(0)
    for number in range(12):
        fresh = rng.standard_normal((96, 128))
        noise = fresh if number == 0 else temporal * noise + np.sqrt(1 - temporal**2) * fresh
        stream.push(1000 + 5 * noise)
    assert stream.sensor is not None
    assert stream.sensor.temporal == pytest.approx(temporal, abs=0.06)


@pytest.mark.parametrize("domain", DOMAINS)
def test_tables_reach_from_nearer_to_farther_than_any_depth(domain):
    depth = np.array([900.0, 1100.0, 2500.0])
    axis = axis_of(domain, depth)
    ends = np.sort(axis.count(np.array([900 / DEFAULT.table_reach, 2500 * DEFAULT.table_reach])))
    assert_allclose([axis.start, axis.start + (len(axis.noise) - 1) / axis.spacing], ends, rtol=1e-6)
    assert axis.unit == 1100
    again = axis_of(domain, np.concatenate([depth, [0.0, -3.0, np.nan]]))
    assert (again.start, again.spacing, again.unit) == (axis.start, axis.spacing, axis.unit)


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_pixel_is_carried_to_its_new_depth(domain):
    """A camera that goes back by a little sees each pixel where it was, farther away."""
    columns = np.mgrid[: SHAPE[0], : SHAPE[1]][1]
    depth = 2 + 1e-4 * columns
    axis, motion = axis_of(domain, depth), np.eye(4)
    motion[2, 3] = 0.001
    belief, out = belief_of(axis.count(depth), 1e-6), Belief.empty(depth.size)
    warp(belief, out, motion, VIEW, axis, DEFAULT)
    assert_allclose(axis.depth(out.mean).reshape(SHAPE)[1:-1, 1:-1], depth[1:-1, 1:-1] + 0.001, atol=1e-4)
    for corner in (0, SHAPE[1] - 1, depth.size - SHAPE[1], depth.size - 1):
        assert axis.depth(out.mean[corner]) == pytest.approx(depth.ravel()[corner] + 0.001, abs=2e-4)
    tilt = np.abs(axis.count(depth[0, 1:]) - axis.count(depth[0, :-1])).mean()
    grown = (out.variance - 1e-6).reshape(SHAPE)[2:-2, 2:-2]
    assert_allclose(grown, DEFAULT.warp_variance * tilt**2, rtol=0.3, atol=2e-12)


@pytest.mark.parametrize(("excess", "alike"), [(0.0, True), (1e-5, False)])
def test_pixels_at_the_tolerance_are_of_one_surface(excess, alike):
    value = np.zeros((12, 12), np.float32)
    tolerance = 2 * DEFAULT.candidate_sigmas  # of a variance of 1/2, so that it is a whole number
    value[4:7, 4:7], value[5, 5] = tolerance * (1 + excess), 0
    jumped = np.zeros(value.shape, bool)
    jumped[4:7, 4:7] = True
    belief, noise = belief_of(np.full(value.shape, -50.0), 1e-3), np.full(value.size, 0.5, np.float32)
    new, _ = follow_surfaces(belief, value.ravel(), change_of(jumped.ravel(), noise), value.shape, DEFAULT)
    assert (5 * 12 + 5 in new) == alike


def test_what_least_squares_leave_does_not_depend_on_the_units_of_terms(rng):
    terms, gap = rng.standard_normal((300, 6)), rng.standard_normal(300)
    left = gap - terms @ np.linalg.lstsq(terms, gap, rcond=None)[0]
    for scale in (1.0, 1e-7, 1e7, 10.0 ** np.arange(-9, 9, 3)):
        assert _squares_left(terms * scale, gap) == pytest.approx(left @ left, rel=1e-6)
    assert _squares_left(np.repeat(terms[:, :1], 2, 1), gap) == pytest.approx(
        _squares_left(terms[:, :1], gap), rel=1e-6
    )


@pytest.mark.parametrize("shape", [(60, 60), (30, 120), (120, 30)])
def test_turns_and_zooms_about_the_centre_are_explained(rng, shape):
    across, down, noise = rng.standard_normal((3, *shape))
    y, x = (at - size / 2 for at, size in zip(np.indices(shape), shape, strict=True))
    std, middle = rng.uniform(1, 2, shape), rng.standard_normal(shape)
    for moved in (x * across + y * down, y * across - x * down):
        gap, everywhere = moved + noise, np.ones(shape, bool)
        cells = _Cells(gap, std, middle, (across, down, everywhere), everywhere)
        expected = 1 - np.mean((noise / std) ** 2) / np.mean((gap / std) ** 2)
        assert _explained(cells, across, down, everywhere) == pytest.approx(expected, abs=0.005)


def test_an_error_in_proportion_is_no_motion_where_noise_varies(rng):
    across, down, middle = rng.standard_normal((3, 60, 80))
    std, everywhere = rng.uniform(0.5, 3, middle.shape), np.ones(middle.shape, bool)
    across += middle  # slopes that resemble what is measured
    cells = _Cells(middle + 0.01 * std, std, middle, (across, down, everywhere), everywhere)
    assert _explained(cells, across, down, everywhere) < 0.02


@pytest.mark.parametrize("unknown", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("old", [0.1, 0.19, 0.21, 0.6])
def test_pixels_that_settled_are_used_unless_they_are_few_of_the_known_ones(unknown, old):
    count = np.zeros(10_000)
    known = int((1 - unknown) * count.size)
    count[:known] = 3
    count[: int(old * known)] = 12
    assert_array_equal(settled(count, 20), count >= 10 if old >= 0.2 else count > 0)


@pytest.mark.parametrize("down", [-3.3, -2.0, 0.0, 2.0, 2.8, 3.3])
@pytest.mark.parametrize("across", [-3.3, -2.0, 0.0, 2.0, 2.8, 3.3])
def test_cells_have_the_slopes_and_spreads_of_their_pixels(down, across):
    """Slopes steeper than three deviations of a cell are edges; their size is that of both slopes together."""
    rows, columns = np.mgrid[: SHAPE[0], : SHAPE[1]].astype(np.float32)
    flat = np.zeros(rows.size, np.float32)
    (_, level), side = average_cells(flat, flat + 0.25, SHAPE, DEFAULT), DEFAULT.cell_px
    unit = float(np.sqrt(level[5, 5]))
    plane = (unit * (down * rows + across * columns)).ravel()
    settings = replace(DEFAULT, cell_sigmas=1e3)
    cells = _cells(belief_of(plane, 0.5), plane + np.float32(0.5), flat + 0.25, SHAPE, settings)
    found_across, found_down, smooth = cells.slopes
    assert_allclose(found_across, unit * across, atol=1e-3)
    assert_allclose(found_down, unit * down, atol=1e-3)
    assert smooth.all() == smooth.any() == (np.hypot(down, across) < 3)
    assert_allclose(cells.gap, 0.5, atol=1e-3)
    assert_allclose(cells.std, np.sqrt(3) * unit, rtol=1e-4)
    assert cells.agrees.all()
    assert cells.gap.shape == tuple(-(-(size // side - 2) // DEFAULT.motion_stride) for size in SHAPE)


@pytest.mark.parametrize(("sigmas", "agrees"), [(3.9, True), (-3.9, True), (4.1, False), (-4.1, False)])
def test_cells_agree_within_the_constant_of_the_alignment(sigmas, agrees):
    flat = np.zeros(SHAPE[0] * SHAPE[1], np.float32)
    (_, level) = average_cells(flat, flat + 1, SHAPE, DEFAULT)
    gap = np.float32(sigmas * np.sqrt(3 * level[5, 5]))
    assert (_cells(belief_of(flat, 2.0), flat + gap, flat + 1, SHAPE, DEFAULT).agrees == agrees).all()


@pytest.mark.parametrize("temporal", [0.0, 0.4])
def test_reported_variances_are_those_of_correlated_frames_and_of_slow_change(rng, temporal):
    shape = (16, 24)
    updater, belief = Updater(shape, temporal, Correlation(), DEFAULT), Belief.empty(16 * 24)
    noise = rng.uniform(0.5, 2, 16 * 24).astype(np.float32)
    belief.renew(np.ones(noise.size, bool), noise, noise * rng.uniform(0.02, 1.3, noise.size).astype(np.float32))
    belief.run[:] = rng.uniform(-2, 2, noise.size)
    drift, lag = rng.uniform(-1, 1, (2, 3)).astype(np.float32), rng.uniform(0, 2, (2, 3)).astype(np.float32)
    nothing = np.zeros(noise.size, bool)
    variance, more = updater.reported(belief, Change(nothing, noise, noise, drift, lag))
    for number, (row, column) in enumerate(np.ndindex(shape)):
        ratio = min(belief.variance[number] / noise[number], 1)
        factor = (1 + temporal) / (1 - temporal + 2 * temporal * ratio)
        assert variance[number] == pytest.approx(belief.variance[number] * factor, rel=1e-5)
        block = row // 8, column // 8
        excess = max(belief.run[number] ** 2 - updater.run_std**2 * (1 - abs(drift[block])), 0)
        slow = excess * (belief.variance[number] + noise[number])
        assert more[number] == pytest.approx(max(slow, lag[block] * noise[number]), rel=1e-4, abs=1e-6)


def test_a_picture_moves_by_what_its_corners_and_its_centre_do(rng):
    camera, shape, depth = Intrinsics(90.0, 110.0, 70.0, 41.0), (80, 120), 1.7
    turned_back = np.array([-0.9, 0, 0, 0, 0.4, 0])  # the turn is made good at the corners, not in the middle
    for step in [turned_back * share for share in (0.5, 1.0, 1.3)] + list(0.05 * rng.standard_normal((6, 6))):
        motion, moved = rigid(step), []
        for column, row in ((0, 0), (119, 0), (0, 79), (119, 79), (60, 40)):
            point = np.array([(column - camera.cx) / camera.fx, (row - camera.cy) / camera.fy, 1.0]) * depth
            x, y, z = motion[:3, :3] @ point + motion[:3, 3]
            moved.append(np.hypot(x / z * camera.fx + camera.cx - column, y / z * camera.fy + camera.cy - row))
        assert moved_px(motion, camera, shape, depth) == pytest.approx(max(moved))


@pytest.mark.parametrize("ratio", [0.1, 0.5, 1.0, 2.0, 20.0])
def test_a_rescaled_belief_is_as_many_measurements_as_before(rng, ratio):
    """Variances are those of measurements: of the noise of the sensor, at least, or of the local one."""
    stream = Stream(Sensor(unit="mm", noise=PowerLaw(constant=4.0)), unit="mm")
    stream.push(1000 + rng.standard_normal((16, 24)))
    belief = stream._belief
    belief.scale[:] = rng.uniform(0.2, 5, belief.scale.size)
    variance, scale = belief.variance.copy(), belief.scale.copy()
    stream._rescale(np.full(scale.size, ratio, np.float32))
    assert_allclose(belief.scale, scale / ratio, rtol=1e-5)
    measured = variance / np.maximum(scale, 1)
    assert_allclose(belief.variance / (ratio * np.maximum(belief.scale, 1)), measured, rtol=1e-5)


@pytest.mark.parametrize("share", [0.25, 0.45, 0.55, 1.0])
def test_blocks_have_the_mean_difference_of_half_of_their_pixels_or_more(rng, share):
    shape, limit = (96, 128), DEFAULT.huber_sigmas
    still = Stillness(shape, DEFAULT)
    before, value = (rng.standard_normal(shape).astype(np.float32) * scale for scale in (1, 4))
    noise = rng.uniform(0.5, 2, shape).astype(np.float32)
    kept = rng.permuted(np.arange(64) < round(share * 64)).reshape(8, 8)
    value[::2, ::2][np.tile(~kept, (6, 8))] = np.nan
    found = still._block_means(value.ravel(), before.ravel(), noise.ravel())
    for row, column in np.ndindex(6, 8):
        here = np.s_[16 * row : 16 * row + 16 : 2, 16 * column : 16 * column + 16 : 2]
        score = np.clip((value[here] - before[here]) / np.sqrt(2 * noise[here]), -limit, limit)
        expected = np.nanmean(score) if share > 0.5 else np.nan
        assert found[row, column] == pytest.approx(expected, abs=1e-5, nan_ok=True)


@pytest.mark.parametrize(("excess", "moves"), [(-0.01, False), (0.01, True)])
@pytest.mark.parametrize("blocks", [30, 300])
def test_all_blocks_together_move_beyond_what_noise_agrees(blocks, excess, moves):
    still = Stillness((96, 128), DEFAULT)
    mean = DEFAULT.noise_agreement + DEFAULT.noise_sigmas / np.sqrt(blocks) + excess
    assert still._moves_everywhere(np.full(blocks, mean)) == moves


@pytest.mark.parametrize("frames", [7, 8])
def test_the_correlation_of_frames_is_learned_from_the_eighth_one_on(rng, frames):
    depth, squares = rng.uniform(1000, 1100, 5000), np.square(rng.standard_normal(5000))
    sensor = Sensor(noise=PowerLaw(constant=2.0), temporal=0.45)
    assert (learned(sensor, depth, squares, squares, frames, DEFAULT).temporal == 0.45) == (frames < 8)


@pytest.mark.parametrize(("pixels", "changes"), [(199, False), (200, True)])
def test_two_hundred_pixels_show_noise_at_a_depth(pixels, changes):
    sensor, squares = Sensor(noise=PowerLaw(constant=2.0)), np.full(pixels, 0.25)
    found = learned(sensor, np.full(pixels, 1000.0), squares, squares, 3, DEFAULT)
    assert (found is not sensor) == changes


def test_a_frame_without_visible_noise_gets_that_of_an_average_camera():
    found = first_guess(1000 + np.add.outer(np.arange(40.0), np.arange(50.0)), "mm")
    assert (found.unit, found.domain) == ("mm", "1/z")
    assert found.std(1044.5) == pytest.approx(0.003 * 1044.5, rel=0.01)
    assert first_guess(np.full((40, 50), np.nan), "m").std(1.0) == pytest.approx(0.003)


@pytest.mark.parametrize("stride", [1, 4])
def test_a_frame_fits_by_its_agreement_and_its_limited_squares(rng, stride):
    shape, settings = (40, 52), replace(DEFAULT, fit_stride_px=stride)
    tracker = Tracker(shape, None, None, "mm", settings)
    mean, value = rng.standard_normal((2, *shape)) * [[[1]], [[4]]]
    variance, noise = rng.uniform(0.2, 1, (2, *shape))
    scale = rng.uniform(0.5, 3, shape)
    value[rng.random(shape) < 0.2] = np.nan
    tracker.belief.renew(np.ones(mean.size, bool), mean.ravel(), variance.ravel())
    tracker.belief.scale[:] = scale.ravel()
    size = ((value - mean) ** 2 / (variance + scale * noise))[::stride, ::stride]
    size = size[np.isfinite(size)]
    found = tracker._fit(value.astype(np.float32).ravel(), noise.astype(np.float32).ravel())
    assert_allclose(found, [(size < 9).mean(), np.minimum(size, 16).mean()], rtol=1e-4)
    assert tracker._fit(np.full(value.size, np.nan, np.float32), noise.ravel()) == (1.0, 1.0)


class Ones:
    """Fills holes with ones."""

    def fill(self, result, kind, guide=None):
        holes = result.origin == Origin.REFUSED
        result.depth[holes], result.variance[holes], result.origin[holes] = 2, 0.25, Origin.FILLED


def key_frame(number, domain="1/z", shape=SHAPE):
    """Key frames after the result of a frame of which the left half is missing."""
    keys = KeyFrames(shape, Ones(), DEFAULT)  # type: ignore[arg-type]
    origin = np.where(np.arange(shape[1]) < 75, Origin.REFUSED, Origin.MEASURED) * np.ones((shape[0], 1), np.uint8)
    depth = np.where(origin == Origin.REFUSED, np.nan, 1).astype(np.float32)
    keys.take(number, Restoration(depth, np.ones_like(depth), origin.astype(np.uint8)))
    return keys, axis_of(domain, np.ones(shape))


@pytest.mark.parametrize("number", [4, 5, 6, 34, 35, 36, 65])
def test_key_frames_are_filled_at_fixed_numbers_after_a_fixed_delay(number):
    keys, axis = key_frame(number)
    belief, is_key = Belief.empty(SHAPE[0] * SHAPE[1]), number % 30 == 5
    keys.add_due(number + DEFAULT.key_delay_frames - 1, belief, axis, None)
    assert not np.isfinite(belief.mean).any()
    keys.add_due(number + DEFAULT.key_delay_frames, belief, axis, None)
    assert np.isfinite(belief.mean).any() == is_key


@pytest.mark.parametrize("domain", DOMAINS)
def test_what_was_filled_is_believed_where_nothing_was_measured(domain):
    keys, axis = key_frame(5, domain)
    belief = Belief.empty(SHAPE[0] * SHAPE[1])
    measured = np.zeros(SHAPE, bool)
    measured[:30] = True
    belief.renew(measured.ravel(), *np.array([[7.0], [3.0]]))
    keys.note_changes(np.array([100 * SHAPE[1] + 20]))
    keys.add_due(13, belief, axis, None)
    blocks = [np.arange(size) // DEFAULT.block_px for size in SHAPE]
    near = np.abs(blocks[0] - 100 // 4)[:, None] <= 4, np.abs(blocks[1] - 20 // 4)[None] <= 4
    filled = ~measured & (np.arange(SHAPE[1]) < 75) & ~(near[0] & near[1])
    assert_array_equal(np.isfinite(belief.mean).reshape(SHAPE) & ~measured, filled)
    two = np.full(1, 2.0)
    assert_allclose(belief.mean[filled.ravel()], axis.count(two)[0], rtol=1e-6)
    assert_allclose(belief.variance[filled.ravel()], 0.25 * axis.slope(two)[0] ** 2, rtol=1e-6)
    assert (belief.count[filled.ravel()] == 0).all()


@pytest.mark.parametrize("factor", [1, 1 - 1e-6, 1 + 1e-6])
def test_depths_and_variances_have_the_range_of_float32(factor):
    for what, largest in (("the frame", LARGEST), ("the frame", SMALLEST)):
        depth = np.full((4, 5), largest * factor)
        fits = SMALLEST <= largest * factor <= LARGEST
        if fits:
            assert_allclose(frame_from(depth, None, None, None).values, depth, rtol=1e-6)
        else:
            with pytest.raises(InputError, match=what):
                frame_from(depth, None, None, None)
    variance = np.full((4, 5), SMALLEST**2 * factor)
    if factor < 1:
        with pytest.raises(InputError, match="the variance"):
            frame_from(np.ones((4, 5)), None, variance, None)
    else:
        found = frame_from(np.ones((4, 5)), None, variance, None).variance
        assert found is not None
        assert_allclose(found, variance, rtol=1e-6)


@pytest.mark.parametrize("known", [0.2, 0.4, 1.0])
@pytest.mark.parametrize("part", [0.2, 0.4])
def test_regions_move_whose_blocks_agree_from_frame_to_frame(rng, known, part):
    """Differences are the same within a block, so that their means are known without noise."""
    grid, limit = (9, 12), DEFAULT.still_correlation
    first, second = rng.uniform(0.5, 2, (2, *grid)) * np.where(rng.random((2, *grid)) < 0.5, 1, -1)
    inside = np.arange(12) < part * 12
    second[:, inside] = np.abs(second[:, inside]) * np.sign(first[:, inside])  # these go on
    second[rng.random(grid) >= known] = np.nan
    flat, noise = np.zeros((146, 195), np.float32), np.full(146 * 195, 0.5, np.float32)
    spread = [np.pad(np.kron(each, np.ones((16, 16))), ((0, 2), (0, 3))).astype(np.float32) for each in (first, second)]
    still = Stillness(flat.shape, DEFAULT)
    assert still.moving(spread[0].ravel(), flat.ravel(), noise) is None
    found = still.moving(spread[1].ravel(), flat.ravel(), noise)
    agreement = 2 * first * second / (first**2 + second**2)
    seen = agreement[np.isfinite(agreement)]
    everywhere = seen.mean() > DEFAULT.noise_agreement + DEFAULT.noise_sigmas / np.sqrt(seen.size)
    assert found is not None
    for row, column in np.ndindex(grid):
        near = agreement[max(row - 2, 0) : row + 3, max(column - 2, 0) : column + 3]
        near = near[np.isfinite(near)]
        moves = everywhere or (near.size / 25 >= DEFAULT.still_share - 1e-9 and near.mean() > limit)
        assert found[16 * row + 8, 16 * column + 8] == moves
    assert_array_equal(found[-3:], np.repeat(found[-3:-2], 3, 0))
    assert_array_equal(found[:, -4:], np.repeat(found[:, -4:-3], 4, 1))


def reporting(rng, filling=None):
    """A reporter, and pixels of a plane with as many deviations as their variances say."""
    sensor = Sensor(unit="mm", noise=PowerLaw(constant=4.0), domain="1/z")
    depth = np.add.outer(1000 + np.arange(48.0), np.zeros(64))
    axis = Axis.of(sensor, depth, DEFAULT)
    reporter = Reporter(sensor, axis, Updater((48, 64), 0.0, Correlation(), DEFAULT), filling, DEFAULT)
    noise = axis.noise[axis.places(axis.count(depth).astype(np.float32))].ravel()
    variance = (noise * rng.uniform(0.001, 0.3, noise.size)).astype(np.float32)
    mean = (axis.count(depth).ravel() + np.sqrt(variance) * rng.standard_normal(noise.size)).astype(np.float32)
    return reporter, mean, variance, noise


def test_pixels_are_smoothed_while_they_are_less_certain_than_smoothing_makes_them(rng):
    reporter, mean, variance, noise = reporting(rng)
    belief = belief_of(mean, 1.0)
    belief.count[rng.random(mean.size) < 0.2] = 0
    found, left = mean.copy(), variance.copy()
    frame = frame_from(np.ones((48, 64)), None, None, None)
    reporter._smooth_young(frame, found, left, belief, change_of(np.zeros(mean.size, bool), noise))
    smoothing = PairSmoother.of(Correlation(), DEFAULT)
    young = (variance > DEFAULT.young_ratio * smoothing.left * noise) & (belief.count > 0)
    assert 0.1 < young.mean() < 0.9
    assert_array_equal(found[~young], mean[~young])
    assert_array_equal(left[~young], variance[~young])
    shown = np.where(belief.count > 0, mean, np.nan).reshape(48, 64)
    values, ratio = smoothing.smooth(shown, variance.reshape(48, 64))
    assert_array_equal(found[young], values.ravel()[young])
    assert_allclose(left[young], (variance * ratio.ravel())[young], rtol=1e-6)


def test_a_young_view_is_smoothed_under_the_noise_that_is_left(rng):
    reporter, mean, variance, noise = reporting(rng, Filling.chosen("none", "auto"))
    young = np.flatnonzero(rng.random(mean.size) < 0.8)
    found, left = mean.copy(), variance.copy()
    reporter._smooth_as_denoise((48, 64), found, left, noise, young)
    level = np.sqrt(np.median((variance / noise)[young]))
    changed = np.zeros(mean.size, bool)
    changed[young] = (variance > level**2 / 2 * noise)[young]
    assert 0.3 < changed.mean() < 0.8
    assert_array_equal(found[~changed], mean[~changed])
    assert_array_equal(left[~changed], variance[~changed])
    axis = Axis.of(Sensor(noise=PowerLaw(constant=4.0), domain="1/z"), np.arange(1000.0, 1048), DEFAULT)
    depth = (1000 + 23.5) / mean.astype(float)
    assert axis.unit == 1023.5
    weaker = Sensor(noise=PowerLaw(constant=4.0 * level), domain="1/z")
    value, kept = smooth(depth.reshape(48, 64), weaker)
    assert_allclose(found[changed], 1023.5 / value.ravel()[changed], rtol=1e-4)
    expected = np.minimum(variance, kept.ravel() / (4.0 * level) ** 2 * level**2 * noise)
    assert_allclose(left[changed], expected[changed], rtol=0.02)


@pytest.mark.parametrize("kind", [np.uint16, np.int32, np.float32])
def test_the_largest_code_of_16_bits_is_missing_in_maps_of_16_bits(kind):
    depth = np.array([[65534, 65535, 0]], kind)
    expected = [65534, np.nan if kind == np.uint16 else 65535, np.nan]
    assert_array_equal(frame_from(depth, None, None, None).values[0], expected)

"""Laws of single formulas of sensors and streams, each checked beside its definition."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsedepth.geometry import Intrinsics
from sparsedepth.sensors import Correlation, Sensor
from sparsedepth.sensors.blind import diagnose
from sparsedepth.sensors.filters import filled, half_offsets, slopes, total_variation
from sparsedepth.sensors.laws import PowerLaw
from sparsedepth.sensors.outliers import find_outliers
from sparsedepth.sensors.settings import SensorSettings
from sparsedepth.sensors.variance import mean_correlation
from sparsedepth.streams.belief import Belief, Change, Updater
from sparsedepth.streams.camera import moved_px
from sparsedepth.streams.learning import learned, settled
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.streams.stillness import Stillness


@pytest.mark.parametrize("length", [1.0, 2.0, 5.0])
def test_mean_correlation_of_gaussian_noise_is_its_closed_form(length):
    """Two samples of a Gaussian window of area A lie sqrt(A / pi) apart, in the mean of squares."""
    samples = np.array([4.0, 16.0, 64.0])
    area = SensorSettings().stride_px ** 2 * samples
    found = mean_correlation(samples, Correlation(length, length, 2.0))
    assert_allclose(found, 1 / (1 + area / (np.pi * length**2)), rtol=0.03)


def variation(picture: np.ndarray) -> float:
    across, down = np.zeros_like(picture), np.zeros_like(picture)
    across[:, :-1], down[:-1] = np.diff(picture, axis=1), np.diff(picture, axis=0)
    return float(np.hypot(across, down).sum())


def test_total_variation_has_no_better_neighbour(rng):
    values = np.where(np.arange(24) < 11, 0.0, 3.0) + 0.5 * rng.standard_normal((20, 24))
    best = total_variation(values, 0.7, 3000).astype(float)

    def energy(picture: np.ndarray) -> float:
        return np.square(picture - values).sum() / 2 + 0.7 * variation(picture)

    for _ in range(30):
        assert energy(best) <= energy(best + 0.02 * rng.standard_normal(values.shape)) + 1e-4
    assert energy(best) <= energy(values)
    assert energy(best) <= energy(np.full(values.shape, values.mean()))


def projected(values: np.ndarray, weight: float, iterations: int) -> np.ndarray:
    """Minimise the same by projected gradients without momentum (Chambolle 2005)."""
    across, down = np.zeros_like(values), np.zeros_like(values)

    def primal() -> np.ndarray:
        out = values + weight * (across + down)
        out[:, 1:] -= weight * across[:, :-1]
        out[1:] -= weight * down[:-1]
        return out

    for _ in range(iterations):
        picture = primal() / (8 * weight)
        across[:, :-1] += np.diff(picture, axis=1)
        down[:-1] += np.diff(picture, axis=0)
        norm = np.maximum(np.hypot(across, down), 1)
        across, down = across / norm, down / norm
    return primal()


def test_momentum_makes_total_variation_faster(rng):
    values = np.where(np.arange(48) < 20, 0.0, 4.0) + rng.standard_normal((40, 48))
    best = total_variation(values, 3.0, 3000)
    fast, plain = (np.square(found(values, 3.0, 60) - best).sum() for found in (total_variation, projected))
    assert fast < plain / 4


def test_holes_take_the_median_of_three_or_more_neighbours(rng):
    values = rng.standard_normal((17, 23)).astype(np.float32)
    used = rng.random(values.shape) < 0.6
    found = filled(values, used)
    assert_array_equal(found[used], values[used])
    padded = np.pad(np.where(used, values, np.nan), 1, constant_values=np.nan)
    for y, x in np.argwhere(~used):
        around = padded[y : y + 3, x : x + 3].ravel()
        around = around[np.isfinite(around)]
        if len(around) >= 3:
            assert found[y, x] == pytest.approx(np.median(around), abs=1e-6)


@pytest.mark.parametrize("level", [0, 100, -100])
def test_between_two_surfaces_a_hole_joins_the_nearest(level):
    values, used = np.repeat(np.array([[0, 0, 9, 9, 9]], np.float32), 4, axis=0), np.ones((4, 5), bool)
    used[1:3, 1] = used[1, 3] = False
    found = filled(values + np.float32(level), used, limit=1.0) - level
    assert set(np.unique(found)) == {0, 9}
    assert found[1, 3] == 9


@pytest.mark.parametrize("level", [0, 100, -100])
@pytest.mark.parametrize(("nearest", "farther"), [(0, 9), (9, 0)])
def test_a_hole_with_two_neighbours_on_either_surface_joins_the_adjacent_ones(level, nearest, farther):
    values = np.array([[farther, nearest, farther], [nearest, 50, 50], [50, 50, 50]], np.float32)
    used = values < 50
    assert filled(values + np.float32(level), used, limit=1.0)[1, 1] == nearest + level


@pytest.mark.parametrize(("down", "across"), [(0.0, 0.3), (0.2, 0.0), (-0.25, 0.1)])
def test_slopes_of_a_plane_are_its_own(down, across):
    rows, columns = np.mgrid[:60, :70].astype(np.float32)
    found = slopes(down * rows + across * columns)
    inner = slice(25, -25), slice(25, -25)
    assert_allclose(found[0][inner], down, atol=0.02)
    assert_allclose(found[1][inner], across, atol=0.02)


@pytest.mark.parametrize(("reach", "stride"), [(1, 1), (2, 1), (6, 3)])
def test_half_of_the_offsets_and_their_opposites_are_all(reach, stride):
    half = half_offsets(reach, stride)
    steps = range(-reach, reach + 1, stride)
    every = {(y, x) for y in steps for x in steps} - {(0, 0)}
    assert {*half, *((-y, -x) for y, x in half)} == every
    assert 2 * len(half) == len(every)


def test_one_pixel_off_is_an_outlier_and_a_line_is_not():
    counted = np.zeros((15, 15), np.float32)
    counted[7, 7] = 100
    assert_array_equal(np.argwhere(find_outliers(counted)), [[7, 7]])
    for line in (np.s_[7, :], np.s_[:, 7], (np.arange(15), np.arange(15)), (np.arange(15), np.arange(15)[::-1])):
        counted = np.zeros((15, 15), np.float32)
        counted[line] = 100
        assert not find_outliers(counted)[3:-3, 3:-3].any()


def test_a_frame_of_depths_that_are_mostly_not_positive_says_nothing(rng):
    frame = 1000 + rng.standard_normal((120, 160))
    assert diagnose(frame) is not None
    assert diagnose(np.where(rng.random(frame.shape) < 0.5, -1.0, frame)) is None


def updated(temporal: float, count: int) -> float:
    """The reported variance of the mean of so many measurements of variance one."""
    one = np.ones(64, np.float32)
    belief = Belief.empty(64)
    belief.renew(np.ones(64, bool), 0 * one, one / count)
    settings = StreamSettings()
    updater = Updater((8, 8), temporal, Correlation(), settings)
    grid = np.zeros((8 // settings.drift_block_px,) * 2, np.float32)
    change = Change(np.zeros(64, bool), 0 * one, one, grid, grid)
    return float(updater.reported(belief, change)[0][0])


@pytest.mark.parametrize("temporal", [0.0, 0.3, 0.7])
def test_the_variance_of_a_mean_is_that_of_an_autoregression(temporal):
    assert updated(temporal, 1) == pytest.approx(1, rel=1e-5)
    for count in (100, 1000):
        lags = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
        assert updated(temporal, count) == pytest.approx((temporal**lags).mean(), rel=0.05)


@pytest.mark.parametrize("centre", [(10.0, 8.0), (70.0, 8.0), (10.0, 50.0), (70.0, 50.0)])
def test_a_roll_moves_the_corner_that_is_farthest_from_the_axis(centre):
    roll = np.eye(4)
    roll[:2, :2] = [[np.cos(0.1), -np.sin(0.1)], [np.sin(0.1), np.cos(0.1)]]
    corners = np.array([(x, y) for x in (0, 79) for y in (0, 59)]) - centre
    expected = 2 * np.sin(0.05) * np.hypot(*corners.T).max()
    assert moved_px(roll, Intrinsics(100.0, 100.0, *centre), (60, 80), 2.0) == pytest.approx(expected)


def test_a_shift_moves_a_near_picture_more():
    shift = np.eye(4)
    shift[:2, 3] = 0.03, 0.04
    assert moved_px(shift, Intrinsics(100.0, 100.0, 40.0, 30.0), (60, 80), 2.0) == pytest.approx(100 * 0.05 / 2)
    shift[2, 3] = -3
    assert moved_px(shift, Intrinsics(100.0, 100.0, 40.0, 30.0), (60, 80), 2.0) == np.inf


@pytest.mark.parametrize("ratio", [0.2, 1.0, 4.0])  # of 0.2, rounding alone is too much
def test_learned_noise_and_rounding_together_are_as_large_as_innovations(rng, ratio):
    sensor = Sensor(noise=PowerLaw(constant=1.0), step=PowerLaw(constant=2.0))
    depth = rng.uniform(900, 1100, 20_000)
    squares = ratio * np.square(rng.standard_normal(depth.size))
    found = learned(sensor, depth, squares, squares, 20, StreamSettings())
    total = ratio * (1 + 2.0**2 / 12)
    expected = np.sqrt(max(total - 2.0**2 / 12, 0.01 * total))
    assert_allclose(found.noise(np.array([950.0, 1050.0])), expected, rtol=0.06)
    assert found.temporal < 0.05


def test_pixels_settle_in_half_of_the_frames():
    count = np.array([0, 4, 5, 9, 10] * 20, float)
    assert_array_equal(settled(count, 10), count >= 5)
    assert_array_equal(settled(np.array([0.0] + [1] * 99), 10), np.array([0] + [1] * 99, bool))


def test_a_region_that_moves_on_is_found_and_the_rest_stands_still():
    shape, rng = (256, 320), np.random.default_rng(3)
    still = Stillness(shape, StreamSettings())
    speed = np.zeros(shape, np.float32)
    speed[64:192, 64:192] = 2
    frames = [step * speed + 0.7 * rng.standard_normal(shape).astype(np.float32) for step in range(3)]
    noise = np.full(speed.size, 0.5, np.float32)
    assert still.moving(frames[1].ravel(), frames[0].ravel(), noise) is None
    found = still.moving(frames[2].ravel(), frames[1].ravel(), noise)
    assert found is not None
    assert found[96:160, 96:160].all()
    assert not found[:, 256:].any()

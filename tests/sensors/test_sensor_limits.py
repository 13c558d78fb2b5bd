"""Laws of noise, steps, scales and evidence in closed form, and limits at their edges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsedepth.sensors import Correlation, PowerLaw, Sensor, TableLaw, blind, calibrate
from sparsedepth.sensors.cells import cell_side, first_of_cells, mean_of_cells, spread_cells
from sparsedepth.sensors.differences import block_quantiles
from sparsedepth.sensors.evidence import Calibration, Evidence
from sparsedepth.sensors.floor import NoiseFloor, least_std
from sparsedepth.sensors.settings import DEFAULT
from sparsedepth.sensors.simulate import quantised, simulate, simulate_each
from sparsedepth.sensors.smooth import Scale, smooth
from sparsedepth.sensors.views import stacked_views
from sparsedepth.vocabulary import InputError

WALL = 1000 + 2.0 * np.mgrid[:64, :96][1]


def test_as_many_depths_may_be_zero_as_the_settings_say(rng):
    frame = 1000 + rng.standard_normal((160, 200))
    order = rng.permutation(frame.size)
    for more, allowed in ((0, True), (1, False)):
        wrong = frame.copy()
        wrong.ravel()[order[: int(DEFAULT.most_nonpositive * frame.size) + more]] = 0
        assert (blind.diagnose(wrong) is not None) == allowed
        if allowed:
            smooth(wrong, Sensor(noise=PowerLaw(constant=1.0)))
        else:
            with pytest.raises(InputError, match="positive"):
                smooth(wrong, Sensor(noise=PowerLaw(constant=1.0)))


def test_five_frames_are_enough_and_four_are_not(rng):
    frames = list(1000 + rng.standard_normal((5, 30, 40)))
    assert stacked_views(frames, None, None, DEFAULT).shape == (5, 30, 40)
    assert len(stacked_views([*frames, frames[-1]], None, None, DEFAULT)) == 5
    for few in (frames[:4], [*frames[:4], frames[3]]):
        with pytest.raises(InputError, match="4 distinct frames"):
            stacked_views(few, None, None, DEFAULT)


@pytest.mark.parametrize("law", [PowerLaw(constant=8.0), PowerLaw(factor=6e-6)])
def test_the_step_is_that_of_the_codes(rng, law):
    wall = np.linspace(900.0, 2500.0, 200) * np.ones((160, 1))
    found = blind.step_law(quantised(wall + 1.5 * law(wall) * rng.standard_normal(wall.shape), law))
    assert found is not None
    middle = np.array([1000.0, 1500.0, 2300.0])
    assert_allclose(found(middle), law(middle), rtol=0.2)  # the smallest differences of a bin


@pytest.mark.parametrize(("count", "step"), [(5, 10.0), (30, 5.0)])
def test_values_that_are_far_rarer_than_those_near_them_are_no_codes(rng, count, step):
    levels = np.concatenate([np.repeat(np.arange(100, 200, 10), 100), np.repeat(np.arange(105, 205, 10), count)])
    found = blind.step_points(rng.permutation(levels).reshape(1, -1).astype(float))
    assert found is not None
    assert found[1].min() == step


@pytest.mark.parametrize(("pixels", "seen"), [(51, True), (50, False)])
def test_fifty_differences_show_a_step(pixels, seen):
    assert (blind.step_points(np.arange(1.0, pixels + 1)[None]) is not None) == seen


@pytest.mark.parametrize("height", [100, 101, 640])
def test_rows_that_are_sampled_lie_alike_from_both_ends(height):
    depth = np.repeat(np.arange(height)[:, None], 50, axis=1)
    some = blind._some_rows(depth, 1000)[:, 0]
    assert_array_equal(some, height - 1 - some[::-1])
    assert 10 <= len(some) <= 22
    assert len(blind._some_rows(depth, depth.size)) == height
    assert len(blind._some_rows(depth, depth.size - 1)) <= height


@pytest.mark.parametrize(
    ("power", "domain"),
    [(-1.0, "z"), (0.4, "z"), (0.6, "log z"), (1.4, "log z"), (1.6, "1/z"), (4.0, "1/z")],
)
def test_the_domain_is_that_of_the_nearest_power(power, domain):
    depths = (1000.0, 1500.0, 3000.0)
    assert blind.domain_of(TableLaw(depths, tuple(np.power(depths, power)))) == domain
    assert blind.domain_of(TableLaw((1000.0, 1050.0), (1.0, 1.0))) == "1/z"


def test_the_concentration_is_the_largest_part_within_a_factor(rng):
    relative = np.exp(rng.standard_normal(60))
    most = max(((relative >= low) & (relative <= DEFAULT.noisy_factor * low)).mean() for low in relative)
    assert blind._concentration(relative, DEFAULT) == pytest.approx(most)


def slow_level(centre, std, settings):
    """The weighted quantile of the noise at each knot, drawn towards that of all windows; it never falls."""
    place, height = np.log(centre), np.log(std / centre**2)
    first, last = np.quantile(place, [0.01, 0.99])
    knots = np.linspace(first, last, settings.depth_knots)
    levels = []
    for knot in knots:
        weight, order = np.exp(-(((place - knot) / settings.depth_kernel) ** 2) / 2), np.argsort(height)
        share = np.cumsum(weight[order]) / weight.sum()
        own = height[order][np.argmax(share >= settings.visible_quantile)]
        everywhere = np.quantile(height, settings.visible_quantile)
        mixed = (weight.sum() * own + settings.prior_windows * everywhere) / (weight.sum() + settings.prior_windows)
        levels.append(max([mixed + 2 * knot, *levels[-1:]]))
    return knots, np.array(levels)


def test_visible_noise_against_depth_is_a_running_quantile(rng):
    centre = np.exp(rng.uniform(np.log(800), np.log(3000), 90))
    std = 2e-6 * centre**2 * np.exp(0.8 * rng.standard_normal(90)) * np.where(centre < 1500, 4, 0.5)
    step = TableLaw((1.0, 1e5), (1e-6, 1e-6))
    found = blind._visible_law(centre, std, step, 500.0, 9000.0, DEFAULT)
    knots, levels = slow_level(centre, std, DEFAULT)
    assert_allclose(found.depths, [500 * 0.99, *np.exp(knots), 9000 * 1.01])
    assert_allclose(found.lengths[1:-1], np.exp(levels))
    ratio = [found.lengths[0] / found.lengths[1], found.lengths[-1] / found.lengths[-2]]
    far = [found.depths[0] / found.depths[1], found.depths[-1] / found.depths[-2]]
    assert_allclose(ratio, np.square(far))
    coarse = blind._visible_law(centre, std, TableLaw((1.0, 1e5), (1e3, 1e3)), 500.0, 9000.0, DEFAULT)
    assert_allclose(coarse.lengths, np.maximum(found.lengths, 1e3 / np.sqrt(12)))


def diagnosis(**more):
    given = {"windows": 100, "explained": 0.9, "over_step": 3.0, "sharpness": 1.0, "evidence": 0.9}
    return blind.Diagnosis(Sensor(), white=0.0, noisy=True, visible=True, **(given | more))


@pytest.mark.parametrize(
    ("found", "white", "sharp"),
    [
        ({}, 0.0, True),
        ({"explained": 0.8}, 0.0, True),
        ({"explained": 0.79}, 0.0, False),
        ({"evidence": 0.1}, 0.149, True),
        ({"evidence": 0.44}, 0.15, False),
        ({"evidence": 0.45}, 0.15, True),
        ({"windows": 40, "evidence": 0.1}, 0.0, True),
        ({"windows": 39, "evidence": 0.68, "over_step": 2.0}, 0.0, True),
        ({"windows": 39, "evidence": 0.67}, 0.0, False),
        ({"windows": 39, "over_step": 1.99}, 0.0, False),
        ({"windows": 39}, 0.15, False),
    ],
)
def test_evidence_is_enough_at_its_limits(found, white, sharp):
    assert blind._is_sharp(diagnosis(**found), white, DEFAULT) == sharp


@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_a_scale_counts_standard_deviations(fraction):
    depth = np.linspace(900.0, 2100.0, 200)
    level = Scale.of(depth, Sensor(noise=PowerLaw(constant=5.0)), fraction)
    assert_allclose(np.diff(level.count(depth)), np.diff(depth) / 5 / fraction, rtol=2e-3)
    rising = Scale.of(depth, Sensor(noise=PowerLaw(factor=3e-6)), fraction, wider=4.0)
    assert_allclose(rising.count(depth) - rising.count(depth[:1]), (1 / 900 - 1 / depth) / 3e-6 / fraction, rtol=2e-3)
    assert_allclose(rising.depth(rising.count(depth)), depth, rtol=1e-5)
    assert_allclose(rising.depths[[0, -1]], [900 * 0.98 / 4, 2100 * 1.02 * 4])


def test_outliers_have_a_larger_variance_than_the_pixels_around_them(rng):
    depth = 1000 + 2 * rng.standard_normal((60, 80))
    mask = np.zeros(depth.shape, bool)
    mask[30, 40] = True
    sensor = Sensor(noise=PowerLaw(constant=2.0))
    variance = smooth(depth, sensor, outlier_mask=mask)[1]
    ratio = variance[30, 40] / np.median(variance)
    assert DEFAULT.outlier_ratio * 0.95 < ratio < DEFAULT.outlier_ratio * 2


@pytest.mark.parametrize("domain", ["z", "log z", "1/z"])
def test_noise_is_gaussian_in_the_domain_of_its_sensor(rng, domain):
    truth = np.full((300, 300), 1000.0)
    sensor = Sensor(noise=PowerLaw(constant=100.0), domain=domain)
    frame = simulate(truth, sensor, rng)[0]
    error = {"z": frame / 1000 - 1, "log z": np.log(frame / 1000), "1/z": 1 - 1000 / frame}[domain]
    assert error.mean() == pytest.approx(0, abs=2e-3)
    assert error.std() == pytest.approx(0.1, rel=0.02)
    assert np.mean(error**3) == pytest.approx(0, abs=5e-5)


def test_a_scene_that_moves_has_noise_of_one_size_and_one_pattern(rng):
    sensor = Sensor(noise=PowerLaw(constant=2.0), temporal=0.6, pattern=1.5, nearest=900.0, farthest=1100.0)
    scenes = [np.full((100, 100), 1000.0 + number) for number in range(12)]
    frames = np.stack(list(simulate_each(scenes, sensor, rng))) - np.arange(1000, 1012)[:, None, None]
    pattern = frames.mean(0)
    assert pattern.std() == pytest.approx(np.hypot(3, 2 * np.sqrt(4 / 12)), rel=0.1)
    for frame in frames:
        assert frame.std() == pytest.approx(np.hypot(2, 3), rel=0.04)
    step = frames[1:] - frames[:-1]
    assert step.std() == pytest.approx(2 * np.sqrt(2 * (1 - 0.6)), rel=0.04)
    beyond = next(iter(simulate_each([np.array([[900.0, 1100.0, 899.0, 1101.0]])], sensor, rng)))
    assert_array_equal(np.isnan(beyond), [[False, False, True, True]])


def test_codes_are_a_step_apart_at_every_depth():
    depth = np.linspace(500.0, 4000.0, 20_000)
    for law in (PowerLaw(constant=4.0), PowerLaw(constant=2.0, factor=3e-6), TableLaw((500.0, 4000.0), (3.0, 60.0))):
        codes = np.unique(quantised(depth, law))
        assert_allclose(np.diff(codes)[1:-1], law((codes[1:] + codes[:-1]) / 2)[1:-1], rtol=0.02)
    assert_array_equal(quantised(depth, PowerLaw()), depth)
    assert_array_equal(quantised(np.array([7.0, 9.0, np.nan]), PowerLaw(constant=4.0)), [8, 8, np.nan])


def test_outliers_are_as_frequent_as_is_said_and_lie_within_the_scene(rng):
    scene = np.where(np.arange(200) < 100, 1000.0, 2000.0) * np.ones((200, 1))
    sensor = Sensor(noise=PowerLaw(constant=1.0), outliers=0.2, outlier_kind="impulse")
    away = np.abs(simulate(scene, sensor, rng)[0] - scene)
    assert (away > 10).mean() == pytest.approx(0.2 * 0.99, abs=0.01)
    assert away.max() < 1010
    assert np.median(away[away > 10]) == pytest.approx(500, abs=30)


def evidence(**more):
    given = {
        "n_frames": 6, "n_pixels": 100, "moving": False, "nearest": 1000.0, "farthest": 1300.0, "median": 1100.0,
        "depths": np.array([1000.0, 1200.0]), "stds": np.array([2.2, 1.8]), "autocorrelation": np.ones((2, 3)),
        "step_depths": np.zeros(0), "steps": np.zeros(0), "pattern": np.ones((2, 2)), "effective_samples": 100.0,
    }  # fmt: skip
    return Evidence(**(given | more))


def test_standard_errors_and_scatter_are_their_formulas():
    sensor = Sensor(noise=PowerLaw(constant=1.6), step=PowerLaw(constant=1.2 * np.sqrt(12)))
    found = Calibration(sensor, evidence())
    assert_allclose(found.temporal_std(np.array([900.0, 1500.0])), 2.0)
    assert found.standard_error == pytest.approx(2 / np.sqrt(2 * 63))
    assert found.scatter == pytest.approx(np.sqrt(np.mean(np.log([1.1, 0.9]) ** 2)))
    assert Calibration(sensor, evidence(stds=np.array([200.0, 0.001]))).scatter == pytest.approx(1)
    assert Calibration(sensor, evidence(effective_samples=0.1)).standard_error == pytest.approx(2 / np.sqrt(2))


@pytest.mark.parametrize(
    ("more", "step", "words"),
    [
        ({}, 1.0, []),
        ({"moving": True}, 1.0, ["fixed pattern (the camera", "errors of the poses"]),
        ({"pattern": np.full((2, 2), np.nan)}, 1.0, ["no smooth surfaces"]),
        ({"farthest": 1299.0}, 1.0, ["growth of the noise"]),
        ({}, 0.051 * 2, []),
        ({}, 0.049 * 2, ["quantisation"]),
    ],
)
def test_what_frames_cannot_show_is_named(more, step, words):
    sensor = Sensor(noise=PowerLaw(constant=2.0), step=PowerLaw(constant=step))
    *found, last = Calibration(sensor, evidence(**more)).not_measured
    assert "smooth over more than 32 pixels" in last
    assert len(found) == len(words)
    assert all(word in each for word, each in zip(words, found, strict=True))


def test_samples_that_repeat_each_other_count_less(rng):
    frames = simulate(WALL, Sensor(noise=PowerLaw(constant=5.0)), rng, frames=8)
    found = calibrate(frames)
    count, sensor = 7 * WALL.size, found.sensor
    lags = [np.abs(np.arange(1 - size, size)) for size in WALL.shape]
    pairs = np.multiply.outer(*((1 - lag / size) for lag, size in zip(lags, WALL.shape, strict=True)))
    squares = (pairs * sensor.correlation(lags[0][:, None], lags[1][None]) ** 2).sum()
    squares *= (1 + sensor.temporal**2) / (1 - sensor.temporal**2)
    expected = 2.2 * count / DEFAULT.error_bins / squares
    assert found.evidence.effective_samples == pytest.approx(expected, rel=0.02)
    assert abs(np.log(found.sensor.std(1100.0) / 5)) < 4 * found.standard_error / 5


def test_the_pattern_that_frames_show_is_the_one_they_have(rng):
    sensor = Sensor(noise=PowerLaw(constant=2.0), pattern=1.5)
    frames = simulate(WALL, sensor, rng, frames=20)
    found = calibrate(frames)
    shown, error = found.evidence.pattern, frames.mean(0) - WALL
    assert found.sensor.pattern == pytest.approx(1.5, rel=0.1)
    seen = np.isfinite(shown)
    assert seen.mean() > 0.95
    assert np.corrcoef(shown[seen], error[seen])[0, 1] > 0.97
    assert shown[seen].std() == pytest.approx(error.std() / 2, rel=0.1)


def test_second_differences_show_the_noise_of_any_slope(rng):
    for slope in (0.0, 3.0):
        depth = 1000 + slope * np.mgrid[:80, :100][0] + 2 * rng.standard_normal((80, 100))
        assert np.median(least_std(depth)) == pytest.approx(2, rel=0.1)
    plane = 1000 + 3.0 * np.mgrid[:40, :50][0] + 0.5 * np.mgrid[:40, :50][1]
    plane[:, 25:] += 400
    assert np.nanmax(NoiseFloor(np.zeros(1), np.zeros(1))(plane)) < 1e-9


@pytest.mark.parametrize(("sharpness", "ratio"), [(1.0, 0.5), (0.3, 0.3)])
def test_windows_count_as_far_as_their_quietest_do(rng, sharpness, ratio):
    sample, everywhere, none = rng.random((40, 50)) + 1, np.ones((1, 2), bool), np.zeros((1, 2))
    masks = (everywhere, everywhere)
    floor = NoiseFloor.fit(sample, windows=TableLaw((1.0,), (4.0,)), sharpness=sharpness)
    assert_allclose(floor.raised(none, np.array([[1.0, np.nan]]), *masks), [[(4 * ratio) ** 2, 0]])
    assert_array_equal(NoiseFloor.fit(sample).raised(none, np.array([[1.0, np.nan]]), *masks), 0)


def test_a_map_is_quantised_if_most_pixels_share_their_value(rng):
    for share, levels in ((0.4, False), (0.6, True)):
        depth = rng.uniform(0, 100, (60, 70))
        some = rng.random(depth.shape) < share
        depth[some] = np.round(depth[some])
        rounding = NoiseFloor.fit(depth).rounding(np.array([50.0]))
        assert (rounding > 0).all() == levels


@pytest.mark.parametrize(("every", "side"), [(1, 1), (2, 2), (3, 3)])
def test_cells_hold_a_pixel_of_a_lattice_each(every, side):
    valid = np.zeros((96, 96), bool)
    valid[::every, ::every] = True
    assert cell_side(valid, DEFAULT) == side
    assert cell_side(valid[:15], DEFAULT) == 1


def test_cells_have_the_first_and_the_mean_of_their_pixels(rng):
    values = rng.standard_normal((7, 11))
    values[rng.random(values.shape) < 0.5] = np.nan
    values[2:4, 4:6] = np.nan
    first, mean = first_of_cells(values, 2), mean_of_cells(values, 2)
    assert first.shape == mean.shape == (4, 6)
    for y, x in np.ndindex(4, 6):
        cell = values[2 * y : 2 * y + 2, 2 * x : 2 * x + 2].ravel()
        known = cell[np.isfinite(cell)]
        assert_allclose(mean[y, x], known.mean() if len(known) else np.nan)
        assert_allclose(first[y, x], known[0] if len(known) else np.nan)
    assert_array_equal(spread_cells(mean, 2, values.shape)[::2, ::2], mean)
    assert spread_cells(mean, 2, values.shape).shape == values.shape


def test_correlated_samples_of_a_law_are_scaled_with_their_pixels():
    law = Correlation(4.0, 6.0, 1.3, 0.2)
    assert law.scaled(0.5)(1.0, 2.0) == pytest.approx(law(2.0, 4.0))
    assert law(6.0, 2.0) == pytest.approx(0.8 * np.exp(-(np.hypot(1.0, 0.5) ** 1.3)))
    assert replace(law, white=0.5)(1.0, 0.0) == pytest.approx(float(law(1.0, 0.0)) / 0.8 * 0.5)


@pytest.mark.parametrize("shape", [(4, 40), (40, 4), (6, 90), (3, 3)])
def test_maps_that_hold_no_block_have_no_quantiles(rng, shape):
    assert np.isnan(block_quantiles(rng.standard_normal(shape))).all()


def test_quantiles_are_those_of_crossed_differences_in_blocks(rng):
    depth = rng.standard_normal((14, 21))
    depth[rng.random(depth.shape) < 0.1] = np.nan
    found = block_quantiles(depth, 0.3)
    assert found.shape == (2, 3)
    for y, x in np.ndindex(2, 3):
        part = depth[6 * y : 6 * y + 7, 6 * x : 6 * x + 7]
        crossed = np.abs(part[1:, 1:] - part[1:, :-1] - part[:-1, 1:] + part[:-1, :-1]).ravel() / 2
        known = np.sort(crossed[np.isfinite(crossed)])
        expected = known[int(0.3 * len(known))] if len(known) > 18 else np.nan
        assert_allclose(found[y, x], expected)


def test_noise_and_rounding_of_one_frame_together_are_what_it_shows(rng):
    sensor = Sensor(noise=PowerLaw(constant=5.0), step=PowerLaw(constant=15.0), correlation=Correlation(2.0, 2.0, 2.0))
    wall = 2000 + np.add(3.0 * np.mgrid[:160, :200][1], 2.0 * np.mgrid[:160, :200][0])
    found = blind.diagnose(simulate(wall, sensor, rng)[0])
    assert found is not None
    assert found.sensor.std(2400.0) == pytest.approx(sensor.std(2400.0), rel=0.1)

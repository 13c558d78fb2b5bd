"""The parts of the default restoration, each against what it promises."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.ndimage import median_filter
from sparsedepth.restore.aggregate import vote
from sparsedepth.restore.simulation import Levels, rehearse, rising

from sparsedepth import Origin, denoise, inpaint
from sparsedepth.data.crops import crops
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.simulated_scans import simulated_scans
from sparsedepth.data.synthetic import corrupted, range_deviation, with_range_noise
from sparsedepth.metrics import calibration, psnr
from sparsedepth.patches import SYMMETRIES, turned
from sparsedepth.restore import dense, inpainting, noise_model, pipeline, posterior, surfaces, variance_measured
from sparsedepth.restore.scores import SUSPECT, Evidence, gather, look_again, middle_of_surroundings
from sparsedepth.restore.tiling import Part
from sparsedepth.restore.variance_filled import Scattered, beyond, depth_in_holes, expected_error, keep_together
from sparsedepth.vocabulary import Floats, Vector


def plane(shape=(40, 50)):
    y, x = np.mgrid[: shape[0], : shape[1]]
    return 0.3 * x - 0.1 * y + 2


def test_surfaces_through_a_plane_are_the_plane():
    depth = plane()
    holes = np.random.default_rng(0).random(depth.shape) < 0.6
    for filled in surfaces.surfaces(np.where(holes, np.nan, depth), most=2000, tolerance=1e-9):
        assert_allclose(filled, depth, atol=1e-4)
        assert_array_equal(filled[~holes], depth[~holes])


def test_the_smoothest_surface_bends_least():
    rng = np.random.default_rng(1)
    depth = rng.standard_normal((12, 12))
    holes = rng.random(depth.shape) < 0.4
    best = surfaces.surfaces(np.where(holes, np.nan, depth), most=5000, tolerance=1e-10).smooth

    def bending(surface):
        rows, columns = (np.diff(surface, 2, axis=axis) for axis in (0, 1))
        return np.square(rows).sum() + np.square(columns).sum() + 2 * np.square(np.diff(np.diff(surface), axis=0)).sum()

    for _ in range(20):
        other = best + np.where(holes, 0.1 * rng.standard_normal(depth.shape), 0)
        assert bending(best) <= bending(other)


def test_a_folded_surface_follows_a_roof_that_a_smooth_one_rounds_off():
    roof = np.abs(np.arange(40.0) - 19.5) * np.ones((40, 1)) / 11.5
    holes = np.random.default_rng(2).random(roof.shape) < 0.8
    smooth, folded = (np.square(each - roof).sum() for each in surfaces.surfaces(np.where(holes, np.nan, roof)))
    assert folded < smooth / 2


@pytest.mark.parametrize("shape", [(20, 33), (31, 17), (1, 9)])
def test_the_first_guess_lies_between_what_is_known_and_flips_with_the_map(shape):
    rng = np.random.default_rng(1)
    depth = np.where(rng.random(shape) < 0.9, np.nan, rng.random(shape))
    depth[0, 0] = 0.5
    guess = surfaces._averages(depth)
    assert np.nanmin(depth) <= guess.min() <= guess.max() <= np.nanmax(depth)
    assert_array_equal(guess[np.isfinite(depth)], depth[np.isfinite(depth)])
    assert_allclose(surfaces._averages(depth[::-1, ::-1].T), guess[::-1, ::-1].T, rtol=1e-12)


def test_nothing_known_is_zero_everywhere():
    assert_array_equal(surfaces.surfaces(np.full((4, 4), np.nan)), 0)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
def test_the_share_of_noisy_pixels_is_counted(share):
    rng = np.random.default_rng(3)
    noisy, clean = (lambda n: rng.lognormal(4, 2, n)), (lambda n: rng.lognormal(-3, 1, n))
    scores = np.sort(np.concatenate([noisy(int(20_000 * share)), clean(int(20_000 * (1 - share)))]))
    equally = np.full(800, 1 / 800)
    found, limit = noise_model._share(scores, len(scores), noisy(800), equally)
    assert found == pytest.approx(share, rel=0.25)
    assert (scores > limit).mean() <= 1.5 * share
    assert noise_model._share(np.sort(clean(20_000)), 20_000, noisy(800), equally)[0] * 20_000 < 3


def test_the_density_of_noise_is_one():
    at = np.linspace(0, 40, 400_001)
    for size in (0.25, 1.0, 4.0):
        mass = noise_model.density(at, size)
        assert mass.min() >= 0
        assert np.trapezoid(mass, at) == pytest.approx(1, abs=1e-4)
        assert np.trapezoid(mass * at**2, at) == pytest.approx(size**2 / 2, rel=1e-3)


def law_of(depth):
    """The law that a map of unit deviation is found to have."""
    part, coding = Part.of_all(depth, None), pipeline.coding(None, "fast")
    return pipeline._detector(part, gather(part, coding, 0.0, 1), coding, 0.0, True, 1)[0].sight.weighing.law


def told_law(depth):
    found = law_of(depth)
    return found.share * np.isfinite(depth).sum(), found.size


def stairs(side=128):
    """Planes and steps, of unit deviation."""
    down, right = np.indices((side, side)) / side
    depth = 2 * right + np.where(down > 0.6, 1.5, 0) + np.where(right > 0.7, -1.0, 0.5 * down)
    return ((depth - depth.mean()) / depth.std()).astype(np.float32)


@pytest.mark.parametrize(("share", "size"), [(0.02, 0.5), (0.02, 1.0), (0.1, 1.0), (0.05, 2.0)])
def test_the_law_of_noise_is_found(share, size):
    spoilt = corrupted(stairs(), share, np.random.default_rng(1), size)
    count, found = told_law(spoilt)
    assert count == pytest.approx(share * spoilt.size, rel=0.25)
    assert found == pytest.approx(size, rel=0.3)


def test_noise_on_both_sides_does_not_lean_and_on_one_side_it_does():
    clean = stairs()
    noise = corrupted(clean, 0.03, np.random.default_rng(1)) - clean
    assert abs(law_of(clean + noise).lean) < 0.25
    above, below = (law_of(clean + side * np.abs(noise)).lean for side in (1, -1))
    assert above > 0.8
    assert below < -0.8


def test_much_noise_is_no_smaller_than_it_is():
    """Noise that is added to noise is larger than what was added: taken for it, the law would be of smaller noise."""
    clean = stairs()
    told = []
    for seed, size in product(range(4), (0.5, 1.0, 2.0)):
        noisy = corrupted(clean, 0.2, np.random.default_rng(seed), size)
        told.append(told_law(noisy)[1] / np.sqrt(2 * np.square((noisy - clean)[noisy != clean]).mean()))
    assert 0.97 < np.mean(told) < 1.15


def test_slivers_that_the_border_cuts_off_are_kept():
    clean = stairs()
    clean[0, 20] = clean[0, 33] = clean[0, 34] = clean.max()
    assert_allclose(denoise(clean).depth, clean, atol=1e-3 * clean.std())


def test_noise_at_the_border_is_found_where_nothing_is_cut_off():
    clean = stairs()
    noisy = corrupted(clean, 0.05, np.random.default_rng(3))
    edge = np.ones(clean.shape, bool)
    edge[1:-1, 1:-1] = False
    before, after = (np.square(depth - clean)[edge].mean() for depth in (noisy, denoise(noisy).depth))
    assert after < 0.1 * before


def test_texture_in_a_part_of_a_map_is_no_noise():
    clean = stairs()
    clean[:50, :50] += 0.3 * np.random.default_rng(2).standard_normal((50, 50)).astype(np.float32)
    assert told_law(stairs())[0] < 3
    assert told_law(clean)[0] < 10


@pytest.mark.parametrize("scan", simulated_scans(2), ids=["far trees", "a near tree"])
def test_leaves_are_no_noise(scan):
    assert 0.02 < np.isnan(scan).mean() < 0.4
    assert psnr(denoise(scan, fill=False).depth, scan) > 60


def test_rehearsals_are_as_symmetric_as_their_maps():
    depth = plane((30, 44))
    noise = rehearse(depth, None, 1.0, np.random.default_rng(0)).noise[0]
    assert 0.02 < (noise != 0).mean() < 0.06
    for symmetry in range(SYMMETRIES):
        other = rehearse(turned(depth, symmetry), None, 1.0, np.random.default_rng(0)).noise[0]
        assert_array_equal(turned(noise, symmetry), other)


def test_large_maps_are_rehearsed_on_a_part_and_small_ones_often():
    rng = np.random.default_rng(0)
    large = rehearse(plane((600, 500)), None, 1.0, rng)
    assert large.depth.size <= 20_000
    assert_array_equal(large.sample(plane((600, 500))), large.truth)
    assert len(rehearse(plane((20, 20)), None, 1.0, rng).depth) == 16
    sparse = np.where(rng.random((600, 500)) < 0.05, plane((600, 500)), np.nan)
    sparse[:200] = np.nan
    rehearsal = rehearse(sparse, None, 1.0, rng)
    assert len(rehearsal.depth) == len(large.depth)
    assert (np.isfinite(rehearsal.truth).mean(axis=(1, 2)) > 0.02).all()


def test_rising_is_the_nearest_rising_sequence():
    assert_allclose(rising(np.array([1.0, 3.0, 2.0, 5.0]), np.array([1.0, 1.0, 3.0, 1.0])), [1, 2.25, 2.25, 5])
    assert_allclose(rising(np.array([3.0, 2.0, 1.0]), np.ones(3)), 2)


def test_levels_follow_the_mean_of_what_they_are_taught():
    rng = np.random.default_rng(4)
    told = rng.lognormal(0, 1, 20_000)
    levels = Levels.of_means(told, told * rng.exponential(1, told.shape))
    inner = np.array([0.3, 1.0, 3.0])
    assert_allclose(levels(inner), inner, rtol=0.15)
    assert levels(told).mean() == pytest.approx(told.mean(), rel=0.1)


def test_the_surest_pixels_share_their_mean():
    numbers = np.random.default_rng(7).lognormal(-6, 3, 5000)
    limit, least = variance_measured.surest(numbers)
    shared = numbers <= limit
    assert shared.mean() == pytest.approx(variance_measured.SUREST, abs=1e-3)
    assert least * shared.sum() == pytest.approx(numbers[shared].sum())
    assert variance_measured.surest(np.full(9, 0.25)) == (0.25, 0.25)
    assert variance_measured.surest(np.empty(0)) == (0.0, 0.0)


def test_surroundings_tell_the_range_of_what_is_known():
    depth = np.zeros((9, 9))
    depth[4, 4], depth[0, 0] = 2.0, np.nan
    around = variance_measured.Surroundings.of(depth)
    close, wide = (np.exp(told) - variance_measured.LEVEL for told in (around.close, around.wide))
    for span, reach in ((close, 1), (wide, 2)):
        inside = np.zeros((9, 9), bool)
        inside[4 - reach : 5 + reach, 4 - reach : 5 + reach] = True
        assert_allclose(span, np.where(inside, 2.0, 0.0), atol=1e-12)
    nowhere = variance_measured.Surroundings.of(np.full((4, 4), np.nan))
    assert_allclose(nowhere.wide, np.log(variance_measured.LEVEL))


LAW = noise_model.Law(share=0.1, size=1.0, limit=9.0)


def error_of(evidence: Evidence, chance: Vector, weight: Vector, span: float = 0.0) -> Vector:
    """What is expected of pixels whose surroundings differ by so much."""
    spans = np.full(len(chance), span)
    noise, around = variance_measured.Noise(LAW, False, -3.0), variance_measured.Surroundings(spans, spans)
    return variance_measured.expected_error(noise, around, evidence, posterior.Weighed(chance, weight), weight > 0.5)


def test_pixels_that_nothing_speaks_against_have_lost_what_was_taken():
    """As where a sensor's own variance has something taken of each."""
    zero, residual = np.zeros(50), np.random.default_rng(9).standard_normal(50)
    evidence = Evidence(zero, zero + 1e-4, residual, zero, zero + 0.01, zero + 9, zero > 0)
    assert_allclose(error_of(evidence, zero, zero + 0.3), np.square(0.3 * residual), atol=1e-5)


def test_more_is_expected_of_pixels_whose_surroundings_differ_more():
    """Noise that was missed has a value of its surroundings, so that it errs by less than they differ."""
    zero = np.zeros(1)
    evidence = Evidence(zero, zero + 1e-4, zero, zero, zero + 0.01, zero + 9, zero > 0)
    spans = np.geomspace(0.01, 1, 9)
    expected = np.array([error_of(evidence, zero, zero, span)[0] for span in spans])
    assert (np.diff(expected) > 0).all()
    assert (expected < LAW.share * np.square(spans)).all()


def test_a_correction_is_less_certain_on_a_map_that_is_undecided():
    """As amid leaves, where much that looks like noise is none."""
    chances = np.zeros(1000)
    chances[:20] = 0.99
    decided = variance_measured.undecided(chances)
    chances[20:60] = 0.5
    assert variance_measured.undecided(chances) > decided + 1
    zero = np.zeros(1)
    evidence = Evidence(zero, zero + 1e-4, zero + 1, zero + 50, zero + 0.01, zero + 9, zero > 0)
    around, weighed = (
        variance_measured.Surroundings(zero + 0.05, zero + 0.05),
        posterior.Weighed(zero + 0.95, zero + 0.95),
    )
    for quantised in (False, True):
        sure, unsure = (
            variance_measured.expected_error(
                variance_measured.Noise(LAW, quantised, undecided), around, evidence, weighed, zero == 0
            )[0]
            for undecided in (-5.0, -2.0)
        )
        assert sure < unsure


def test_noise_that_is_seen_and_kept_is_no_secret():
    """As of a single outlier, of which no law can be told, or where nothing is to be corrected."""
    zero = np.zeros(1)
    evidence = Evidence(zero, zero + 1e-4, zero + 3, zero + 500, zero + 0.01, zero + 9, zero > 0)
    assert error_of(evidence, zero + 0.9, zero)[0] > 5
    depth = plane()
    depth[20, 20] += 30
    result = inpaint(depth)
    assert result.variance[20, 20] > 5**2
    assert result.variance[20, 20] > 100 * np.median(result.variance)


def test_known_pixels_err_as_foretold():
    """Over some maps, the mean squared error is that of the variances, within a factor of two.

    The variances of corrected pixels are larger, as their errors are.
    """
    maps = [crop.depth for crop in crops(motorcycle_disparity(), 3, seed=11)] + simulated_scans(3)
    squared, foretold = ({Origin.MEASURED: 0.0, Origin.CORRECTED: 0.0} for _ in range(2))
    for number, clean in enumerate(maps):
        result = denoise(corrupted(clean, 0.1, np.random.default_rng([12, number])), fill=False)
        for origin in squared:
            these = np.isfinite(clean) & (result.origin == origin)
            squared[origin] += np.square(result.depth - clean)[these].mean() / np.nanvar(clean)
            foretold[origin] += result.variance[these].mean() / np.nanvar(clean)
    for origin in squared:
        assert 0.5 < squared[origin] / foretold[origin] < 2
    assert foretold[Origin.CORRECTED] > 3 * foretold[Origin.MEASURED]


@pytest.mark.parametrize("deviation", [0.05, 0.2])
def test_noise_that_is_everywhere_is_measured(deviation):
    y, x = np.mgrid[:120, :120]
    depth = np.where(x + y > 120, 1.0, 0.0) + 0.01 * x
    noisy = depth + deviation * np.random.default_rng(5).standard_normal(depth.shape)
    assert dense.noise_deviation(depth) < 1e-6
    assert dense.noise_deviation(noisy) == pytest.approx(deviation, rel=0.15)


def ranges_before_a_wall():
    """A floor that runs into the distance, and a box on it."""
    y, x = np.mgrid[:120, :120]
    return np.where((np.abs(x - 60) < 30) & (np.abs(y - 60) < 20), 3.0, 4.0 + 6 * y / 120)


def test_noise_that_grows_with_the_square_of_the_range_is_measured():
    """At each pixel, also of the box amid the floor; and rising and falling depths are alike."""
    ranges = ranges_before_a_wall()
    deviation = range_deviation(ranges, 0.05)
    assert deviation.max() > 8 * deviation.min()
    noisy = with_range_noise(ranges, 0.05, np.random.default_rng(5))
    level = dense.NoiseLevel.of(noisy)
    assert_allclose(level.about(noisy), deviation, rtol=0.5)
    assert np.abs(np.log(level.about(noisy) / deviation)).mean() < 0.15
    assert_allclose(dense.NoiseLevel.of(-noisy).at(-ranges), level.at(ranges), rtol=0.1)


def test_noise_that_is_the_same_everywhere_is_found_to_be():
    ranges = ranges_before_a_wall()
    noisy = ranges + 0.2 * np.random.default_rng(5).standard_normal(ranges.shape)
    assert_allclose(dense.NoiseLevel.of(noisy).at(ranges), 0.2, rtol=0.25)


def test_noise_is_a_number_where_too_few_blocks_tell_more():
    noisy = 0.2 * np.random.default_rng(5).standard_normal((20, 20))
    level = dense.NoiseLevel.of(noisy)
    assert level == dense.NoiseLevel(dense.noise_deviation(noisy))
    assert level.at(np.array([np.nan, -5.0, 5.0])).tolist() == 3 * [level.deviation]


def test_noise_is_everywhere_also_if_hardly_seen_at_some_depths_but_not_beside_many_outliers():
    near = np.arange(120) < 60
    depth = np.where(near, 0.001, 0.1) * np.random.default_rng(5).standard_normal((120, 120)) + np.where(near, -1, 1)
    assert dense.noise_deviation(depth) < dense.LEAST
    assert dense.is_everywhere(depth, outliers=0.01)
    assert not dense.is_everywhere(depth, outliers=0.2)
    assert not dense.is_everywhere(np.where(near, np.round(depth), depth), outliers=0.01)


def test_texture_of_heavy_tails_is_no_noise_that_is_everywhere():
    """Leaves are rough everywhere, but not by a Gaussian law."""
    normal = np.random.default_rng(5).standard_normal((2, 120, 120))
    leaves = np.sign(normal[0]) * np.exp(3 * normal[1])
    leaves *= 0.1 / dense.noise_deviation(leaves)
    assert dense.noise_deviation(leaves) == pytest.approx(dense.noise_deviation(0.1 * normal[0]), rel=0.1)
    assert dense.is_everywhere(0.1 * normal[0], outliers=0.01)
    assert not dense.is_everywhere(leaves, outliers=0.01)


def test_range_noise_beside_a_high_step_is_smoothed_to_the_step():
    """Steps of a hundred deviations of the noise are neither rounded off nor made smaller."""
    ranges = np.where(np.arange(96) < 48, 4.0, 12.0) * np.ones((96, 1))
    noisy = ranges + 0.3 * np.square(ranges / 12) * np.random.default_rng(6).standard_normal(ranges.shape)
    error = np.square(denoise(noisy).depth - ranges)
    assert error[:, :48].mean() < 0.1 * np.square(noisy - ranges)[:, :48].mean()
    assert error[:, 48:].mean() < 0.1 * np.square(noisy - ranges)[:, 48:].mean()


def test_dense_noise_is_smoothed_and_its_variance_foretold():
    y, x = np.mgrid[:96, :96]
    clean = np.where(x + y > 100, 3.0, 0.0) + 0.01 * x
    noisy = clean + 0.3 * np.random.default_rng(6).standard_normal(clean.shape)
    result = denoise(noisy)
    error = np.square(result.depth - clean).mean()
    assert error < 0.3 * np.square(noisy - clean).mean()
    assert 0.3 < error / result.variance.mean() < 3


def test_a_clean_map_comes_back_as_it_was():
    depth = plane() + np.where(plane() > 8, 4.0, 0)
    result = denoise(depth)
    assert_allclose(result.depth, depth, atol=1e-5)
    assert (result.origin == Origin.MEASURED).all()


def test_clean_scans_come_back_as_they_were():
    """Single returns from leaves have high scores, but the network finds hardly any of the noise that they would be."""
    for clean in simulated_scans(46)[41:46:2]:
        assert psnr(denoise(clean, fill=False).depth, clean) > 60


def with_spikes(depth: Floats, n: int) -> tuple[Floats, NDArray[np.bool_]]:
    """The same with some pixels off by a deviation, and where these are."""
    rng, spiked = np.random.default_rng(3), np.zeros(depth.shape, bool)
    spiked.ravel()[rng.choice(depth.size, n, replace=False)] = True
    return depth + np.where(spiked, rng.choice([-1, 1], depth.shape) * depth.std(), 0), spiked


def test_a_few_spikes_of_a_map_as_measured_may_be_its_own():
    """They stay, and their variance says that they are doubtful; on a smooth map, or many of them, they are noise."""
    smooth = plane((100, 100))
    measured = smooth + 0.005 * smooth.std() * np.random.default_rng(4).standard_normal(smooth.shape)
    spiky, spiked = with_spikes(measured, 15)
    kept = denoise(spiky)
    assert_allclose(kept.depth, spiky, atol=1e-5)
    assert (kept.origin == Origin.MEASURED).all()
    assert np.median(kept.variance[spiked]) > 100 * np.median(kept.variance[~spiked])
    for depth, n in ((smooth, 15), (measured, 100)):
        spiky, spiked = with_spikes(depth, n)
        result = denoise(spiky)
        assert (result.origin[spiked] == Origin.CORRECTED).mean() > 0.9
        assert np.square(result.depth - depth).mean() < 0.05 * np.square(spiky - depth).mean()


def test_more_error_is_expected_deep_in_holes_and_at_steps():
    unknown = np.zeros((60, 60), bool)
    unknown[10:19, 10:19] = unknown[10:19, 46:55] = True
    answer = np.where(np.arange(60) < 50, 0.0, 1.0) * np.ones((60, 1))
    expected = expected_error(answer, unknown)
    assert expected[14, 14] > expected[10, 10]
    assert expected[14, 50] > 10 * expected[14, 14]
    assert expected.max() <= 4
    assert_array_equal(expected[~unknown], 0)


def test_holes_keep_together_or_are_scattered_whatever_their_share():
    rng = np.random.default_rng(0)
    nothing = np.zeros((100, 100), bool)
    for share in (0.01, 0.2, 0.5, 0.95):
        assert not keep_together(rng.random(nothing.shape) < share, nothing)
    strips = nothing.copy()
    strips[20:60, 30:33] = strips[70:72, :] = True
    assert keep_together(strips, nothing)
    assert keep_together(strips | (rng.random(nothing.shape) < 0.005), nothing)
    assert not keep_together(strips, strips)
    assert not keep_together(nothing, nothing)
    assert not keep_together(~nothing, nothing)


def rehearsed(power: float, share: float = 0.5) -> tuple[Floats, NDArray[np.bool_], NDArray[np.bool_], Floats]:
    """Filled parts of level maps, some of whose pixels were hidden, and squared errors that grow with the law."""
    rng = np.random.default_rng(0)
    unknown = rng.random((2, 100, 100)) < share
    hidden = unknown & (rng.random(unknown.shape) < 0.3)
    deep = np.stack([expected_error(np.zeros(part.shape), part) for part in unknown])
    squared = np.square(rng.standard_normal(unknown.shape)) * 1e-2 * (deep / deep[hidden].mean()) ** power
    return np.zeros(unknown.shape), unknown, hidden, squared


def test_hidden_pixels_that_err_twice_as_much_double_the_promise():
    answers, unknown, hidden, squared = rehearsed(1)
    once, twice = (
        Scattered.of(answers, unknown, hidden, factor * squared)(answers[0], unknown[0]) for factor in (1, 2)
    )
    assert_allclose(twice, 2 * once, rtol=1e-2)
    assert_array_equal(once[~unknown[0]], 0)
    assert 0.8 < squared[0][unknown[0]].mean() / once[unknown[0]].mean() < 1.25


def test_the_order_of_what_was_hidden_does_not_matter():
    answers, unknown, hidden, squared = rehearsed(1)
    one = Scattered.of(answers, unknown, hidden, squared)
    other = Scattered.of(answers, unknown[::-1, :, ::-1], hidden[::-1, :, ::-1], squared[::-1, :, ::-1])
    assert_allclose(one.own, other.own, rtol=1e-4)
    assert_allclose(one.doubt, other.doubt, rtol=1e-4)


def test_hidden_pixels_tell_how_steeply_the_promise_grows():
    powers = [Scattered.of(*rehearsed(power, share=0.8)).own[1] for power in (0, 2, 8)]
    assert powers[0] < powers[1] < powers[2]


def test_without_hidden_pixels_the_law_stands_and_few_of_them_leave_more_open():
    answers, unknown, hidden, squared = rehearsed(1)
    none = Scattered.of(answers, unknown, np.zeros_like(hidden), squared)
    assert_array_equal(none.own, [0, 1])
    promise = none(answers[0], unknown[0])
    assert ((promise[unknown[0]] > 0) & (promise[unknown[0]] <= 4)).all()
    few = hidden & (np.random.default_rng(1).random(hidden.shape) < 0.01)
    doubts = [Scattered.of(answers, unknown, some, squared).doubt[0] for some in (hidden, few, np.zeros_like(few))]
    assert doubts[0] < doubts[1] < doubts[2]


def test_steps_between_known_pixels_raise_the_promise_also_where_all_that_was_filled_is_level():
    answers, unknown, hidden, squared = rehearsed(1, share=0.95)
    rough = 0.3 * np.random.default_rng(1).standard_normal((100, 50))
    answer = np.where(unknown[0], 0, np.hstack([np.zeros_like(rough), rough]))
    alone = depth_in_holes(unknown[0]) > 1
    promise = Scattered.of(answers, unknown, hidden, squared)(answer, unknown[0])
    assert promise[:, 70:][alone[:, 70:]].min() > 2 * promise[:, :30][alone[:, :30]].max()


def test_a_promise_goes_on_beyond_the_pixels_that_have_one():
    unknown = np.zeros((60, 60), bool)
    unknown[10:30, 10:40] = True
    answer = np.where(np.arange(60) < 25, 0.0, 0.5) * np.ones((60, 1))
    law = expected_error(answer, unknown)
    inner = np.zeros_like(unknown)
    inner[14:26, 14:36] = True
    promised = np.where(inner, 0, 0.1 * law)
    assert_allclose(beyond(answer, unknown, promised)[inner], 0.1 * law[inner], rtol=0.5)
    assert_array_equal(beyond(answer, unknown, np.zeros_like(law)), law)


def test_filled_pixels_err_as_foretold():
    """Over random holes of stepped maps, the mean of squared error over variance is one, within a factor of two."""
    y, x = np.mgrid[:100, :100]
    clean = np.where(x + 0.5 * y > 80, 3.0, 0.0) + 0.02 * x + 0.3 * np.sin(y / 7)
    for seed in range(7, 10):
        holes = np.random.default_rng(seed).random(clean.shape) < 0.4
        result = denoise(np.where(holes, np.nan, clean))
        filled = result.origin == Origin.FILLED
        assert filled.sum() > 3000
        assert 0.5 < calibration((result.depth - clean)[filled], result.variance[filled]).overall < 2


def test_patches_that_hardly_overlap_leave_holes_to_the_surfaces():
    depth = np.where(plane() > 8, 1.0, 0.0)
    depth[np.random.default_rng(8).random(depth.shape) < 0.5] = np.nan
    coded = {quality: inpainting.fill(depth, pipeline.coding(None, quality), 1) for quality in ("fast", "balanced")}
    assert_array_equal(coded["fast"].coded, coded["fast"].folded)
    assert (coded["balanced"].coded != coded["balanced"].folded).any()


def test_calm_patches_need_fewer_iterations_and_others_get_all():
    coding = pipeline.coding(None, "balanced")
    thorough = replace(coding, calm_rounds=None)
    wavy = np.sin(np.mgrid[:40, :48].sum(axis=0) / 6).astype(np.float32)
    calm, other = 0.8 * pipeline.NOISE_FLOOR * wavy, 20 * pipeline.NOISE_FLOOR * wavy
    assert_allclose(vote(calm, coding).mean, vote(calm, thorough).mean, atol=0.1 * pipeline.NOISE_FLOOR)
    assert (vote(calm, coding).mean != vote(calm, thorough).mean).any()
    assert_array_equal(vote(other, coding).mean, vote(other, thorough).mean)


@pytest.mark.parametrize("shape", [(2, 13, 20), (30, 17), (1, 9), (2, 2)])
def test_texture_is_a_median_of_surroundings(shape):
    sizes = np.random.default_rng(4).random(shape).astype(np.float32)
    places = np.outer([1, 0] * 3 + [1], [1, 0] * 3 + [1])
    expected = median_filter(sizes, footprint=places, mode="reflect", axes=(-2, -1))
    assert_array_equal(middle_of_surroundings(sizes), expected)


def test_a_second_look_changes_what_is_said_of_suspects_only():
    rng = np.random.default_rng(5)
    depth = np.add.outer(np.linspace(-1, 1, 40), np.linspace(-1, 1, 48)).astype(np.float32)
    depth[rng.random(depth.shape) < 0.05] += 1
    part, coding = Part.of_all(depth, None), pipeline.coding(None, "balanced")
    seen = gather(part, coding, 0.0, 1)
    again = look_again(part, seen, depth - seen.residual, coding, 0.0, 1)
    suspect = seen.score > SUSPECT
    assert 0.02 < suspect.mean() < 0.5
    assert_array_equal(again.value[~suspect], seen.value[~suspect])
    assert (again.value[suspect] != seen.value[suspect]).mean() > 0.5


def test_smoothing_takes_no_more_than_the_noise_amounts_to():
    texture = np.random.default_rng(6).standard_normal((2, 48, 48)).astype(np.float32)
    smoother = dense.Smoother(dense.NoiseLevel(0.1), pipeline.coding(None, "fast"))
    learned = smoother.rehearsed(texture, 1)
    window = Part.of_all(texture[0], None).window
    taken = np.square(texture - np.stack([learned(part, window, 1)[0] for part in texture])).sum()
    noise = np.square([smoother.level.about(part) for part in texture]).sum()
    assert learned.share is not None
    assert learned.share(learned.code(texture[0], window, 1)).max() < 1
    assert taken <= noise


def test_smoothing_leaves_texture_where_the_patches_disagree_and_takes_noise_where_they_agree():
    """Half of the map is a plane, the other half is rough; noise lies on both."""
    rng = np.random.default_rng(6)
    rough = np.where(np.arange(64) < 32, 0, 2 * rng.standard_normal((64, 64))) + 0.02 * np.arange(64)
    depth = (rough + 0.1 * rng.standard_normal(rough.shape)).astype(np.float32)
    smoother = dense.Smoother(dense.NoiseLevel(0.1), pipeline.coding(None, "balanced")).rehearsed(depth[None], 1)
    error = np.square(smoother(depth, Part.of_all(depth, None).window, 1)[0] - rough)
    assert error[:, :28].mean() < 0.3 * 0.1**2
    assert error[:, 36:].mean() < 1.5 * 0.1**2


def test_all_is_taken_that_noise_amounts_to():
    depth = 0.1 * np.random.default_rng(6).standard_normal((1, 64, 64)).astype(np.float32)
    smoother = dense.Smoother(dense.NoiseLevel(0.1), pipeline.coding(None, "fast"))
    assert smoother.rehearsed(depth, 1).share is None

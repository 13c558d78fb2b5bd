"""The kernels of stereo beside their references, on every instruction set, in any number of threads and bands."""

from __future__ import annotations

import ctypes
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.ndimage import maximum_filter, median_filter, minimum_filter

import stereo_oracle
from sparsedepth.components import connected_components
from sparsedepth.kernels import library
from sparsedepth.stereo import ad_census, occlusion
from sparsedepth.stereo.costs import COSTS, sample
from sparsedepth.stereo.rows import byte_rows, reversed_rows
from sparsedepth.stereo.solvers import semi_global
from sparsedepth.stereo.team import at_once
from sparsedepth.vocabulary import StereoPair


def pair_of(height: int, width: int, channels: int, max_disparity: int, seed: int = 0) -> StereoPair:
    """Views with flat parts and jumps, shifted by 2."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (-(-height // 3), -(-(width + 2) // 4), channels))
    wide = np.clip(coarse.repeat(3, axis=0).repeat(4, axis=1)[:height, : width + 2] + rng.integers(-8, 9), 0, 255)
    noisy = np.clip(wide + rng.integers(-9, 10, wide.shape), 0, 255)
    return StereoPair(noisy[:, :width] * 1.0, wide[:, 2:] * 1.0, max_disparity)


def test_bytes_are_rounded_to_even(rng):
    view = np.concatenate([rng.uniform(-20, 280, 288), np.arange(-0.5, 11.5)]).astype(np.float32).reshape(10, 10, 3)
    expected = np.rint(np.clip(view, 0, 255)).astype(np.uint8).transpose(0, 2, 1)
    np.testing.assert_array_equal(byte_rows(view), expected)


@pytest.mark.parametrize(("height", "width", "channels"), [(1, 2, 1), (4, 20, 3), (9, 33, 2)])
def test_census_words_and_ad_census_are_what_they_are_defined_to_be(height, width, channels):
    pair = pair_of(height, width, channels, min(width - 1, 17))
    cost = ad_census.AdCensus.of(pair, 30.0, 15.0)
    np.testing.assert_array_equal(cost.words, stereo_oracle.census_words(pair.left.sum(axis=2)))
    expected = [stereo_oracle.ad_census(pair.left, pair.right, d) for d in range(pair.max_disparity + 1)]
    np.testing.assert_allclose(sample(cost, pair, range(pair.max_disparity + 1)), expected, atol=1.001 / 1024)
    volume = np.empty((height, width, ad_census.padded(len(expected))), np.int16)
    cost.in_whole_numbers(len(expected), 1024.0, 8191)(slice(0, height), volume)
    np.testing.assert_allclose(volume[..., : len(expected)], np.moveaxis(np.array(expected), 0, -1) * 1024, atol=1.001)
    assert (volume[..., len(expected) :] == 8191).all()


@pytest.mark.slow
@pytest.mark.parametrize(("height", "width", "channels", "n"), [(1, 9, 1, 4), (6, 17, 3, 16), (11, 20, 3, 18)])
def test_paths_are_the_cheapest_from_eight_sides(height, width, channels, n):
    pair = pair_of(height, width, channels, n - 1, seed=n)
    costs = np.random.default_rng(n).integers(0, 2000, (height, width, n))
    penalties = np.array([[500, 125, 50], [2000, 500, 200]])
    total = stereo_oracle.aggregate(
        costs, pair.left.astype(np.uint8), pair.right.astype(np.uint8), penalties, jump=12, n=n
    )
    stride = -(-n // 16) * 16

    def in_rows(rows: slice, into: Any) -> None:
        into[..., :n], into[..., n:] = costs[rows], semi_global.MAX_PATH

    left, right = byte_rows(pair.left), reversed_rows(byte_rows(pair.right), stride - 1)
    groups, memory = semi_global.Bands(rows_at_once=4).groups(height), semi_global.Memory()
    disparity = semi_global._aggregate(in_rows, groups, n, left, right, penalties.astype(np.int16), 12, memory)
    best = total.argmin(axis=2)
    inner = (best > 0) & (best < n - 1)
    below, here, above = (
        np.take_along_axis(total, np.clip(best + k, 0, n - 1)[..., None], 2)[..., 0] for k in (-1, 0, 1)
    )
    bend = below - 2 * here + above
    moved = np.where(inner & (bend > 0), (below - above) / np.maximum(2 * bend, 1), 0)
    np.testing.assert_allclose(disparity, best + moved, atol=1e-5)


@pytest.mark.parametrize("vertical", [False, True])
def test_two_paths_find_the_cheapest_labelling_of_a_line(vertical):
    """Paths from both ends, less the pixel's own cost, are the least energy of all labellings through each label."""
    n, n_labels, small, large = 5, 4, 300, 700
    costs = np.random.default_rng(3).integers(0, 1000, (n, n_labels))
    line, ways = (costs[:, None], ((1, 0), (-1, 0))) if vertical else (costs[None], ((0, 1), (0, -1)))
    grey, penalties = np.zeros((*line.shape[:2], 1), np.uint8), np.array([[small] * 3, [large] * 3])
    found = (stereo_oracle.aggregate(line, grey, grey, penalties, 12, n_labels, ways) - line).reshape(n, n_labels)
    best = np.full((n, n_labels), 1 << 40)
    for labels in product(range(n_labels), repeat=n):
        steps = np.abs(np.diff(labels))
        energy = costs[range(n), labels].sum() + np.where(steps == 1, small, np.where(steps > 1, large, 0)).sum()
        best[range(n), labels] = np.minimum(best[range(n), labels], energy)
    np.testing.assert_array_equal(found - found.min(axis=1)[:, None], best - best.min(axis=1)[:, None])


def test_fractions_are_those_of_a_parabola(rng):
    pair = pair_of(5, 30, 1, 9)
    truth = np.random.default_rng(1).uniform(1, 8, pair.shape).astype(np.float32)

    def unary(disparity: Any) -> Any:
        return (disparity - truth) ** 2

    found = semi_global.solve(unary, pair, None, rng, step_penalty=0.0, jump_penalty=0.0)
    np.testing.assert_allclose(found, truth, atol=0.05)


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
def test_any_cost_is_rounded_and_solved(rng, cost):
    wide = np.random.default_rng(2).integers(0, 256, (8, 42, 3)).astype(float)
    pair = StereoPair(wide[:, :40], wide[:, 2:], 10)
    found = semi_global.solve(cost(pair), pair, None, rng)
    np.testing.assert_allclose(found[:, 6:-6], 2, atol=0.5)


def test_the_cost_in_a_mirror_is_that_of_the_mirrored_pair():
    pair = pair_of(9, 40, 3, 20)
    ours, theirs = ad_census.AdCensus.of(pair).mirrored(), ad_census.AdCensus.of(pair.mirrored())
    disparity = np.random.default_rng(7).uniform(0, 20, pair.shape).astype(np.float32)
    np.testing.assert_array_equal(ours(disparity), theirs(disparity))
    volumes = np.empty((2, *pair.shape, 32), np.int16)
    for cost, volume in zip((ours, theirs), volumes, strict=True):
        cost.in_whole_numbers(21, 1024.0, 8191)(slice(None), volume)
    np.testing.assert_array_equal(volumes[0], volumes[1])


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_paths_do_not_know_how_many_rows_come_at_once(rng, rows):
    pair = pair_of(23, 50, 3, 12)
    cost = COSTS["ad_census"](pair)
    whole = semi_global.solve(cost, pair, None, rng)
    again = semi_global.solve(cost, pair, None, rng, bands=semi_global.Bands(rows_at_once=rows))
    np.testing.assert_array_equal(again, whole)


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("height", [1, 16, 17, 50])
def test_both_views_are_solved_alike_in_any_number_of_threads(height, threads, rng):
    pair = pair_of(height, 40, 3, 12, seed=height)
    cost, mirror = ad_census.AdCensus.of(pair), ad_census.AdCensus.of(pair.mirrored())
    left, right = semi_global.solve_both(cost, pair, threads)
    np.testing.assert_array_equal(left, semi_global.solve(cost, pair, None, rng))
    np.testing.assert_array_equal(right[:, ::-1], semi_global.solve(mirror, pair.mirrored(), None, rng))


def test_a_map_does_not_depend_on_what_was_solved_in_the_same_memory_before(rng):
    pairs = [pair_of(height, 40, 3, n, seed=height) for height, n in ((20, 30), (9, 12), (31, 30))]
    memory = semi_global.Memory()
    for pair in pairs:
        found, alone = (
            semi_global.solve(COSTS["ad_census"](pair), pair, None, rng, memory=used) for used in (memory, None)
        )
        np.testing.assert_array_equal(found, alone)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_tasks_are_done_once_in_their_order_and_a_failure_is_raised(threads):
    done = []
    assert at_once([partial(lambda n: done.append(n) or n**2, n) for n in range(20)], threads) == [
        n**2 for n in range(20)
    ]
    assert sorted(done) == list(range(20))
    assert at_once([], threads) == []
    with pytest.raises(ZeroDivisionError):
        at_once([lambda: 0, lambda: 1 // 0, lambda: 2], threads)


def test_a_cost_of_one_kind_is_solved_alike_as_volume_and_as_function(rng):
    pair = pair_of(12, 50, 3, 12)
    cost = COSTS["ad_census"](pair)
    one, other = (semi_global.solve(each, pair, None, rng) for each in (cost, lambda disparity: cost(disparity)))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("height", "bytes_per_row"), [(1, 10), (90, 1), (90, 10), (1000, 7)])
def test_bands_cover_all_rows_once_with_rows_around(height, bytes_per_row):
    bands = semi_global.Bands(max_bytes=600, overlap_rows=12)
    covered = []
    for band, around in bands.of(height, bytes_per_row):
        covered += range(height)[band]
        assert around.start == max(band.start - 12, 0) or (band, around) == (slice(0, height),) * 2
        assert (around.stop - around.start) * bytes_per_row <= max(600, 4 * 12 * bytes_per_row)
    assert covered == list(range(height))


def test_bands_of_rows_agree_with_the_whole(rng):
    pair = pair_of(90, 60, 3, 8, seed=3)
    cost = COSTS["ad_census"](pair)
    whole = semi_global.solve(cost, pair, None, rng)
    parts = semi_global.solve(cost, pair, None, rng, bands=semi_global.Bands(1, 12))
    assert (np.abs(parts - whole) > 0.5).mean() < 0.01


@pytest.mark.slow
def test_planes_beside_holes_are_those_of_ridge_regression():
    rng = np.random.default_rng(4)
    disparity = (rng.integers(0, 3, (20, 26)) + np.arange(26) * 0.1).astype(np.float32)
    bad = rng.random(disparity.shape) < 0.3
    guide = rng.integers(90, 130, (20, 26, 3), np.uint8)
    level, slope = occlusion._surfaces(disparity, bad.view(np.uint8), byte_rows(guide), 1)
    for y, x in np.argwhere(~bad):
        beside = bad[y, max(x - 1, 0)] or bad[y, min(x + 1, 25)]
        expected = stereo_oracle.plane_at(disparity, bad, guide, y, x) if beside else (float(disparity[y, x]), 0.0)
        np.testing.assert_allclose([level[y, x], slope[y, x]], expected, atol=2e-3)


def test_speckles_edges_and_medians_are_those_of_scipy(rng):
    disparity = rng.integers(0, 6, (23, 31)).astype(np.float32)
    component = connected_components(disparity, 1.0)
    np.testing.assert_array_equal(occlusion.speckles(disparity, 9), np.bincount(component.ravel())[component] < 9)
    np.testing.assert_array_equal(occlusion.smooth(disparity), median_filter(disparity, 3, mode="nearest"))
    spread = maximum_filter(disparity, 5) - minimum_filter(disparity, 5)
    np.testing.assert_array_equal(occlusion.near_edges(disparity, 2, 3.0), spread > 3)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_change_a_bit(rng, threads):
    pair = pair_of(37, 40, 3, 12, seed=5)
    guide = byte_rows(pair.left)
    disparity = semi_global.solve(COSTS["ad_census"](pair), pair, None, rng)
    bad = occlusion.lr_difference(disparity, disparity) > 0.5
    works: list[Any] = [
        lambda n: occlusion.lr_difference(disparity, disparity[::-1], n),
        lambda n: occlusion.fill_background(disparity, bad, guide, n),
        lambda n: occlusion.weighted_median(disparity, guide, bad, radius=5, every=2, threads=n),
        lambda n: occlusion.near_edges(disparity, 2, threads=n),
        lambda n: occlusion.smooth(disparity, n),
    ]
    for work in works:
        np.testing.assert_array_equal(work(1), work(threads))


def test_every_instruction_set_computes_the_same_bits():
    if not library.load("baseline").processor_has_avx2():
        pytest.skip("one instruction set only")
    found = [_by_level(level) for level in ("baseline", "avx2")]
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def _by_level(level: str) -> list[Any]:
    """Call the kernels of one library with the same arrays; what has floats is called."""
    loaded, rng = ctypes.CDLL(library.load(level)._name), np.random.default_rng(6)
    height, width, n, stride = 7, 21, 18, 32
    costs = rng.integers(0, 2000, (height, width, stride)).astype(np.int16)
    left, right = (rng.integers(0, 256, (height, 3, wide), np.uint8) for wide in (width, width + stride - 1))
    penalties = np.array([[500, 125, 50], [2000, 500, 200]], np.int16)
    total, disparity = np.zeros(costs.shape, np.uint16), np.zeros((height, width), np.float32)
    sizes = (height, width, 3, n, stride, 12)
    rooms = semi_global._room(width, stride)
    for is_second, order in enumerate((semi_global.DOWN, semi_global.UP)):
        _call(
            loaded.stereo_semi_global,
            *(0, height, order, is_second, *sizes),
            *(penalties, left, right, costs, *rooms, total, disparity),
        )
    bad = (rng.random((height, width)) < 0.3).astype(np.uint8)
    level_px, slope, reach = *np.zeros((2, height, width), np.float32), rng.random((13, 13), np.float32)
    scales = (ctypes.c_float(0.00125), ctypes.c_float(250), ctypes.c_float(0.35))
    _call(
        loaded.stereo_surfaces,
        0,
        height,
        height,
        width,
        3,
        disparity,
        bad,
        left,
        12,
        2,
        reach,
        *scales,
        level_px,
        slope,
    )
    return [total[..., :n], disparity, level_px, slope]


def _call(function: Any, *given: Any) -> None:
    """Call a function with arrays by address and whole numbers of 64 bits."""
    arrays = (each.ctypes.data_as(ctypes.c_void_p) if isinstance(each, np.ndarray) else each for each in given)
    function(*(ctypes.c_int64(each) if isinstance(each, int) else each for each in arrays))

"""Neighbourhoods, against loops that look at one pixel at a time."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.ndimage import binary_dilation, uniform_filter

from sparsedepth.chosen_pixels import BoxCounts, Neighbours, gather, ring_offsets, square_offsets
from sparsedepth.components import connected_components, interior_pixels
from sparsedepth.neighbourhood import (
    block_range,
    box_mean,
    box_sum,
    local_range,
    local_variance,
    similar_neighbours,
)

OFFSETS = np.array([(0, 0), (-3, 1), (2, -2), (0, 3), (1, 0)])


@pytest.fixture(params=[(7, 9), (1, 1), (1, 8), (6, 2)], ids=str)
def holed(request):
    """Maps with missing pixels."""
    rng = np.random.default_rng(sum(request.param))
    values = rng.normal(size=request.param).astype(np.float32)
    values[rng.random(request.param) < 0.3] = np.nan
    return values


def at(values, row, column, beyond=np.nan):
    """One value, or that beyond the border."""
    inside = 0 <= row < values.shape[0] and 0 <= column < values.shape[1]
    return values[row, column] if inside else beyond


def square(values, row, column, radius, beyond=np.nan):
    """All values of a square, row by row."""
    steps = range(-radius, radius + 1)
    return np.array([at(values, row + down, column + right, beyond) for down, right in product(steps, steps)])


def each_pixel(values, of_pixel):
    """The map of what a function makes of each row and column."""
    height, width = values.shape
    return np.array([[of_pixel(row, column) for column in range(width)] for row in range(height)])


def test_gather_takes_values_at_offsets(holed):
    where = np.random.default_rng(1).random(holed.shape) < 0.6
    chosen = np.argwhere(where)
    expected = [[at(holed, row + down, column + right) for down, right in OFFSETS] for row, column in chosen]
    found = gather(holed, where, OFFSETS)
    assert found.dtype == holed.dtype
    np.testing.assert_array_equal(found, np.array(expected, np.float32).reshape(-1, len(OFFSETS)))
    np.testing.assert_array_equal(gather(holed, np.nonzero(where), OFFSETS), found)


def test_gather_fills_beyond_the_border_as_asked():
    true = np.ones((2, 2), bool)
    assert gather(true, true, np.array([(1, 0)]), fill=False)[:, 0].tolist() == [True, True, False, False]


def test_maps_of_a_stack_do_not_mix():
    stack = np.random.default_rng(0).normal(size=(3, 4, 5))
    where = stack > 0
    one_by_one = [gather(one, chosen, OFFSETS) for one, chosen in zip(stack, where, strict=True)]
    np.testing.assert_array_equal(gather(stack, where, OFFSETS), np.concatenate(one_by_one))
    for one, of_all in zip(stack, zip(*local_range(stack, 2), strict=True), strict=True):
        np.testing.assert_array_equal(of_all, local_range(one, 2))
    np.testing.assert_array_equal(local_variance(stack, 3), [local_variance(one, 3) for one in stack])
    counts = [BoxCounts.of(one, one, 5).within(5) for one in where]
    np.testing.assert_array_equal(BoxCounts.of(where, where, 5).within(5), np.concatenate(counts))


def test_blocks_of_pixels_are_parts_of_the_whole(holed):
    where = np.isfinite(holed)
    neighbours = Neighbours.at(holed.shape, where, OFFSETS)
    padded, whole = neighbours.pad(holed), gather(holed, where, OFFSETS)
    np.testing.assert_array_equal(padded[neighbours.index(slice(2, 5))], whole[2:5])
    np.testing.assert_array_equal(padded[neighbours.centre], holed[where])
    for k, shift in enumerate(neighbours.shift):
        np.testing.assert_array_equal(padded[neighbours.centre + shift], whole[:, k])


def test_square_offsets_leave_out_the_centre():
    offsets = square_offsets(2)
    assert len(offsets) == 24
    assert [0, 0] not in offsets.tolist()
    assert offsets.tolist() == sorted(offsets.tolist())


@pytest.mark.parametrize("radius", [0, 1, 2, 3, 7])
def test_local_range_is_that_of_valid_pixels(holed, radius):
    lowest, highest = local_range(holed, radius)
    inside = np.where(np.isnan(holed), np.inf, holed)
    expected = each_pixel(inside, lambda row, column: square(inside, row, column, radius, np.inf).min())
    np.testing.assert_array_equal(lowest, expected)
    np.testing.assert_array_equal(highest, -local_range(-holed, radius)[0])
    assert lowest.dtype == highest.dtype == holed.dtype


@pytest.mark.parametrize("radius", [1, 2])
def test_boxes_against_a_loop(radius):
    values, side = np.random.default_rng(2).normal(size=(6, 9)), 2 * radius + 1
    edged = np.pad(values, radius, mode="edge")

    def around(row, column):
        return edged[row : row + side, column : column + side]

    np.testing.assert_allclose(box_mean(values, side), each_pixel(values, lambda r, c: around(r, c).mean()))
    np.testing.assert_allclose(local_variance(values, side), each_pixel(values, lambda r, c: around(r, c).var()))
    sums = each_pixel(values, lambda r, c: square(values, r, c, radius, 0.0).sum())
    np.testing.assert_allclose(box_sum(values, side), sums, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (2, 9), (9, 2), (3, 11, 14)])
@pytest.mark.parametrize("side", [1, 2, 5, 8])
@pytest.mark.parametrize("mode", ["nearest", "constant"])
def test_boxes_are_those_of_scipy(dtype, shape, side, mode):
    values = np.random.default_rng(side).normal(size=shape).astype(dtype)
    found = box_mean(values, side, mode)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, uniform_filter(values, side, mode=mode, axes=(-2, -1)), atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (2, 9), (3, 11, 14)])
@pytest.mark.parametrize("side", [1, 2, 5, 8])
def test_variances_are_means_of_squares_less_squares_of_means(dtype, shape, side):
    values = np.random.default_rng(side).normal(3, 1, shape).astype(dtype)
    wide, axes = values.astype(np.float64), (-2, -1)
    mean = uniform_filter(wide, side, mode="nearest", axes=axes)
    expected = uniform_filter(wide**2, side, mode="nearest", axes=axes) - mean**2
    found = local_variance(values, side)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_variance_is_never_negative():
    assert (local_variance(np.full((9, 9), 1e6) + np.eye(9) * 1e-9, 3) >= 0).all()


@pytest.mark.parametrize("side", [1, 3, 5])
def test_counts_are_exact(side):
    rng = np.random.default_rng(3)
    values, where = rng.integers(-1, 2, (7, 8)).astype(np.int8), rng.random((7, 8)) < 0.5
    sums = each_pixel(values, lambda row, column: square(values, row, column, side // 2, 0).sum())
    counts = BoxCounts.of(values, where, max_side=5)
    np.testing.assert_array_equal(counts.within(side), sums[where])
    np.testing.assert_array_equal(counts.around(side), (sums - values)[where])


def sorted_distances(depth, row, column, radius):
    others = np.delete(square(depth, row, column, radius), ((2 * radius + 1) ** 2) // 2)
    distances = np.abs(others - depth[row, column])
    return np.sort(np.where(np.isnan(distances), np.inf, distances)), others[np.isfinite(others)]


@pytest.mark.parametrize("kept", [4, 11, 16])
def test_the_nearest_within_rings_are_those_of_sorted_squares(holed, kept):
    where, (offsets, ends) = np.isfinite(holed), ring_offsets(1, 2, 3)
    neighbours = Neighbours.at(holed.shape, where, offsets)
    found = neighbours.nearest(neighbours.pad(holed), ends, kept)
    for ring, radius in enumerate((1, 2, 3)):
        each = [sorted_distances(holed, row, column, radius)[0][:kept] for row, column in np.argwhere(where)]
        expected = np.full((kept, int(where.sum())), np.inf, np.float32)
        for pixel, distances in enumerate(each):
            expected[: len(distances), pixel] = distances
        np.testing.assert_array_equal(found[ring], expected)


def test_spreads_are_those_of_the_values_in_squares(holed):
    where, (offsets, ends) = np.isfinite(holed), ring_offsets(1, 2)
    neighbours, limits = Neighbours.at(holed.shape, where, offsets), np.linspace(0.1, 2.0, where.sum())
    close, wide, low, high, similar = neighbours.spread(neighbours.pad(holed), ends, limits)
    for pixel, (row, column) in enumerate(np.argwhere(where)):
        for radius, median in ((1, close), (2, wide)):
            others = np.sort(sorted_distances(holed, row, column, radius)[1])
            assert median[pixel] == (others[round((len(others) - 1) / 2)] if len(others) else 0)
        assert (low[pixel], high[pixel]) == ((others[0], others[-1]) if len(others) else (0, 0))
        assert similar[pixel] == (np.abs(others - holed[row, column]).astype(float) < limits[pixel]).sum()


def test_a_neighbour_exactly_at_the_limit_is_not_similar():
    depth, (offsets, ends) = np.array([[0.0, 0.1]], np.float32), ring_offsets(1)
    neighbours = Neighbours.at(depth.shape, (np.array([0]), np.array([0])), offsets)
    apart = float(depth[0, 1])
    limits = (np.nextafter(apart, 0), apart, np.nextafter(apart, 1))
    found = [neighbours.spread(neighbours.pad(depth), ends, np.array([limit]))[-1, 0] for limit in limits]
    assert found == [0, 0, 1]


def test_similar_neighbours_are_counted(holed):
    def count(row, column):
        apart = np.abs(square(holed, row, column, 1) - holed[row, column])
        return (apart <= np.float32(0.8)).sum() - np.isfinite(holed[row, column])

    np.testing.assert_array_equal(similar_neighbours(holed, 0.8), each_pixel(holed, count))


@pytest.mark.parametrize("size", [0, 1, 4, 30])
def test_interior_pixels_are_similar_all_around_and_reach_as_far_as_their_set_is_large(size):
    rng = np.random.default_rng(size)
    values = (rng.random((14, 17)) < 0.12).astype(np.float32) + 0.1 * rng.random((14, 17)).astype(np.float32)
    values[rng.random(values.shape) < 0.03] = np.nan
    cross, inside = ((0, 1), (1, 0), (0, -1), (-1, 0)), np.pad(np.ones((12, 15), bool), 1)
    alike = [np.abs(np.roll(values, shift, (0, 1)) - values) <= 0.2 for shift in cross]
    interior, reached = interior_pixels(values, 0.2, size)
    np.testing.assert_array_equal(interior, inside & np.logical_and.reduce(alike))
    sets = connected_components(interior.astype(np.float32), 0.5, connectivity=8) * interior
    large = np.isin(sets, [number for number in range(1, sets.max() + 1) if (sets == number).sum() > size])
    np.testing.assert_array_equal(reached, binary_dilation(large))
    assert 0 < reached.sum() < reached.size


def test_blocks_are_squares_of_two_without_missing_pixels(holed):
    def least(row, column):
        corners = product((row - 1, row), (column - 1, column))
        blocks = [[at(holed, top + down, left + right) for down in (0, 1) for right in (0, 1)] for top, left in corners]
        return min(np.nan_to_num(np.ptp(np.array(block, np.float32)), nan=np.inf) for block in blocks)

    np.testing.assert_array_equal(block_range(holed), each_pixel(holed, least))
    np.testing.assert_array_equal(block_range(np.stack([holed, holed + 1]))[0], block_range(holed))


def flooded(values, max_step, offsets, within):
    """Labels of components by flooding from each pixel; 0 is what reaches a pixel that is not within."""
    labels, number = np.zeros(values.shape[:2], int), 0
    for start in map(tuple, np.argwhere(within)):
        if labels[start]:
            continue
        reached, border, is_background = {start}, [start], False
        while border:
            row, column = border.pop()
            for down, right in offsets:
                there = (row + down, column + right)
                if not (0 <= there[0] < values.shape[0] and 0 <= there[1] < values.shape[1]) or there in reached:
                    continue
                if (np.abs(values[there] - values[row, column]) <= max_step).all():
                    is_background |= not within[there]
                    if within[there]:
                        reached.add(there)
                        border.append(there)
        number += not is_background
        for pixel in reached:
            labels[pixel] = -1 if is_background else number
    return np.maximum(labels, 0)


@pytest.mark.parametrize("connectivity", [4, 8])
@pytest.mark.parametrize("part", [None, 0.7])
def test_components_against_flooding(holed, connectivity, part):
    offsets = [(a, b) for a, b in square_offsets(1).tolist() if connectivity == 8 or not a * b]
    within = None if part is None else np.random.default_rng(4).random(holed.shape) < part
    found = connected_components(holed, 0.5, connectivity=connectivity, within=within)
    everywhere = np.ones(holed.shape, bool) if within is None else within
    np.testing.assert_array_equal(found, flooded(holed, 0.5, offsets, everywhere))


def test_components_need_every_channel():
    values = np.random.default_rng(5).integers(0, 4, (8, 9, 3)).astype(np.uint8)
    expected = flooded(values.astype(int), 1, [(0, 1), (1, 0), (0, -1), (-1, 0)], np.ones((8, 9), bool))
    np.testing.assert_array_equal(connected_components(values, 1), expected)

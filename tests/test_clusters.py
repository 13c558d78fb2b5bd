"""Outliers that keep together: islands, and when they are blots."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sparsedepth.restore.clusters import Blots, islands

from sparsedepth import Origin, denoise, inpaint
from sparsedepth.data.crops import crops
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.simulated_scans import simulated_scans
from sparsedepth.data.synthetic import blotted, corrupted, quantised, with_flying_pixels, with_missing
from sparsedepth.metrics import psnr
from sparsedepth.patches import SYMMETRIES, turned
from sparsedepth.restore import tiling
from sparsedepth.restore.scores import quantum_of

UNIT_STEP = 0.15


def plane(shape=(80, 80)):
    rows, columns = np.indices(shape)
    return (rows + 2 * columns) / 60


def disc(shape, row, column, radius):
    rows, columns = np.indices(shape)
    return np.hypot(rows - row, columns - column) <= radius


def discs(heights, shape=(80, 80), radius=2.3):
    """Discs of these heights, each alone in its square."""
    raised, across = np.zeros(shape), shape[1] // 16
    for which, height in enumerate(heights):
        raised[disc(shape, 16 * (which // across) + 8, 16 * (which % across) + 8, radius)] = height
    return raised


def in_units(depth):
    return ((depth - np.nanmedian(depth)) / np.nanstd(depth)).astype(np.float32)


def blots_of(depth):
    unit = in_units(depth)
    return Blots.of(unit, quantum_of(unit))


BOTH_SIDES = [0.8, -0.8, 1.5, -1.0, -1.2, 0.9, 0.7, -1.4, 1.1, -0.6]


def test_an_island_far_higher_than_the_blots_of_its_map_is_a_thing():
    thing = discs([0] * len(BOTH_SIDES) + [9.0])
    depth = plane() + discs(BOTH_SIDES) + thing
    result = denoise(depth)
    assert_allclose(result.depth[thing > 0], depth[thing > 0], atol=0.05)
    assert np.abs(result.depth - plane() - thing).mean() < 0.1 * np.abs(discs(BOTH_SIDES)).mean()


def test_an_island_has_its_pixels_and_its_height():
    raised = discs([0.8, -1.2])
    found = islands(plane() + raised, UNIT_STEP)
    assert_array_equal(found.number >= 0, raised != 0)
    assert_allclose(np.append(found.height, 0)[found.number], raised, atol=0.01)
    assert_array_equal(found.area, [(raised > 0).sum(), (raised < 0).sum()])


@pytest.mark.parametrize("what", ["speck", "line", "large", "beside a hole", "at the border", "low"])
def test_what_is_no_island(what):
    raised = np.zeros((80, 80))
    raised[
        {
            "speck": np.s_[30:32, 30:32],
            "line": np.s_[30:37, 30:32],
            "large": np.s_[30:39, 30:34],
            "at the border": np.s_[:1, 30:36],
        }.get(what, np.s_[30:34, 30:34])
    ] = 0.1 if what == "low" else 1.0
    depth = plane() + raised
    if what == "beside a hole":
        depth[26:38, 34:40] = depth[34:38, 26:34] = np.nan
    assert not (islands(depth, UNIT_STEP).score > 0).any()


def test_islands_turn_with_their_map():
    depth = plane() + discs(BOTH_SIDES) + np.random.default_rng(0).normal(0, 0.02, (80, 80))
    depth[::7, ::5] = np.nan
    first = islands(depth, UNIT_STEP)
    for symmetry in range(SYMMETRIES):
        again = islands(turned(depth, symmetry), UNIT_STEP)
        assert_array_equal(again.number >= 0, turned(first.number, symmetry) >= 0)
        assert_allclose(np.sort(again.score), np.sort(first.score))


def test_blots_on_a_plane_are_removed():
    raised = discs(BOTH_SIDES)
    result = denoise(plane() + raised, quality="fast")
    assert_array_equal(result.origin == Origin.CORRECTED, raised != 0)
    assert_allclose(result.depth, plane(), atol=0.02)
    assert result.variance[raised != 0].min() > result.variance[raised == 0].max()


@pytest.mark.parametrize("heights", [np.abs(BOTH_SIDES), -np.abs(BOTH_SIDES), [0.8, -0.8, 1.5, -1.0]])
def test_islands_on_one_side_or_too_few_are_things(heights):
    depth = plane() + discs(heights)
    result = denoise(depth, quality="fast")
    assert_allclose(result.depth, depth, atol=1e-6)
    assert (result.origin == Origin.MEASURED).all()


def test_things_of_more_than_a_few_pixels_stay_beside_blots():
    depth = plane() + discs(BOTH_SIDES)
    thing = disc(depth.shape, 64, 40, 6)
    depth[thing] -= 1.0
    result = denoise(depth, quality="fast")
    assert_allclose(result.depth[thing], depth[thing], atol=1e-6)
    assert (result.origin == Origin.CORRECTED).any()


def test_what_was_measured_stays_when_only_holes_are_to_be_filled():
    depth = plane() + discs(BOTH_SIDES)
    assert_allclose(inpaint(depth, quality="fast").depth, depth, atol=1e-6)


def test_blots_are_corrected_also_where_holes_are_left():
    raised = discs(BOTH_SIDES)
    depth = plane() + raised
    depth[40:42, 3:6] = np.nan
    result = denoise(depth, quality="fast", fill=False)
    assert_array_equal(np.isnan(result.depth), np.isnan(depth))
    assert_array_equal(result.origin == Origin.CORRECTED, raised != 0)


CLEAN = [crop.depth for crop in crops(motorcycle_disparity(), 2, seed=4)] + simulated_scans(3)


@pytest.mark.parametrize("depth", CLEAN, ids=lambda depth: f"{np.nanstd(depth):.3g}")
@pytest.mark.parametrize(
    "spoil",
    [
        lambda depth, rng: depth,
        lambda depth, rng: corrupted(depth, 0.2, rng),
        lambda depth, rng: corrupted(depth, 0.05, rng, 2.0),
        lambda depth, rng: depth + rng.normal(0, 0.1 * np.nanstd(depth), depth.shape),
        lambda depth, rng: quantised(depth, 32),
        lambda depth, rng: with_flying_pixels(depth, 0.5, rng),
        lambda depth, rng: with_missing(depth, 0.5, rng),
    ],
    ids=["clean", "impulses", "large impulses", "dense", "quantised", "flying", "missing"],
)
def test_other_noise_and_things_are_no_blots(depth, spoil):
    assert blots_of(spoil(depth, np.random.default_rng(1))).steps == ()


@pytest.mark.parametrize("depth", CLEAN[:3], ids=lambda depth: f"{np.nanstd(depth):.3g}")
def test_most_of_the_error_of_blots_is_removed(depth):
    noisy = blotted(depth, 0.05, np.random.default_rng(2))
    assert psnr(denoise(noisy, quality="fast").depth, depth) > psnr(noisy, depth) + 4


def test_blots_that_are_missed_err_as_foretold():
    missed, foretold = [], []
    for which, depth in enumerate(CLEAN):
        noisy = blotted(depth, 0.05, np.random.default_rng([3, which]))
        result = denoise(noisy, quality="fast")
        kept = np.isfinite(depth) & (result.origin == Origin.MEASURED)
        missed.append(np.square(result.depth - depth)[kept].mean() / np.nanvar(depth))
        foretold.append(result.variance[kept].mean() / np.nanvar(depth))
    assert 0.3 < np.mean(missed) / np.mean(foretold) < 3


def test_tiles_do_not_matter(monkeypatch):
    rng = np.random.default_rng(4)
    depth = blotted(plane((150, 170)), 0.05, rng)
    whole = denoise(depth, quality="fast")
    monkeypatch.setattr(tiling, "MOST_PIXELS", 1000)
    monkeypatch.setattr(tiling, "TILE", 64)
    tiles = denoise(depth, quality="fast")
    assert (whole.origin == Origin.CORRECTED).mean() > 0.02
    assert_array_equal(tiles.origin, whole.origin)
    assert_allclose(tiles.depth, whole.depth, atol=1e-3)


def test_a_sensor_may_say_how_sure_it_is():
    raised = discs(BOTH_SIDES)
    result = denoise(plane() + raised, variance=np.full(raised.shape, 1e-4), quality="fast")
    assert_allclose(result.depth, plane(), atol=0.02)
    assert (result.origin[raised != 0] == Origin.CORRECTED).all()


@pytest.mark.parametrize("depth", [np.full((9, 9), np.nan), np.zeros((9, 9)), np.ones((1, 1)), np.zeros((1, 30))])
def test_nothing_is_found_in_nothing(depth):
    assert len(islands(depth, UNIT_STEP).area) == 0
    assert Blots.of(depth, 0.0) == Blots()

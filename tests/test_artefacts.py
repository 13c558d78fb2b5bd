"""Stuck pixels and clusters of outliers, and what only looks like them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsedepth import Origin, Restorer, denoise, inpaint
from sparsedepth.data.crops import crops
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.simulated_scans import simulated_scans
from sparsedepth.data.synthetic import corrupted, quantised, with_clusters, with_flying_pixels, with_missing
from sparsedepth.metrics import psnr
from sparsedepth.patches import SYMMETRIES, turned
from sparsedepth.ranks import Steps
from sparsedepth.restore.artefacts import Components, OutlierClusters, Removal, StuckPixels, small_components
from sparsedepth.restore.pipeline import find_artefacts
from sparsedepth.restore.scores import quantization_step
from sparsedepth.restore.settings import ClusterSettings, Settings
from sparsedepth.tiling import Tile, TilingSettings
from sparsedepth.vocabulary import DepthMap

MIN_STEP = 0.15


def stuck_in(depth: DepthMap) -> StuckPixels | None:
    return StuckPixels.fit(Tile.full(depth), 0.0, Settings())


def components(depth: DepthMap) -> Components:
    return small_components(depth, MIN_STEP, ClusterSettings())


def salted(clean: DepthMap, fraction: float, ends: tuple[float, ...] = (-0.2, 1.2), seed: int = 0) -> DepthMap:
    """Set a fraction of the pixels to the ends of a range, which are given in ranges of the map."""
    rng = np.random.default_rng(seed)
    low, high = np.nanmin(clean), np.nanmax(clean)
    values = low + np.array(ends) * (high - low)
    chosen = (rng.random(clean.shape) < fraction) & np.isfinite(clean)
    return np.where(chosen, rng.choice(values, clean.shape), clean).astype(clean.dtype)


@pytest.mark.slow
@pytest.mark.parametrize("fraction", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("ends", [(-0.2, 1.2), (1.5,)])
def test_salt_and_pepper_noise_is_corrected(fraction, ends):
    clean = crops(motorcycle_disparity(), 1, seed=4)[0].depth
    noisy = salted(clean, fraction, ends)
    result = denoise(noisy)
    stuck = np.isfinite(clean) & (noisy != clean)
    assert psnr(np.where(np.isfinite(clean), result.depth, np.nan), clean) > psnr(noisy, clean) + 20
    assert (result.origin[stuck] == Origin.CORRECTED).all()
    assert (result.variance[stuck] > 0).all()


def test_a_clipped_surface_is_not_stuck():
    depth = np.minimum(np.add.outer(np.linspace(0, 2, 60), np.linspace(0, 2, 60)), 2.0)
    depth[20:30, 20:30] = 0.0
    assert stuck_in(depth) is None
    few = np.where(np.random.default_rng(2).random(depth.shape) < 0.8, np.nan, depth)
    assert stuck_in(few) is None
    assert_allclose(denoise(depth).depth, depth, atol=1e-5)


def test_levels_of_a_quantised_map_are_not_stuck():
    """Single pixels of the highest level are next to others one level below."""
    depth = np.round(np.add.outer(np.linspace(0, 3, 60), np.linspace(0, 3, 60)))
    depth[np.random.default_rng(1).random(depth.shape) < 0.02] = 7.0
    depth = np.where(depth == 7, np.where(np.add.outer(np.arange(60), np.arange(60)) > 100, 7, 5), depth)
    assert stuck_in(depth) is None


def test_clean_maps_have_no_stuck_pixels():
    for scan in simulated_scans(6):
        assert stuck_in(scan) is None
    assert stuck_in(np.full((9, 9), 3.0)) is None
    assert stuck_in(np.full((9, 9), np.nan)) is None


@pytest.mark.parametrize("symmetry", range(SYMMETRIES))
def test_stuck_pixels_turn_with_the_map(symmetry):
    noisy = salted(simulated_scans(1)[0], 0.05)
    found, again = stuck_in(noisy), stuck_in(turned(noisy, symmetry))
    assert found is not None
    assert again is not None
    assert len(found.values) == 2
    assert_array_equal(again.values, found.values)


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


def clusters_in(depth: DepthMap) -> OutlierClusters | None:
    unit = in_units(depth)
    return OutlierClusters.fit(Tile.full(unit), quantization_step(Steps.of(unit), Settings().scores), Settings())


BOTH_SIDES = [0.8, -0.8, 1.5, -1.0, -1.2, 0.9, 0.7, -1.4, 1.1, -0.6]


def test_a_component_far_higher_than_the_clusters_of_its_map_is_structure():
    structure = discs([0] * len(BOTH_SIDES) + [9.0])
    depth = plane() + discs(BOTH_SIDES) + structure
    result = denoise(depth)
    assert_allclose(result.depth[structure > 0], depth[structure > 0], atol=0.05)
    assert np.abs(result.depth - plane() - structure).mean() < 0.1 * np.abs(discs(BOTH_SIDES)).mean()


def test_a_component_has_its_pixels_and_its_offset():
    raised = discs([0.8, -1.2])
    found = components(plane() + raised)
    assert_array_equal(found.number >= 0, raised != 0)
    assert_allclose(np.append(found.offset, 0)[found.number], raised, atol=0.01)
    assert_array_equal(found.area, [(raised > 0).sum(), (raised < 0).sum()])


@pytest.mark.parametrize("what", ["speck", "line", "large", "next to a hole", "at the border", "low"])
def test_what_is_not_a_small_component(what):
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
    if what == "next to a hole":
        depth[26:38, 34:40] = depth[34:38, 26:34] = np.nan
    assert not (components(depth).score > 0).any()


def test_a_component_counts_if_enough_of_its_surroundings_is_smooth():
    raised = np.zeros((80, 80), bool)
    raised[30:34, 30:34] = True
    depth = (plane() + raised).astype(np.float32)
    depth[30:34, 34:40] = np.nan
    sides = [np.roll(raised, step, (0, 1)) for step in product((-1, 0, 1), repeat=2) if step != (0, 0)]
    outside = [side & ~raised for side in sides]  # the neighbours of its pixels in eight directions
    share = sum((side & np.isfinite(depth)).sum() for side in outside) / sum(side.sum() for side in outside)
    assert 0.5 < share < 0.9
    for fraction, counts in ((share - 0.01, True), (share + 0.01, False)):
        found = small_components(depth, 0.3, replace(ClusterSettings(), min_smooth_fraction=fraction))
        assert (found.score > 0).tolist() == [counts]


@pytest.mark.parametrize("step", [0.1, 0.2])
def test_clusters_differ_by_several_steps_of_a_quantised_map(step):
    unit, settings = in_units(plane() + discs([3 * each for each in BOTH_SIDES])), Settings()
    found = OutlierClusters.fit(Tile.full(unit), step, settings)
    assert found is not None
    assert found.steps[0] == pytest.approx(ClusterSettings().min_step_levels * step)


def test_components_turn_with_their_map():
    depth = plane() + discs(BOTH_SIDES) + np.random.default_rng(0).normal(0, 0.02, (80, 80))
    depth[::7, ::5] = np.nan
    first = components(depth)
    for symmetry in range(SYMMETRIES):
        again = components(turned(depth, symmetry))
        assert_array_equal(again.number >= 0, turned(first.number, symmetry) >= 0)
        assert_allclose(np.sort(again.score), np.sort(first.score))


def test_clusters_on_a_plane_are_removed():
    raised = discs(BOTH_SIDES)
    result = denoise(plane() + raised, quality="fast")
    assert_array_equal(result.origin == Origin.CORRECTED, raised != 0)
    assert_allclose(result.depth, plane(), atol=0.02)
    assert result.variance[raised != 0].min() > result.variance[raised == 0].max()


@pytest.mark.parametrize("heights", [np.abs(BOTH_SIDES), -np.abs(BOTH_SIDES), [0.8, -0.8, 1.5, -1.0]])
def test_components_on_one_side_or_too_few_are_structure(heights):
    depth = plane() + discs(heights)
    result = denoise(depth, quality="fast")
    assert_allclose(result.depth, depth, atol=1e-6)
    assert (result.origin == Origin.MEASURED).all()


def test_larger_structures_stay_where_clusters_are_removed():
    depth = plane() + discs(BOTH_SIDES)
    structure = disc(depth.shape, 64, 40, 6)
    depth[structure] -= 1.0
    result = denoise(depth, quality="fast")
    assert_allclose(result.depth[structure], depth[structure], atol=1e-6)
    assert (result.origin == Origin.CORRECTED).any()


def test_inpainting_keeps_clusters():
    depth = plane() + discs(BOTH_SIDES)
    assert_allclose(inpaint(depth, quality="fast").depth, depth, atol=1e-6)


def test_clusters_are_corrected_also_if_holes_are_not_filled():
    raised = discs(BOTH_SIDES)
    depth = plane() + raised
    depth[40:42, 3:6] = np.nan
    result = denoise(depth, quality="fast", fill=False)
    assert_array_equal(np.isnan(result.depth), np.isnan(depth))
    assert_array_equal(result.origin == Origin.CORRECTED, raised != 0)


CLEAN = [crop.depth for crop in crops(motorcycle_disparity(), 2, seed=4)] + simulated_scans(3)


@pytest.mark.parametrize("depth", CLEAN, ids=lambda depth: f"{np.nanstd(depth):.3g}")
@pytest.mark.parametrize(
    "corrupt",
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
def test_other_noise_and_structure_are_not_clusters(depth, corrupt):
    assert clusters_in(corrupt(depth, np.random.default_rng(1))) is None


@pytest.mark.slow
@pytest.mark.parametrize("depth", CLEAN[:3], ids=lambda depth: f"{np.nanstd(depth):.3g}")
def test_most_of_the_error_of_clusters_is_removed(depth):
    noisy = with_clusters(depth, 0.05, np.random.default_rng(2))
    assert psnr(denoise(noisy, quality="fast").depth, depth) > psnr(noisy, depth) + 4


@pytest.mark.slow
def test_the_variance_of_missed_clusters_is_calibrated():
    missed, predicted = [], []
    for which, depth in enumerate(CLEAN):
        noisy = with_clusters(depth, 0.05, np.random.default_rng([3, which]))
        result = denoise(noisy, quality="fast")
        kept = np.isfinite(depth) & (result.origin == Origin.MEASURED)
        missed.append(np.square(result.depth - depth)[kept].mean() / np.nanvar(depth))
        predicted.append(result.variance[kept].mean() / np.nanvar(depth))
    assert 0.3 < np.mean(missed) / np.mean(predicted) < 3


@pytest.mark.slow
def test_tiles_do_not_change_the_clusters():
    rng = np.random.default_rng(4)
    depth = with_clusters(plane((150, 170)), 0.05, rng)
    whole = denoise(depth, quality="fast")
    in_tiles = replace(Settings(), tiling=TilingSettings(max_untiled_pixels=1000, tile_px=64))
    tiles = Restorer(quality="fast", settings=in_tiles)(depth)
    assert (whole.origin == Origin.CORRECTED).mean() > 0.02
    assert_array_equal(tiles.origin, whole.origin)
    assert_allclose(tiles.depth, whole.depth, atol=1e-3)


def test_clusters_are_removed_also_if_a_sensor_gives_a_variance():
    raised = discs(BOTH_SIDES)
    result = denoise(plane() + raised, variance=np.full(raised.shape, 1e-4), quality="fast")
    assert_allclose(result.depth, plane(), atol=0.02)
    assert (result.origin[raised != 0] == Origin.CORRECTED).all()


@pytest.mark.parametrize("depth", [np.full((9, 9), np.nan), np.zeros((9, 9)), np.ones((1, 1)), np.zeros((1, 30))])
def test_an_empty_or_level_map_has_no_clusters(depth):
    assert len(components(depth).area) == 0
    assert OutlierClusters.fit(Tile.full(depth), 0.0, Settings()) is None


@dataclass(frozen=True)
class Marked:
    """Corruption of one pixel, of which some is missed."""

    place: tuple[int, int]
    missed: float

    @classmethod
    def fit(cls, sample: Tile, step: float, settings: Settings) -> Marked | None:
        return cls((0, 0), 0.0)

    def remove(self, tile: Tile) -> Removal:
        mask = np.zeros(tile.depth.shape, bool)
        mask[self.place] = True
        return Removal(tile.masked(mask), mask, self.missed)


def test_the_variances_of_several_kinds_of_corruption_add():
    removal = Removal.nothing(Tile.full(plane((9, 9)))).then(Marked((2, 3), 0.25), Marked((5, 5), 0.5))
    assert removal.variance == 0.75
    assert_array_equal(np.argwhere(removal.corrupted), [(2, 3), (5, 5)])
    assert_array_equal(np.isnan(removal.tile.depth), removal.corrupted)


def test_a_kind_of_corruption_without_settings_is_not_looked_for():
    tile = Tile.full(in_units(plane() + discs(BOTH_SIDES)))
    found, removal = find_artefacts(tile, Settings())
    assert [type(each) for each in found] == [OutlierClusters]
    assert removal.corrupted.any()
    found, removal = find_artefacts(tile, replace(Settings(), clusters=None))
    assert found == ()
    assert removal.tile is tile

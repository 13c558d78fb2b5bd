"""Flying pixels: mixtures of near and far next to steps, and when a map has them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.ndimage import binary_dilation, gaussian_filter, zoom

from sparsedepth import Origin, Restorer, denoise, inpaint
from sparsedepth.baselines import DENOISERS
from sparsedepth.data.crops import crops
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.simulated_scans import simulated_scans
from sparsedepth.data.synthetic import (
    beside_edges,
    corrupted,
    quantised,
    with_clusters,
    with_flying_pixels,
    with_kinect_shadows,
    with_missing,
)
from sparsedepth.metrics import psnr
from sparsedepth.patches import SYMMETRIES, turned
from sparsedepth.ranks import Steps
from sparsedepth.restore.flying import FlyingPixels
from sparsedepth.restore.pipeline import find_artefacts
from sparsedepth.restore.scores import quantization_step
from sparsedepth.restore.settings import FlyingSettings, Settings
from sparsedepth.tiling import Tile, TilingSettings

FLYING = FlyingPixels(step=0.25, similar=0.05, settings=FlyingSettings())


def scene(shape=(100, 100), seed=0):
    """Slanted boards and a ball, one before the other, on a slanted wall."""
    rng = np.random.default_rng(seed)
    rows, columns = np.indices(shape)
    depth = (rows + 2 * columns) / 400
    for _ in range(6):
        row, column = rng.integers(shape[0]), rng.integers(shape[1])
        along = np.deg2rad(rng.uniform(0, 90))
        right = (columns - column) * np.cos(along) + (rows - row) * np.sin(along)
        down = (rows - row) * np.cos(along) - (columns - column) * np.sin(along)
        board = (np.abs(right) < rng.uniform(8, 20)) & (np.abs(down) < rng.uniform(5, 14))
        depth = np.where(board, rng.uniform(1, 4) + right * rng.uniform(-0.01, 0.01), depth)
    ball = 15**2 - (rows - shape[0] // 2) ** 2 - (columns - shape[1] // 3) ** 2
    return np.where(ball > 0, 5 + np.sqrt(np.maximum(ball, 0)) / 20, depth)


def in_units(depth):
    return ((depth - np.nanmedian(depth)) / np.nanstd(depth)).astype(np.float32)


def flying_in(depth) -> FlyingPixels | None:
    unit = in_units(depth)
    return FlyingPixels.fit(Tile.full(unit), quantization_step(Steps.of(unit), Settings().scores), Settings())


SCENES = [scene(seed=seed) for seed in range(3)]
FRACTIONS = [0.2, 0.5, 0.8]


def with_mixtures(which, fraction):
    return with_flying_pixels(SCENES[which], fraction, np.random.default_rng([which, int(10 * fraction)]))


@pytest.mark.parametrize("which", range(3))
def test_what_is_missed_does_not_depend_on_where_zero_is(which):
    unit = in_units(with_mixtures(which, 0.5))
    shifted = (unit, unit + np.float32(16))
    here, there = (FlyingPixels.fit(Tile.full(values), 0.0, Settings()) for values in shifted)
    assert here is not None
    assert there is not None
    assert there.missed == pytest.approx(here.missed, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("fraction", FRACTIONS)
@pytest.mark.parametrize("which", range(3))
def test_more_of_the_error_of_mixtures_is_removed_than_by_the_best_median(which, fraction):
    depth, noisy = SCENES[which], with_mixtures(which, fraction)
    median = DENOISERS["median"]
    best = max(psnr(median.restore(noisy, size), depth) for size in median.parameters(noisy))
    assert psnr(denoise(noisy, quality="fast").depth, depth) > best


@pytest.mark.slow
def test_mixtures_are_snapped_to_a_side_or_have_a_large_variance():
    between, sure = [], []
    for which, depth in enumerate(SCENES):
        noisy = with_mixtures(which, 0.5)
        result = denoise(noisy, quality="fast")
        found = (result.origin == Origin.CORRECTED) & (noisy != depth)
        assert found.sum() > 0.6 * (noisy != depth).sum()
        wrong = found & (np.abs(result.depth - depth) > 0.1)
        assert (found & ~wrong).sum() > 2 * wrong.sum()
        between.append(result.variance[wrong])
        sure.append(result.variance[found & ~wrong])
    assert np.concatenate(between).mean() > 2 * np.concatenate(sure).mean()


def test_pixels_away_from_steps_stay():
    noisy = with_mixtures(1, 0.5)
    result = denoise(noisy, quality="fast")
    away = ~np.asarray(binary_dilation(beside_edges(noisy), np.ones((3, 3))), bool)
    assert (result.origin[away] == Origin.MEASURED).all()
    assert_allclose(result.depth[away], noisy[away], atol=1e-3)


@pytest.mark.slow
def test_the_variance_of_valid_pixels_is_calibrated():
    """Of those that were corrected, and of those next to steps that were missed."""
    for origin in (Origin.CORRECTED, Origin.MEASURED):
        error, predicted = 0.0, 0.0
        for which, fraction in np.ndindex(3, 3):
            result = denoise(with_mixtures(which, FRACTIONS[fraction]), quality="fast", sensor="clean")
            ours = result.origin == origin
            error += np.square(result.depth - SCENES[which])[ours].sum() / SCENES[which].var()
            predicted += result.variance[ours].sum() / SCENES[which].var()
        assert 0.4 < error / predicted < 2.5


def wires(depth):
    """Add wires of a pixel or two before the wall, at all depths."""
    wired = depth.copy()
    for which, column in enumerate(range(5, 95, 6)):
        wired[5:95, column : column + 1 + which % 2] = 0.5 + which / 4
    return wired


def ramps(depth):
    """Make steps that take four pixels."""
    return gaussian_filter(np.repeat(np.repeat(depth[::3, ::3], 3, axis=0), 3, axis=1), 1.5)


def few_mixtures(depth):
    rng = np.random.default_rng(0)
    noisy = with_flying_pixels(depth, 1.0, rng)
    return np.where(rng.random(depth.shape) < 0.005, noisy, depth)


def hair(depth):
    """Move the pixels on both sides of some steps between them, nearer to the other side: mixtures seldom are."""
    rows, columns = np.nonzero(np.abs(np.diff(depth, axis=1)) > 0.5)
    rows, columns = rows[::2], columns[::2]
    left, right = depth[rows, columns], depth[rows, columns + 1]
    hairy = depth.copy()
    hairy[rows, columns], hairy[rows, columns + 1] = 0.35 * left + 0.65 * right, 0.65 * left + 0.35 * right
    return hairy


@pytest.mark.parametrize("depth", SCENES, ids=range(3))
@pytest.mark.parametrize(
    "made",
    [
        lambda depth: depth,
        wires,
        ramps,
        few_mixtures,
        hair,
        lambda depth: gaussian_filter(depth, 0.7),
        lambda depth: zoom(depth, 0.7, order=1),
        lambda depth: zoom(depth, 1.5, order=1),
        lambda depth: depth.reshape(50, 2, 50, 2).mean(axis=(1, 3)),
    ],
    ids=["sharp", "wires", "ramps", "few", "hair", "blurred", "smaller", "larger", "pooled"],
)
def test_thin_structures_and_ramps_are_not_mixtures(depth, made):
    assert flying_in(made(depth)) is None


CLEAN = [crop.depth for crop in crops(motorcycle_disparity(), 2, seed=4)] + simulated_scans(6) + SCENES


@pytest.mark.slow
@pytest.mark.parametrize("depth", CLEAN, ids=lambda depth: f"{np.nanstd(depth):.4g}")
@pytest.mark.parametrize(
    "corrupt",
    [
        lambda depth, rng: depth,
        lambda depth, rng: corrupted(depth, 0.2, rng),
        lambda depth, rng: corrupted(depth, 0.05, rng, 0.5),
        lambda depth, rng: corrupted(depth, 0.05, rng, 2.0),
        lambda depth, rng: with_clusters(depth, 0.05, rng),
        lambda depth, rng: depth + rng.normal(0, 0.1 * np.nanstd(depth), depth.shape),
        lambda depth, rng: quantised(depth, 32),
        lambda depth, rng: with_missing(depth, 0.2, rng),
        lambda depth, rng: with_missing(depth, 0.5, rng),
        lambda depth, rng: with_kinect_shadows(depth, 1, rng),
    ],
    ids=["clean", "impulses", "small", "large", "clusters", "dense", "quantised", "fifth", "half", "shadows"],
)
def test_other_noise_and_holes_are_not_mixtures(depth, corrupt):
    assert flying_in(corrupt(depth, np.random.default_rng(1))) is None


@pytest.mark.slow
def test_mixtures_are_snapped_however_the_map_is_turned():
    noisy = with_missing(in_units(with_mixtures(2, 0.5)), 0.03, np.random.default_rng(1))
    removal = FLYING.remove(Tile.full(noisy))
    assert removal.corrupted.any()
    for symmetry in range(SYMMETRIES):
        again = FLYING.remove(Tile.full(turned(noisy, symmetry)))
        assert_array_equal(again.corrupted, turned(removal.corrupted.astype(int), symmetry))
        assert_allclose(again.tile.depth, turned(removal.tile.depth, symmetry), atol=1e-5)
        assert_allclose(again.variance, turned(np.asarray(removal.variance), symmetry), atol=1e-5)


def test_a_map_without_mixtures_is_the_same_tile():
    tile = Tile.full(in_units(SCENES[0]))
    found, removal = find_artefacts(tile, Settings())
    assert found == ()
    assert removal.tile is tile
    assert not removal.corrupted.any()
    assert not np.any(removal.variance)


@pytest.mark.slow
def test_mixtures_are_snapped_also_if_a_sensor_gives_a_variance():
    depth, noisy = SCENES[0], with_mixtures(0, 0.5)
    result = denoise(noisy, variance=np.full(noisy.shape, 1e-4), quality="fast")
    assert psnr(result.depth, depth) > psnr(noisy, depth) + 3


def test_holes_next_to_mixtures_are_filled():
    depth = SCENES[0]
    noisy = with_missing(with_mixtures(0, 0.5), 0.05, np.random.default_rng(2))
    result = denoise(noisy, quality="fast")
    assert_array_equal(result.origin == Origin.FILLED, np.isnan(noisy))
    known = np.isfinite(noisy)
    assert psnr(np.where(known, result.depth, depth), depth) > psnr(np.where(known, noisy, depth), depth) + 2


def test_inpainting_keeps_mixtures():
    noisy = with_mixtures(0, 0.5)
    assert_allclose(inpaint(noisy, quality="fast").depth, noisy, atol=1e-5)


@pytest.mark.slow
def test_tiles_do_not_change_the_mixtures():
    noisy = with_flying_pixels(scene((150, 170)), 0.5, np.random.default_rng(4))
    whole = denoise(noisy, quality="fast")
    in_tiles = replace(Settings(), tiling=TilingSettings(max_untiled_pixels=1000, tile_px=64))
    tiles = Restorer(quality="fast", settings=in_tiles)(noisy)
    assert (whole.origin == Origin.CORRECTED).mean() > 0.01
    assert_array_equal(tiles.origin, whole.origin)
    assert_allclose(tiles.depth, whole.depth, atol=1e-3)


@pytest.mark.parametrize("depth", [np.full((9, 9), np.nan), np.zeros((9, 9)), np.ones((1, 1)), np.zeros((1, 30))])
def test_an_empty_or_level_map_has_no_mixtures(depth):
    assert FlyingPixels.fit(Tile.full(depth), 0.0, Settings()) is None
    assert not FLYING.remove(Tile.full(depth)).corrupted.any()

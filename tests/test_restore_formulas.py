"""Laws of single formulas of restoration, stereo and files, each checked beside its definition."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.ndimage import gaussian_filter, map_coordinates

from sparsedepth import Dictionary, InputError, Origin, Restoration, Restorer
from sparsedepth.files.numpy_arrays import MAX_TEXT_BYTES, text_of
from sparsedepth.restore import paper
from sparsedepth.restore.artefacts import OutlierClusters
from sparsedepth.restore.inpainting import fill_large_holes
from sparsedepth.restore.outliers import FEATURE_CLIP, OutlierClassifier
from sparsedepth.restore.settings import ClusterSettings, FilledVarianceSettings, Settings
from sparsedepth.restore.variance_filled import ScatteredVariance, holes_are_clustered
from sparsedepth.stereo.ad_census import AdCensus, census_words
from sparsedepth.stereo.calibration import StereoCalibration
from sparsedepth.stereo.view_warnings import row_shift
from sparsedepth.vocabulary import StereoPair


def share_of_missing_neighbours(missing: np.ndarray) -> float:
    """The fraction of the four neighbours of missing pixels that are missing."""
    found = [
        missing[y + down, x + across]
        for y, x in np.argwhere(missing)
        for down, across in ((0, 1), (0, -1), (1, 0), (-1, 0))
        if 0 <= y + down < missing.shape[0] and 0 <= x + across < missing.shape[1]
    ]
    return float(np.mean(found))


@pytest.mark.parametrize("fraction", [0.1, 0.4, 0.6])
@pytest.mark.parametrize("width", [0.0, 0.3, 0.34, 0.38, 0.42, 0.5, 0.55, 1.0])
def test_holes_are_clustered_if_neighbours_are_missing_more_often(rng, fraction, width):
    settings, field = FilledVarianceSettings(), gaussian_filter(rng.standard_normal((60, 70)), width)
    missing = field < np.quantile(field, fraction)
    limit = missing.mean() + settings.clustering * (1 - missing.mean())
    expected = share_of_missing_neighbours(missing) > limit
    assert holes_are_clustered(missing, np.zeros_like(missing), settings) == expected


@pytest.mark.parametrize("level", [1e-4, 1e-2])
def test_the_variance_of_scattered_holes_is_the_error_of_held_out_ones(rng, level):
    filled = gaussian_filter(rng.standard_normal((2, 80, 80)), (0, 3, 3)).astype(np.float32)
    missing = rng.random(filled.shape) < 0.3
    held_out = missing & (rng.random(filled.shape) < 0.5)
    squared = level * np.square(rng.standard_normal(filled.shape))
    law = ScatteredVariance.fit(filled, missing, held_out, squared, FilledVarianceSettings())
    for part, holes in zip(list(filled), list(missing), strict=True):
        assert 0.7 < np.asarray(law(np.asarray(part), holes))[holes].mean() / level < 1.5


def with_large_hole(unit: float) -> Restoration:
    """A slanted plane with a refused block that a ring of filled pixels surrounds."""
    depth = (1.0 + 0.01 * np.arange(60) + 0.005 * np.arange(50)[:, None]) * unit
    origin, variance = np.zeros(depth.shape, np.uint8), np.full(depth.shape, 1e-6) * unit**2
    origin[12:38, 17:43], variance[12:38, 17:43] = Origin.FILLED, 1e-4 * unit**2
    origin[15:35, 20:40] = Origin.REFUSED
    variance[15:35, 20:40], depth[15:35, 20:40] = np.inf, np.nan
    return Restoration(depth.astype(np.float32), variance.astype(np.float32), origin)


def test_large_holes_are_filled_in_any_unit():
    metres, millimetres = with_large_hole(1.0), with_large_hole(1000.0)
    for each in (metres, millimetres):
        fill_large_holes(each, Settings())
        assert (each.origin[15:35, 20:40] == Origin.FILLED).all()
    assert_allclose(millimetres.depth, 1000 * metres.depth, rtol=1e-4)
    assert_allclose(millimetres.variance, 1e6 * metres.variance, rtol=1e-3)
    assert_allclose(metres.depth[25, 15:45], 1.125 + 0.01 * np.arange(15, 45), atol=0.01)


def test_maps_below_a_megapixel_are_scaled_by_all_of_their_pixels(rng):
    result, thinned = with_large_hole(1.0), with_large_hole(1.0)
    for each in (result, thinned):
        each.depth[::5, ::7] += 30 * rng.random(each.depth[::5, ::7].shape)
        thinned.depth[:] = result.depth
    all_pixels = replace(Settings(), inpainting=replace(Settings().inpainting, statistics_pixels=10**9))
    fill_large_holes(result, Settings())
    fill_large_holes(thinned, all_pixels)
    assert_array_equal(result.depth, thinned.depth)
    assert_array_equal(result.variance, thinned.variance)


def test_a_second_pass_that_sees_nothing_keeps_the_first():
    depth = 1 + 0.02 * np.add.outer(np.arange(20.0), np.arange(24.0))
    settings = replace(Settings(), paper=replace(Settings().paper, min_confidence=2.0))  # no pixel is trusted
    once, twice = (
        Restorer(quality="fast", method="paper", settings=settings, second_pass=again)(depth) for again in (False, True)
    )
    assert (once.origin == Origin.CORRECTED).all()
    assert_array_equal(twice.depth, once.depth)


def test_the_variance_of_a_large_hole_goes_on_from_that_beside_it():
    near, far = with_large_hole(1.0), with_large_hole(1.0)
    far.variance[far.origin == Origin.FILLED] *= 100
    for each in (near, far):
        fill_large_holes(each, Settings())
    ratio = far.variance[15:35, 20:40] / near.variance[15:35, 20:40]
    assert np.median(ratio) > 10


@pytest.mark.parametrize("turn", [np.s_[:, :], np.s_[::-1, :], np.s_[:, ::-1], np.s_[::-1, ::-1]])
def test_a_large_hole_in_a_corner_goes_on_from_either_side(turn):
    """The plane beside it is known on two sides only, whichever these are."""
    depth = 1.0 + 0.01 * np.arange(60) + 0.005 * np.arange(50)[:, None]
    origin = np.zeros(depth.shape, np.uint8)
    origin[28:, 36:], origin[31:, 39:] = Origin.FILLED, Origin.REFUSED
    variance = np.where(origin == Origin.FILLED, 1e-4, 1e-6)
    shown = np.where(origin == Origin.REFUSED, np.nan, depth)
    found = Restoration(shown[turn].copy(), variance[turn].copy(), origin[turn].copy())
    fill_large_holes(found, Settings())
    assert_allclose(found.depth, depth[turn], atol=0.03)  # of 0.3 within the hole: a plate bends towards a level
    assert (found.origin != Origin.REFUSED).all()


@pytest.mark.parametrize(("row", "column"), list(product((5, 40, 70), repeat=2)))
@pytest.mark.parametrize("offset", [1.0, -1.0])
def test_a_small_disc_is_a_cluster_wherever_it_lies(row, column, offset):
    depth = np.zeros((80, 80), np.float32)
    depth[row - 2 : row + 3, column - 2 : column + 3] += offset
    found = OutlierClusters((0.3,), ClusterSettings()).offsets(depth)
    assert_allclose(found, depth, atol=1e-6)


@pytest.mark.parametrize("block", [np.s_[40:42, 20:50], np.s_[20:50, 40:42], np.s_[20:50, 20:50]])
def test_a_long_or_large_component_is_no_cluster(block):
    depth = np.zeros((80, 80), np.float32)
    depth[block] = 1
    assert not OutlierClusters((0.3,), ClusterSettings()).offsets(depth).any()


def test_grey_pictures_have_the_words_of_coloured_ones(rng):
    grey = (rng.integers(0, 64 * 256, (20, 30, 1)) / 256).astype(np.float32)
    assert_array_equal(census_words(grey), census_words(np.repeat(grey, 2, axis=2)))
    assert_array_equal(census_words(grey), census_words(np.repeat(grey, 4, axis=2)))


@pytest.mark.parametrize(
    ("shift", "across"), [(0.0, 0.0), (1.0, 0.0), (-0.5, 0.0), (0.0, 2.0), (0.0, -2.0), (0.5, 1.5)]
)
@pytest.mark.parametrize("down", [False, True])
def test_rows_of_the_right_view_are_too_low_by_what_they_were_moved(rng, shift, across, down):
    texture = 128 + 40 * gaussian_filter(rng.standard_normal((120, 160)), 1.2) / 0.24
    rows, columns = np.mgrid[:120, :160].astype(float)
    place = rows / 120 if down else columns / 160
    moved = map_coordinates(texture, [rows - shift - across * (place - 0.5), columns], order=3, mode="nearest")
    left, right = (np.clip(each, 0, 255).astype(np.float32) for each in (texture, moved))
    found = row_shift(AdCensus.of(StereoPair(left, right, 8)), 8)
    assert found[0] == pytest.approx(shift, abs=0.05)
    assert found[1] == pytest.approx(across, abs=0.05 + 0.15 * abs(across))  # costs are least at whole rows


def test_depth_is_focal_length_times_baseline_over_distance():
    camera = StereoCalibration(1000.0, 0.2, 5.0)
    assert camera.depth_at(15.0) == pytest.approx(10.0)
    assert np.isnan(camera.depth_at(-5.0))
    assert np.isnan(camera.depth_at(-6.0))


def test_as_many_letters_go_into_a_file_as_are_read():
    about = {"a": "x" * (MAX_TEXT_BYTES // 4 - len('{"a": ""}'))}
    assert text_of(about).nbytes == MAX_TEXT_BYTES
    with pytest.raises(InputError, match="letters"):
        text_of({"a": about["a"] + "x"})


def test_a_classifier_is_a_chain_of_weighted_sums_and_tangents(rng):
    mean, deviation = rng.standard_normal(3), rng.uniform(0.5, 2, 3)
    first, second = (
        (rng.standard_normal((3, 4)), rng.standard_normal(4)),
        (rng.standard_normal((4, 1)), np.array([0.7])),
    )
    features = 5 * rng.standard_normal((20, 3))
    inputs = np.clip((features - mean) / deviation, -FEATURE_CLIP, FEATURE_CLIP)
    expected = np.tanh(inputs @ first[0] + first[1]) @ second[0] + 0.7
    classifier = OutlierClassifier(mean, deviation, (first, second))
    assert_allclose(classifier(features), expected[:, 0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("quality", ["fast", "balanced", "best"])
def test_larger_patches_of_the_method_of_the_paper_lie_farther_apart(quality):
    settings = Settings()
    strides = [
        paper.patch_coder(Dictionary(np.eye(side**2), (side, side)), quality, settings).stride for side in (4, 8, 16)
    ]
    stride = settings.paper.effort(quality).stride
    assert strides == [max(1, stride // 2), stride, 2 * stride]

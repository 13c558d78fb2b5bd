"""Inpainting guided by a picture: it decides where depth alone cannot, and does no harm where it cannot either."""

from __future__ import annotations

import numpy as np
import pytest
from skimage.data import stereo_motorcycle

from sparsedepth import denoise, inpaint
from sparsedepth.checks import as_guide
from sparsedepth.data import synthetic
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.metrics import rmse
from sparsedepth.surfaces import MembraneSettings, colour_affinity, membrane
from sparsedepth.vocabulary import InputError, Origin

PART = (slice(120, 184), slice(250, 314))


@pytest.fixture(scope="module")
def scene():
    return motorcycle_disparity()[PART], stereo_motorcycle()[0][PART]


@pytest.mark.slow
@pytest.mark.parametrize(
    "holed",
    [
        lambda depth: synthetic.with_missing(depth, 0.9, np.random.default_rng(0)),
        lambda depth: synthetic.with_kinect_shadows(depth, 1, np.random.default_rng(0)),
    ],
    ids=["missing", "shadows"],
)
def test_a_picture_lowers_the_error_on_a_real_map(scene, holed):
    depth, picture = scene
    plain = inpaint(holed(depth), holes="all", quality="fast")
    guided = inpaint(holed(depth), holes="all", quality="fast", guide=picture)
    known = plain.origin == Origin.MEASURED
    np.testing.assert_array_equal(guided.depth[known], plain.depth[known])
    np.testing.assert_array_equal(guided.origin, plain.origin)
    assert (guided.variance > 0).all()
    assert rmse(guided.depth, depth) < 0.9 * rmse(plain.depth, depth)


def test_a_hole_across_a_step_has_the_edge_of_the_picture():
    """Depth alone does not show which column of the hole belongs to which side."""
    depth = np.where(np.arange(24) < 14, 1.0, 2.0) * np.ones((24, 1))
    picture = np.where(np.arange(24) < 14, 40, 200).astype(np.uint8) * np.ones((24, 1), np.uint8)
    holed = depth.copy()
    holed[9:14, 9:16] = np.nan
    guided, plain = (inpaint(holed, quality="fast", guide=guide).depth for guide in (picture, None))
    np.testing.assert_allclose(guided, depth, atol=0.02)
    assert np.abs(plain - depth).max() > 0.2


def test_a_membrane_is_the_mean_of_its_neighbours_weighted_by_affinity(scene):
    """A slow, readable solution of the same equations."""
    depth, picture = (part[:9, :9] for part in scene)
    holed = np.where(np.random.default_rng(0).random(depth.shape) < 0.5, np.nan, depth).astype(np.float64)
    affinity = colour_affinity(as_guide(picture, depth.shape), MembraneSettings())
    found = membrane(holed, affinity, np.full(depth.shape, np.nan), MembraneSettings())
    table = affinity.toarray()
    np.testing.assert_allclose(table, table.T)
    mean = (table @ found.ravel() / table.sum(axis=1)).reshape(depth.shape)
    np.testing.assert_allclose(found[np.isnan(holed)], mean[np.isnan(holed)], rtol=1e-3)
    np.testing.assert_array_equal(found[~np.isnan(holed)], holed[~np.isnan(holed)])


def test_the_type_of_the_picture_does_not_matter(scene):
    _, picture = scene
    small = (np.asarray(picture) // 2 * 2 + 0).astype(np.uint8)
    small[0, 0] = 255
    as_floats, as_words = small / 255, small.astype(np.uint16) * 257
    expected = as_guide(small, small.shape[:2])
    for stored in (as_floats, as_words):
        np.testing.assert_allclose(as_guide(stored, small.shape[:2]), expected, atol=1e-9)
    assert as_guide(np.zeros((4, 4)), (4, 4)).shape == (4, 4, 1)


def test_refused_pixels_stay_refused_and_maps_without_holes_unchanged(scene):
    depth, picture = scene
    wide = depth.copy()
    wide[20:40, 20:40] = np.nan
    result = denoise(wide, guide=picture, quality="fast")
    assert (result.origin[22:38, 22:38] == Origin.REFUSED).all()
    assert np.isnan(result.depth[result.origin == Origin.REFUSED]).all()
    whole = np.where(np.isnan(depth), 1, depth)
    np.testing.assert_array_equal(
        denoise(whole, guide=picture, quality="fast").depth, denoise(whole, quality="fast").depth
    )


@pytest.mark.parametrize("guide", [np.zeros((3, 3)), np.zeros(5), np.full((24, 24), np.nan), np.full((24, 24), "a")])
def test_a_guide_that_does_not_fit_is_refused(guide):
    with pytest.raises(InputError, match="the guide"):
        denoise(np.ones((24, 24)), guide=guide)


def test_a_guide_without_filling_is_refused():
    with pytest.raises(InputError, match="fill='none'"):
        denoise(np.ones((24, 24)), guide=np.ones((24, 24)), fill=False)


@pytest.mark.slow
@pytest.mark.parametrize("shift", [5, 14, 40])
def test_a_picture_that_is_not_registered_does_no_harm(shift):
    """Pixels around the holes tell that the picture shows something else."""
    y, x = np.mgrid[:72, :96]
    disc = (x - 45) ** 2 + (y - 36) ** 2 < 22**2
    depth = np.where(disc, 1.0, 2.0) + 0.002 * x
    picture = np.where(disc, 200.0, 50.0) + np.random.default_rng(1).normal(0, 3, depth.shape)
    holed = depth.copy()
    for top, left in np.random.default_rng(0).integers(0, 65, (12, 2)):
        holed[top : top + 7, left : left + 7] = np.nan
    plain = rmse(inpaint(holed, quality="fast").depth, depth)
    assert rmse(inpaint(holed, quality="fast", guide=picture).depth, depth) < 0.5 * plain
    assert rmse(inpaint(holed, quality="fast", guide=np.roll(picture, shift, 1)).depth, depth) <= 1.02 * plain

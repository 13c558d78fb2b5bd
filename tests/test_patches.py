"""Cutting, normalising and streaming patches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsedepth import InputError
from sparsedepth.patches import PatchStream, corners, cut, normalise, overlay


def depth_map(shape=(40, 50), seed=0, holes=0.05):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[0], : shape[1]]
    depth = 10 + 3 * (x > shape[1] // 2) + 0.05 * y + 0.1 * rng.standard_normal(shape)
    depth[rng.random(shape) < holes] = np.nan
    return depth.astype(np.float32)


@given(height=st.integers(5, 20), width=st.integers(5, 20), patch=st.integers(1, 5), stride=st.integers(1, 7))
def test_overlay_undoes_cut(height, width, patch, stride):
    depth = np.random.default_rng(0).standard_normal((height, width))
    patches = cut(depth, (patch, patch), stride)
    back = overlay(patches, depth.shape, (patch, patch), stride)
    np.testing.assert_allclose(np.where(np.isnan(back), depth, back), depth, rtol=1e-12)
    if stride <= patch:
        assert np.isfinite(back).all(), "every pixel is covered"


@given(room=st.integers(0, 60), patch=st.integers(1, 9), stride=st.integers(1, 9))
def test_places_reach_both_ends_and_mirror(room, patch, stride):
    places = corners(room + patch, patch, stride)
    assert places[0] == 0
    assert places[-1] == room
    assert (np.diff(places) <= stride).all()
    assert (np.diff(places) > 0).all()
    np.testing.assert_array_equal(places, room - places[::-1])


def test_normalised_patches_have_unit_variance_and_can_be_undone():
    patches = cut(depth_map(), (8, 8), 3)
    result = normalise(patches)
    np.testing.assert_allclose(np.nanmean(result.patches, axis=1), 0, atol=1e-5)
    np.testing.assert_allclose(np.nanstd(result.patches, axis=1), 1, rtol=1e-4)
    np.testing.assert_allclose(result.patches * result.scale[:, None] + result.centre[:, None], patches, rtol=1e-5)


def test_normalising_does_not_depend_on_units_or_missing_values():
    patches = cut(depth_map(), (8, 8), 3).astype(np.float64)
    metres, millimetres = normalise(patches, 0.1), normalise(patches * 1000 + 7, 100.0)
    np.testing.assert_allclose(metres.patches, millimetres.patches, atol=1e-9)
    empty = normalise(np.array([[np.nan, np.nan], [3.0, 3.0], [np.nan, 5.0]]))
    np.testing.assert_array_equal(empty.patches, [[np.nan, np.nan], [0, 0], [np.nan, 0]])
    np.testing.assert_array_equal(empty.scale, 1)


def test_unreliable_pixels_count_less_in_the_mean():
    patches = np.array([[1.0, 1.0, 1.0, 100.0]])
    result = normalise(patches, variance=np.array([[1.0, 1.0, 1.0, np.inf]]))
    assert result.centre[0] == pytest.approx(1)


def test_stream_is_a_function_of_seed_and_step():
    maps = [depth_map(), depth_map(seed=1)]
    one, same, other = (PatchStream(maps, (8, 8), batch=64, seed=s) for s in (3, 3, 4))
    np.testing.assert_array_equal(one(5).patches, same(5).patches)
    assert not np.array_equal(one(5).patches, one(6).patches)
    assert not np.array_equal(one(5).patches, other(5).patches)
    assert one(0).patches.shape == (64, 64)


def test_stream_masks_or_keeps_holes():
    maps = [depth_map(holes=0.1)]
    assert np.isnan(PatchStream(maps, (8, 8))(0).patches).any()
    assert not np.isnan(PatchStream(maps, (8, 8), holes="keep")(0).patches).any()
    assert PatchStream(maps, (8, 8), holes="keep")(0).patches.min() < -3, "a hole is a deep zero"


def test_stream_does_not_depend_on_units():
    depth = depth_map()
    metres, millimetres = (PatchStream([depth * c], (8, 8), batch=32)(0).patches for c in (1, 1000))
    np.testing.assert_allclose(metres, millimetres, atol=1e-3)


def test_patches_keep_their_contrast_when_the_map_scales_them():
    """Whatever the units, the patches of a whole map have its variance in the mean, and each has mean 0."""
    rng = np.random.default_rng(0)
    depth = np.where(np.arange(60) < 30, 0.1, 1.0) * rng.standard_normal((60, 60))
    options = {"batch": 2000, "scale": "map", "least_contrast": 0.0}
    patches = PatchStream([depth], (4, 4), **options)(0).patches
    np.testing.assert_allclose(patches.mean(axis=1), 0, atol=1e-5)
    np.testing.assert_allclose(PatchStream([7 * depth + 3], (4, 4), **options)(0).patches, patches, atol=1e-4)
    contrast = patches.std(axis=1)
    assert np.percentile(contrast, 90) > 5 * np.percentile(contrast, 10)
    assert 0.8 < np.square(patches).mean() * 16 / 15 < 1.2
    with pytest.raises(InputError, match="scale='pixel'"):
        PatchStream([depth], (4, 4), scale="pixel")


def test_stream_scales_the_variances_with_the_patches():
    depth = depth_map(holes=0)
    batch = PatchStream([depth], (8, 8), batch=32, variances=[np.full_like(depth, 0.04)])(0)
    assert batch.variance is not None
    spread = np.sqrt(0.04 / batch.variance[:, 0])
    assert (spread > 0).all()
    np.testing.assert_allclose(batch.variance, np.broadcast_to(batch.variance[:, :1], batch.variance.shape))


@pytest.mark.slow
def test_bad_streams_are_refused():
    with pytest.raises(InputError, match="no map"):
        PatchStream([], (8, 8))
    with pytest.raises(InputError, match="smaller than a patch"):
        PatchStream([depth_map((6, 50))], (8, 8))
    with pytest.raises(InputError, match="mask"):
        PatchStream([depth_map()], (8, 8), holes="fill")
    with pytest.raises(InputError, match="no patch"):
        PatchStream([np.full((40, 40), 3.0)], (8, 8))(0)
    with pytest.raises(InputError, match="no patch"):
        PatchStream([np.full((40, 40), np.nan)], (8, 8))(0)
    with pytest.raises(InputError, match="variance map"):
        PatchStream([depth_map()], (8, 8), variances=[np.ones((3, 3))])

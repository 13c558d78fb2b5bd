"""Segmentation: that of the rule written out, and of scikit-image."""

from __future__ import annotations

import numpy as np
import pytest

from sparsedepth.stereo.proposals import segmentation

BLURRED_SCALE, SCALE, MIN_SIZE = 30, 100, 10


def slow_segments(picture: np.ndarray, scale: float, min_size: int) -> np.ndarray:
    """Join pixel by pixel, edges in the order of cost, equal ones by pixel, then right, down, and both diagonals."""
    height, width = picture.shape[:2]
    edges = []
    for y, x in np.ndindex(height, width):
        for way, (dy, dx) in enumerate(((0, 1), (1, 0), (1, 1), (1, -1))):
            if y + dy < height and 0 <= x + dx < width:
                cost = np.sqrt(((picture[y, x] - picture[y + dy, x + dx]) ** 2).sum(dtype=np.float32))
                edges.append((cost, y * width + x, way, (y + dy) * width + x + dx))
    label, size, within = np.arange(height * width), np.ones(height * width), np.zeros(height * width, np.float32)
    for small in (False, True):
        for cost, p, _, q in sorted(edges):
            one, other = sorted((label[p], label[q]))
            alike = all(cost < within[each] + np.float32(scale / size[each]) for each in (one, other))
            if one != other and (min(size[one], size[other]) < min_size if small else alike):
                label[label == other] = one
                size[one] += size[other]
                within[one] = cost
    return np.unique(label, return_inverse=True)[1].reshape(height, width)


def blocks(seed: int, shape: tuple[int, int, int], noise: int) -> np.ndarray:
    """Patches of colour with noise; few grey values, so that many edges cost the same."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 5, (-(-shape[0] // 6), -(-shape[1] // 6), shape[2])) * 50
    whole = np.repeat(np.repeat(coarse, 6, 0), 6, 1)[: shape[0], : shape[1]]
    return (whole + rng.integers(0, noise + 1, shape)).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(20, 24, 3), (9, 30, 1), (1, 40, 3), (30, 1, 3), (1, 1, 1)], ids=str)
@pytest.mark.parametrize("noise", [0, 20, 200])
def test_segments_are_those_of_the_rule_whatever_ties_there_are(shape, noise):
    for seed in range(3):
        picture = blocks(seed, shape, noise)
        found = segmentation(picture, 2, blurred=False)
        np.testing.assert_array_equal(found, slow_segments(picture, 2 * SCALE, 2 * MIN_SIZE))


@pytest.mark.parametrize("coarseness", [1, 5])
@pytest.mark.parametrize("blurred", [False, True])
def test_without_ties_segments_are_those_of_scikit_image(coarseness, blurred):
    peer = pytest.importorskip("skimage.segmentation")
    rng = np.random.default_rng(coarseness)
    picture = (blocks(3, (60, 80, 3), 0) + rng.uniform(0, 30, (60, 80, 3))).astype(np.float32)
    scale, sigma = (BLURRED_SCALE, 0.8) if blurred else (SCALE, 0)
    found = segmentation(picture, coarseness, blurred=blurred)
    theirs = peer.felzenszwalb(
        picture.astype(np.float64) / 255, scale * coarseness, sigma, MIN_SIZE * coarseness, channel_axis=2
    )
    assert found.max() > 3
    np.testing.assert_array_equal(found, theirs)


def test_segments_are_not_too_small_and_numbered_by_their_first_pixels():
    found = segmentation(blocks(1, (40, 50, 3), 60), 1, blurred=True)
    assert np.bincount(found.ravel()).min() >= MIN_SIZE
    assert (np.diff(np.unique(found, return_index=True)[1]) > 0).all()

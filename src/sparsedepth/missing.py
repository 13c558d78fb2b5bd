"""Missing pixels of a map: which lie in wide holes, how far valid ones are, and how much the map varies around."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsedepth.kernels import holes as kernels
from sparsedepth.vocabulary import Floats, Vector


def holes_containing_patch(missing: NDArray[np.bool_], patch_shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Mark the missing pixels of holes that contain a whole patch."""
    marked, scratch = np.empty(missing.shape, np.uint8), np.empty(missing.shape[1], np.int64)
    kernels.whole(*missing.shape, *patch_shape, _bytes(missing), scratch, marked)
    return marked.view(bool)


def distance_to_valid(missing: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return the distance of each missing pixel to the nearest valid one, in pixels; 0 at valid ones."""
    distance = np.empty(missing.shape, np.int32)
    kernels.distance(*missing.shape, _bytes(missing), distance)
    return distance


def variance_around(filled: Floats, missing: NDArray[np.bool_], side: int) -> tuple[Vector, Vector]:
    """Return the variance in a square about each missing pixel, and the missing fraction of it.

    Parameters
    ----------
    filled
        (height, width), without NaN; it goes on as at its edge.
    missing
        (height, width).
    side
        Side of the square, in pixels.
    """
    n, scratch, values = np.count_nonzero(missing), np.empty((3, missing.shape[1])), np.ascontiguousarray(filled, float)
    variance, fraction = np.empty(n), np.empty(n)
    kernels.variance(*missing.shape, side, _bytes(missing), values, scratch, variance, fraction)
    return variance, fraction


def _bytes(mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(mask).view(np.uint8)

"""Baselines that fill missing pixels and leave valid ones unchanged."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import LinearNDInterpolator
from scipy.ndimage import binary_dilation
from threadpoolctl import threadpool_limits

from sparsedepth.baselines.maps import as_result, map_of, nearest_filled
from sparsedepth.extras import needed_for
from sparsedepth.vocabulary import DepthMap, InputError

with needed_for("a baseline", "reproduce"):
    from skimage.restoration import inpaint_biharmonic


def biharmonic(depth: ArrayLike) -> DepthMap:
    """Fill missing pixels with the surface of least bending (biharmonic equation), within the range of the map.

    Parameters
    ----------
    depth
        (height, width) in any unit; NaN = missing.

    Returns
    -------
    DepthMap
        The filled map, of the same type; a map without any known pixel stays as it is.

    Examples
    --------
    >>> depth = np.add.outer(np.zeros(5), np.arange(5.0))
    >>> depth[2, 2] = np.nan
    >>> round(float(biharmonic(depth)[2, 2]), 6)
    2.0
    """
    values = map_of(depth)
    missing = _missing_among_known(values)
    if not missing.any():
        return values.copy()
    return as_result(values, inpaint_biharmonic(nearest_filled(values), missing), fills=True)


def linear(depth: ArrayLike) -> DepthMap:
    """Fill missing pixels by linear interpolation (Delaunay); outside of the convex hull by the nearest pixel.

    Parameters
    ----------
    depth
        (height, width) in any unit; NaN = missing.

    Returns
    -------
    DepthMap
        The filled map, of the same type.

    Examples
    --------
    >>> linear([[1.0, np.nan, 3.0]])
    array([[1., 2., 3.]])
    """
    values = map_of(depth)
    missing = _missing_among_known(values)
    filled = nearest_filled(values)
    if not missing.any():
        return values.copy()
    if 1 in values.shape:
        at = np.arange(values.size)
        return np.interp(at, at[~missing.ravel()], values[~missing]).astype(values.dtype).reshape(values.shape)
    # The circle around a Delaunay triangle holds no known pixel. One that covers a missing pixel is so large that it
    # holds a neighbour of each of its corners, which therefore is missing: only pixels next to holes can be corners.
    near = np.asarray(binary_dilation(missing, np.ones((3, 3))), bool)
    adjacent = np.argwhere(near & ~missing)
    if not _on_one_line(adjacent):
        with threadpool_limits(1, user_api="blas"):  # a system of two equations a triangle: threads only wait there
            inside = LinearNDInterpolator(adjacent, filled[tuple(adjacent.T)])(np.argwhere(missing))
        filled[missing] = np.where(np.isnan(inside), filled[missing], inside)
    return as_result(values, filled, fills=True)


def _on_one_line(points: NDArray[np.int_]) -> bool:
    """Test whether integer points (n, 2) are collinear; two points always are."""
    away = points - points[0]
    far = away[np.abs(away).sum(axis=1).argmax()]
    return not (away[:, 0] * far[1] - away[:, 1] * far[0]).any()


def _missing_among_known(values: DepthMap) -> NDArray[np.bool_]:
    missing = np.isnan(values)
    if missing.all():
        raise InputError("no pixel of the map is known; there is nothing to fill from")
    return missing

"""Input and output of baselines: a float map comes in, and the same type with the same holes goes out."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import distance_transform_edt

from sparsedepth.checks import LARGEST, as_floats
from sparsedepth.vocabulary import DepthMap, Floats, InputError


def map_of(depth: ArrayLike) -> DepthMap:
    """Convert a map to float32 if it is float32, otherwise to float64."""
    values = as_floats("the map", depth)
    if values.ndim != 2 or values.size == 0:
        raise InputError(
            f"the map is {values.dtype} of shape {values.shape}; give (height, width) of real numbers, NaN = missing"
        )
    if (np.abs(values) > LARGEST).any():
        beyond = int((np.abs(values) > LARGEST).sum())
        raise InputError(f"{beyond} pixels are infinite or beyond {LARGEST:g}; mark unknown pixels with NaN")
    return values


def radius_of(what: str, side: int) -> int:
    if side < 1 or side % 2 == 0:
        raise InputError(f"{what} is {side!r}; it must be an odd number of pixels")
    return side // 2


def require_at_least_zero(what: str, value: float) -> None:
    if not value >= 0:
        raise InputError(f"{what} is {value!r}; it must be zero or more")


def as_result(values: DepthMap, result: Floats, *, fills: bool = False) -> DepthMap:
    """Convert a result to the type of the input, with its holes, or with its valid pixels if holes are filled."""
    kept = np.where(np.isnan(values), result, values) if fills else np.where(np.isnan(values), np.nan, result)
    return kept.astype(values.dtype)


def nearest_filled(values: DepthMap) -> Floats:
    missing = np.isnan(values)
    nearest = np.asarray(distance_transform_edt(missing, return_distances=False, return_indices=True))
    return values[nearest[0], nearest[1]].astype(np.float64)

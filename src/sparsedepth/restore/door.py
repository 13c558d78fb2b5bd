"""What comes in, as the methods want it: a float map of unit deviation around zero, NaN = unknown; and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter, minimum_filter

from sparsedepth.vocabulary import DepthMap, Floats, InputError, Origin, Restoration

LARGEST = 1e100
"""Values beyond this are refused: their squares, the variances, must stay finite."""


@dataclass(frozen=True, eq=False)
class Work:
    """A map in units in which its known pixels have median 0 and deviation 1, padded to hold at least one patch."""

    depth: DepthMap
    variance: DepthMap | None
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    reference: float
    spread: float
    patch_shape: tuple[int, int]

    @classmethod
    def of(
        cls, depth: Any, variance: Any, patch_shape: tuple[int, int], invalid: float | Sequence[float] | None
    ) -> Work:
        values, dtype = real_map(depth, invalid)
        known = np.isfinite(values)
        given = None if variance is None else _sensor_variance(variance, values.shape)
        if given is not None:
            known &= np.isfinite(given)
        reference = float(np.median(values[known])) if known.any() else 0.0
        spread = float(np.std(values[known] - reference)) if known.any() else 0.0
        spread = spread if spread > 0 else 1.0
        unit = np.where(known, (values - reference) / spread, np.nan).astype(np.float32)
        if given is not None:
            given = np.where(known, given / spread**2, np.inf).astype(np.float32)
            given = _padded(np.maximum(given, np.finfo(np.float32).tiny), patch_shape, np.inf)
        return cls(_padded(unit, patch_shape, np.nan), given, values.shape, dtype, reference, spread, patch_shape)

    def back(self, depth: Floats, variance: Floats, origin: NDArray[np.integer[Any]]) -> Restoration:
        """A result in units of the map that came in; what was refused is NaN with infinite variance."""
        height, width = self.shape
        refused = origin[:height, :width] == Origin.REFUSED
        values = np.where(refused, np.nan, depth[:height, :width] * self.spread + self.reference)
        least = (float(np.finfo(np.float32).eps) * max(self.spread, abs(self.reference))) ** 2
        spread = np.maximum(variance[:height, :width] * self.spread**2, least)
        spread = np.where(refused, np.inf, np.maximum(spread, np.finfo(self.dtype).tiny))
        return Restoration(
            values.astype(self.dtype), spread.astype(self.dtype), origin[:height, :width].astype(np.uint8)
        )


def real_map(depth: Any, invalid: float | Sequence[float] | None = None) -> tuple[Floats, np.dtype[Any]]:
    """Any real two-dimensional array as float64 with NaN = unknown, and the float type its results will have.

    Unknown are NaN, infinities, masked entries and the values of ``invalid``: None means 0 for integer maps and nothing
    for float maps.
    """
    array = np.asarray(np.ma.getdata(depth))
    if array.dtype.kind not in "fiu":
        raise InputError(f"the map is an array of {array.dtype}; give real numbers, NaN = unknown")
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"the map has shape {array.shape}; give (height, width), one depth a pixel")
    codes = ((0,) if array.dtype.kind in "iu" else ()) if invalid is None else np.atleast_1d(invalid)
    unknown = np.ma.getmaskarray(depth) | np.isin(array, codes)
    values = np.where(unknown | ~np.isfinite(array), np.nan, array.astype(np.float64))
    largest = np.nanmax(np.abs(values), initial=0)
    if largest > LARGEST:
        raise InputError(f"the map holds {largest:g}; give it in a larger unit, or name it in invalid= if it is a code")
    wide = array.dtype.kind == "f" and array.dtype.itemsize > 4
    return values, np.dtype(np.float64 if wide else np.float32)


def _sensor_variance(variance: Any, shape: tuple[int, ...]) -> Floats:
    """A sensor's variance as float64, inf where it is NaN."""
    array = np.ma.filled(np.ma.asarray(variance), np.inf) if np.ma.isMaskedArray(variance) else np.asarray(variance)
    if array.dtype.kind not in "fiu":
        raise InputError(f"the variance is an array of {array.dtype}; give real numbers in squared units of the map")
    if array.ndim and array.shape != shape:
        raise InputError(f"the variance has shape {array.shape} but the map {shape}; give one for each pixel")
    if (array <= 0).any():
        raise InputError(
            "the variance must be positive, in squared units of the map: inf = not measured; "
            "a confidence (1 = sure) is no variance"
        )
    return np.broadcast_to(np.where(np.isnan(array), np.inf, array.astype(np.float64)), shape)


def _padded(values: Floats, patch_shape: tuple[int, int], fill: float) -> Floats:
    missing = [(0, max(0, patch - side)) for side, patch in zip(values.shape, patch_shape, strict=True)]
    return np.pad(values, missing, constant_values=fill)


def too_wide(unknown: NDArray[np.bool_], patch_shape: tuple[int, int]) -> NDArray[np.bool_]:
    """The unknown pixels that lie in a hole which holds a whole patch: nothing can be said of them."""
    empty = minimum_filter(unknown, size=patch_shape, mode="constant", cval=0)
    mirrored: Any = [0 if side % 2 else -1 for side in patch_shape]
    return np.asarray(maximum_filter(empty, size=patch_shape, mode="constant", cval=0, origin=mirrored), bool)

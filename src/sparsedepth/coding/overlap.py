"""Sums of overlapping patches that are centred on their medians and fitted by codes, a band of rows at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparsedepth.coding.infer import fit_patches
from sparsedepth.kernels import patches as kernels
from sparsedepth.vocabulary import Floats, Patches

if TYPE_CHECKING:
    from sparsedepth.coding.aggregate import PatchCoder, Rows


@dataclass(frozen=True, eq=False)
class CentredPatches:
    """Patches of a band without their medians, in units of the noise floor."""

    places: NDArray[np.int64]
    """Of their first pixels in the band."""
    values: Patches
    centres: Floats
    weight: Floats
    """Fractions of valid pixels."""

    @classmethod
    def cut(cls, band: Rows, places: NDArray[np.int64], coder: PatchCoder) -> CentredPatches:
        """Cut those patches that have a valid pixel."""
        depth, (height, width) = np.ascontiguousarray(band.depth, np.float32), coder.dictionary.patch_shape
        values, centres = np.empty((len(places), height * width), np.float32), np.empty(len(places), np.float32)
        valid, scratch = np.empty(len(places), np.int64), np.empty(height * width + 1, np.float32)
        sizes = (len(places), places, height, width, depth.shape[1])
        kernels.cut(*sizes, depth, coder.unit, scratch, values, centres, valid)
        whole = cls(places, values, centres, valid / (height * width))
        return whole if (valid > 0).all() else whole.take(valid > 0)

    def take(self, rows: NDArray[np.bool_]) -> CentredPatches:
        """Select patches."""
        return CentredPatches(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def cut_along(self, values: Floats, shape: tuple[int, int]) -> Patches:
        """Cut the same patches from another map of the band."""
        within = np.add.outer(np.arange(shape[0]) * values.shape[1], np.arange(shape[1])).ravel()
        return np.ascontiguousarray(values, np.float32).ravel()[self.places[:, None] + within]


def sum_fitted_patches(band: Rows, coder: PatchCoder, tops: NDArray[np.intp], lefts: NDArray[np.intp]) -> Floats:
    """Fit the patches of a band; sum their weights, weighted values and weighted squared values, (3, height, width)."""
    assert coder.unit is not None
    places = np.add.outer(tops * band.depth.shape[1], lefts).ravel().astype(np.int64)
    if band.only is not None:
        places = places[_hold(places, band.only, coder)]
    patches, shape = CentredPatches.cut(band, places, coder), coder.dictionary.patch_shape
    noise, unit = coder.noise, np.float32(coder.unit)
    if band.variance is not None:
        noise = noise.plus(patches.cut_along(band.variance, shape) / unit**2)
    fitted = fit_patches(patches.values, coder.atoms, noise, coder.penalties, coder.max_rounds)
    sums, n = np.zeros((3, *band.depth.shape)), len(fitted)
    scale, centres = np.full(n, float(coder.unit)), patches.centres.astype(np.float64)
    sizes = (n, patches.places, *shape, band.depth.shape[1], band.depth.size)
    kernels.add(*sizes, fitted, scale, centres, patches.weight, coder.weights, sums)
    return sums


def _hold(places: NDArray[np.int64], only: NDArray[np.bool_], coder: PatchCoder) -> NDArray[np.bool_]:
    """Tell which patches hold one of the pixels in their core."""
    core = np.flatnonzero(coder.weights >= coder.core * coder.weights.max())
    rows, columns = np.divmod(core, coder.dictionary.patch_shape[1])
    offsets, holds = rows * only.shape[1] + columns, np.empty(len(places), np.uint8)
    kernels.holding(len(places), places, len(offsets), offsets, np.ascontiguousarray(only).view(np.uint8), holds)
    return holds.view(bool)

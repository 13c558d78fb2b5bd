"""Sums of overlapping patches that are centred on their medians and fitted by codes, a band of rows at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparsedepth.coding.infer import fit_patches
from sparsedepth.coding.noise import NoiseModel
from sparsedepth.kernels import patches as kernels
from sparsedepth.patches import Window
from sparsedepth.vocabulary import Floats, Patches

if TYPE_CHECKING:
    from sparsedepth.coding.aggregate import PatchCoder, Rows


@dataclass(frozen=True, eq=False)
class Corners:
    """Where the patches of a stack of maps begin, and how many rows and columns of them a flat one stands for."""

    tops: NDArray[np.intp]
    lefts: NDArray[np.intp]
    flat_tops: NDArray[np.intp]
    """0 = flat patches are left out."""
    flat_lefts: NDArray[np.intp]

    @classmethod
    def of(cls, window: Window, coder: PatchCoder, maps: int, height: int) -> Corners:
        """Lay out the patches of a window, or of several such maps, one under the other."""
        shape, step = coder.dictionary.patch_shape, coder.flat_step
        (tops, lefts), some = window.corners(shape, coder.stride), window.corners(shape, coder.stride, step)
        flat = (step * np.isin(*pair) for pair in zip((tops, lefts), some, strict=True))
        flat_tops, flat_lefts = flat
        tops = np.add.outer(np.arange(maps) * height, tops).ravel()
        return cls(tops, lefts, np.tile(flat_tops, maps), flat_lefts)

    def rows(self, which: slice) -> Corners:
        """Select rows of patches; the first one begins at row 0."""
        tops = self.tops[which]
        return Corners(tops - tops[0], self.lefts, self.flat_tops[which], self.flat_lefts)

    def places(self, columns: int) -> NDArray[np.int64]:
        """Number the first pixels of patches."""
        return np.add.outer(self.tops * columns, self.lefts).ravel().astype(np.int64)

    def flat_weight(self) -> NDArray[np.intp]:
        """Count the patches that each one stands for where it is flat."""
        return np.multiply.outer(self.flat_tops, self.flat_lefts).ravel()


@dataclass(frozen=True, eq=False)
class CentredPatches:
    """Patches of a band without their medians, in units of the noise floor."""

    places: NDArray[np.int64]
    """Of their first pixels in the band."""
    values: Patches
    centres: Floats
    weight: Floats
    flat: NDArray[np.bool_]

    @classmethod
    def cut(
        cls, band: Rows, places: NDArray[np.int64], coder: PatchCoder, flat_weight: NDArray[np.intp]
    ) -> CentredPatches:
        """Cut those patches that have a valid pixel, and if flat a weight."""
        depth, (height, width) = np.ascontiguousarray(band.depth, np.float32), coder.dictionary.patch_shape
        values, centres = np.empty((len(places), height * width), np.float32), np.empty(len(places), np.float32)
        valid, squares = np.empty(len(places), np.int64), np.empty(len(places), np.float32)
        scratch = np.empty(height * width + 1, np.float32)
        sizes = (len(places), places, height, width, depth.shape[1])
        kernels.cut(*sizes, depth, coder.unit, coder.contrast_clip, scratch, values, centres, valid, squares)
        flat = squares < coder.flat_contrast**2
        weight = valid / (height * width) * np.where(flat, flat_weight, 1)
        whole = cls(places, values, centres, weight, flat)
        return whole if (weight > 0).all() else whole.take(weight > 0)

    def take(self, rows: NDArray[np.bool_]) -> CentredPatches:
        """Select patches."""
        return CentredPatches(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def cut_along(self, values: Floats, shape: tuple[int, int]) -> Patches:
        """Cut the same patches from another map of the band."""
        within = np.add.outer(np.arange(shape[0]) * values.shape[1], np.arange(shape[1])).ravel()
        return np.ascontiguousarray(values, np.float32).ravel()[self.places[:, None] + within]


def sum_fitted_patches(band: Rows, coder: PatchCoder, corners: Corners) -> Floats:
    """Fit the patches of a band; sum their weights, weighted values and weighted squared values, (3, height, width)."""
    assert coder.unit is not None
    places, weight = corners.places(band.depth.shape[1]), corners.flat_weight()
    if band.only is not None:
        held = _hold(places, band.only, coder)
        places, weight = places[held], weight[held]
    patches, shape = CentredPatches.cut(band, places, coder, weight), coder.dictionary.patch_shape
    noise, unit = coder.noise, np.float32(coder.unit)
    if band.variance is not None:
        noise = noise.plus(patches.cut_along(band.variance, shape) / unit**2)
    fitted = _fit(patches, noise, coder)
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


def _fit(patches: CentredPatches, noise: NoiseModel, coder: PatchCoder) -> Patches:
    """Fit patches; flat ones need fewer iterations."""
    if coder.flat_rounds is None:
        return fit_patches(patches.values, coder.atoms, noise, coder.penalties, coder.max_rounds)
    fitted = np.empty_like(patches.values)
    for group, rounds in ((patches.flat, min(coder.flat_rounds, coder.max_rounds)), (~patches.flat, coder.max_rounds)):
        some, its_noise = patches.values[group], noise.take(group)
        fitted[group] = fit_patches(some, coder.atoms, its_noise, coder.penalties, rounds)
    return fitted

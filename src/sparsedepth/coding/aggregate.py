"""Code a map patch by patch, and average the overlapping patches at each pixel.

Patches are coded a band of rows at a time, so memory does not grow with the map beyond a few maps' worth of sums. The
codes of a patch do not depend on its band: neither bands nor threads change a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import DTypeLike, NDArray

from sparsedepth.coding.descent import is_convex
from sparsedepth.coding.infer import infer, sparse_codes
from sparsedepth.coding.matmul import row_stable_matmul
from sparsedepth.coding.noise import Jeffreys, NoiseModel
from sparsedepth.coding.overlap import sum_fitted_patches
from sparsedepth.dictionary import Dictionary
from sparsedepth.kernels import patches as kernels
from sparsedepth.parallel import map_in_threads
from sparsedepth.patches import Normalised, Window, add_tiles, normalise
from sparsedepth.vocabulary import DepthMap, Floats, Vector


@dataclass(frozen=True)
class PatchCoder:
    """How the patches of a map are coded and weighted."""

    dictionary: Dictionary
    noise: NoiseModel = field(default_factory=Jeffreys)
    sparsity: float = 1.0
    stride: int = 1
    """Pixels between patches."""
    tolerance: float = 2e-3
    max_rounds: int = 300
    unit: float | None = None
    """Divisor of patches after subtracting their median; None: their own standard deviation, after their mean."""
    free_mean: bool = False
    """Whether the mean of a patch is free: a constant atom without penalty."""
    refit: bool = False
    """Whether active codes are refitted without penalty; a patch then counts less, the more atoms it uses."""
    window: float = np.inf
    """Standard deviation, in patch sides, of the Gaussian weight of a patch's pixels."""
    core: float = 0.0
    """Least weight, relative to the largest, at which a pixel of `only` lies in the core of a patch."""
    min_code: float = 0.05
    """Least size of an active code, in noise floors. Chosen on simulated time-of-flight maps."""
    max_active: int = 24
    """Most atoms refitted in a patch; bounds the size of a linear system."""
    ridge: float = 1e-3
    """Damping of the refit, relative to a unit atom; keeps the system regular."""
    softening: float = 1e-3
    """Contrast, in map standard deviations, below which a patch is not scaled to unit variance."""
    band: int = 8192
    """Patches coded at once by one thread; memory only."""

    @property
    def overlapping(self) -> bool:
        """Whether a pixel mostly lies in several patches."""
        return 2 * self.stride <= min(self.dictionary.patch_shape)

    def apart_by(self, stride: int) -> PatchCoder:
        """Return this coder with patches at least so many pixels apart, as long as they overlap by half."""
        half = min(self.dictionary.patch_shape) // 2
        return replace(self, stride=max(self.stride, min(stride, half)))

    @cached_property
    def atoms(self) -> Floats:
        """The atoms; with a free mean, those without a mean and one constant atom."""
        atoms = self.dictionary.atoms
        if not self.free_mean:
            return atoms
        zero_mean = atoms - atoms.mean(axis=1, keepdims=True)
        zero_mean = zero_mean[np.linalg.norm(zero_mean, axis=1) > 0.1]
        constant = np.full((1, atoms.shape[1]), atoms.shape[1] ** -0.5, atoms.dtype)
        return np.vstack([zero_mean / np.linalg.norm(zero_mean, axis=1, keepdims=True), constant]).astype(atoms.dtype)

    @cached_property
    def penalties(self) -> float | Floats:
        """The sparsity of each of the `atoms`."""
        if not self.free_mean:
            return self.sparsity
        penalties = np.full(len(self.atoms), self.sparsity)
        penalties[-1] = 0
        return penalties

    @cached_property
    def weights(self) -> Floats:
        """The weight of each pixel of a patch."""
        along = [
            np.exp(-(((np.arange(n) - (n - 1) / 2) / (self.window * n)) ** 2) / 2) for n in self.dictionary.patch_shape
        ]
        return np.outer(*along).ravel()


@dataclass(frozen=True)
class PatchAverage:
    """Weighted averages over the patches that cover each pixel; a patch counts by its fraction of valid pixels."""

    weight: Floats
    """Sum of the weights; 0: no patch with a valid pixel covers this one."""
    mean: Floats
    """Mean of the patches' values; NaN without patches."""
    variance: Floats
    """Variance of the patches' values around their mean."""


@dataclass(frozen=True)
class NoiseAverage(PatchAverage):
    """Averages of the patches' values and of the noise that they infer."""

    floor: Floats
    """Noise floor, in squared units of the map."""
    noise: Floats
    """Inferred noise variance; inf at missing pixels."""
    confidence: Floats
    """Noise floor / inferred variance: 1 = as good as the floor, 0 = no weight at all; 0 at missing pixels."""

    @property
    def predicted_variance(self) -> Floats:
        """Variance of a filled pixel: the disagreement of its patches and the noise of what they rest on."""
        return self.variance + self.floor


def average_patches(
    depth: DepthMap,
    coder: PatchCoder,
    variance: DepthMap | None = None,
    *,
    only: NDArray[np.bool_] | None = None,
    units: DepthMap | None = None,
    window: Window | None = None,
    threads: int = 1,
) -> PatchAverage:
    """Code the patches of a map of about unit variance and average them at each pixel.

    A stack of maps (n, height, width) is coded at once. ``variance`` is a sensor's, for each pixel. With ``only``,
    just the patches are coded whose core holds one of these pixels. ``units`` are the divisors of patches, where these
    differ over the map. ``window`` says which part of a larger map this is.
    """
    rows = Rows(depth, variance, only, units)
    return PatchAverage(*_averages(_sums(rows, coder, window, threads, with_noise=False), np.float32))


def average_patches_and_noise(
    depth: DepthMap,
    coder: PatchCoder,
    variance: DepthMap | None = None,
    *,
    window: Window | None = None,
    threads: int = 1,
) -> NoiseAverage:
    """Code all patches of a map; average their values and their inferred noise variances at each pixel."""
    sums = _sums(Rows(depth, variance), coder, window, threads, with_noise=True)
    weight, mean, spread = _averages(sums[:3], np.float64)
    valid, some = np.isfinite(depth), np.where(weight > 0, weight, 1)
    floor, noise, confidence = (total / some for total in sums[3:])
    noise, confidence = np.where(valid & (weight > 0), noise, np.inf), np.where(valid, confidence, 0)
    return NoiseAverage(weight, mean, spread, floor, noise, confidence)


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a map, or of a stack of maps, with what is given for each pixel."""

    depth: DepthMap
    variance: DepthMap | None = None
    only: NDArray[np.bool_] | None = None
    units: DepthMap | None = None

    def flat(self) -> Rows:
        """Return a stack as one map, one under the other."""
        return self._each(lambda values: values.reshape(-1, values.shape[-1]))

    def rows(self, which: slice) -> Rows:
        return self._each(lambda values: values[which])

    def _each(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Rows:
        given = (None if values is None else change(values) for values in (self.variance, self.only, self.units))
        return Rows(change(self.depth), *given)


def _sums(whole: Rows, coder: PatchCoder, window: Window | None, threads: int, *, with_noise: bool) -> Floats:
    """Sum the terms of all patches at each pixel."""
    shape = whole.depth.shape
    rows, columns = shape[-2], shape[-1]
    height = coder.dictionary.patch_shape[0]
    window = window or Window.full((rows, columns))
    tops, lefts = window.corners(coder.dictionary.patch_shape, coder.stride)
    tops = np.add.outer(np.arange(0, whole.depth.size // columns, rows), tops).ravel()
    plain = is_convex(coder.noise) and coder.unit is not None and whole.units is None
    plain = plain and not (coder.refit or with_noise)
    whole = whole.flat()
    sums = np.zeros((6 if with_noise else 3, *whole.depth.shape))

    def sum_band(band: slice) -> tuple[NDArray[np.intp], Floats]:
        mine, below = tops[band], tops[band] - tops[band][0]
        shown = whole.rows(slice(mine[0], mine[-1] + height))
        if plain:
            return mine, sum_fitted_patches(shown, coder, below, lefts)
        return mine, _sum_band(shown, coder, below, lefts, with_noise)

    for mine, part in map_in_threads(sum_band, _bands(len(tops), len(lefts), coder.band), threads):
        sums[:, mine[0] : mine[-1] + height] += part
    return sums.reshape(-1, *shape)


def _bands(rows: int, columns: int, patches: int) -> Iterator[slice]:
    step = max(1, patches // columns)
    for start in range(0, rows, step):
        yield slice(start, min(rows, start + step))


def _sum_band(
    band: Rows, coder: PatchCoder, tops: NDArray[np.intp], lefts: NDArray[np.intp], with_noise: bool
) -> Floats:
    """Sum the terms of one band: weight, value, square; with noise also floor, variance and confidence."""
    shape = coder.dictionary.patch_shape
    pixels = shape[0] * shape[1]

    def cut(values: NDArray[Any]) -> NDArray[Any]:
        return sliding_window_view(values, shape)[np.ix_(tops, lefts)].reshape(-1, pixels)

    atoms = coder.atoms
    patches = cut(band.depth)
    valid_fraction = np.isfinite(patches).mean(axis=1)
    core = coder.weights >= coder.core * coder.weights.max()
    wanted = True if band.only is None else cut(band.only)[:, core].any(axis=1)
    coded = np.flatnonzero((valid_fraction > 0) & wanted)
    patches, valid_fraction = patches[coded], valid_fraction[coded]
    given = None if band.variance is None else cut(band.variance)[coded]
    if band.units is not None:
        unit = _without_median(patches, np.median(cut(band.units)[coded], axis=1))
    elif coder.unit is None:
        unit = normalise(patches, coder.softening, given)
    else:
        unit = _without_median(patches, coder.unit)
    scale = unit.scale[:, None]
    noise = coder.noise if given is None else coder.noise.plus(given / scale**2)
    effort = {"tolerance": coder.tolerance, "max_rounds": coder.max_rounds}
    if with_noise:
        code = infer(unit.patches, atoms, noise, coder.penalties, **effort, threads=1)
        codes, inferred = code.codes, code.variance
    else:
        codes, inferred = sparse_codes(unit.patches, atoms, noise, coder.penalties, **effort), None
    codes, counts = refit_least_squares(unit.patches, codes, coder) if coder.refit else (codes, 1)
    value = row_stable_matmul(codes, atoms) * scale + unit.centre[:, None]
    weight = (valid_fraction / counts)[:, None] * coder.weights
    terms = [weight, weight * value, weight * value**2]
    if inferred is not None:
        valid = np.isfinite(patches)
        floor = np.where(valid, noise.floor_variance(unit.patches), 0.0)
        typical = floor.sum(axis=1, keepdims=True) / valid.sum(axis=1, keepdims=True)
        terms.append(weight * typical * scale**2)
        terms.append(np.where(valid, weight * inferred * scale**2, 0))
        terms.append(np.where(valid, weight * floor / inferred, 0))
    sums = np.zeros((len(terms), *band.depth.shape))
    tiles = np.zeros((len(tops) * len(lefts), pixels))
    for index, term in enumerate(terms):
        tiles[coded] = term
        add_tiles(sums[index], tiles.reshape(len(tops), len(lefts), *shape), tops, lefts)
    return sums


def refit_least_squares(patches: Floats, codes: Floats, coder: PatchCoder) -> tuple[Floats, NDArray[np.intp]]:
    """Refit the active codes by least squares over the valid pixels; return them and their count in each patch.

    The penalty makes all codes too small. Of a patch with too many active codes, the largest are refitted.
    """
    atoms, valid, sizes = coder.atoms, np.isfinite(patches), np.abs(codes)
    most = int(np.clip((sizes > coder.min_code).sum(axis=1).max(initial=1), 1, coder.max_active))
    which = np.argpartition(-sizes, most - 1, axis=1)[:, :most]
    active = np.take_along_axis(sizes, which, axis=1) > coder.min_code
    seen = np.where(active[:, :, None] & valid[:, None, :], atoms[which], 0)
    ridge = np.where(active, coder.ridge, 1)[:, :, None] * np.eye(most, dtype=atoms.dtype)
    target = np.matmul(seen, np.where(valid, patches, 0)[:, :, None])
    fitted = np.linalg.solve(np.matmul(seen, seen.transpose(0, 2, 1)) + ridge, target)[:, :, 0]
    refitted = np.zeros_like(codes)
    np.put_along_axis(refitted, which, np.where(active, fitted, 0).astype(codes.dtype), axis=1)
    return refitted, np.maximum(active.sum(axis=1), 1)


def _without_median(patches: Floats, unit: float | Vector) -> Normalised:
    """Subtract the median of each patch and divide by a given unit."""
    unit = np.broadcast_to(np.asarray(unit, np.float64), len(patches))
    last = np.isfinite(patches).sum(axis=1, keepdims=True) - 1
    ordered, middle = np.sort(patches, axis=1), np.concatenate([last // 2, (last + 1) // 2], axis=1)
    centre = np.take_along_axis(ordered, middle, axis=1).mean(axis=1).astype(np.float64)
    levelled = ((patches - centre[:, None]) / unit[:, None]).astype(patches.dtype)
    return Normalised(levelled, centre, unit, unit)


def _averages(sums: Floats, dtype: DTypeLike) -> tuple[Floats, Floats, Floats]:
    """Return the weight, the mean of the values and their variance around it."""
    weight, mean, variance = averages = np.empty(sums.shape, dtype)
    kernels.AVERAGE[averages.dtype](weight.size, np.ascontiguousarray(sums), averages)
    return weight, mean, variance

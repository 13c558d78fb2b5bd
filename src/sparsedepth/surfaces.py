"""Interpolate missing pixels of a map: by a thin plate, by one that prefers creases to bending, by a membrane.

The first is a thin plate with a free border. A plate rounds edges off and swings near them. The second is the robust
version, by iteratively reweighted least squares: strong bends cost less than their square, so they concentrate. The
membrane follows the colours of a picture: neighbours of similar colour pull at each other.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_erosion
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import cg

from sparsedepth.kernels import plates as kernels
from sparsedepth.vocabulary import DepthMap, Floats, Vector

SECOND_DIFFERENCES: tuple[tuple[int, dict[tuple[int, int], int]], ...] = (
    (1, {(0, 0): 1, (1, 0): -2, (2, 0): 1}),
    (1, {(0, 0): 1, (0, 1): -2, (0, 2): 1}),
    (2, {(0, 0): 1, (1, 0): -1, (0, 1): -1, (1, 1): 1}),
)
"""Second differences along columns, along rows and across both, each with the weight of its square.

The bending energy is the sum of these squares as far as they lie within the map. A plane has none, also at the border.
"""


def _factors() -> Floats:
    """Return the factors of the pixels of each second difference, with the root of its weight; zero = no pixel."""
    longest = max(len(stencil) for _, stencil in SECOND_DIFFERENCES)
    rows = [np.sqrt(weight) * np.array(list(stencil.values()), float) for weight, stencil in SECOND_DIFFERENCES]
    return np.stack([np.pad(row, (0, longest - len(row))) for row in rows])


def _slots() -> NDArray[np.int64]:
    """Number the ways two pixels of a second difference lie to each other: (differences, one pixel, other pixel)."""
    places = [list(stencil) for _, stencil in SECOND_DIFFERENCES]
    apart = {(b[0] - a[0], b[1] - a[1]) for corners in places for a in corners for b in corners if a != b}
    number = {offset: at for at, offset in enumerate(sorted(apart))}
    slots = np.zeros((len(places), FACTORS.shape[1], FACTORS.shape[1]), np.int64)
    for kind, corners in enumerate(places):
        for (one, a), (other, b) in permutations(enumerate(corners), 2):
            slots[kind, one, other] = number[b[0] - a[0], b[1] - a[1]]
    return slots


FACTORS = _factors()
SLOTS = _slots()

STRAIGHT_AND_DIAGONAL = ((0, 1, False), (1, 0, False), (1, 1, True), (1, -1, True))
"""Rows and columns to the following neighbours of a pixel, and whether they lie across."""


@dataclass(frozen=True)
class SurfaceSettings:
    """Thresholds of the thin plates; compared on validation crops with 50 to 95 % of the pixels missing."""

    context_px: int = 8
    """Pixels of a skipped hole, from its border, that the plate extends into: it would be clamped there otherwise."""
    reweightings: int = 3
    """Iterations of reweighted least squares."""
    exponent: float = 0.7
    """Power of a bend that its cost grows with, above `bend_scale`."""
    bend_scale: float = 0.02
    """Map standard deviations; smaller bends cost their square."""
    plate_iterations: int = 300
    """Most iterations of conjugate gradients for the smooth plate."""
    plate_tolerance: float = 3e-3
    """Norm of the gradient at which it stops, relative to the first."""
    robust_iterations: int = 80
    """Most iterations of conjugate gradients for each reweighting."""
    robust_tolerance: float = 5e-2
    """Norm of the gradient at which it stops, relative to the first."""


@dataclass(frozen=True)
class MembraneSettings:
    """How a picture guides a membrane. Compared on six crops of Middlebury 2005."""

    colour_scale: float = 8.0  #: Difference of colours, of 255, at which the affinity of neighbours falls to 1/e.
    min_affinity: float = 3e-4  #: Affinity of neighbours of any colours, so that every hole is attached.
    diagonal_weight: float = 0.5  #: Weight of diagonal neighbours.
    iterations: int = 400  #: Most iterations of conjugate gradients.
    tolerance: float = 1e-5  #: Relative residual at which they stop.


class Surfaces(NamedTuple):
    """Both interpolations of a map; valid pixels keep their values."""

    plate: Floats
    robust: Floats


def interpolate(
    depth: DepthMap, skip: NDArray[np.bool_] | None = None, settings: SurfaceSettings = SurfaceSettings()
) -> Surfaces:
    """Interpolate the missing pixels of a map by a thin plate and by a robust one.

    Parameters
    ----------
    depth
        (height, width) in map standard deviations; NaN is missing. Without a valid pixel, the result is zero.
    skip
        Missing pixels that get a coarse guess only: local averages.
    settings
        Iterations and tolerances. Wide holes end a little short of the minimum.

    Examples
    --------
    >>> depth = np.add.outer(np.zeros(5), np.arange(5.0))
    >>> depth[2, 2] = np.nan
    >>> float(interpolate(depth).plate[2, 2].round(2))
    2.0
    """
    missing = ~np.isfinite(depth)
    if skip is not None:
        missing &= ~np.asarray(binary_erosion(skip, iterations=settings.context_px, border_value=1), bool)
    plate = _local_averages(depth)
    robust = plate.copy()
    if missing.any() and not missing.all():
        system = _ThinPlateSystem.of(plate, missing)
        even = np.ones(len(system.offset))
        values = system.solve(plate[missing], even, settings.plate_iterations, settings.plate_tolerance)
        plate[missing] = values
        for _ in range(settings.reweightings):
            weights = (1 + np.square(system.bends(values) / settings.bend_scale)) ** (settings.exponent / 2 - 1)
            values = system.solve(values, weights, settings.robust_iterations, settings.robust_tolerance)
        robust[missing] = values
    return Surfaces(plate, robust)


@dataclass(frozen=True, eq=False)
class _ThinPlateSystem:
    """Second differences that touch a missing pixel, as linear functions of the missing pixels in their order."""

    ends: NDArray[np.int64]
    """Of the rows of each kind of difference."""
    corners: NDArray[np.int32]
    """Numbers of the missing pixels of each difference, (rows, 4); -1: valid or none."""
    offset: Vector
    """Contribution of the valid pixels to each difference."""

    @classmethod
    def of(cls, values: Floats, missing: NDArray[np.bool_]) -> _ThinPlateSystem:
        number = np.full(missing.shape, -1, np.int32)
        number[missing] = np.arange(int(missing.sum()), dtype=np.int32)
        corners, offset = [], []
        for (_, stencil), factors in zip(SECOND_DIFFERENCES, FACTORS, strict=True):
            indices = _shifted(number, stencil)
            touched = np.nonzero(np.maximum.reduce(indices) >= 0)
            which = np.full((len(touched[0]), len(factors)), -1, np.int32)
            which[:, : len(stencil)] = np.stack([each[touched] for each in indices], axis=1)
            held = np.stack([each[touched] for each in _shifted(values, stencil)], axis=1)
            corners.append(which)
            offset.append(np.where(which[:, : len(stencil)] >= 0, 0, held) @ factors[: len(stencil)])
        ends = np.cumsum([len(which) for which in corners])
        return cls(ends, np.concatenate(corners), np.concatenate(offset))

    def bends(self, values: Vector) -> Vector:
        """Compute the second differences of a surface."""
        bends = np.empty(len(self.offset))
        kernels.bend(len(self.ends), self.ends, self.corners, FACTORS, self.offset, values, bends)
        return bends

    def solve(self, values: Vector, weights: Vector, iterations: int, tolerance: float) -> Vector:
        """Reduce the weighted sum of squared bends, by preconditioned conjugate gradients."""
        n, values = len(values), np.array(values)
        scratch, neighbours = np.empty(kernels.scratch(n)), np.empty((n, kernels.OTHERS), np.int32)
        rows = (n, len(self.ends), self.ends, self.corners, FACTORS, SLOTS, self.offset, weights)
        kernels.solve(*rows, iterations, tolerance, scratch, neighbours, values)
        return values


def colour_affinity(guide: Floats, settings: MembraneSettings) -> csr_matrix:
    """Return the weight of each pixel's neighbours by their colours: a symmetric matrix, one row a pixel."""
    height, width = guide.shape[:2]
    index = np.arange(height * width).reshape(height, width)
    ends, weights = [], []
    for down, right, diagonal in STRAIGHT_AND_DIAGONAL:
        first = (slice(0, height - down), slice(max(-right, 0), width - max(right, 0)))
        second = (slice(down, height), slice(max(right, 0), width - max(-right, 0)))
        difference = np.sqrt(np.square(guide[first] - guide[second]).sum(axis=2))
        ends.append((index[first].ravel(), index[second].ravel()))
        factor = settings.diagonal_weight if diagonal else 1.0
        weights.append((factor * (np.exp(-difference / settings.colour_scale) + settings.min_affinity)).ravel())
    one, other = (np.concatenate(part) for part in zip(*ends, strict=True))
    weight = np.concatenate(weights)
    both = (np.concatenate([weight, weight]), (np.concatenate([one, other]), np.concatenate([other, one])))
    return csr_matrix(both, shape=(index.size, index.size))


def membrane(depth: DepthMap, affinity: csr_matrix, start: DepthMap, settings: MembraneSettings) -> Floats:
    """Minimise the weighted squared differences of neighbours; valid pixels keep their values.

    Where the start is missing too, it begins at the mean.
    """
    flat = np.asarray(depth, np.float64).ravel()
    missing, valid = np.flatnonzero(np.isnan(flat)), np.flatnonzero(~np.isnan(flat))
    if not len(missing) or not len(valid):
        return np.asarray(depth, np.float64).copy()
    level = float(flat[valid].mean())
    rows = affinity[missing]
    degree = np.asarray(rows.sum(axis=1)).ravel()
    inner = diags(degree) - rows[:, missing]
    first = np.nan_to_num(np.asarray(start, np.float64).ravel()[missing] - level)
    target = rows[:, valid] @ (flat[valid] - level)
    limits = {"rtol": settings.tolerance, "maxiter": settings.iterations}
    found, _ = cg(inner, target, x0=first, M=diags(1 / degree), **limits)
    filled = flat.copy()
    filled[missing] = found + level
    return filled.reshape(depth.shape)


def _shifted(values: NDArray[Any], stencil: Collection[tuple[int, int]]) -> list[NDArray[Any]]:
    """Return the values at each pixel of a stencil, at all places where the whole stencil lies within the map."""
    down, right = (max(along) for along in zip(*stencil, strict=True))
    rows, columns = (max(side - far, 0) for side, far in zip(values.shape, (down, right), strict=True))
    return [values[row : row + rows, column : column + columns] for row, column in stencil]


def _local_averages(depth: DepthMap) -> Floats:
    """Fill missing pixels from maps of half the size, those from maps of a quarter, and so on (pull-push)."""
    valid = np.isfinite(depth)
    return _pull_push(np.where(valid, depth, 0.0).astype(np.float64), valid.astype(np.float64))


def _pull_push(total: Floats, weight: Floats) -> Floats:
    """Average sums by their weights; where the weight is below one, blend with the map of half the size."""
    shape, share = total.shape, np.minimum(weight, 1)
    mean = total / np.where(weight > 0, weight, 1)
    axes = [axis for axis in (0, 1) if shape[axis] > 1]
    if not axes or share.min() == 1:
        return mean
    for axis in axes:
        total, weight = _downsample(total, axis), _downsample(weight, axis)
    coarse = _pull_push(total, weight)
    for axis in axes:
        coarse = _upsample(coarse, axis, shape[axis])
    return coarse + share * (mean - coarse)


def _downsample(values: Floats, axis: int) -> Floats:
    """Add pairs of neighbours; of an odd number, each second pixel and half of its neighbours, so flips commute."""
    along = np.moveaxis(values, axis, 0)
    if len(along) % 2 == 0:
        half = along[::2] + along[1::2]
    else:
        half = along[::2].copy()
        half[1:] += along[1::2] / 2
        half[:-1] += along[1::2] / 2
    return np.moveaxis(half, 0, axis)


def _upsample(values: Floats, axis: int, size: int) -> Floats:
    """Interpolate the pixels of `_downsample` linearly to ``size`` of them; constant at the ends."""
    along = np.moveaxis(values, axis, 0)
    double = np.empty((size, *along.shape[1:]))
    if size % 2 == 0:
        padded = np.concatenate([along[:1], along, along[-1:]])
        double[::2] = 0.75 * along + 0.25 * padded[:-2]
        double[1::2] = 0.75 * along + 0.25 * padded[2:]
    else:
        double[::2], double[1::2] = along, (along[1:] + along[:-1]) / 2
    return np.moveaxis(double, 0, axis)

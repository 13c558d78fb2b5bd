"""Interpolate missing pixels of a map: by a thin plate, by one that prefers creases to bending, by a membrane.

The first is a thin plate with a free border. A plate rounds edges off and swings near them. The second is the robust
version, by iteratively reweighted least squares: strong bends cost less than their square, so they concentrate. The
membrane follows the colours of a picture: neighbours of similar colour pull at each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_erosion
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import cg

from sparsedepth.kernels import plates as kernels
from sparsedepth.kernels import pyramid
from sparsedepth.vocabulary import DepthMap, Floats

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
    plate_tolerance: float = 1e-2
    """Norm of the gradient at which it stops, relative to the first, in each part of the holes."""
    least_gradient: float = 1e-8
    """Map standard deviations; conjugate gradients stop where the gradient is smaller (rounding of float32 maps)."""
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
    missing = np.ascontiguousarray(~np.isfinite(depth))
    if skip is not None and skip.any():
        place = _around(skip)
        missing[place] &= ~np.asarray(binary_erosion(skip[place], iterations=settings.context_px, border_value=1), bool)
    plate = _local_averages(depth)
    robust = plate.copy()
    if missing.any() and not missing.all():
        _fill(missing, plate, robust, settings)
    return Surfaces(plate, robust)


def _around(marked: NDArray[np.bool_]) -> tuple[slice, slice]:
    """Return the rows and columns of marked pixels, and of those next to them."""
    ends = [np.flatnonzero(marked.any(axis))[[0, -1]] for axis in (1, 0)]
    down, right = (slice(max(int(first) - 1, 0), int(last) + 2) for first, last in ends)
    return down, right


def _fill(missing: NDArray[np.bool_], plate: Floats, robust: Floats, settings: SurfaceSettings) -> None:
    """Fill the missing pixels of two copies of a map in place, from a coarse guess.

    The bending energy is the sum of the squares of second differences, as far as they lie within the map. Those across
    rows and columns count twice. A plane has none, also at the border. Parts of the holes that share no second
    difference do not depend on each other.
    """
    n, border, sizes = np.count_nonzero(missing), 2 * kernels.BORDER, np.empty(3, np.int64)
    number = np.empty((missing.shape[0] + border, missing.shape[1] + border), np.int32)
    pixels, ends, scratch = np.empty(n, np.int32), np.empty(n, np.int64), np.empty((2, n), np.int32)
    parts = kernels.number(*missing.shape, missing.view(np.uint8), scratch, number, pixels, ends)
    kernels.scratch(*missing.shape, int(np.diff(ends[:parts], prepend=0).max()), sizes)
    room = [np.empty(size, kind) for size, kind in zip(sizes, (np.float64, np.int32, np.uint8), strict=True)]
    iterations = np.array([settings.plate_iterations, settings.robust_iterations])
    limits = (iterations, np.array([settings.plate_tolerance, settings.robust_tolerance]), settings.least_gradient)
    weights = (settings.reweightings, settings.bend_scale, settings.exponent / 2 - 1)
    kernels.fill(*missing.shape, number, pixels, parts, ends, *limits, *weights, *room, plate, robust)


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


def _local_averages(depth: DepthMap) -> Floats:
    """Fill missing pixels from maps of half the size, those from maps of a quarter, and so on (pull-push)."""
    values, (height, width) = np.ascontiguousarray(depth, np.float64), depth.shape
    (coarse, weights), scratch, filled = _halves(height, width), np.empty((2, width)), np.empty((height, width))
    pyramid.first(height, width, values, scratch, coarse, weights)
    _average(coarse, weights)
    pyramid.last(height, width, values, coarse, scratch, filled)
    return filled


def _average(sums: Floats, weights: Floats) -> None:
    """Average sums by their weights, in place; where the weight is below one, blend with the map of half the size."""
    height, width = sums.shape
    (coarse, half_weights), scratch = _halves(height, width), np.empty(width)
    if sums.size > 1 and weights.min() < 1:
        pyramid.halve(height, width, sums, scratch, coarse)
        pyramid.halve(height, width, weights, scratch, half_weights)
        _average(coarse, half_weights)
    pyramid.blend(height, width, coarse, weights, scratch, sums)


def _halves(height: int, width: int) -> Floats:
    """Return sums and weights, all zero, of a map of half the size."""
    return np.zeros((2, (height + 1) // 2, (width + 1) // 2))

"""Patches of maps: cut, centred and scaled, with holes; and random batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from sparsedepth.checks import as_floats
from sparsedepth.vocabulary import DepthMap, Floats, InputError, Patches, Vector

Number = TypeVar("Number", bound=np.number[Any])


@dataclass(frozen=True)
class Normalised:
    """Patches with mean 0 and about unit variance over their valid pixels, and what undoes it."""

    patches: Patches
    centre: Vector
    scale: Vector
    contrast: Vector
    """The standard deviation of the known pixels, before softening."""


def corners(size: int, patch: int, stride: int) -> NDArray[np.intp]:
    """Compute where patches begin along one side of a map: from border to border, at most ``stride`` apart.

    The places are the same from either end, so that flipping a map flips its patches.
    """
    room = size - patch
    from_one_end = np.arange(0, room // 2 + 1, stride)
    if room - 2 * from_one_end[-1] > stride:
        from_one_end = np.append(from_one_end, room // 2)
    return np.union1d(from_one_end, room - from_one_end)


@dataclass(frozen=True)
class Window:
    """A rectangle of a map, with a margin around its target."""

    rows: slice
    columns: slice
    inside: tuple[slice, slice]
    """The target, relative to the window."""
    whole: tuple[int, int]
    """The shape of the map."""

    @classmethod
    def full(cls, shape: tuple[int, int]) -> Window:
        """Return the window that shows a whole map."""
        rows, columns = slice(0, shape[0]), slice(0, shape[1])
        return cls(rows, columns, (rows, columns), shape)

    @property
    def target(self) -> tuple[slice, slice]:
        """The target, relative to the map."""
        down, right = self.inside
        return (
            slice(self.rows.start + down.start, self.rows.start + down.stop),
            slice(self.columns.start + right.start, self.columns.start + right.stop),
        )

    def corners(self, patch_shape: tuple[int, int], stride: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows and columns, relative to the window, where the map's patches within it begin."""
        rows, columns = (
            starts[(starts >= side.start) & (starts + patch <= side.stop)] - side.start
            for side, patch, starts in (
                (side, patch, corners(size, patch, stride))
                for side, patch, size in zip((self.rows, self.columns), patch_shape, self.whole, strict=True)
            )
        )
        return rows, columns


def cut(depth: DepthMap, patch_shape: tuple[int, int], stride: int = 1) -> Patches:
    """Cut all patches of a map (n, pixels) at a stride, row by row; the last ones end at the map's border."""
    height, width = patch_shape
    _require_room(depth, patch_shape)
    windows = sliding_window_view(depth, patch_shape)
    tops, lefts = corners(depth.shape[0], height, stride), corners(depth.shape[1], width, stride)
    return windows[np.ix_(tops, lefts)].reshape(len(tops) * len(lefts), height * width)


def overlay(patches: Patches, shape: tuple[int, int], patch_shape: tuple[int, int], stride: int = 1) -> DepthMap:
    """Average the patches that cover each pixel of a map: undoes `cut`. NaN pixels are left out."""
    height, width = patch_shape
    tops, lefts = corners(shape[0], height, stride), corners(shape[1], width, stride)
    tiles = patches.reshape(len(tops), len(lefts), height, width)
    known = ~np.isnan(tiles)
    total, count = np.zeros(shape), np.zeros(shape)
    add_tiles(total, np.where(known, tiles, 0), tops, lefts)
    add_tiles(count, known, tops, lefts)
    return np.divide(total, count, out=np.full(shape, np.nan), where=count > 0).astype(patches.dtype)


def add_tiles(total: Floats, tiles: Floats, tops: NDArray[np.intp], lefts: NDArray[np.intp]) -> None:
    """Add tiles (rows, columns, height, width) into a map at their positions: along columns, then rows."""
    rows, _, height, width = tiles.shape
    strips = np.zeros((rows, height, total.shape[1]))
    across, down = _runs(lefts), _runs(tops)
    for column in range(width):
        for some, places in across:
            strips[:, :, _beyond(places, column)] += tiles[:, some, :, column].swapaxes(1, 2)
    for row in range(height):
        for some, places in down:
            total[_beyond(places, row)] += strips[some, row]


def _runs(starts: NDArray[np.intp]) -> list[tuple[slice, slice]]:
    """Turn rising positions into few slices, each with that of their order: adding to slices is faster."""
    ends = [*(np.flatnonzero(np.diff(starts, 2)) + 2).tolist(), len(starts)]
    runs = []
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        step = int(starts[begin + 1] - starts[begin]) if end > begin + 1 else 1
        runs.append((slice(begin, end), slice(int(starts[begin]), int(starts[end - 1]) + 1, step)))
    return runs


def _beyond(places: slice, by: int) -> slice:
    return slice(places.start + by, places.stop + by, places.step)


def normalise(
    patches: Patches, softening: Vector | float = 0.0, variance: Floats | None = None, scale: Vector | None = None
) -> Normalised:
    """Subtract each patch's mean and divide by sqrt(its variance + softening squared), over its valid pixels.

    ``softening``, in units of the patches, keeps the noise of flat patches from being blown up. Where a sensor's
    ``variance`` is given, reliable pixels count more. A patch with no known pixel, or no contrast, keeps scale 1. With
    a ``scale`` for each patch, it divides them instead.
    """
    known = ~np.isnan(patches)
    weight = known.astype(np.float64)
    if variance is not None:
        weight = np.where(known & np.isfinite(variance), 1 / np.where(known, variance, 1), 0)
    total = np.maximum(weight.sum(axis=1), np.finfo(np.float64).tiny)
    values = np.where(known, patches, 0).astype(np.float64)
    centre = (weight * values).sum(axis=1) / total
    deviation = values - centre[:, None]
    contrast = np.sqrt((weight * deviation**2).sum(axis=1) / total)
    scale = np.hypot(contrast, softening) if scale is None else np.asarray(scale, np.float64)
    scale = np.where(scale > 0, scale, 1.0)
    scaled = np.where(known, deviation / scale[:, None], np.nan).astype(patches.dtype)
    return Normalised(scaled, centre, scale, contrast)


def thinned(maps: Sequence[DepthMap], every: Sequence[int]) -> list[DepthMap]:
    """Extend the maps by copies that keep every n-th pixel only: the same shapes, finer and steeper."""
    if any(n < 2 for n in every):
        raise InputError(f"every {min(every)}-th pixel was asked for; give 2 or more")
    return [*maps, *(depth[start::n, start::n] for depth in maps for n in every for start in range(n))]


@dataclass(frozen=True)
class Batch:
    """Patches to learn from and, if a sensor gives one, the variance of each pixel in the same units."""

    patches: Patches
    variance: Floats | None = None


class PatchPool:
    """Batches drawn at random from given patches; batch number ``step`` is always the same for one seed."""

    def __init__(self, patches: Patches, *, batch: int = 256, seed: int = 0, variance: Floats | None = None) -> None:
        self.patches, self.variance, self.batch, self.seed = as_floats("patches", patches), variance, batch, seed
        if self.patches.ndim != 2 or len(self.patches) == 0:
            raise InputError(f"patches have shape {self.patches.shape}; give at least one, as rows (n, pixels)")
        if variance is not None and np.shape(variance) != self.patches.shape:
            raise InputError(f"the variance has shape {np.shape(variance)} but the patches {self.patches.shape}")

    def __call__(self, step: int) -> Batch:
        rows = np.random.default_rng([self.seed, step]).integers(len(self.patches), size=self.batch)
        return Batch(self.patches[rows], None if self.variance is None else self.variance[rows])


class PatchStream:
    """Random patches of some maps: batch number ``step`` is always the same for the same seed, so a run can resume.

    A patch is taken if enough of it is known and it is not flat. It is centred, and flipped and transposed at random.
    Thresholds are relative to the standard deviation of the whole map, so units do not matter.

    Parameters
    ----------
    maps
        Maps, each (height, width) in its own unit; NaN = missing.
    patch_shape
        Height and width of a patch, in pixels.
    batch
        Patches of a batch.
    seed
        Number that chooses the patches.
    holes
        "mask" lets missing pixels take no part; "keep" makes them zeros that are data (Approach 2 of the paper).
    scale
        "patch" scales each patch to about unit variance. "map" divides by the standard deviation of its map, so that
        patches keep their contrast, as in the paper's learning.
    variances
        A sensor's or a matcher's own variance of every pixel, one map for each map; None = there is none.
    softening, least_contrast
        Standard deviations, in those of a map: one is added to that of a patch, a flatter patch than the other is left.
    least_known
        Least fraction of known pixels of a patch.

    Examples
    --------
    >>> stream = PatchStream([np.add.outer(np.zeros(24), np.arange(24.0) ** 2)], (8, 8), batch=4)
    >>> stream(step=0).patches.shape
    (4, 64)
    """

    def __init__(
        self,
        maps: Sequence[DepthMap],
        patch_shape: tuple[int, int],
        *,
        batch: int = 256,
        seed: int = 0,
        holes: str = "mask",
        scale: str = "patch",
        variances: Sequence[DepthMap] | None = None,
        softening: float = 0.05,
        least_contrast: float = 0.05,
        least_known: float = 0.7,
    ) -> None:
        if holes not in ("mask", "keep"):
            raise InputError(f"holes={holes!r}; choose 'mask' (they take no part) or 'keep' (they are zeros)")
        if scale not in ("patch", "map"):
            raise InputError(
                f"scale={scale!r}; choose 'patch' (each to unit variance) or 'map' (by its map's deviation)"
            )
        if not maps:
            raise InputError("there is no map to learn from")
        self.maps = [np.asarray(m, np.float32) for m in maps]
        self.spread = [_spread(m, patch_shape) for m in self.maps]
        if holes == "keep":
            self.maps = [np.nan_to_num(m, nan=0.0) for m in self.maps]
        self.variances = None if variances is None else [np.asarray(v, np.float32) for v in variances]
        if self.variances is not None and [v.shape for v in self.variances] != [m.shape for m in self.maps]:
            raise InputError("each map needs a variance map of its own shape")
        self.patch_shape, self.batch, self.seed, self.scale = patch_shape, batch, seed, scale
        self.softening, self.least_contrast, self.least_known = softening, least_contrast, least_known

    def __call__(self, step: int) -> Batch:
        """Draw the patches of one step."""
        rng = np.random.default_rng([self.seed, step])
        taken: list[Batch] = []
        for _ in range(64):
            taken.append(self._draw(rng))
            if sum(len(b.patches) for b in taken) >= self.batch:
                break
        else:
            raise InputError(
                "almost no patch of these maps is known well enough and has any contrast; "
                "lower least_contrast or least_known, or give other maps"
            )
        patches = np.concatenate([b.patches for b in taken])[: self.batch]
        if self.variances is None:
            return Batch(patches)
        return Batch(patches, np.concatenate([b.variance for b in taken if b.variance is not None])[: self.batch])

    def _draw(self, rng: np.random.Generator) -> Batch:
        """Draw as many random patches as make a batch, without those that are not fit."""
        height, width = self.patch_shape
        n = self.batch
        patches = np.empty((n, height * width), np.float32)
        variance = np.empty_like(patches)
        spread = np.empty(n)
        for row, which in enumerate(rng.integers(len(self.maps), size=n)):
            depth = self.maps[which]
            top = int(rng.integers(depth.shape[0] - height + 1))
            left = int(rng.integers(depth.shape[1] - width + 1))
            window = slice(top, top + height), slice(left, left + width)
            symmetry = int(rng.integers(SYMMETRIES)) & (7 if height == width else 3)
            patches[row] = turned(depth[window], symmetry).ravel()
            spread[row] = self.spread[which]
            if self.variances is not None:
                variance[row] = turned(self.variances[which][window], symmetry).ravel()
        given = None if self.variances is None else variance
        result = normalise(patches, self.softening * spread, given, spread if self.scale == "map" else None)
        known = 1 - np.isnan(patches).mean(axis=1)
        structured = (result.contrast > 0) & (result.contrast >= self.least_contrast * spread)
        fit = structured & (known >= self.least_known)
        scaled = None if given is None else (variance / result.scale[:, None] ** 2).astype(np.float32)[fit]
        return Batch(result.patches[fit], scaled)


SYMMETRIES = 8
"""Of a square; the first four keep the shape of an oblong."""


def turned(window: NDArray[Number], symmetry: int) -> NDArray[Number]:
    """Flip a map up-down (bit 0) and left-right (bit 1), then transpose it (bit 2)."""
    if symmetry & 1:
        window = window[::-1]
    if symmetry & 2:
        window = window[:, ::-1]
    return window.T if symmetry & 4 else window


def _require_room(depth: DepthMap, patch_shape: tuple[int, int]) -> None:
    if depth.ndim != 2 or depth.shape[0] < patch_shape[0] or depth.shape[1] < patch_shape[1]:
        raise InputError(
            f"a map of shape {depth.shape} is smaller than a patch of {patch_shape[0]}x{patch_shape[1]}; leave it out"
        )


def _spread(depth: DepthMap, patch_shape: tuple[int, int]) -> float:
    _require_room(depth, patch_shape)
    known = depth[np.isfinite(depth)]
    return float(known.std()) if known.size else 0.0

"""What comes in, as the methods want it: float maps of unit deviation around zero, NaN = unknown; and the way back.

A map is looked at through windows. One of moderate size has a single window; a huge one, which may lie in a file, has
tiles with a margin, and whatever holds for the whole map is learned from a sample of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter, minimum_filter

from sparsedepth.parallel import run_in_threads
from sparsedepth.patches import corners
from sparsedepth.vocabulary import LARGEST, DepthMap, Floats, InputError, Origin, Restoration, as_array

MOST_PIXELS = 2**21
"""A map of more is worked on in tiles."""
ENOUGH = 2**21
"""Pixels that tell the median and the deviation of a map; more than these are thinned out."""
TILE = 768
"""The side of a tile, without its margin."""
MARGIN = 3
"""Patches beyond a tile that its pixels may depend on."""
SAMPLES, SAMPLE = 3, 384
"""A huge map is sampled by so many windows a side, each of this side, spread evenly over it."""


@dataclass(frozen=True)
class Window:
    """A rectangle of a map, and the part of it that is wanted: the rest is margin."""

    rows: slice
    columns: slice
    inside: tuple[slice, slice]
    """Relative to the window."""
    whole: tuple[int, int]
    """The shape of the map."""

    @classmethod
    def on_all(cls, shape: tuple[int, int]) -> Window:
        rows, columns = slice(0, shape[0]), slice(0, shape[1])
        return cls(rows, columns, (rows, columns), shape)

    @property
    def target(self) -> tuple[slice, slice]:
        """The wanted part, relative to the map."""
        down, right = self.inside
        return (
            slice(self.rows.start + down.start, self.rows.start + down.stop),
            slice(self.columns.start + right.start, self.columns.start + right.stop),
        )

    def corners(self, patch_shape: tuple[int, int], stride: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where the map's patches begin that lie within the window, relative to it."""
        rows, columns = (
            starts[(starts >= side.start) & (starts + patch <= side.stop)] - side.start
            for side, patch, starts in (
                (side, patch, corners(size, patch, stride))
                for side, patch, size in zip((self.rows, self.columns), patch_shape, self.whole, strict=True)
            )
        )
        return rows, columns


@dataclass(frozen=True, eq=False)
class Part:
    """What a window shows, or a stack of windows, in units in which the map has median 0 and deviation 1."""

    depth: DepthMap
    variance: DepthMap | None
    window: Window

    @classmethod
    def of_all(cls, depth: DepthMap, variance: DepthMap | None) -> Part:
        return cls(depth, variance, Window.on_all((depth.shape[-2], depth.shape[-1])))

    def without(self, where: NDArray[np.bool_]) -> Part:
        """The same with some pixels unknown."""
        if not where.any():
            return self
        variance = None if self.variance is None else np.where(where, np.inf, self.variance).astype(np.float32)
        return replace(self, depth=np.where(where, np.nan, self.depth).astype(self.depth.dtype), variance=variance)


RestorePart = Callable[[Part, int], tuple[Floats, Floats, NDArray[np.integer[Any]]]]
"""Restores what a window shows with so many threads: depth, variance and origin, in units of the part."""


@dataclass(frozen=True, eq=False)
class Work:
    """A map as it was given, and the unit in which its known pixels have median 0 and deviation 1."""

    source: Any
    given: Any
    """A sensor's variance, or None."""
    codes: Any
    dtype: np.dtype[Any]
    reference: float
    spread: float
    patch_shape: tuple[int, int]

    @classmethod
    def of(
        cls, depth: Any, variance: Any, patch_shape: tuple[int, int], invalid: float | Sequence[float] | None
    ) -> Work:
        depth = as_array("the map", depth)
        dtype = _checked_type(depth)
        given = None if variance is None else _checked_variance(variance, depth.shape)
        thinning = -(-depth.size // ENOUGH)
        seen: list[Floats] = []
        for rows in _row_blocks(depth.shape):
            values = real_map(depth[rows], invalid)[0]
            known = np.isfinite(values)
            if given is not None:
                known &= np.isfinite(_sensor_variance(given[rows]))
            seen.append(values[known][::thinning].copy())  # a view would keep the whole block
        known_values = np.concatenate(seen)
        reference = float(np.median(known_values)) if len(known_values) else 0.0
        spread = float(np.std(known_values - reference)) if len(known_values) else 0.0
        return cls(depth, given, invalid, dtype, reference, spread if spread > 0 else 1.0, patch_shape)

    @property
    def shape(self) -> tuple[int, int]:
        return self.source.shape

    @property
    def huge(self) -> bool:
        return self.source.size > MOST_PIXELS

    def windows(self) -> Iterator[Window]:
        """What covers the map: one window, or tiles with a margin."""
        height, width = (max(side, patch) for side, patch in zip(self.shape, self.patch_shape, strict=True))
        if not self.huge:
            yield Window.on_all((height, width))
            return
        down, right = (MARGIN * patch for patch in self.patch_shape)
        for top in range(0, height, TILE):
            for left in range(0, width, TILE):
                rows = slice(max(top - down, 0), min(top + TILE + down, height))
                columns = slice(max(left - right, 0), min(left + TILE + right, width))
                inside = (
                    slice(top - rows.start, min(top + TILE, height) - rows.start),
                    slice(left - columns.start, min(left + TILE, width) - columns.start),
                )
                yield Window(rows, columns, inside, (height, width))

    def look(self, window: Window) -> Part:
        """What a window shows, padded with unknown pixels where a map is smaller than a patch."""
        place = (window.rows, window.columns)
        values, _ = real_map(self.source[place], self.codes)
        known, given = np.isfinite(values), None
        if self.given is not None:
            sensor = _sensor_variance(self.given[place])
            known &= np.isfinite(sensor)
            given = np.where(known, sensor / self.spread**2, np.inf).astype(np.float32)
            given = padded(np.maximum(given, np.finfo(np.float32).tiny), self.patch_shape, np.inf)
        unit = np.where(known, (values - self.reference) / self.spread, np.nan).astype(np.float32)
        return Part(padded(unit, self.patch_shape, np.nan), given, window)

    def sample(self) -> Part:
        """The whole map; of a huge one, windows spread evenly over it, side by side."""
        if not self.huge:
            return self.look(next(self.windows()))
        down, right = (
            [slice(start, start + min(SAMPLE, side)) for start in _spread_evenly(side)] for side in self.shape
        )
        parts = [[self.look(Window(r, c, (r, c), self.shape)) for c in right] for r in down]
        depth = np.vstack([np.hstack([part.depth for part in row]) for row in parts])
        given = [[part.variance for part in row if part.variance is not None] for row in parts]
        return Part.of_all(depth, None if self.given is None else np.vstack([np.hstack(row) for row in given]))

    def do(self, restore: RestorePart, room: Restoration | None, threads: int) -> Restoration:
        """Restore the map window by window, into ``room`` if there is one."""
        room = self._room() if room is None else self._checked(room)
        if not self.huge:
            part = self.look(next(self.windows()))
            self.put(room, part.window, *restore(part, threads))
            return room

        def done(window: Window) -> None:
            self.put(room, window, *restore(self.look(window), 1))

        run_in_threads(done, self.windows(), threads)
        return room

    def _room(self) -> Restoration:
        return Restoration(
            np.empty(self.shape, self.dtype), np.empty(self.shape, self.dtype), np.empty(self.shape, "u1")
        )

    def _checked(self, room: Restoration) -> Restoration:
        kinds = {"depth": "f", "variance": "f", "origin": "u"}
        for name, kind in kinds.items():
            array = getattr(room, name)
            if array.shape != self.shape or array.dtype.kind != kind:
                wanted = "floats" if kind == "f" else "uint8"
                raise InputError(
                    f"out.{name} is {array.dtype} of shape {array.shape}; give {wanted} of shape {self.shape}"
                )
        return room

    def put(
        self, room: Restoration, window: Window, depth: Floats, variance: Floats, origin: NDArray[np.integer[Any]]
    ) -> None:
        """A window's result in units of the map that came in; what was refused is NaN with infinite variance."""
        target = window.target
        height, width = room.depth[target].shape
        inside = tuple(
            slice(side.start, side.start + n) for side, n in zip(window.inside, (height, width), strict=True)
        )
        refused = origin[inside] == Origin.REFUSED
        values = np.where(refused, np.nan, depth[inside].astype(np.float64) * self.spread + self.reference)
        least = (float(np.finfo(np.float32).eps) * max(self.spread, abs(self.reference))) ** 2
        spread = np.maximum(variance[inside].astype(np.float64) * self.spread**2, least)
        room.depth[target] = np.clip(values, *_range_of(room.depth))
        room.variance[target] = np.where(refused, np.inf, np.clip(spread, *_range_of(room.variance, above_zero=True)))
        room.origin[target] = origin[inside]


def _range_of(array: NDArray[Any], *, above_zero: bool = False) -> tuple[float, float]:
    """The numbers that its type can hold: what lies beyond saturates."""
    limits = np.finfo(array.dtype)
    return float(limits.tiny if above_zero else limits.min), float(limits.max)


def real_map(depth: Any, invalid: float | Sequence[float] | None = None) -> tuple[Floats, np.dtype[Any]]:
    """Any real two-dimensional array as float64 with NaN = unknown, and the float type its results will have.

    Unknown are NaN, infinities, masked entries and the values of ``invalid``: None means 0 for integer maps and nothing
    for float maps.
    """
    array = np.asarray(np.ma.getdata(depth))
    dtype = _checked_type(array)
    codes = ((0,) if array.dtype.kind in "iu" else ()) if invalid is None else np.atleast_1d(invalid)
    unknown = np.ma.getmaskarray(depth) | np.isin(array, codes)
    values = np.where(unknown | ~np.isfinite(array), np.nan, array.astype(np.float64))
    largest = np.nanmax(np.abs(values), initial=0)
    if largest > LARGEST:
        raise InputError(f"the map holds {largest:g}; give it in a larger unit, or name it in invalid= if it is a code")
    return values, dtype


def _checked_type(array: NDArray[Any]) -> np.dtype[Any]:
    """The float type of results for a map of real numbers in two dimensions."""
    if array.dtype.kind not in "fiu":
        raise InputError(f"the map is an array of {array.dtype}; give real numbers, NaN = unknown")
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"the map has shape {array.shape}; give (height, width), one depth a pixel")
    return np.dtype(np.float64 if array.dtype.kind == "f" and array.dtype.itemsize > 4 else np.float32)


def _checked_variance(variance: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    array = as_array("the variance", variance)
    if array.ndim and array.shape != shape:
        raise InputError(f"the variance has shape {array.shape} but the map {shape}; give one for each pixel")
    return np.broadcast_to(array, shape) if array.ndim == 0 else array


def _sensor_variance(variance: NDArray[Any]) -> Floats:
    """A sensor's variance as float64, inf where it is NaN or masked."""
    array = np.asarray(np.ma.filled(variance.astype(np.float64), np.inf))
    if (array <= 0).any():
        raise InputError(
            "the variance must be positive, in squared units of the map: inf = not measured; "
            "a confidence (1 = sure) is no variance"
        )
    return np.where(np.isnan(array), np.inf, array)


def _row_blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    step = max(1, ENOUGH // shape[1])
    for top in range(0, shape[0], step):
        yield slice(top, min(top + step, shape[0]))


def _spread_evenly(side: int) -> list[int]:
    """Where the samples begin along a side: one where the side has no room for more."""
    room = side - SAMPLE
    return [0] if room <= 0 else [round(room * (2 * n + 1) / (2 * SAMPLES)) for n in range(SAMPLES)]


def padded(values: NDArray[Any], patch_shape: tuple[int, int], fill: float) -> NDArray[Any]:
    """A map that holds at least one patch."""
    missing = [(0, max(0, patch - side)) for side, patch in zip(values.shape, patch_shape, strict=True)]
    return np.pad(values, missing, constant_values=fill)


def origins(known: NDArray[np.bool_], noisy: NDArray[np.bool_], refused: NDArray[np.bool_]) -> NDArray[np.integer[Any]]:
    """The `Origin` of each pixel."""
    return np.select([refused, ~known, noisy], [Origin.REFUSED, Origin.FILLED, Origin.CORRECTED], Origin.MEASURED)


def too_wide(unknown: NDArray[np.bool_], patch_shape: tuple[int, int]) -> NDArray[np.bool_]:
    """The unknown pixels that lie in a hole which holds a whole patch: nothing can be said of them."""
    empty = minimum_filter(unknown, size=patch_shape, mode="constant", cval=0)
    mirrored: Any = [0 if side % 2 else -1 for side in patch_shape]
    return np.asarray(maximum_filter(empty, size=patch_shape, mode="constant", cval=0, origin=mirrored), bool)

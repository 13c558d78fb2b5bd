"""Bring a map into the form that the methods work on, tile by tile, and its results back.

Methods see float maps in units of the map's standard deviation, centred at its median; NaN is missing. A map of
moderate size is one tile. A larger one, which may lie in a file, has tiles with a margin, and methods are fitted on a
sample of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.checks import LARGEST
from sparsedepth.parallel import run_in_threads
from sparsedepth.patches import Window
from sparsedepth.ranks import Steps
from sparsedepth.vocabulary import DepthMap, Floats, InputError, Origin, Restoration, as_array

InvalidCodes = float | Sequence[float] | None
"""Values that mark missing pixels; None: 0 in integer maps and nothing in float maps."""


@dataclass(frozen=True)
class TilingSettings:
    """How large maps are cut into tiles; a matter of memory, set by hand."""

    max_untiled_pixels: int = 2**21  #: A map with more pixels is restored in tiles.
    statistics_pixels: int = 2**21  #: Pixels for the median and the standard deviation of a map; more are thinned out.
    tile_px: int = 768  #: Side of a tile, without its margin.
    margin_patches: int = 3  #: Margin of a tile, in patches. The tiles law holds with 3.
    dense_margin_patches: int = 6  #: The same where noise at every pixel is smoothed, after outliers were found.
    margin_px: int = 0  #: Least margin of a tile, in pixels.
    sample_grid: int = 3  #: Windows along each side of a tiled map that make its sample.
    sample_px: int = 384  #: Side of such a window.


@dataclass(frozen=True, eq=False)
class Tile:
    """A window of a map, or a stack of windows, in units in which the map has median 0 and standard deviation 1."""

    depth: DepthMap
    variance: DepthMap | None
    """Variance that a sensor gives for each pixel, if any."""
    window: Window

    @classmethod
    def full(cls, depth: DepthMap, variance: DepthMap | None = None) -> Tile:
        """Make a tile of a whole map, or a stack of whole maps."""
        return cls(depth, variance, Window.full((depth.shape[-2], depth.shape[-1])))

    @cached_property
    def valid(self) -> NDArray[np.bool_]:
        return np.isfinite(self.depth)

    @cached_property
    def steps(self) -> Steps:
        """The differences between adjacent pixels of a single map."""
        return Steps.of(self.depth)

    def masked(self, where: NDArray[np.bool_]) -> Tile:
        """Return the tile with some pixels missing."""
        if not where.any():
            return self
        variance = None if self.variance is None else np.where(where, np.inf, self.variance).astype(np.float32)
        return replace(self, depth=np.where(where, np.nan, self.depth).astype(self.depth.dtype), variance=variance)


RestoreTile = Callable[[Tile, int], tuple[Floats, Floats, NDArray[np.integer[Any]]]]
"""(tile, threads) -> depth, variance and origin of its pixels, in units of the tile."""


@dataclass(frozen=True, eq=False)
class TiledMap:
    """A map as it was given, with its median and standard deviation."""

    source: Any
    sensor_variance: Any
    invalid: InvalidCodes
    dtype: np.dtype[Any]
    centre: float
    scale: float
    patch_shape: tuple[int, int]
    settings: TilingSettings
    decoded: tuple[Floats, Floats | None] | None
    """Depth and variance as float64 where the map is a single tile; a larger map is decoded tile by tile."""

    @classmethod
    def from_array(
        cls, depth: Any, variance: Any, patch_shape: tuple[int, int], invalid: InvalidCodes, settings: TilingSettings
    ) -> TiledMap:
        """Check a map and the variance of its pixels, and measure its centre and scale."""
        depth = as_array("the map", depth)
        dtype = _result_type(depth)
        given = None if variance is None else _checked_variance(variance, depth.shape)
        thinning = -(-depth.size // settings.statistics_pixels)
        samples: list[Floats] = []
        decoded = None
        for rows in _row_blocks(depth.shape, settings.statistics_pixels):
            decoded = _decode(depth[rows], None if given is None else given[rows], invalid)
            valid = decoded[0][np.isfinite(decoded[0])]
            samples.append(valid[::thinning].copy() if thinning > 1 else valid)  # a view would keep the whole block
        centre, scale = centre_and_scale(samples[0] if len(samples) == 1 else np.concatenate(samples))
        single = decoded if depth.size <= settings.max_untiled_pixels and len(samples) == 1 else None
        return cls(depth, given, invalid, dtype, centre, scale, patch_shape, settings, single)

    @property
    def shape(self) -> tuple[int, int]:
        return self.source.shape

    @cached_property
    def sample(self) -> Tile:
        """The tile that methods are fitted on: the whole map, or windows spread evenly over it, put together."""
        if not self.is_tiled:
            return self._read(next(self._windows()))
        down, right = (
            [slice(start, start + min(self.settings.sample_px, side)) for start in self._spread_evenly(side)]
            for side in self.shape
        )
        tiles = [[self._read(Window(r, c, (r, c), self.shape)) for c in right] for r in down]
        depth = np.vstack([np.hstack([tile.depth for tile in row]) for row in tiles])
        given = [[tile.variance for tile in row if tile.variance is not None] for row in tiles]
        variance = None if self.sensor_variance is None else np.vstack([np.hstack(row) for row in given])
        return Tile.full(depth, variance)

    def with_margin(self, margin_px: int) -> TiledMap:
        """Return the map with tiles that have at least such a margin."""
        return replace(self, settings=replace(self.settings, margin_px=margin_px)) if self.is_tiled else self

    def run(self, restore: RestoreTile, out: Restoration | None, threads: int) -> Restoration:
        """Restore the map tile by tile, into ``out`` if it is given."""
        out = self._allocate() if out is None else self._checked(out)
        if not self.is_tiled:
            self._write(out, self.sample.window, *restore(self.sample, threads))
            return out

        def run_tile(window: Window) -> None:
            self._write(out, window, *restore(self._read(window), 1))

        run_in_threads(run_tile, self._windows(), threads)
        return out

    @property
    def is_tiled(self) -> bool:
        """Whether the map is restored in tiles."""
        return self.source.size > self.settings.max_untiled_pixels

    def _windows(self) -> Iterator[Window]:
        """Yield the windows that cover the map: a single one, or tiles with a margin."""
        height, width = (max(side, patch) for side, patch in zip(self.shape, self.patch_shape, strict=True))
        if not self.is_tiled:
            yield Window.full((height, width))
            return
        side = self.settings.tile_px
        chosen = self.settings
        down, right = (max(chosen.margin_patches * patch, chosen.margin_px) for patch in self.patch_shape)
        for top in range(0, height, side):
            for left in range(0, width, side):
                rows = slice(max(top - down, 0), min(top + side + down, height))
                columns = slice(max(left - right, 0), min(left + side + right, width))
                inside = (
                    slice(top - rows.start, min(top + side, height) - rows.start),
                    slice(left - columns.start, min(left + side, width) - columns.start),
                )
                yield Window(rows, columns, inside, (height, width))

    def _read(self, window: Window) -> Tile:
        """Return a window in units of the map, padded with missing pixels to the size of a patch."""
        place = (window.rows, window.columns)
        if self.decoded is None:
            given = None if self.sensor_variance is None else self.sensor_variance[place]
            values, sensor = _decode(self.source[place], given, self.invalid)
        else:
            values, sensor = self.decoded
        variance = None
        if sensor is not None:
            variance = np.where(np.isfinite(values), sensor / self.scale**2, np.inf).astype(np.float32)
            variance = _padded(np.maximum(variance, np.finfo(np.float32).tiny), self.patch_shape, np.inf)
        depth = ((values - self.centre) / self.scale).astype(np.float32)
        return Tile(_padded(depth, self.patch_shape, np.nan), variance, window)

    def in_unit_of_map(self, tile: Tile) -> Floats:
        """Return the depths of a tile in the unit of the map, as float64."""
        return tile.depth.astype(np.float64) * self.scale + self.centre

    def _spread_evenly(self, side: int) -> list[int]:
        """Return where sample windows begin along a side; one where there is no room for more."""
        room, count = side - self.settings.sample_px, self.settings.sample_grid
        return [0] if room <= 0 else [round(room * (2 * n + 1) / (2 * count)) for n in range(count)]

    def _allocate(self) -> Restoration:
        return Restoration(
            np.empty(self.shape, self.dtype), np.empty(self.shape, self.dtype), np.empty(self.shape, "u1")
        )

    def _checked(self, out: Restoration) -> Restoration:
        kinds = {"depth": "f", "variance": "f", "origin": "u"}
        for name, kind in kinds.items():
            array = getattr(out, name)
            if array.shape != self.shape or array.dtype.kind != kind:
                wanted = "floats" if kind == "f" else "uint8"
                raise InputError(
                    f"out.{name} is {array.dtype} of shape {array.shape}; give {wanted} of shape {self.shape}"
                )
        return out

    def _write(
        self, out: Restoration, window: Window, depth: Floats, variance: Floats, origin: NDArray[np.integer[Any]]
    ) -> None:
        """Store the target of a window in units of the given map; refused pixels are NaN with infinite variance."""
        target = window.target
        height, width = out.depth[target].shape
        inside = tuple(
            slice(side.start, side.start + n) for side, n in zip(window.inside, (height, width), strict=True)
        )
        refused = origin[inside] == Origin.REFUSED
        values = np.where(refused, np.nan, self._kept_or_restored(target, depth[inside]))
        rounding = (float(np.finfo(np.float32).eps) * max(self.scale, abs(self.centre))) ** 2
        spread = np.maximum(variance[inside].astype(np.float64) * self.scale**2, rounding)
        out.depth[target] = np.clip(values, *_range_of(out.depth))
        out.variance[target] = np.where(refused, np.inf, np.clip(spread, *_range_of(out.variance, above_zero=True)))
        out.origin[target] = origin[inside]

    def _kept_or_restored(self, target: tuple[slice, slice], depth: Floats) -> Floats:
        """Return depths in the unit of the map; pixels that did not change keep the bits that they came with."""
        given = self.decoded[0][target] if self.decoded is not None else self._decoded_part(target)
        kept = depth == ((given - self.centre) / self.scale).astype(np.float32)
        return np.where(kept, given, depth.astype(np.float64) * self.scale + self.centre)

    def _decoded_part(self, place: tuple[slice, slice]) -> Floats:
        given = None if self.sensor_variance is None else self.sensor_variance[place]
        return _decode(self.source[place], given, self.invalid)[0]


def centre_and_scale(valid: Floats) -> tuple[float, float]:
    """Return the median of values and their standard deviation around it, or 1 where that is zero."""
    centre = float(np.median(valid)) if len(valid) else 0.0
    scale = float(np.std(valid - centre)) if len(valid) else 0.0
    return centre, scale if scale > 0 else 1.0


def as_float_map(depth: Any, invalid: InvalidCodes = None) -> Floats:
    """Convert real numbers to float64, NaN where they are missing: not finite, masked or one of the invalid codes."""
    array = np.asarray(np.ma.getdata(depth))
    _result_type(array)
    codes = ((0,) if array.dtype.kind in "iu" else ()) if invalid is None else np.atleast_1d(invalid)
    values, missing = array.astype(np.float64), ~np.isfinite(array)
    if isinstance(depth, np.ma.MaskedArray):
        missing |= np.ma.getmaskarray(depth)
    if len(codes):
        missing |= np.isin(array, codes)
    values[missing] = np.nan
    largest = max(np.nanmax(values, initial=0), -np.nanmin(values, initial=0))
    if largest > LARGEST:
        raise InputError(f"the map holds {largest:g}; give it in a larger unit, or name it in invalid= if it is a code")
    return values


def classify_origin(
    valid: NDArray[np.bool_],
    corrected: NDArray[np.bool_],
    refused: NDArray[np.bool_],
    moved: NDArray[np.bool_] | None = None,
) -> NDArray[np.integer[Any]]:
    """Return the `Origin` of each pixel; those that moved and were no outliers were smoothed."""
    smoothed = np.zeros_like(valid) if moved is None else moved
    names = (Origin.REFUSED, Origin.FILLED, Origin.CORRECTED, Origin.SMOOTHED)
    return np.select([refused, ~valid, corrected, smoothed], names, Origin.MEASURED)


def _decode(depth: Any, variance: NDArray[Any] | None, invalid: InvalidCodes) -> tuple[Floats, Floats | None]:
    """Return depth and variance as float64; a pixel without a finite variance is missing."""
    values = as_float_map(depth, invalid)
    if variance is None:
        return values, None
    sensor = np.asarray(np.ma.filled(variance.astype(np.float64), np.inf))
    if (sensor <= 0).any():
        raise InputError(
            "the variance must be positive, in squared units of the map: inf = not measured; "
            "a confidence (1 = sure) is no variance"
        )
    return np.where(np.isfinite(sensor), values, np.nan), sensor


def _range_of(array: NDArray[Any], *, above_zero: bool = False) -> tuple[float, float]:
    """Return the range of numbers that the array's type can hold; larger ones saturate."""
    limits = np.finfo(array.dtype)
    return float(limits.tiny if above_zero else limits.min), float(limits.max)


def _result_type(array: NDArray[Any]) -> np.dtype[Any]:
    """Return the float type of results for a two-dimensional map of real numbers; refuse anything else."""
    if array.dtype.kind not in "fiu":
        raise InputError(f"the map is an array of {array.dtype}; give real numbers, NaN = missing")
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"the map has shape {array.shape}; give (height, width), one depth a pixel")
    return np.dtype(np.float64 if array.dtype.kind == "f" and array.dtype.itemsize > 4 else np.float32)


def _checked_variance(variance: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    array = as_array("the variance", variance)
    if array.ndim and array.shape != shape:
        raise InputError(f"the variance has shape {array.shape} but the map {shape}; give one for each pixel")
    return np.broadcast_to(array, shape) if array.ndim == 0 else array


def _row_blocks(shape: tuple[int, ...], pixels: int) -> Iterator[slice]:
    step = max(1, pixels // shape[1])
    for top in range(0, shape[0], step):
        yield slice(top, min(top + step, shape[0]))


def _padded(values: NDArray[Any], patch_shape: tuple[int, int], fill: float) -> NDArray[Any]:
    """Pad a map so that it holds at least one patch."""
    missing = [(0, max(0, patch - side)) for side, patch in zip(values.shape, patch_shape, strict=True)]
    return np.pad(values, missing, constant_values=fill)

"""Rays from missing pixels to the valid pixels around them, and the surfaces that they meet.

Sixteen rays leave each missing pixel, as eight pairs of opposite directions. A ray ends at the first valid pixel. The
plane about that pixel is continued to the missing one. All values are nearness: larger is nearer to the camera.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.vocabulary import Floats

DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1), (1, 2), (2, 1), (1, -2), (2, -1))
"""Rows down and columns to the right of one direction of each pair."""
NEIGHBOURS = DIRECTIONS[:4]
"""Pairs of adjacent pixels."""
CHUNK = 4096
"""Missing pixels treated at once, so that their rays stay in the cache of a processor."""
NOTHING = np.float32(1e30)
"""Distance and value of a ray that meets nothing."""

Mask = NDArray[np.bool_]
Indices = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Rays:
    """Missing pixels and the first valid pixel in each direction, as flat indices; -1 = none within reach."""

    shape: tuple[int, int]
    holes: Indices
    """Of the missing pixels (n,)."""
    hits: Indices
    """Of the valid pixels (2 * pairs, n); opposite directions follow each other."""

    @classmethod
    def cast(
        cls, valid: Mask, reach_px: int, pairs: tuple[tuple[int, int], ...] = DIRECTIONS, only: Mask | None = None
    ) -> Rays:
        """Find the valid pixels nearest to the missing ones along pairs of directions.

        Parameters
        ----------
        valid
            (height, width).
        reach_px
            Rows and columns that a ray passes at most.
        pairs
            Steps of one direction of each pair.
        only
            Missing pixels to start from; all by default.
        """
        height, width = valid.shape
        holes = np.flatnonzero(~valid if only is None else only).astype(np.int32)
        number = np.arange(valid.size, dtype=np.int32)
        before, behind = (np.where(valid.ravel(), number, none).astype(np.int32) for none in (-1, valid.size))
        hits = np.empty((2 * len(pairs), len(holes)), np.int32)
        for k, (down, right) in enumerate(pairs):
            stride = down * width + right
            if stride < 1:
                hits[2 * k : 2 * k + 2] = -1
                continue
            hits[2 * k] = _along(before, stride, np.maximum)[holes]
            hits[2 * k + 1] = _along(behind[::-1], stride, np.minimum)[::-1][holes]
            for which in (2 * k, 2 * k + 1):
                _drop_wrapped(hits[which], holes, (down, right), (height, width), reach_px)
        return cls((height, width), holes, hits)

    def take(self, which: NDArray[np.intp] | slice) -> Rays:
        """Return the rays of some of the missing pixels."""
        return Rays(self.shape, self.holes[which], np.ascontiguousarray(self.hits[:, which]))

    def chunks(self) -> Iterator[tuple[slice, Rays]]:
        """Yield the rays in parts, with their places."""
        for start in range(0, len(self.holes), CHUNK):
            place = slice(start, start + CHUNK)
            yield place, self.take(place)

    def offsets(self) -> tuple[Floats, Floats]:
        """Return rows and columns from each hit to its missing pixel; of no hit, any."""
        width = self.shape[1]
        rows, columns = np.divmod(self.holes, width)
        hit_rows = self.hits // width
        hit_columns = self.hits - hit_rows * width
        return (rows - hit_rows).astype(np.float32), (columns - hit_columns).astype(np.float32)


def _along(indices: Indices, stride: int, extreme: np.ufunc) -> Indices:
    """Accumulate indices along a direction: pixels one stride apart are rows of a reshaped map."""
    padded = np.full(-(-len(indices) // stride) * stride, indices[0] if len(indices) else 0, np.int32)
    padded[: len(indices)] = indices
    return extreme.accumulate(padded.reshape(-1, stride), axis=0).ravel()[: len(indices)]


def _drop_wrapped(hits: Indices, holes: Indices, step: tuple[int, int], shape: tuple[int, int], reach_px: int) -> None:
    """Mark hits beyond reach, and those that a ray met after it left the map at one side, in place."""
    down, right = step
    size, width = shape[0] * shape[1], shape[1]
    count = np.abs(hits - holes) // (down * width + right)
    columns = holes % width + np.where(hits < holes, -right, right) * count
    inside = (hits >= 0) & (hits < size) & (columns >= 0) & (columns < width)
    hits[~(inside & (count * max(down, abs(right)) <= reach_px))] = -1


@dataclass(frozen=True, eq=False)
class Planes:
    """Planes about chosen valid pixels; arrays are indexed by the flat index of the pixel."""

    level: Floats
    down: Floats
    right: Floats
    variance: Floats
    """Of the level."""

    @classmethod
    def flat(cls, nearness: Floats, variance: Floats) -> Planes:
        """Return planes without slope through the pixels themselves."""
        none = np.zeros(nearness.size, np.float32)
        return cls(nearness.ravel(), none, none, variance.ravel())

    @classmethod
    def fit(cls, nearness: Floats, variance: Floats, hits: Indices, fit_px: int, gate: float, slope: float) -> Planes:
        """Fit planes to the pixels around each hit that belong to its surface.

        Parameters
        ----------
        nearness, variance
            (height, width); NaN = missing.
        hits
            Flat indices of the pixels, in any number and order; -1 is left out.
        fit_px
            Half the side of the window; every second pixel of it is used.
        gate
            Largest difference of pixels of one surface, as a fraction of the nearness.
        slope
            Slope, as a fraction of the nearness a pixel, that is as usual as a difference of a third of the gate.
        """
        chosen = np.zeros(nearness.size, bool)
        chosen[hits[hits >= 0]] = True
        pixels = np.flatnonzero(chosen)
        found = cls.flat(nearness, variance)
        level, down, right = (np.array(part) for part in (found.level, found.down, found.right))
        window = _Window.of(nearness, fit_px)
        for start in range(0, len(pixels), CHUNK // 2):
            at = pixels[start : start + CHUNK // 2]
            scale = np.maximum(np.abs(level[at]), 4 / gate * np.sqrt(found.variance[at]))
            offset, down_, right_ = window.fit(at, level[at], scale, gate, slope)
            down[at], right[at] = down_, right_
            most = np.abs(level[at]) / 2
            level[at] += np.clip(offset, -most, most)
        return cls(level, down, right, found.variance)


@dataclass(frozen=True, eq=False)
class _Window:
    """Values in a window about any pixel."""

    padded: Floats
    width: int
    fit_px: int
    down: Floats
    right: Floats

    @classmethod
    def of(cls, nearness: Floats, fit_px: int) -> _Window:
        steps = np.arange(-fit_px, fit_px + 1, 2, dtype=np.float32)
        down, right = (part.ravel() for part in np.meshgrid(steps, steps, indexing="ij"))
        return cls(np.pad(nearness, fit_px, constant_values=np.nan), nearness.shape[1], fit_px, down, right)

    def fit(
        self, pixels: NDArray[np.intp], level: Floats, scale: Floats, gate: float, slope: float
    ) -> tuple[Floats, Floats, Floats]:
        """Return the level of a plane above each pixel, and its slopes, by two passes of gated least squares."""
        wide = self.padded.shape[1]
        centre = (pixels // self.width + self.fit_px) * wide + pixels % self.width + self.fit_px
        shift = (self.down * wide + self.right).astype(np.intp)
        value = (self.padded.ravel()[centre + shift[:, None]] - level) / scale
        distance = np.hypot(self.down, self.right)[:, None]
        close = np.exp(-0.5 * (distance / (0.7 * self.fit_px)) ** 2)
        weight = np.where(np.abs(value) < gate + slope * distance, close, 0).astype(np.float32)
        value = np.where(weight > 0, value, 0).astype(np.float32)
        plane = self._solve(weight, value, gate / 3 / slope)
        residual = value - (plane[0] + np.outer(self.down, plane[1]) + np.outer(self.right, plane[2]))
        weight *= np.abs(residual) < gate
        weight[len(shift) // 2] = 1
        offset, down, right = self._solve(weight, value, gate / 3 / slope)
        return offset * scale, down * scale, right * scale

    def _solve(self, weight: Floats, value: Floats, ridge: float) -> tuple[Floats, Floats, Floats]:
        """Solve weighted least squares for a plane, with a penalty on its slopes."""
        y, x, product = self.down, self.right, weight * value
        total = weight.sum(axis=0)
        mean_y, mean_x, mean = y @ weight / total, x @ weight / total, product.sum(axis=0) / total
        yy = np.square(y) @ weight - total * mean_y**2 + ridge**2
        xx = np.square(x) @ weight - total * mean_x**2 + ridge**2
        xy = (x * y) @ weight - total * mean_x * mean_y
        y_value, x_value = y @ product - total * mean_y * mean, x @ product - total * mean_x * mean
        determinant = yy * xx - xy**2
        down = (y_value * xx - x_value * xy) / determinant
        right = (x_value * yy - y_value * xy) / determinant
        return mean - down * mean_y - right * mean_x, down, right


@dataclass(frozen=True)
class Tolerance:
    """Difference of values of one surface: a fraction of the nearness, or standard deviations if that is larger."""

    fraction: float
    sigmas: float
    steepest: float
    """Largest change of a surface that is continued, as a fraction of its nearness."""

    def of(self, level: Floats, variance: Floats) -> Floats:
        """Return the largest difference from surfaces of some nearness and variance."""
        return np.maximum(self.fraction * np.abs(level), self.sigmas * np.sqrt(variance))


@dataclass(frozen=True, eq=False)
class Candidates:
    """The surfaces that the rays of missing pixels meet; arrays are (directions, n)."""

    distance: Floats
    """In pixels; `NOTHING` where a ray meets nothing."""
    level: Floats
    """Nearness where the ray ends."""
    value: Floats
    """Nearness of that surface, continued to the missing pixel."""
    variance: Floats
    """Of the level."""
    tolerance: Floats
    """Largest difference from another value of the same surface."""

    @classmethod
    def of(cls, rays: Rays, planes: Planes, tolerance: Tolerance) -> Candidates:
        """Continue the planes of all hits to the missing pixels."""
        down, right = rays.offsets()
        none, hits = rays.hits < 0, rays.hits
        level, variance = planes.level[hits], planes.variance[hits]
        rise = planes.down[hits] * down + planes.right[hits] * right
        most = tolerance.steepest * np.abs(level)
        value = level + np.clip(rise, -most, most)
        distance = np.sqrt(down * down + right * right)
        limit = tolerance.of(level, variance)
        for part in (level, value, distance):
            part[none] = NOTHING
        return cls(distance, level, value, variance, limit)

    @property
    def none(self) -> Mask:
        """Rays that meet nothing."""
        return self.distance == NOTHING

    def pick(self, values: NDArray[Any], direction: NDArray[np.intp]) -> NDArray[Any]:
        """Take the value of one direction for each missing pixel."""
        return np.take_along_axis(values, direction[None], axis=0)[0]

    def agree_with(self, direction: NDArray[np.intp]) -> Mask:
        """Tell which candidates lie on the surface of one: where their rays end, or continued to the pixel."""
        level, value, limit = (self.pick(each, direction) for each in (self.level, self.value, self.tolerance))
        gap = np.minimum(np.abs(self.value - value), np.abs(self.level - level))
        return (gap < limit) & ~self.none

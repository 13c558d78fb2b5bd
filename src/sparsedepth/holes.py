"""Fill the holes of depth frames from the side that they belong to.

A shadow of stereo or of structured light is background that one of two views does not see. Its hole touches a near and
a far surface, and belongs to the far one. Other holes touch one surface, which goes on. Rays from each missing pixel
find what its hole touches (`sparsedepth.holes_rays`). Narrow crossings of the hole decide; both ends of a crossing
either agree, or the farther one is taken, up to the near edge. Surfaces are continued with their slope.
"""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from sparsedepth.holes_guide import side_by_colour
from sparsedepth.holes_rays import DIRECTIONS, NEIGHBOURS, NOTHING, Mask, Planes, Rays
from sparsedepth.holes_sides import DEFAULT, FilledPixels, HoleSettings, Side, fill_by_rays, fill_towards, smooth_sides
from sparsedepth.surfaces import interpolate
from sparsedepth.vocabulary import DepthMap, Floats, InputError, Vector


class Fill(NamedTuple):
    """A map without holes, its variance, and the filled pixels that are better left missing."""

    value: Floats
    variance: Floats
    refused: Mask


class _Nearness(NamedTuple):
    """A map in a domain where planes are planes and larger is nearer."""

    value: Floats
    variance: Floats
    inverse: bool
    sign: float

    @classmethod
    def of(cls, depth: DepthMap, variance: Floats, inverse: bool, sign: float) -> _Nearness:
        valid = np.isfinite(depth)
        known = np.where(valid, depth, 1.0)
        value = 1 / known if inverse else sign * known
        spread = np.where(valid, variance, 0.0) / (known**4 if inverse else 1.0)
        return cls(np.where(valid, value, np.nan).astype(np.float32), spread.astype(np.float32), inverse, sign)

    def back(self, value: Vector, variance: Vector) -> tuple[Vector, Vector]:
        """Convert nearness and its variance to values of the map."""
        value, variance = value.astype(np.float64), variance.astype(np.float64)
        return (1 / value, variance / value**4) if self.inverse else (self.sign * value, variance)


def fill(
    depth: DepthMap,
    variance: Floats,
    side: Side,
    *,
    guide: Floats | None = None,
    disparity: bool = True,
    larger_is_farther: bool = True,
    reach_px: int = 80,
    settings: HoleSettings = DEFAULT,
) -> Fill:
    """Fill every missing pixel of a map from the side that its hole belongs to.

    Parameters
    ----------
    depth
        (height, width); NaN = missing.
    variance
        (height, width), of the valid pixels, in squared units of the map.
    side
        "background": the farther side of a step, for shadows of stereo and structured light. "nearest": the surface of
        the nearest valid pixel. "surface": a robust thin plate, for holes that are no shadows (time of flight).
    guide
        Picture of the same view, (height, width) or (height, width, channels). It decides between two sides where it
        does so correctly for valid pixels along steps around the hole, and mostly so in the whole map. A tile of a map
        counts as a map here. "surface" does not use it.
    disparity
        Whether planes of the scene are planes in the inverse of the map, as for depths. All must be positive then.
    larger_is_farther
        False for a map of disparities. They are used as they are.
    reach_px
        Distance within which valid pixels decide about a missing one, in rows and columns. A map may be cut into tiles
        with this margin; "surface" depends on farther pixels, but less and less. Pixels without a valid one within
        reach get the value of the nearest valid pixel of the map, and are refused.
    settings
        Thresholds and constants.

    Returns
    -------
    Fill
        Value and variance of each pixel, float64; valid pixels keep theirs. Refused pixels are filled pixels too far
        from any valid one, or too uncertain. Without a valid pixel, all are NaN, of infinite variance, and refused.

    Examples
    --------
    >>> depth = np.full((32, 32), 2.0)
    >>> depth[:, :12] = 1.0
    >>> depth[:, 12:18] = np.nan
    >>> float(fill(depth, np.full(depth.shape, 1e-6), "background").value[16, 12].round(3))
    2.0
    """
    values, spread = _checked(depth, variance, side, guide, reach_px, settings)
    valid = np.isfinite(values)
    inverse = larger_is_farther and disparity
    if inverse and valid.any() and values[valid].min() <= 0:
        raise InputError(
            f"the map holds depths down to {values[valid].min():g}; give positive ones, or disparity=False"
        )
    if valid.all() or not valid.any():
        return Fill(values, np.where(valid, spread, np.inf), ~valid)
    near = _Nearness.of(values, spread, inverse, -1.0 if larger_is_farther else 1.0)
    found = _fill_all(near, side, guide, reach_px, settings)
    filled, predicted = near.back(found.value, found.variance)
    predicted += found.wrong * np.square(near.back(found.other, found.variance)[0] - filled)
    refused = (found.distance > settings.refuse_px) | (np.sqrt(predicted) > settings.refuse_std * np.abs(filled))
    value, total = values.copy(), np.where(valid, spread, np.inf)
    value[~valid], total[~valid] = filled, predicted
    mask = np.zeros(valid.shape, bool)
    mask[~valid] = refused
    return Fill(value, total, mask)


def _checked(
    depth: Any, variance: Any, side: str, guide: Any, reach_px: int, settings: HoleSettings
) -> tuple[Floats, Floats]:
    """Return map and variance as float64, or say why they cannot be used."""
    values, spread = np.asarray(depth, np.float64), np.asarray(variance, np.float64)
    if values.ndim != 2 or spread.shape != values.shape:
        raise InputError(
            f"the map has shape {values.shape} and its variance {spread.shape}; give both as (height, width)"
        )
    if side not in get_args(Side):
        raise InputError(f"the side is {side!r}; use one of {', '.join(map(repr, get_args(Side)))}")
    if guide is not None and np.shape(guide)[:2] != values.shape:
        raise InputError(f"the picture has shape {np.shape(guide)}, the map {values.shape}; give a picture of the view")
    if reach_px < 2 * _margin(settings):
        raise InputError(f"the reach is {reach_px} px; give at least {2 * _margin(settings)}")
    valid = np.isfinite(values)
    if not (np.isfinite(spread[valid]) & (spread[valid] >= 0)).all():
        raise InputError("the variance of some valid pixel is negative or not finite; give one for each valid pixel")
    return np.where(valid, values, np.nan), spread


def _margin(settings: HoleSettings) -> int:
    """Return the pixels around the end of a ray that its value depends on, with those of adjacent rays."""
    return settings.fit_px + settings.rag_px * settings.rag_passes + 2 + sum(settings.even_px)


def _fill_all(near: _Nearness, side: Side, guide: Floats | None, reach_px: int, settings: HoleSettings) -> FilledPixels:
    """Fill all missing pixels in their order."""
    missing = np.isnan(near.value)
    closed, where, gaps = _close_gaps(near, side, settings)
    reach = reach_px - _margin(settings)
    rays = Rays.cast(~np.isnan(closed.value), reach, NEIGHBOURS if side == "surface" else DIRECTIONS)
    planes = Planes.fit(closed.value, closed.variance, rays.hits, settings.fit_px, settings.gate, settings.slope)
    rest = fill_by_rays(rays, planes, side, settings)
    if guide is not None and side != "surface":
        picked = side_by_colour(closed.value, guide, rays, planes, reach_px, settings.tolerance, settings.guide)
        rest = fill_towards(rest, picked, rays, planes, side, settings)
    if side != "surface":
        rest = smooth_sides(rest, rays, planes, side, settings)
    every = np.zeros(missing.size, np.intp)
    order = np.concatenate([where, rays.holes]).astype(np.intp)
    every[order] = np.arange(len(order))
    both = FilledPixels(*(np.concatenate(pair)[every[missing.ravel()]] for pair in zip(gaps, rest, strict=True)))
    both = _fill_deep(both, near.value, settings)
    return (
        _on_plate(both, closed.value, missing, settings) if side == "surface" else _evened(both, near.value, settings)
    )


def _close_gaps(
    near: _Nearness, side: Side, settings: HoleSettings
) -> tuple[_Nearness, NDArray[np.int32], FilledPixels]:
    """Fill gaps of one pixel between two valid ones; a lattice of valid pixels becomes a dense map."""
    valid = ~np.isnan(near.value)
    padded = np.pad(valid, 1)
    height, width = valid.shape
    gap = np.zeros_like(valid)
    for down, right in NEIGHBOURS:
        ahead, behind = (
            padded[1 + sign * down : 1 + sign * down + height, 1 + sign * right : 1 + sign * right + width]
            for sign in (1, -1)
        )
        gap |= ahead & behind
    gap &= ~valid
    rays = Rays.cast(valid, 1, NEIGHBOURS, only=gap)
    found = fill_by_rays(rays, Planes.flat(near.value, near.variance), side, settings)
    value, variance = near.value.copy(), near.variance.copy()
    value.ravel()[rays.holes], variance.ravel()[rays.holes] = found.value, found.variance
    return near._replace(value=value, variance=variance), rays.holes, found


def _fill_deep(found: FilledPixels, nearness: Floats, settings: HoleSettings) -> FilledPixels:
    """Give pixels that no valid pixel is within reach of the value of the nearest one, and a large variance."""
    deep, missing = found.distance == NOTHING, np.isnan(nearness)
    if not deep.any():
        return found
    places: Any = distance_transform_edt(missing, return_distances=False, return_indices=True)
    value = np.where(deep, nearness[tuple(places)][missing], found.value)
    variance = np.where(deep, np.square(settings.deep_std * value), found.variance)
    return found._replace(value=value, variance=variance, other=np.where(deep, value, found.other))


def _evened(found: FilledPixels, nearness: Floats, settings: HoleSettings) -> FilledPixels:
    """Remove the traces of single rays by medians of three pixels that are ever farther apart; steps stay."""
    missing = np.isnan(nearness)
    value, distance = nearness.copy(), np.zeros(nearness.shape, np.float32)
    value[missing], distance[missing] = found.value, found.distance
    for apart in settings.even_px:
        for axis in (0, 1):
            middle = _median_of_three(value, apart, axis)
            value = np.where(distance > apart, middle, value)
    evened = value[missing]
    changed_side = np.abs(evened - found.other) < np.abs(evened - found.value)
    return found._replace(value=evened, other=np.where(changed_side, found.value, found.other))


def _median_of_three(values: Floats, apart: int, axis: int) -> Floats:
    """Return the median of each value and of the two at a distance along an axis; borders repeat."""
    padded = np.pad(values, [(apart, apart) if each == axis else (0, 0) for each in (0, 1)], mode="edge")
    size = values.shape[axis]
    behind, ahead = (np.take(padded, np.arange(start, start + size), axis) for start in (0, 2 * apart))
    return np.maximum(np.minimum(behind, values), np.minimum(np.maximum(behind, values), ahead))


def _on_plate(found: FilledPixels, closed: Floats, missing: Mask, settings: HoleSettings) -> FilledPixels:
    """Replace values by those of a robust thin plate; their difference adds to the variance."""
    known = closed[~np.isnan(closed)].astype(np.float64)
    centre, scale = known.mean(), max(known.std(), np.finfo(np.float32).tiny)
    skip = np.zeros(missing.shape, bool)
    skip[missing] = found.distance > settings.refuse_px
    plate = interpolate((closed - centre) / scale, skip, settings.surface).robust[missing] * scale + centre
    plate = np.clip(plate, known.min(), known.max()).astype(np.float32)
    variance = found.variance + settings.plate_ratio * np.square(plate - found.value)
    return found._replace(value=plate, variance=variance)

"""Choose the surface that each missing pixel belongs to, and continue it with a calibrated variance.

A crossing of a hole is a pair of opposite rays from a missing pixel. Its two ends lie on one surface, or on two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsedepth.chosen_pixels import gather, square_offsets
from sparsedepth.holes_guide import PictureSettings
from sparsedepth.holes_rays import NOTHING, Candidates, Planes, Rays, Tolerance
from sparsedepth.surfaces import SurfaceSettings
from sparsedepth.vocabulary import Floats, Vector

Side = Literal["background", "nearest", "surface"]
"""Surface that a hole belongs to: the farther one, the nearest one in the map, or a plate through all."""

PLATES = SurfaceSettings(plate_iterations=150, reweightings=1, robust_iterations=30)
"""Thin plates with fewer iterations than the default, for speed. Set by hand."""
GUIDE = PictureSettings()


@dataclass(frozen=True)
class HoleSettings:
    """Thresholds of the filling and constants of its variance.

    Provenance: chosen on all frames of data/sensors (Kinect v1, RealSense D435 and D455, Pico Zense) with held-out
    shadows and discs (benchmarks/sensor_holes.py), unless a field says otherwise. Fractions are of the nearness: of 1/z
    where the filling works on 1/z.
    """

    fit_px: int = 8
    """Half the side of the windows that planes are fitted in."""
    gate: float = 0.03
    """Largest difference of pixels of one surface in such a window, as a fraction. Set by hand."""
    slope: float = 0.005
    """Usual slope of a surface, as a fraction a pixel."""
    steepest: float = 0.25
    """Largest change of a surface that is continued, as a fraction. Set by hand."""
    agree: float = 0.04
    """Largest difference of two ends of a crossing that are one surface, as a fraction."""
    agree_sigmas: float = 4.0
    """The same difference in standard deviations of the valid pixels; the larger counts. Set by hand."""
    one_surface: float = 0.5
    """Factor on the width of a crossing whose ends agree: it is better evidence than one whose ends differ."""
    one_end: float = 2.5
    """Width of a crossing that meets one valid pixel only, in distances to it. Set by hand."""
    narrow: float = 1.4
    """Width of the crossings that decide, over that of the narrowest one."""
    narrow_px: float = 1.5
    """Pixels by which they may be wider in any case. Set by hand."""
    rag_px: int = 3
    """Half the side of the windows in which the sides of adjacent missing pixels are compared. Set by hand."""
    rag_passes: int = 2
    """Times that sides are compared. Set by hand."""
    even_px: tuple[int, ...] = (1, 2, 4, 8, 1)
    """Distances of the pixels whose medians even a filled surface out. Set by hand."""
    refuse_px: float = 40.0
    """Distance to the nearest valid pixel beyond which a filled pixel is refused. Set by hand."""
    refuse_std: float = 0.5
    """Standard deviation, as a fraction of the value, beyond which a filled pixel is refused. Set by hand."""
    deep_std: float = 0.6
    """Standard deviation of pixels without a valid one within reach, as a fraction. Set by hand."""
    side_ratio: float = 1.2
    """Variance of a continued surface over that of the valid pixels that it continues."""
    spread_ratio: float = 0.12
    """Part of the variance of the continued surfaces about their mean that counts."""
    plate_ratio: float = 0.2
    """Part of the squared difference of a plate from the nearest surface that counts."""
    growth: float = 4e-4
    """Standard deviation that a continued surface gains, as a fraction a pixel."""
    wrong_side: float = 0.45
    """Probability that the other side is right where both have equal evidence."""
    wrong_side_decay: float = 1.5
    wrong_side_power: float = 1.5
    """Fall of the logarithm of that probability: a factor, and a power of the ratio of the evidence less one."""
    surface: SurfaceSettings = PLATES
    """Thin plates of the side "surface"."""
    guide: PictureSettings = GUIDE
    """Use of a picture."""

    @property
    def tolerance(self) -> Tolerance:
        """Difference of values of one surface."""
        return Tolerance(self.agree, self.agree_sigmas, self.steepest)


DEFAULT = HoleSettings()


class FilledPixels(NamedTuple):
    """Filled pixels (n,) in nearness, and the other side that they may belong to."""

    value: Vector
    variance: Vector
    """Of the surface that was continued."""
    distance: Vector
    """Pixels to the nearest valid one; `NOTHING` = none within reach."""
    other: Vector
    """Nearness of the other side; the value itself if there is none."""
    wrong: Vector
    """Probability of the other side."""


class _Evidence(NamedTuple):
    """Directions of the surfaces that missing pixels belong to, and widths of crossings (directions, n)."""

    lead: NDArray[np.intp]
    own: Floats
    """Width that counts for a direction if it belongs to the leading surface."""
    against: Floats
    """Width that counts for a direction if it belongs to another surface."""


def fill_by_rays(rays: Rays, planes: Planes, side: Side, settings: HoleSettings) -> FilledPixels:
    """Choose a side for each missing pixel by what its rays meet, and continue it."""
    parts = [FilledPixels(*np.zeros((len(FilledPixels._fields), 0), np.float32))]
    for _, part in rays.chunks():
        candidates = Candidates.of(part, planes, settings.tolerance)
        parts.append(_continued(candidates, _lead(candidates, side, settings), settings))
    return FilledPixels(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _lead(candidates: Candidates, side: Side, settings: HoleSettings) -> _Evidence:
    """Return the direction of the surface that each missing pixel belongs to, with the evidence for all."""
    if side == "background":
        return _farther(candidates, settings)
    return _Evidence(candidates.distance.argmin(axis=0), candidates.distance, candidates.distance)


def _farther(candidates: Candidates, settings: HoleSettings) -> _Evidence:
    """Return the direction of the farthest surface across the narrow crossings.

    A crossing is evidence for its farther end; for the nearer one only if both agree. One that meets a single valid
    pixel is no evidence against another surface.
    """
    one, other = (Candidates(*(part[k::2] for part in vars(candidates).values())) for k in (0, 1))
    both = ~one.none & ~other.none
    gap = np.minimum(np.abs(one.value - other.value), np.abs(one.level - other.level))
    alike = both & (gap < np.minimum(one.tolerance, other.tolerance))
    width = np.where(alike, settings.one_surface, 1) * (one.distance + other.distance)
    width = np.where(both, width, settings.one_end * np.minimum(one.distance, other.distance))
    deciding = width <= settings.narrow * width.min(axis=0) + settings.narrow_px
    close = [np.maximum(each.value, each.level) for each in (one, other)]
    second = close[1] < close[0]
    pair = np.where(deciding, np.minimum(*close), NOTHING).argmin(axis=0)
    own = np.empty_like(candidates.distance)
    own[::2], own[1::2] = (np.where(far | alike, width, NOTHING) for far in (~second, second))
    against = np.where(np.repeat(both, 2, axis=0), own, NOTHING)
    return _Evidence(2 * pair + candidates.pick(second, pair), own, against)


def _continued(candidates: Candidates, evidence: _Evidence, settings: HoleSettings) -> FilledPixels:
    """Average all surfaces that agree with the leading one, by their squared distance; find the other side."""
    same = candidates.agree_with(evidence.lead)
    distance = candidates.distance
    weight = np.where(same, np.float32(1) / np.square(np.minimum(distance, np.float32(1e15))), np.float32(0))
    total = weight.sum(axis=0)
    weight /= np.where(total > 0, total, 1)
    values = np.where(same, candidates.value, 0)
    mean = (weight * values).sum(axis=0)
    spread = (weight * np.square(values - mean)).sum(axis=0)
    noise = (weight * candidates.variance).sum(axis=0)
    nearest = candidates.distance.min(axis=0)
    grown = settings.growth * np.where(same, distance, NOTHING).min(axis=0) * np.abs(mean)
    surface = settings.side_ratio * noise + settings.spread_ratio * spread
    surface += np.square(np.where(total > 0, grown, 0))
    against = np.where(same | candidates.none, NOTHING, evidence.against)
    rival = against.argmin(axis=0)
    odds = candidates.pick(against, rival)
    there = odds < NOTHING
    ratio = np.clip(odds / np.where(same, evidence.own, NOTHING).min(axis=0), 1, 100)
    wrong = settings.wrong_side * np.exp(-settings.wrong_side_decay * (ratio - 1) ** settings.wrong_side_power)
    other = np.where(there, candidates.pick(candidates.value, rival), mean)
    return FilledPixels(mean, surface, nearest, other, np.where(there, wrong, 0))


def smooth_sides(found: FilledPixels, rays: Rays, planes: Planes, side: Side, settings: HoleSettings) -> FilledPixels:
    """Choose the side again where that of adjacent missing pixels differs: the one at their median."""
    offsets = square_offsets(settings.rag_px)
    for _ in range(settings.rag_passes):
        filled = np.full(rays.shape, np.nan, np.float32)
        filled.ravel()[rays.holes] = found.value
        unsure = np.flatnonzero(found.other != found.value)
        rows, columns = np.divmod(rays.holes[unsure], rays.shape[1])
        around = gather(filled, (rows.astype(np.intp), columns.astype(np.intp)), offsets)
        step = np.abs(found.other - found.value)[unsure, None]
        ragged = (np.abs(around - found.value[unsure, None]) > step / 2).any(axis=1)
        median = np.nanmedian(around[ragged], axis=1)
        target = np.full(len(rays.holes), np.nan, np.float32)
        target[unsure[ragged]] = median
        found = fill_towards(found, target, rays, planes, side, settings)
    return found


def fill_towards(
    found: FilledPixels, target: Vector, rays: Rays, planes: Planes, side: Side, settings: HoleSettings
) -> FilledPixels:
    """Fill pixels again from the surface closest to a target; NaN = leave as it is."""
    which = np.flatnonzero(np.isfinite(target))
    if not len(which):
        return found
    candidates = Candidates.of(rays.take(which), planes, settings.tolerance)
    lead = np.abs(candidates.value - target[which]).argmin(axis=0)
    new = _continued(candidates, _lead(candidates, side, settings)._replace(lead=lead), settings)
    parts = [np.array(part) for part in found]
    for part, better in zip(parts, new, strict=True):
        part[which] = better
    return FilledPixels(*parts)

"""Choose the surface that each missing pixel belongs to, and continue it with an honest variance.

A crossing of a hole is a pair of opposite rays from a missing pixel. Its two ends lie on one surface, or on two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsedepth.holes_guide import GuideSettings
from sparsedepth.holes_rays import NOTHING, Candidates, Planes, Rays, Tolerance
from sparsedepth.neighbourhood import gather, square_offsets
from sparsedepth.surfaces import SurfaceSettings
from sparsedepth.vocabulary import Floats, Vector

Side = Literal["background", "nearest", "surface"]
"""Surface that a hole belongs to: the farther one, the nearest one in the map, or a plate through all."""

PLATES = SurfaceSettings(plate_iterations=150, reweightings=2, robust_iterations=40)
"""Thin plates with fewer iterations than the default, for speed. Set by hand."""
GUIDE = GuideSettings()


@dataclass(frozen=True)
class HoleSettings:
    """Thresholds of the filling and constants of its variance.

    Provenance: chosen on the frames of data/sensors (Kinect v1, RealSense D435 and D455, Pico Zense) with held-out
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
    distance_power: float = 2.0
    """Power of the distance that weights of surfaces fall with."""
    rag_px: int = 3
    """Half the side of the windows in which the sides of adjacent missing pixels are compared. Set by hand."""
    rag_passes: int = 2
    """Times that sides are compared. Set by hand."""
    refuse_px: float = 40.0
    """Distance to the nearest valid pixel beyond which a filled pixel is refused. Set by hand."""
    refuse_std: float = 0.3
    """Standard deviation, as a fraction of the value, beyond which a filled pixel is refused. Set by hand."""
    side_ratio: float = 1.15
    """Variance of a continued surface over that of the valid pixels that it continues."""
    spread_ratio: float = 0.2
    """Part of the variance of the continued surfaces about their mean that counts."""
    growth: float = 3e-4
    """Standard deviation that a continued surface gains, as a fraction a pixel."""
    wrong_side: float = 0.45
    """Probability that the other side is right where both have equal evidence."""
    wrong_side_decay: float = 1.5
    wrong_side_power: float = 1.5
    """Fall of the logarithm of that probability: a factor, and a power of the ratio of the evidence less one."""
    surface: SurfaceSettings = PLATES
    """Thin plates of the side "surface"; fewer iterations than the default, for speed."""
    guide: GuideSettings = GUIDE
    """Use of a picture."""

    @property
    def tolerance(self) -> Tolerance:
        """Difference of values of one surface."""
        return Tolerance(self.agree, self.agree_sigmas, self.steepest)


class Filling(NamedTuple):
    """Filled pixels (n,) in nearness, and the evidence for them."""

    value: Vector
    variance: Vector
    distance: Vector
    """Pixels to the nearest valid one; `NOTHING` = none within reach."""
    step: Vector
    """Difference to the other side; 0 = there is none."""
    ratio: Vector
    """Evidence of this side over that of the other, at least 1."""


def fill_by_rays(rays: Rays, planes: Planes, side: Side, settings: HoleSettings) -> Filling:
    """Choose a side for each missing pixel by what its rays meet, and continue it."""
    parts = [Filling(*np.zeros((5, 0), np.float32))]
    for _, part in rays.chunks():
        candidates = Candidates.of(part, planes, settings.tolerance)
        parts.append(_continued(candidates, *_lead(candidates, side, settings), settings))
    return Filling(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _lead(candidates: Candidates, side: Side, settings: HoleSettings) -> tuple[NDArray[np.intp], Floats]:
    """Return the direction of the surface that each missing pixel belongs to, and the evidence for each direction."""
    if side == "background":
        return _farther(candidates, settings)
    return candidates.distance.argmin(axis=0), candidates.distance


def _farther(candidates: Candidates, settings: HoleSettings) -> tuple[NDArray[np.intp], Floats]:
    """Return the direction of the farthest surface across the narrow crossings, and the width for each direction.

    Widths count for the farther end of a crossing; the nearer end has none, unless both agree.
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
    lead = 2 * pair + candidates.pick(second, pair)
    evidence = np.empty_like(candidates.distance)
    evidence[::2] = np.where(~second | alike, width, NOTHING)
    evidence[1::2] = np.where(second | alike, width, NOTHING)
    return lead, evidence


def _continued(candidates: Candidates, lead: NDArray[np.intp], evidence: Floats, settings: HoleSettings) -> Filling:
    """Average all surfaces that agree with the leading one, by their distance; add up the variance."""
    same = candidates.agree_with(lead)
    distance = np.maximum(candidates.distance, np.float32(0.5))
    weight = np.where(same, distance**-settings.distance_power, 0).astype(np.float32)
    total = weight.sum(axis=0)
    weight /= np.where(total > 0, total, 1)
    values = np.where(same, candidates.value, 0)
    mean = (weight * values).sum(axis=0)
    spread = (weight * np.square(values - mean)).sum(axis=0)
    noise = (weight * candidates.variance).sum(axis=0)
    grown = settings.growth * np.where(same, distance, NOTHING).min(axis=0) * np.abs(mean)
    surface = settings.side_ratio * noise + settings.spread_ratio * spread + np.square(np.where(total > 0, grown, 0))
    against = np.where(same | candidates.none, NOTHING, evidence)
    rival = against.argmin(axis=0)
    odds = candidates.pick(against, rival)
    ratio = np.clip(odds / np.where(same, evidence, NOTHING).min(axis=0), 1, NOTHING)
    step = np.where(odds < NOTHING, candidates.pick(candidates.value, rival) - mean, 0)
    wrong = settings.wrong_side * np.exp(
        -settings.wrong_side_decay * np.minimum(ratio - 1, 99) ** settings.wrong_side_power
    )
    return Filling(mean, surface + wrong * np.square(step), candidates.distance.min(axis=0), step, ratio)


def smooth_sides(found: Filling, rays: Rays, planes: Planes, side: Side, settings: HoleSettings) -> Filling:
    """Choose the side again where that of adjacent missing pixels differs: the one at their median."""
    offsets = square_offsets(settings.rag_px)
    for _ in range(settings.rag_passes):
        filled = np.full(rays.shape, np.nan, np.float32)
        filled.ravel()[rays.holes] = found.value
        unsure = np.flatnonzero(found.step != 0)
        rows, columns = np.divmod(rays.holes[unsure], rays.shape[1])
        around = gather(filled, (rows.astype(np.intp), columns.astype(np.intp)), offsets)
        gap = np.abs(around - found.value[unsure, None]) > np.abs(found.step[unsure, None]) / 2
        ragged = gap.any(axis=1)
        median = np.nanmedian(around[ragged], axis=1)
        target = np.full(len(rays.holes), np.nan, np.float32)
        target[unsure[ragged]] = median
        found = fill_towards(found, target, rays, planes, side, settings)
    return found


def fill_towards(
    found: Filling, target: Vector, rays: Rays, planes: Planes, side: Side, settings: HoleSettings
) -> Filling:
    """Fill pixels again from the surface closest to a target; NaN = leave as it is."""
    which = np.flatnonzero(np.isfinite(target))
    if not len(which):
        return found
    candidates = Candidates.of(rays.take(which), planes, settings.tolerance)
    evidence = _lead(candidates, side, settings)[1]
    new = _continued(candidates, np.abs(candidates.value - target[which]).argmin(axis=0), evidence, settings)
    parts = [np.array(part) for part in found]
    for part, better in zip(parts, new, strict=True):
        part[which] = better
    return Filling(*parts)

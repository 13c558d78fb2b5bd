"""Decide by a picture of the same view which of two surfaces a missing pixel belongs to.

A missing pixel whose colour is that of one surface, and not that of the other, belongs to it. Pictures mislead if they
are not registered, or show nothing of the scene. So valid pixels along steps of the map are held out and assigned by
their colours in the same way. The picture is used only where both sides of the steps around a hole are recognised.
A hole hides how far a picture is shifted; a step between valid pixels shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, uniform_filter

from sparsedepth.holes_rays import NOTHING, Candidates, Mask, Planes, Rays, Tolerance
from sparsedepth.neighbourhood import box_sum
from sparsedepth.vocabulary import Floats, Vector


@dataclass(frozen=True)
class PictureSettings:
    """Thresholds of the use of a picture. Set by hand; tried on synthetic scenes with shifted and random pictures."""

    inward_px: float = 2.0
    """Pixels behind the edge of a surface at which its colour is taken."""
    colour_ratio: float = 0.5
    """Largest difference from the colour of one surface, over that from the colour of the other."""
    ring_px: int = 6
    """Distance to a step within which valid pixels are held out."""
    least_correct: float = 0.8
    """Least fraction of the held-out pixels of each side that are assigned correctly."""
    most_wrong: float = 0.04
    """Largest fraction of the held-out pixels of each side that are assigned wrongly."""
    least_pixels: int = 150
    """Fewest held-out pixels of each side within the window."""
    least_correct_of_map: float = 0.6
    most_wrong_of_map: float = 0.1
    """Both fractions for all held-out pixels of the map: else, the picture matches some edges by chance."""


class _Verdict(NamedTuple):
    """Nearness of the nearest surface of each pixel and of the nearest other one, and of the one of its colour."""

    first: Vector
    other: Vector
    """NaN = there is no other one."""
    chosen: Vector
    """NaN = colours do not decide."""


class _Scene(NamedTuple):
    """A map, its planes, and its picture, as it is and averaged; pictures are (pixels, channels)."""

    nearness: Floats
    planes: Planes
    sharp: Floats
    soft: Floats
    tolerance: Tolerance


def side_by_colour(
    nearness: Floats,
    guide: Floats,
    rays: Rays,
    planes: Planes,
    reach_px: int,
    tolerance: Tolerance,
    settings: PictureSettings,
) -> Vector:
    """Return the nearness of the surface that the colour of each missing pixel belongs to.

    Parameters
    ----------
    nearness
        (height, width); NaN = missing.
    guide
        (height, width) or (height, width, channels), in any unit.
    rays, planes
        Rays of the missing pixels, and the planes that they meet.
    reach_px
        Distance within which valid pixels decide about a missing one.
    tolerance
        Difference of values of one surface.
    settings
        Thresholds.

    Returns
    -------
    ndarray, shape (n,)
        NaN where colours do not decide, or are not to be trusted.
    """
    picture = np.nan_to_num(np.asarray(guide, np.float32).reshape(*nearness.shape, -1), posinf=0, neginf=0)
    soft = uniform_filter(picture, 3, mode="nearest", axes=(0, 1))
    sharp, soft = (each.reshape(-1, picture.shape[2]) for each in (picture, soft))
    scene = _Scene(nearness, planes, sharp, soft, tolerance)
    found = np.full(len(rays.holes), np.nan, np.float32)
    which = np.flatnonzero(_trusted(scene, reach_px, settings).ravel()[rays.holes])
    found[which] = _verdict(rays.take(which), scene, settings).chosen
    return found


def _verdict(rays: Rays, scene: _Scene, settings: PictureSettings) -> _Verdict:
    """Compare the colour of each pixel with those of the nearest surface and of the nearest other one."""
    parts = [_Verdict(*np.zeros((3, 0), np.float32))]
    for _, part in rays.chunks():
        candidates = Candidates.of(part, scene.planes, scene.tolerance)
        first = candidates.distance.argmin(axis=0)
        value = candidates.pick(candidates.value, first)
        apart = np.where(candidates.agree_with(first), NOTHING, candidates.distance)
        second = apart.argmin(axis=0)
        two = candidates.pick(apart, second) < NOTHING
        other = np.where(two, candidates.pick(candidates.value, second), np.nan)
        own = scene.sharp[part.holes]
        one_gap, other_gap = (
            np.linalg.norm(own - _colour(part, candidates, each, scene, settings), axis=1) for each in (first, second)
        )
        chosen = np.where(other_gap < settings.colour_ratio * one_gap, other, np.nan)
        chosen = np.where(two & (one_gap < settings.colour_ratio * other_gap), value, chosen)
        parts.append(_Verdict(value, other, chosen))
    return _Verdict(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _colour(
    rays: Rays, candidates: Candidates, direction: NDArray[np.intp], scene: _Scene, settings: PictureSettings
) -> Floats:
    """Return the colour of the surface that one ray of each pixel meets, a little behind its edge if that is on it."""
    height, width = rays.shape
    hit, level, limit = (
        candidates.pick(each, direction) for each in (rays.hits, candidates.level, candidates.tolerance)
    )
    rows, columns = np.divmod(rays.holes, width)
    hit_rows, hit_columns = np.divmod(np.maximum(hit, 0), width)
    down, right = hit_rows - rows, hit_columns - columns
    further = settings.inward_px / np.maximum(np.hypot(down, right), 1)
    row = np.clip(np.rint(hit_rows + further * down).astype(np.intp), 0, height - 1)
    column = np.clip(np.rint(hit_columns + further * right).astype(np.intp), 0, width - 1)
    inward = row * width + column
    on_it = np.abs(scene.nearness.ravel()[inward] - level) < limit
    return np.where(on_it[:, None], scene.soft[inward], scene.sharp[hit])


def _trusted(scene: _Scene, reach_px: int, settings: PictureSettings) -> Mask:
    """Mark the pixels around which colours assign held-out valid pixels of both sides of steps correctly."""
    valid = ~np.isnan(scene.nearness)
    ring = valid & _along_steps(scene, settings.ring_px)
    crossing = 3 * settings.ring_px
    rays = Rays.cast(valid & ~ring, crossing, only=ring)
    flat = scene._replace(planes=Planes.flat(scene.nearness, scene.planes.variance))
    verdict = _verdict(rays, flat, settings)
    truth, both, decided = scene.nearness.ravel()[rays.holes], np.isfinite(verdict.other), np.isfinite(verdict.chosen)
    first, other = (np.abs(each - truth) for each in (verdict.first, verdict.other))
    right = both & (np.abs(verdict.chosen - truth) <= np.minimum(first, other))
    near = (first < other) == (verdict.first > verdict.other)
    side_px = 2 * (reach_px - crossing - settings.ring_px - 4) + 1
    trusted = np.ones(valid.shape, bool)
    for side in (near, ~near):
        counted = [np.zeros(valid.shape, np.float32) for _ in range(3)]
        for part, judged in zip(counted, (both, right, both & decided & ~right), strict=True):
            part.ravel()[rays.holes] = judged & side
        sums = [float(part.sum()) for part in counted]
        if sums[1] < settings.least_correct_of_map * sums[0] or sums[2] > settings.most_wrong_of_map * sums[0]:
            return np.zeros(valid.shape, bool)
        total, correct, wrong = (np.rint(box_sum(part, side_px)) for part in counted)
        trusted &= (total >= settings.least_pixels) & (correct >= settings.least_correct * total)
        trusted &= wrong <= settings.most_wrong * total
    return trusted


def _along_steps(scene: _Scene, ring_px: int) -> Mask:
    """Mark pixels near two adjacent valid pixels of different surfaces."""
    limit = scene.tolerance.of(scene.nearness, scene.planes.variance.reshape(scene.nearness.shape))
    step = np.zeros(scene.nearness.shape, bool)
    for axis in (0, 1):
        one, other = ((slice(None),) * axis + (each,) for each in (slice(1, None), slice(None, -1)))
        jump = np.abs(np.diff(scene.nearness, axis=axis)) > np.maximum(limit[one], limit[other])
        step[one] |= jump
        step[other] |= jump
    return np.asarray(binary_dilation(step, np.ones((3, 3)), iterations=ring_px - 1), bool)

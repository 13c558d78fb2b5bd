"""Warp a belief to the view of a moved camera: a z-buffer decides what is visible, then the old view is sampled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparsedepth.streams.axis import Axis
from sparsedepth.streams.belief import FLOAT, Belief
from sparsedepth.streams.camera import Intrinsics
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.vocabulary import Floats

CRACK = 0.02
"""Relative difference of inverse depths below which two pixels belong to one surface (set by hand)."""


class View(NamedTuple):
    """A camera and the size of its picture."""

    intrinsics: Intrinsics
    shape: tuple[int, int]

    def project(self, depth: Floats, motion: Floats, across: Floats, down: Floats) -> tuple[Floats, Floats, Floats]:
        """Project points at rays x / z and y / z after a motion; return columns, rows and depths."""
        camera, m = self.intrinsics, motion.astype(FLOAT)
        far = depth * (m[2, 0] * across + (m[2, 1] * down + m[2, 2])) + m[2, 3]
        column = depth * (m[0, 0] * across + (m[0, 1] * down + m[0, 2])) + m[0, 3]
        row = depth * (m[1, 0] * across + (m[1, 1] * down + m[1, 2])) + m[1, 3]
        inverse = 1 / far
        column *= FLOAT(camera.fx) * inverse
        row *= FLOAT(camera.fy) * inverse
        column += FLOAT(camera.cx)
        row += FLOAT(camera.cy)
        return column, row, far


def warp(belief: Belief, out: Belief, motion: Floats, view: View, axis: Axis, settings: StreamSettings) -> None:
    """Warp a belief to another view.

    Parameters
    ----------
    belief
        State of all pixels of the old view.
    out
        Receives the state of the pixels of the new view.
    motion
        (4, 4), from the old camera to the new one, in the unit of the map.
    view
        Camera of both views.
    axis
        Axis of the belief.
    settings
        Thresholds.
    """
    rows, (height, width) = settings.band_rows, view.shape
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        depth = axis.depth(belief.mean).reshape(view.shape)
        near = _without_cracks(_splat(depth, motion, view))
        for top in range(0, height, rows):
            band = slice(top, min(top + rows, height))
            part = out.part(slice(band.start * width, band.stop * width))
            _sample(belief, part, near[band], band, motion, view, axis, settings)


def _splat(depth: Floats, motion: Floats, view: View) -> Floats:
    """Project all pixels to the nearest ones of the new view; return the largest inverse depth of each, 0 = none."""
    height, width = view.shape
    column, row, far = view.project(depth, motion, *view.intrinsics.rays(view.shape))
    column, row = np.rint(column), np.rint(row)
    inside = (far > 0) & (column >= 0) & (column < width) & (row >= 0) & (row < height)
    place = (row[inside] * FLOAT(width) + column[inside]).astype(np.int64)
    near = np.zeros(height * width, FLOAT)
    np.maximum.at(near, place, 1 / far[inside])
    return near.reshape(view.shape)


def _without_cracks(near: Floats) -> Floats:
    """Close gaps of one pixel between two pixels of one surface, also where a farther surface shows through."""
    closed = near.copy()
    for behind, here, ahead in (
        ((slice(None), slice(None, -2)), (slice(None), slice(1, -1)), (slice(None), slice(2, None))),
        ((slice(None, -2), slice(None)), (slice(1, -1), slice(None)), (slice(2, None), slice(None))),
    ):
        low, high = np.minimum(near[behind], near[ahead]), np.maximum(near[behind], near[ahead])
        gap = (high - low < FLOAT(CRACK) * low) & (near[here] < low * FLOAT(1 - CRACK))
        np.copyto(closed[here], (low + high) / 2, where=gap)
    return closed


def _sample(
    belief: Belief,
    out: Belief,
    near: Floats,
    band: slice,
    motion: Floats,
    view: View,
    axis: Axis,
    settings: StreamSettings,
) -> None:
    """Sample the old mean bilinearly where the pixels of a band look; across steps, at the nearest pixel that fits."""
    (height, width), camera = view.shape, view.intrinsics
    across, down = camera.rays(view.shape)
    places = view.project(1 / near, np.linalg.inv(motion), across, down[band])
    column, row, far = (each.ravel() for each in places)
    known = (near.ravel() > 0) & (column > -1) & (column < width) & (row > -1) & (row < height)
    column, row = (np.where(known, np.clip(each, 0, size - 1), 0) for each, size in ((column, width), (row, height)))
    left, top = np.minimum(np.floor(column), width - 2), np.minimum(np.floor(row), height - 2)
    right_part, low_part = column - left, row - top
    corner = (top * FLOAT(width) + left).astype(np.intp)
    taps = [belief.mean[corner + shift] for shift in (0, 1, width, width + 1)]
    upper = taps[0] + right_part * (taps[1] - taps[0])
    value = upper + low_part * (taps[2] + right_part * (taps[3] - taps[2]) - upper)
    nearest = (np.rint(row) * FLOAT(width) + np.rint(column)).astype(np.intp)
    slope = np.square(taps[1] - taps[0]) + np.square(taps[2] - taps[0])
    rough = ~(slope <= FLOAT(settings.edge_sigmas**2) * axis.noise[axis.places(value)])
    _take_nearest(np.flatnonzero(rough & known), taps, axis.count(far), corner, width, value, nearest, slope)
    ray_x, ray_y = (column - FLOAT(camera.cx)) / FLOAT(camera.fx), (row - FLOAT(camera.cy)) / FLOAT(camera.fy)
    depth = view.project(axis.depth(value), motion, ray_x, ray_y)[2]
    for new, old in zip(out.arrays(), belief.arrays(), strict=True):
        np.take(old, nearest, out=new, mode="clip")
    out.mean[:] = axis.count(depth)
    np.add(out.variance, FLOAT(settings.warp_variance) * slope, out=out.variance)
    out.forget(np.flatnonzero(~(known & (depth > 0) & (value == value))))


def _take_nearest(
    rough: np.ndarray,
    taps: list[Floats],
    expected: Floats,
    corner: np.ndarray,
    width: int,
    value: Floats,
    nearest: np.ndarray,
    slope: Floats,
) -> None:
    """Replace interpolated values at steps by that of the pixel that is nearest in depth to what is expected."""
    around = np.stack([tap[rough] for tap in taps])
    away = np.nan_to_num(np.abs(around - expected[rough]), nan=np.inf)
    chosen = away.argmin(0)
    one = np.arange(len(rough))
    value[rough] = around[chosen, one]
    nearest[rough] = corner[rough] + np.array([0, 1, width, width + 1])[chosen]
    slope[rough] = np.square(np.nan_to_num(away[chosen, one], posinf=0.0))

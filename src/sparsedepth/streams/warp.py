"""Warp a belief to the view of a moved camera: a z-buffer decides what is visible, then the old view is sampled."""

from __future__ import annotations

from dataclasses import astuple
from typing import NamedTuple

import numpy as np

from sparsedepth.geometry import Intrinsics
from sparsedepth.kernels import stream_warp as kernels
from sparsedepth.streams.axis import Axis
from sparsedepth.streams.belief import FLOAT, UNKNOWN, Belief
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.vocabulary import Floats


class View(NamedTuple):
    """A camera and the size of its picture."""

    intrinsics: Intrinsics
    shape: tuple[int, int]

    @property
    def numbers(self) -> Floats:
        """Focal lengths and principal point, float32."""
        return np.array(astuple(self.intrinsics), FLOAT)


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
    if min(view.shape) < 2:
        out.forget(slice(None))
        return
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        near = _visible(axis.depth(belief.mean), motion, view, settings)
        _sample(belief, out, near, motion, view, axis, settings)


def _visible(depth: Floats, motion: Floats, view: View, settings: StreamSettings) -> Floats:
    """Return the inverse depths that the new view sees, 0 = none, without gaps of one pixel."""
    near, closed = (np.empty(view.shape, FLOAT) for _ in range(2))
    kernels.splat(*view.shape, depth, view.numbers, motion.astype(FLOAT), near)
    kernels.close(*view.shape, near, closed, settings.crack)
    return closed


def _sample(
    belief: Belief, out: Belief, near: Floats, motion: Floats, view: View, axis: Axis, settings: StreamSettings
) -> None:
    """Sample the old mean bilinearly where the new pixels look; across steps, at the nearest pixel that fits."""
    n, forth, back = near.size, motion.astype(FLOAT), np.linalg.inv(motion).astype(FLOAT)
    columns, rows, depths, value, slope, brought = (np.empty(n, FLOAT) for _ in range(6))
    taken = np.empty(n, np.int64)
    kernels.look(*view.shape, near, view.numbers, back, columns, rows, depths)
    noise = axis.noise[axis.places(belief.mean)]
    expected, edge = axis.count(depths), settings.edge_sigmas**2
    kernels.sample(*view.shape, belief.mean, noise, columns, rows, expected, value, taken, slope, edge)
    kernels.bring(n, axis.depth(value), columns, rows, *view.shape, view.numbers, forth, brought)
    taken[~(brought > 0)] = -1
    for new, old, unknown in zip(out.arrays(), belief.arrays(), UNKNOWN, strict=True):
        kernels.take(n, taken, old, new, unknown)
    np.copyto(out.mean, axis.count(brought), where=taken >= 0)
    slope *= FLOAT(settings.warp_variance)
    np.add(out.variance, slope, out=out.variance, where=taken >= 0)

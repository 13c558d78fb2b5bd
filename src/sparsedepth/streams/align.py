"""Align a frame with a belief without poses: projective, point to plane, on the axis where noise is stationary."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparsedepth.geometry import Intrinsics
from sparsedepth.streams.axis import Axis
from sparsedepth.streams.belief import Belief
from sparsedepth.streams.cells import average_cells
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.streams.warp import View
from sparsedepth.vocabulary import Floats


class Alignment(NamedTuple):
    """A motion from the camera of the belief to that of the frame, and how well it fits."""

    motion: Floats
    cost: float
    """Mean of a robust square of the innovations."""
    start_cost: float
    """Cost of a camera that stands still."""
    fits: bool
    """Whether what is left is noise, except for objects that move."""


class _Points(NamedTuple):
    """Some pixels of a frame as points of its camera, and their variances on the axis."""

    points: Floats
    noise: Floats


class _Surface(NamedTuple):
    """A view of a scene on the axis: mean and variance of each pixel, flat; NaN = unknown."""

    mean: Floats
    variance: Floats
    view: View
    side: int
    """Side of a pixel, in pixels of the camera."""


def align(
    belief: Belief,
    value: Floats,
    noise: Floats,
    view: View,
    axis: Axis,
    settings: StreamSettings,
    starts: tuple[Floats, ...] = (),
) -> Alignment:
    """Find the motion of the camera since the last frame.

    Parameters
    ----------
    belief
        State of all pixels in the view of the last frame.
    value, noise
        Measurements of the new frame on the axis and their variances, flat; NaN = missing.
    view
        Camera of both.
    axis
        Axis of the belief.
    settings
        Iterations and thresholds.
    starts
        Motions to start from, besides a camera that stands still.

    Returns
    -------
    The motion with the lowest cost.
    """
    fine = _Surface(belief.mean, belief.variance, view, 1)
    points = _points(_Surface(value, noise, view, 1), axis, settings.align_stride_px)
    still = np.eye(4)
    backs = [still, *map(np.linalg.inv, starts)]
    judged = [_judge(points, fine, back, axis, settings) for back in backs]
    best = int(np.argmin([cost for cost, _ in judged]))
    back = _refined(_Surface(value, noise, view, 1), fine, backs[best], axis, settings)
    cost, fits = _judge(points, fine, back, axis, settings)
    if cost < judged[best][0]:
        return Alignment(np.linalg.inv(back), cost, judged[0][0], fits)
    return Alignment((still, *starts)[best], judged[best][0], judged[0][0], judged[best][1])


def _refined(frame: _Surface, belief: _Surface, back: Floats, axis: Axis, settings: StreamSettings) -> Floats:
    """Improve a motion on means of cells: noise of single pixels would flatten the slopes that show it."""
    frame, belief = (_averaged(each, settings) for each in (frame, belief))
    points = _points(frame, axis, settings.align_stride_px // settings.cell_px)
    for step in range(settings.align_iterations):
        back = _improved(points, belief, back, axis, settings, max(1.0, 8.0 / 2**step))
    return back


def _averaged(surface: _Surface, settings: StreamSettings) -> _Surface:
    """Average square cells; the camera of the cells has larger pixels."""
    side, camera = settings.cell_px, surface.view.intrinsics
    mean, variance = average_cells(surface.mean, surface.variance, surface.view.shape, settings)
    centre = ((camera.cx - (side - 1) / 2) / side, (camera.cy - (side - 1) / 2) / side)
    view = View(Intrinsics(camera.fx / side, camera.fy / side, *centre), (mean.shape[0], mean.shape[1]))
    return _Surface(mean.ravel(), variance.ravel(), view, side)


def _points(surface: _Surface, axis: Axis, every: int) -> _Points:
    across, down = surface.view.intrinsics.rays(surface.view.shape)
    shown = surface.mean.reshape(surface.view.shape)[::every, ::every].astype(float)
    rows, columns = np.nonzero(np.isfinite(shown))
    depth = axis.depth(shown[rows, columns])
    points = np.stack([depth * across[columns * every], depth * down[rows * every, 0], depth])
    noise = surface.variance.reshape(surface.view.shape)[::every, ::every]
    return _Points(points, noise[rows, columns].astype(float))


def _residuals(
    points: _Points, belief: _Surface, back: Floats, axis: Axis
) -> tuple[Floats, Floats, Floats, np.ndarray]:
    """Compare points with the belief where they fall: scaled residuals, Jacobians, standard deviations, who counts."""
    (height, width), camera = belief.view.shape, belief.view.intrinsics
    x, y, z = np.einsum("ij,jk->ik", back[:3, :3], points.points) + back[:3, 3:]
    with np.errstate(invalid="ignore", divide="ignore"):
        column, row = x / z * camera.fx + camera.cx, y / z * camera.fy + camera.cy
        inside = (z > 0) & (column >= 1) & (column <= width - 3) & (row >= 1) & (row <= height - 3)
    x, y, z, column, row = (each[inside] for each in (x, y, z, column, row))
    left, top = np.floor(column).astype(np.int64), np.floor(row).astype(np.int64)
    part_x, part_y, corner = column - left, row - top, top * width + left
    taps = [belief.mean[corner + shift].astype(float) for shift in (0, 1, width, width + 1)]
    slope_x = (1 - part_y) * (taps[1] - taps[0]) + part_y * (taps[3] - taps[2])
    slope_y = (1 - part_x) * (taps[2] - taps[0]) + part_x * (taps[3] - taps[1])
    mean = taps[0] + part_x * (taps[1] - taps[0]) + part_y * (taps[2] - taps[0])
    mean += part_x * part_y * (taps[0] + taps[3] - taps[1] - taps[2])
    spread = belief.variance[corner] + points.noise[inside]
    flat = np.square(slope_x) + np.square(slope_y) < 9 * belief.side**2 * points.noise[inside]
    counts = np.isfinite(mean) & flat
    gap = mean - axis.count(z)
    towards = -axis.slope(z) if axis.domain == "1/z" else axis.slope(z)
    along_x, along_y = slope_x * camera.fx / z, slope_y * camera.fy / z
    along_z = -(along_x * x + along_y * y) / z - towards
    turns = (y * along_z - z * along_y, z * along_x - x * along_z, x * along_y - y * along_x)
    return gap, np.stack([along_x, along_y, along_z, *turns], -1), np.sqrt(spread), counts


def _improved(
    points: _Points, belief: _Surface, back: Floats, axis: Axis, settings: StreamSettings, wider: float
) -> Floats:
    """Take one step of Gauss and Newton with Tukey's weights; a motion that nothing shows stays small."""
    gap, jacobian, std, counts = _residuals(points, belief, back, axis)
    if counts.sum() < 100:
        return back
    gap, jacobian = gap[counts] / std[counts], jacobian[counts] / std[counts, None]
    weight = np.square(np.maximum(1 - np.square(gap / (settings.align_sigmas * wider)), 0))
    weighted = jacobian * weight[:, None]
    normal = np.einsum("ki,kj->ij", weighted, jacobian)
    normal[np.diag_indices(6)] *= 1 + 1e-4
    step = np.linalg.solve(normal + 1e-9 * np.trace(normal) * np.eye(6), -np.einsum("ki,k->i", weighted, gap))
    return _motion(step) @ back


def _judge(points: _Points, belief: _Surface, back: Floats, axis: Axis, settings: StreamSettings) -> tuple[float, bool]:
    """Return the robust cost of a motion, and whether it fits.

    Pixels beyond the gate are objects that move, if they are few enough: the others must agree as noise does.
    """
    gap, _, std, counts = _residuals(points, belief, back, axis)
    if counts.sum() < 100:
        return np.inf, False
    size = np.square(gap[counts] / std[counts])
    limited, near = np.minimum(size, settings.align_sigmas**2), size < settings.gate_sigmas**2
    if near.mean() < settings.least_agreement:
        return float(limited.mean()), False
    agreement = float((size[near] < settings.agreement_sigmas**2).mean())
    fits = agreement >= settings.align_agreement and float(limited[near].mean()) <= settings.align_cost
    return float(limited.mean()), fits


def _motion(step: Floats) -> Floats:
    """Return the rigid motion of a translation and a small rotation vector."""
    angle = float(np.linalg.norm(step[3:]))
    motion = np.eye(4)
    motion[:3, 3] = step[:3]
    if angle > 0:
        a, b, c = step[3:] / angle
        cross = np.array([[0, -c, b], [c, 0, -a], [-b, a, 0]])
        motion[:3, :3] += np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
    return motion

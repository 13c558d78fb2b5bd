"""Views of a synthetic room from any pose: true depths for simulated streams of moving cameras and objects."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsedepth.vocabulary import Floats

HALF_ROOM_M = (2.5, 1.4, 2.5)
"""Half of the width, height and depth of the room; its centre is the origin, y points down."""
BALLS_M = ((0.9, 0.7, 1.3, 0.5), (-0.8, 0.2, 1.6, 0.35), (-1.5, 1.0, 0.4, 0.45), (0.2, -0.5, 2.1, 0.3))
"""Centres and radii of balls in the room."""


def room_view(
    pose: Floats,
    intrinsics: tuple[float, float, float, float],
    shape: tuple[int, int],
    balls: Sequence[tuple[float, float, float, float]] = BALLS_M,
) -> Floats:
    """Compute the depths that a camera in the room sees.

    Parameters
    ----------
    pose
        Camera to world, (4, 4), in metres; the camera must be inside the room.
    intrinsics
        (fx, fy, cx, cy) in pixels.
    shape
        Height and width.
    balls
        Centres and radii in metres; one that moves from frame to frame is a moving object.

    Returns
    -------
    (height, width) in metres, without noise or holes.

    Examples
    --------
    >>> view = room_view(np.eye(4), (60.0, 60.0, 39.5, 29.5), (60, 80), balls=())
    >>> float(view[30, 40].round(3))
    2.5
    """
    fx, fy, cx, cy = intrinsics
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    rays = np.stack([(columns - cx) / fx, (rows - cy) / fy, np.ones(shape)])
    towards = np.tensordot(np.asarray(pose, float)[:3, :3], rays, 1)
    centre = np.asarray(pose, float)[:3, 3]
    with np.errstate(divide="ignore"):
        walls = [(half * np.sign(t) - c) / t for half, t, c in zip(HALF_ROOM_M, towards, centre, strict=True)]
    depth = np.min(np.where(np.isfinite(walls), walls, np.inf), axis=0)
    for *place, radius in balls:
        depth = np.minimum(depth, _to_ball(towards, centre - np.array(place), radius))
    return depth


def _to_ball(towards: Floats, offset: Floats, radius: float) -> Floats:
    """Compute the distance along rays, in their lengths, to a ball; inf = they pass it."""
    square = (towards**2).sum(0)
    along = np.tensordot(offset, towards, 1)
    left = along**2 - square * (offset @ offset - radius**2)
    near = (-along - np.sqrt(np.maximum(left, 0))) / square
    return np.where((left > 0) & (near > 0), near, np.inf)


def drawn_balls(rng: np.random.Generator, count: int = 6) -> tuple[tuple[float, float, float, float], ...]:
    """Draw centres and radii of balls, in metres, at least 0.6 m from a camera near the middle of the room.

    Examples
    --------
    >>> balls = drawn_balls(np.random.default_rng(0))
    >>> len(balls), bool(min(np.hypot(np.hypot(x, y), z) - radius for x, y, z, radius in balls) >= 0.6)
    (6, True)
    """
    low, high = (-1.8, -0.9, 0.4, 0.2), (1.8, 1.2, 2.3, 0.5)
    drawn = (tuple(map(float, rng.uniform(low, high))) for _ in iter(int, 1))
    far = ((x, y, z, radius) for x, y, z, radius in drawn if np.hypot(np.hypot(x, y), z) - radius >= 0.6)
    return tuple(ball for ball, _ in zip(far, range(count), strict=False))


def turned(angle: float, place: Sequence[float] = (0.0, 0.0, 0.0)) -> Floats:
    """Return the pose of a camera at a place in metres, turned about the vertical axis by an angle in radians.

    Examples
    --------
    >>> bool(np.allclose(turned(0.0), np.eye(4)))
    True
    """
    pose = np.eye(4)
    pose[0, 0] = pose[2, 2] = np.cos(angle)
    pose[0, 2], pose[2, 0] = np.sin(angle), -np.sin(angle)
    pose[:3, 3] = place
    return pose

"""Cameras of a stream: intrinsics, poses, and the motion between two frames."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from sparsedepth.vocabulary import Floats, InputError

METRE = {"m": 1.0, "mm": 1000.0}
"""Length of a metre in the units of maps."""


@dataclass(frozen=True)
class Intrinsics:
    """Focal lengths and principal point of a pinhole camera, in pixels.

    Parameters
    ----------
    fx, fy
        Focal lengths along rows and columns, positive.
    cx, cy
        Column and row of the principal point; the centre of the first pixel is 0.

    Examples
    --------
    >>> Intrinsics(585.0, 585.0, 320.0, 240.0).fx
    585.0
    """

    fx: float
    fy: float
    cx: float
    cy: float

    def __post_init__(self) -> None:
        numbers = astuple(self)
        if not np.isfinite(numbers).all() or min(self.fx, self.fy) <= 0:
            raise InputError(f"the intrinsics are {numbers}; give positive focal lengths and a principal point in px")

    def rays(self, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        """Return x / z of all columns, (width,), and y / z of all rows, (height, 1)."""
        across = (np.arange(shape[1], dtype=np.float32) - np.float32(self.cx)) / np.float32(self.fx)
        down = (np.arange(shape[0], dtype=np.float32) - np.float32(self.cy)) / np.float32(self.fy)
        return across, down[:, None]


def intrinsics_from(given: Any) -> Intrinsics | None:
    """Return intrinsics that came as a record, as four numbers, or not at all."""
    if given is None or isinstance(given, Intrinsics):
        return given
    try:
        return Intrinsics(*(float(number) for number in given))
    except TypeError:
        raise InputError(f"the intrinsics are {given!r}; give Intrinsics(fx, fy, cx, cy)") from None


def pose_from(given: Any) -> Floats:
    """Return a checked camera-to-world matrix, (4, 4)."""
    try:
        matrix = np.asarray(given, float)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.shape != (4, 4) or not np.isfinite(matrix).all():
        raise InputError(f"the pose has shape {np.shape(given)}; give a finite (4, 4) matrix, camera to world, in m")
    turn = matrix[:3, :3]
    if np.abs(turn @ turn.T - np.eye(3)).max() > 0.01 or np.linalg.det(turn) < 0:
        raise InputError("the pose does not rotate: its first three columns are not orthonormal; give a rigid motion")
    return matrix


def moved_px(motion: Floats, intrinsics: Intrinsics, shape: tuple[int, int], depth: float) -> float:
    """Compute by how many pixels a motion moves the corners and the centre of a picture at a depth."""
    columns = np.array([0, shape[1] - 1, 0, shape[1] - 1, shape[1] / 2])
    rows = np.array([0, 0, shape[0] - 1, shape[0] - 1, shape[0] / 2])
    points = np.stack([(columns - intrinsics.cx) / intrinsics.fx, (rows - intrinsics.cy) / intrinsics.fy, np.ones(5)])
    x, y, z = motion[:3, :3] @ (points * depth) + motion[:3, 3:]
    if (z <= 0).any():
        return float("inf")
    across, down = x / z * intrinsics.fx + intrinsics.cx - columns, y / z * intrinsics.fy + intrinsics.cy - rows
    return float(np.hypot(across, down).max())

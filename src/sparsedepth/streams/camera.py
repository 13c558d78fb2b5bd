"""Cameras of a stream: poses, and the motion between two frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsedepth.geometry import Intrinsics
from sparsedepth.vocabulary import Floats, InputError

METRE = {"m": 1.0, "mm": 1000.0}
"""Length of a metre in the units of maps."""


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

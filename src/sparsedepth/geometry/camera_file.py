"""What a calibration file says of a camera."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparsedepth.vocabulary import InputError


@dataclass(frozen=True)
class CameraFile:
    """Focal lengths and principal point in px, height and width if they are given, and whether a lens distorts."""

    numbers: tuple[float, float, float, float]
    shape: tuple[int, int] | None = None
    distorted: bool = False


def from_matrix(numbers: Sequence[float], shape: tuple[int, int] | None = None, distorted: bool = False) -> CameraFile:
    """Return the camera of a 3 x 3 matrix, row by row or column by column; its zeros tell which."""
    if len(numbers) != 9:
        raise InputError(f"its camera matrix has {len(numbers)} numbers; it must have 9")
    rows = [list(numbers[n : n + 3]) for n in (0, 3, 6)]
    if any(rows[2][:2]) and not (rows[0][2] or rows[1][2]):
        rows = [list(column) for column in zip(*rows, strict=True)]
    if rows[2] != [0, 0, 1] or rows[1][0]:
        raise InputError(f"its camera matrix ends in {rows[2]}; it must be [[fx, 0, cx], [0, fy, cy], [0, 0, 1]]")
    return CameraFile((rows[0][0], rows[1][1], rows[0][2], rows[1][2]), shape, distorted)

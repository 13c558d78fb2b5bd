"""Read the poses of a moving camera: camera-to-world matrices, one a frame."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from sparsedepth.cli.batch.plan import Source
from sparsedepth.cli.names import by_common_name, common_name
from sparsedepth.vocabulary import Floats, InputError

ROTATION_ERROR = 0.02
"""Largest deviation of a rotation matrix from an orthonormal one; text files round."""


def read_poses(given: Path, frames: Sequence[Source], factor: float) -> list[Floats]:
    """Read one pose for each frame.

    Parameters
    ----------
    given
        A folder with a text file for each frame, found by its name, or a file with all poses in the frames' order.
    frames
        The frames.
    factor
        What lengths are multiplied by to be in the unit of the maps.

    Returns
    -------
    Camera-to-world matrices (4, 4).

    Raises
    ------
    InputError
        If a pose is missing or is none.
    """
    poses = _of_folder(given, frames) if given.is_dir() else _of_file(given)
    if len(poses) != len(frames):
        raise InputError(
            f"{given} holds {len(poses)} poses and there are {len(frames)} frames; give one pose a frame, in the order "
            "of the frames"
        )
    scale = np.array([[1, 1, 1, factor]] * 3 + [[1, 1, 1, 1]])
    return [pose * scale for pose in poses]


def _of_folder(folder: Path, frames: Sequence[Source]) -> list[Floats]:
    there = {name.name: files[0] for name, files in by_common_name(folder, [".txt"]).items()}
    wanted = [common_name(frame.name).name for frame in frames]
    missing = [frame.path for frame, name in zip(frames, wanted, strict=True) if name not in there]
    if missing:
        example = f"; it holds {next(iter(there.values())).name}, for example" if there else "; it holds no .txt files"
        raise InputError(
            f"{folder} has no pose for {len(missing)} of {len(frames)} frames, first {missing[0].name}{example}; give "
            f"{common_name(missing[0]).name}.pose.txt and so on"
        )
    return [_single(there[name]) for name in wanted]


def _single(file: Path) -> Floats:
    poses = _of_file(file)
    if len(poses) != 1:
        raise InputError(f"{file} holds {len(poses)} poses; give one 4 x 4 matrix in the file of a frame")
    return poses[0]


def _of_file(file: Path) -> list[Floats]:
    """Read matrices of four lines each, or TUM lines: timestamp, translation, quaternion (x, y, z, w)."""
    numbers = _numbers(file)
    if numbers.shape[1] == 8:
        poses = [_of_quaternion(file, line) for line in numbers]
    elif numbers.shape[1] == 4 and len(numbers) % 4 == 0:
        poses = list(numbers.reshape(-1, 4, 4))
    else:
        raise InputError(
            f"{file} has {len(numbers)} lines of {numbers.shape[1]} numbers; give matrices of 4 lines with 4 numbers, "
            "or lines of TUM: timestamp tx ty tz qx qy qz qw"
        )
    for number, pose in enumerate(poses):
        _require_pose(file, number, pose)
    return poses


def _numbers(file: Path) -> Floats:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # an empty file is reported below
            return np.loadtxt(file, dtype=np.float64, ndmin=2, encoding="utf-8")
    except OSError:
        raise InputError(f"there is no file {file} to read poses from") from None
    except ValueError as error:
        raise InputError(f"{file} holds no table of numbers ({error}); give one pose a frame") from None


def _of_quaternion(file: Path, line: Floats) -> Floats:
    pose = np.eye(4)
    if not np.isfinite(line).all() or np.linalg.norm(line[4:]) == 0:
        raise InputError(f"{file} has a line without a rotation (timestamp {line[0]:.6f}); leave out its frame")
    pose[:3, :3], pose[:3, 3] = Rotation.from_quat(line[4:]).as_matrix(), line[1:4]
    return pose


def _require_pose(file: Path, number: int, pose: Floats) -> None:
    rotation = pose[:3, :3]
    rigid = np.isfinite(pose).all() and np.allclose(pose[3], [0, 0, 0, 1]) and np.linalg.det(rotation) > 0
    if not (rigid and np.abs(rotation @ rotation.T - np.eye(3)).max() <= ROTATION_ERROR):
        raise InputError(
            f"pose {number + 1} of {file} is no rotation and translation; give camera-to-world matrices whose last "
            "line is 0 0 0 1"
        )

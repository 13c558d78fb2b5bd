"""Eight consecutive frames of a structured-light camera (TUM RGB-D, freiburg3, sitting): m = value / 5000."""

from __future__ import annotations

from sparsedepth.data import data_set
from sparsedepth.files import read_map
from sparsedepth.vocabulary import DepthMap, InputError

VALUES_PER_METRE = 5000.0


def frames() -> list[DepthMap]:
    """Read the depths in metres, 480 x 640, in the order of time, 30 a second; NaN = missing (17 to 20 %)."""
    folder = data_set("kinect", "tum_freiburg3_sitting_rpy")
    files = sorted(folder.glob("*.png"))
    if not files:
        raise InputError(f"there are no frames in {folder}; put the PNG files of the sequence there")
    return [read_map(file, scale=VALUES_PER_METRE) for file in files]

"""Eight consecutive frames of a structured-light camera (TUM RGB-D, freiburg3, sitting): m = value / 5000."""

from __future__ import annotations

from sparsedepth.data import data_set
from sparsedepth.files import read_map
from sparsedepth.vocabulary import DepthMap, InputError

SCALE = 5000.0


def frames() -> list[DepthMap]:
    """480 x 640 depths in metres in the order of time, 30 a second; NaN = unknown (17 to 20 %)."""
    folder = data_set("kinect", "tum_freiburg3_sitting_rpy")
    files = sorted(folder.glob("*.png"))
    if not files:
        raise InputError(f"there are no frames in {folder}; put the PNG files of the sequence there")
    return [read_map(file, scale=SCALE) for file in files]

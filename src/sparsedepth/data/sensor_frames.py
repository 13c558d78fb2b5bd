"""Real frames of depth cameras with references: the folders of ``sensors`` in the data folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sparsedepth.data import data_set, require_choice
from sparsedepth.files import read_array
from sparsedepth.vocabulary import DepthMap, Floats

SENSORS = ("kinect_v1_7scenes", "realsense_d4xx_aims", "realsense_d4xx_cup", "tof_pico_zense")
"""Structured light, two active stereo cameras, time of flight."""
INVALID_CODES = (0, 65535)
ASSUMED_FOCAL_PX = 325.0
"""Of a sensor whose data set gives none: a D455 at 640 columns."""
MEASURED_STD: dict[str, tuple[list[float], list[float]]] = {
    "kinect_v1_7scenes": (
        [888, 1019, 1137, 1254, 1420, 1622, 1818, 1982, 2166, 2292, 2405, 2546, 2696, 2954],
        [1.9, 2.2, 2.4, 2.9, 3.7, 4.9, 5.6, 6.4, 7.7, 9.1, 9.1, 11.1, 12.0, 14.9],
    ),
    "realsense_d4xx_aims": (
        [675, 735, 775, 814, 858, 909, 965, 1041, 1157, 1338, 1603, 2032, 3123, 4741],
        [1.3, 1.6, 1.7, 2.0, 2.1, 2.4, 2.7, 3.1, 3.5, 5.0, 8.1, 16.3, 39.9, 78.4],
    ),
    "realsense_d4xx_cup": (
        [482, 523, 556, 586, 616, 650, 688, 738, 816, 2153, 2510, 2974, 3261, 3666],
        [0.6, 0.7, 0.7, 0.9, 0.9, 1.2, 1.2, 1.3, 2.1, 12.7, 16.1, 25.0, 29.4, 37.3],
    ),
    "tof_pico_zense": (
        [671, 697, 726, 763, 802, 842, 878, 917, 955, 994, 1047, 1104, 1187, 1287],
        [8.4, 7.9, 7.4, 7.7, 8.5, 9.1, 10.3, 11.6, 13.2, 15.3, 18.0, 19.3, 35.2, 55.1],
    ),
}
"""Depths and standard deviations of the sensors there, mm: the tables of the READMEs in the data folder."""


@dataclass(frozen=True, eq=False)
class SensorFrame:
    """A frame as its sensor wrote it, and its reference; all in mm, NaN = missing."""

    sensor: str
    number: int
    depth: DepthMap
    reference: DepthMap
    standard_error: DepthMap
    """Of the reference."""


def sensor_frames(sensor: str) -> Iterator[SensorFrame]:
    """Yield the frames of a sensor that have a reference, in their order.

    Parameters
    ----------
    sensor
        One of `SENSORS`.
    """
    require_choice("sensor", sensor, SENSORS)
    for path in sorted(data_set("sensors", sensor, "frames").glob("*_depth.png")):
        depth, reference, error = (
            np.asarray(read_array(path.with_name(path.name.replace("_depth", part))), np.float32)
            for part in ("_depth", "_ref", "_se")
        )
        missing = reference == 0
        yield SensorFrame(
            sensor,
            int(path.name.split("_")[0]),
            np.where(np.isin(depth, INVALID_CODES), np.float32(np.nan), depth),
            np.where(missing, np.float32(np.nan), reference / 10),
            np.where(missing, np.float32(np.nan), error / 10),
        )


def measured_std(sensor: str, depth: Floats) -> Floats:
    """Compute the measured standard deviation of a sensor at some depths.

    Parameters
    ----------
    sensor
        One of `SENSORS`.
    depth
        Depths in mm of any shape; NaN stays NaN.

    Returns
    -------
    Standard deviations in mm, linear in the logarithms between the depths of the table.

    Examples
    --------
    >>> round(float(measured_std("kinect_v1_7scenes", np.array(888.0))), 6)
    1.9
    """
    require_choice("sensor", sensor, SENSORS)
    depths, stds = MEASURED_STD[sensor]
    return np.exp(np.interp(np.log(depth), np.log(depths), np.log(stds)))


def sequence(sensor: str) -> dict[int, DepthMap]:
    """Read the consecutive frames of a sensor by their numbers.

    Parameters
    ----------
    sensor
        One of `SENSORS` that has a sequence.

    Returns
    -------
    Frames in mm; NaN = missing.
    """
    require_choice("sensor", sensor, SENSORS)
    paths = sorted(data_set("sensors", sensor, "sequence").glob("*_depth.png"))
    maps = {int(path.name.split("_")[0]): np.asarray(read_array(path), np.float32) for path in paths}
    return {number: np.where(np.isin(depth, INVALID_CODES), np.nan, depth) for number, depth in maps.items()}


def pose(sensor: str, number: int) -> Floats:
    """Read the camera-to-world pose of a frame of a sequence, (4, 4), in mm."""
    folder = data_set("sensors", sensor, "sequence")
    return np.loadtxt(folder / f"{number:06d}_pose.txt") * np.array([1, 1, 1, 1000.0])


def intrinsics(sensor: str) -> tuple[float, float, float, float]:
    """Read focal lengths and principal point of a sensor, in pixels.

    Parameters
    ----------
    sensor
        One of `SENSORS`.

    Returns
    -------
    fx, fy, cx, cy; a data set without them gets `ASSUMED_FOCAL_PX` and the centre of 640 x 360 pixels.
    """
    require_choice("sensor", sensor, SENSORS)
    given = json.loads((data_set("sensors", sensor) / "meta.json").read_text())["intrinsics"]
    if given["fx"] is None:
        return ASSUMED_FOCAL_PX, ASSUMED_FOCAL_PX, 320.0, 180.0
    fx, fy, cx, cy = (float(str(given[name]).split()[0]) for name in ("fx", "fy", "cx", "cy"))
    return fx, fy, cx, cy

"""Real frames of depth cameras with references: the folders of ``sensors`` in the data folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sparsedepth.data import data_set, require_choice
from sparsedepth.files import read_array
from sparsedepth.vocabulary import DepthMap

SENSORS = ("kinect_v1_7scenes", "realsense_d4xx_aims", "realsense_d4xx_cup", "tof_pico_zense")
"""Structured light, two active stereo cameras, time of flight."""
INVALID_CODES = (0, 65535)


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

"""A simulated camera: a room in which a ball moves, seen with the noise of a sensor."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from typing import Self

import numpy as np

from sparsedepth.cameras.protocol import CameraFrame
from sparsedepth.data.posed_rooms import room_view
from sparsedepth.files.profiles import PROFILES
from sparsedepth.geometry import Intrinsics
from sparsedepth.sensors import Sensor
from sparsedepth.sensors.simulate import simulate_each
from sparsedepth.vocabulary import DepthImage, Floats

SWING_M, SWING_SECONDS = 0.8, 3.0
"""How far a ball swings to either side, and how long a swing takes."""
PITCH_RAD, PLACE_M = 0.3, (0.0, -0.4, -1.2)
"""The camera looks down at the floor, from behind the middle of the room."""


class SimulatedCamera:
    """A camera at rest in a room of balls, one of which swings from side to side; depth in millimetres.

    Parameters
    ----------
    seed
        Number of the scene and of its noise.
    sensor
        Name of a preset.
    shape
        Height and width in pixels.
    frames_per_second
        Rate of the stamps.
    frames
        How many there are; None = without end.
    paced
        Whether frames come in real time; False = as fast as they are computed.

    Examples
    --------
    >>> with SimulatedCamera(frames=2, paced=False) as camera:
    ...     stamps = [frame.stamp_ns for frame in camera]
    >>> stamps
    [0, 33333333]
    """

    def __init__(
        self,
        seed: int = 0,
        sensor: str = "realsense_d435",
        shape: tuple[int, int] = (240, 320),
        frames_per_second: float = 30.0,
        frames: int | None = None,
        paced: bool = True,
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._sensor, self._shape, self._rate = Sensor.preset(sensor), shape, frames_per_second
        self._frames, self._paced = frames, paced
        height, width = shape
        self.intrinsics = Intrinsics(0.9 * width, 0.9 * width, (width - 1) / 2, (height - 1) / 2)
        self._balls = self._drawn_balls()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self) -> Iterator[CameraFrame]:
        began = time.monotonic()
        for number, values in enumerate(simulate_each(self._scenes(), self._sensor, self._rng)):
            if self._paced:
                time.sleep(max(0.0, began + number / self._rate - time.monotonic()))
            image = DepthImage(values.astype(np.float32), "mm", profile=PROFILES["mm"])
            yield CameraFrame(image, int(1e9 * number / self._rate))

    def _drawn_balls(self) -> list[tuple[float, float, float, float]]:
        draw = self._rng.uniform
        swinging = (draw(-0.3, 0.3), draw(0.2, 0.6), draw(0.6, 1.0), draw(0.12, 0.18))
        return [swinging, *((draw(-1.6, 1.6), draw(0.7, 1.1), draw(0.8, 2.0), draw(0.2, 0.45)) for _ in range(4))]

    def _scenes(self) -> Iterator[Floats]:
        """Give the true depths of each frame, in millimetres."""
        camera = (self.intrinsics.fx, self.intrinsics.fy, self.intrinsics.cx, self.intrinsics.cy)
        for number in range(self._frames) if self._frames is not None else itertools.count():
            (x, y, z, radius), *others = self._balls
            swung = x + SWING_M * math.sin(2 * math.pi * number / self._rate / SWING_SECONDS)
            yield 1000 * room_view(_pose(), camera, self._shape, [(swung, y, z, radius), *others])


def _pose() -> Floats:
    pose = np.eye(4)
    pose[1, 1] = pose[2, 2] = math.cos(PITCH_RAD)
    pose[1, 2], pose[2, 1] = math.sin(PITCH_RAD), -math.sin(PITCH_RAD)
    pose[:3, 3] = PLACE_M
    return pose

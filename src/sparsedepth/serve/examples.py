"""Example maps and pairs, made when asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple

import numpy as np
from scipy.ndimage import binary_dilation, gaussian_filter

from sparsedepth.cameras import SimulatedCamera
from sparsedepth.data.motorcycle import CENTRE_PX, FOCAL_PX, motorcycle_depth, motorcycle_disparity, motorcycle_pair
from sparsedepth.data.rooms import depth_of_disparity
from sparsedepth.data.synthetic import corrupted
from sparsedepth.sensors import Sensor
from sparsedepth.sensors.simulate import simulate
from sparsedepth.vocabulary import DepthImage, DepthMap, StereoPair

MAPS = {
    "measured": "Motorcycle, measured",
    "garage": "Motorcycle, simulated camera",
    "motorcycle": "Motorcycle, 5 % wrong",
    "room": "Room, made up",
}
"""The first one is shown when the page is opened."""
SENSORS = {"garage": "realsense_d435"}
"""The camera of an example, which the page names."""
STREAMS = {"ball": "Swinging ball, a stream"}
STREAM_FRAMES = 45
PAIRS = {"motorcycle-pair": "Motorcycle, two views"}
_SCENE = "Motorcycle of Middlebury 2014, as scikit-image has it"
SOURCES = {
    "measured": f"Real depths with their real holes, measured by structured light: {_SCENE}, half its size.",
    "garage": f"A simulated RealSense D435 before a real scene: {_SCENE}. The holes are those of its scan.",
    "motorcycle": f"Real disparities of which 5 % were made wrong: {_SCENE}.",
    "room": "A simulated depth camera in a room that was made up.",
    "ball": "A simulated depth camera before a swinging ball.",
    "motorcycle-pair": f"Two real photographs: {_SCENE}, half its size.",
}
"""What is real of an example and what is not: a sentence for who looks at it."""


def example_map(name: str) -> DepthImage:
    """Return a noisy map with holes."""
    if name == "measured":
        return DepthImage(motorcycle_depth().values[::2, ::2], "mm")
    if name == "garage":
        return _garage(np.random.default_rng(0))
    if name == "room":
        return DepthImage(_room(np.random.default_rng(0)), "m")
    truth = motorcycle_disparity()[100:400, 300:700]
    return DepthImage(corrupted(truth, 0.05, np.random.default_rng(0)), "px", "disparity")


def example_camera(name: str) -> list[float] | None:
    """Return the intrinsics of an example map, None = nobody knows them."""
    if name != "measured":
        return None
    return [number / 2 for number in (FOCAL_PX, FOCAL_PX, *CENTRE_PX)]  # every second pixel, from the first


def example_stream(name: str) -> tuple[list[float], Iterator[DepthImage]]:
    """Return the intrinsics and the frames of a simulated camera."""
    camera = SimulatedCamera(seed=list(STREAMS).index(name), frames=STREAM_FRAMES, paced=False)
    return list(astuple(camera.intrinsics)), (frame.depth for frame in camera)


def example_pair() -> StereoPair:
    """Return every second pixel of two views: quick to match."""
    pair = motorcycle_pair()
    return StereoPair(pair.left[::2, ::2], pair.right[::2, ::2], -(-pair.max_disparity // 2))


def _garage(rng: np.random.Generator) -> DepthImage:
    """Simulate a RealSense D435 before a real scene, 300 x 200 pixels; the holes are those of the scene's scan."""
    depths = depth_of_disparity(motorcycle_disparity()[40:440:2, 70:670:2], 1600.0)
    return DepthImage(simulate(depths, Sensor.preset(SENSORS["garage"]), rng)[0], "mm")


def _room(rng: np.random.Generator) -> DepthMap:
    """Simulate a depth camera in a room with two walls, three balls and a box: 320 x 240 pixels.

    Noise grows with the square of the distance, edges have shadows, and a few pixels are outliers.
    """
    y, x = np.mgrid[:240, :320]
    right, down = (x - 159.5) / 260, (y - 119.5) / 260
    depth = np.minimum(1.1 / np.maximum(down, 1e-3), 3.4)
    depth = np.minimum(depth, 2.2 / np.maximum(right + 0.62, 1e-3))
    for column, row, radius, near in ((110, 150, 38, 1.6), (210, 120, 52, 2.1), (265, 175, 24, 1.3)):
        inside = np.maximum(radius**2 - (x - column) ** 2 - (y - row) ** 2, 0)
        ball = near + (radius - np.sqrt(inside)) / 260 * near
        depth = np.where(inside > 0, np.minimum(depth, ball), depth)
    box = (abs(x - 48) < 30) & (abs(y - 178) < 26)
    depth = np.where(box, 1.5 + (x - 48) / 400, depth)
    shadow = np.abs(np.diff(depth, axis=1, prepend=depth[:, :1])) > 0.15
    unknown = np.asarray(binary_dilation(shadow, np.ones((1, 4), bool)), bool) | (
        gaussian_filter(rng.random(y.shape), 2.2) > 0.575
    )
    noisy = depth + rng.standard_normal(y.shape) * 0.0012 * depth**2
    noisy = corrupted(noisy.astype(np.float32), 0.02, rng)
    return np.where(unknown, np.nan, noisy).astype(np.float32)

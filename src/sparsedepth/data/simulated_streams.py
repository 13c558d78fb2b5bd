"""Simulated streams with truth: a room before a camera that stands, moves, stops or turns, and objects that change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sparsedepth.data.posed_rooms import drawn_balls, room_view, turned
from sparsedepth.data.synthetic import range_of_neighbours
from sparsedepth.sensors import Correlation, PowerLaw, Sensor
from sparsedepth.sensors.simulate import correlated_noise, quantised
from sparsedepth.vocabulary import Floats

Mask = NDArray[np.bool_]
STREAM_SENSORS = {
    "kinect_v1": Sensor.preset("kinect_v1"),
    "realsense_d455": replace(Sensor.preset("realsense_d455"), pattern=0.0),
    "time of flight": replace(Sensor.preset("pico_zense"), noise=PowerLaw(factor=1.5e-5), farthest=5000.0),
}
"""Presets without a fixed pattern, which no average removes; time of flight follows a quadratic law up to 5 m."""
FOCAL = 285.0 / 320.0
"""Focal length over the width of the frame."""
LOST_AT_STEPS, STEP_STDS = 0.3, 10.0
"""Fraction of the pixels at steps that each frame misses, and least height of a step in standard deviations."""
HOLE_PX, HOLE_SIGMAS = 4.0, 2.2
"""Size of holes anywhere, and the height that makes them: 1.4 % of the pixels."""
SHADOW = 0.025
"""Width of the shadow of a moving object, over that of the frame."""
START_FRAMES = 10
"""Frames before something moves."""
OBJECT_M = (1.2, 0.25)
"""Depth and radius of a ball that passes."""
DISC = 0.16
"""Radius of a disc that approaches, over the width of the frame."""


@dataclass(frozen=True, eq=False)
class StreamFrame:
    """A frame of a simulated stream; maps are (height, width), lengths in mm, NaN = missing.

    Parameters
    ----------
    depth, truth, std
        The frame, what is there, and the standard deviation of the sensor.
    pose
        Camera to world, (4, 4), in metres.
    moving_mask
        Pixels of a moving object, and of its shadow.
    shadow_mask
        Pixels in the shadow of a moving object, which the sensor does not measure.
    """

    depth: Floats
    truth: Floats
    std: Floats
    pose: Floats
    moving_mask: Mask
    shadow_mask: Mask


class NoisyCamera:
    """A camera whose noise is correlated in time: an autoregression of first order.

    Parameters
    ----------
    sensor
        Its noise, in mm.
    rng
        Source of randomness.
    """

    def __init__(self, sensor: Sensor, rng: np.random.Generator) -> None:
        self._sensor, self._rng = sensor, rng
        self._noise: Floats | None = None

    def take(self, scene: Floats) -> Floats:
        """Return the next frame of a scene in mm, (height, width), without holes."""
        sensor, fresh = self._sensor, correlated_noise(scene.shape, self._sensor.correlation, self._rng)
        rho = 0.0 if self._noise is None else sensor.temporal
        self._noise = noise = rho * (0.0 if self._noise is None else self._noise) + np.sqrt(1 - rho**2) * fresh
        moved = scene / np.maximum(1 - noise * sensor.noise(scene) / scene, 0.2)
        hit = self._rng.random(scene.shape) < sensor.outliers
        anywhere = self._rng.uniform(scene.min(), scene.max(), scene.shape)
        return quantised(np.where(hit, anywhere, moved), sensor.step)


@dataclass(frozen=True, eq=False)
class StreamScene:
    """A room with balls, drawn by a seed, and a camera in it.

    Parameters
    ----------
    sensor
        Noise of the camera, in mm.
    seed
        Numbers from which room, paths and noise are drawn.
    shape
        Height and width in pixels.

    Examples
    --------
    >>> scene = StreamScene(STREAM_SENSORS["kinect_v1"], (1,), (60, 80))
    >>> frames = scene.static(3)
    >>> len(frames), frames[0].depth.shape
    (3, (60, 80))
    """

    sensor: Sensor
    seed: tuple[int, ...]
    shape: tuple[int, int] = (240, 320)

    @property
    def intrinsics(self) -> tuple[float, float, float, float]:
        """fx, fy, cx, cy in pixels."""
        focal = FOCAL * self.shape[1]
        return focal, focal, (self.shape[1] - 1) / 2, (self.shape[0] - 1) / 2

    @cached_property
    def balls(self) -> tuple[tuple[float, float, float, float], ...]:
        """Centres and radii of the balls of the room, in metres."""
        return drawn_balls(np.random.default_rng([*self.seed, 0]))

    def static(self, count: int = 30) -> list[StreamFrame]:
        """Take frames of a camera that stands still."""
        return self._taken([self._start()] * count)

    def moving(self, count: int = 30) -> list[StreamFrame]:
        """Take frames of a camera that moves and turns, by up to 5 pixels a frame at a width of 320."""
        speed = self._paths().uniform((-0.012, -0.01, -0.004, -0.01), (0.012, 0.01, 0.004, 0.01))
        return self._taken([self._start(number * speed) for number in range(count)])

    def stops_and_turns(self, rate: float, count: int = 32) -> list[StreamFrame]:
        """Take frames of a camera that moves, stops, turns by ``rate`` radians a frame, and stops."""
        quarter = count // 4
        speed = self._paths().uniform((-0.006, -0.008, -0.003, -0.008), (0.006, 0.008, 0.003, 0.008))
        turn = np.array([rate, 0.0, 0.0, 0.0])
        steps = [speed] * quarter + [0 * turn] * quarter + [turn] * (count - 3 * quarter) + [0 * turn] * quarter
        return self._taken([self._start(moved) for moved in np.cumsum([0 * turn, *steps[1:]], 0)])

    def passing_object(self) -> list[StreamFrame]:
        """Take frames of a camera that stands still while a ball passes, its shadow to the left of it.

        Odd seeds let the ball go right, and its shadow follow; even ones let it go left, and its shadow lead.
        """
        rng, (depth, radius) = self._paths(), OBJECT_M
        speed, side = rng.uniform(0.05, 0.12), 1.0 if self.seed[-1] % 2 else -1.0
        start = 0.5 * depth / FOCAL + radius + 0.05
        path = [-start] * START_FRAMES + list(np.arange(-start, start, speed))
        balls = [(side * x, float(rng.uniform(-0.05, 0.05)), depth, radius) for x in path]
        return self._taken([np.eye(4)] * len(balls), balls)

    def slow_change(self, speed: float, count: int = 36) -> list[StreamFrame]:
        """Take frames while a disc approaches by ``speed`` standard deviations of the sensor a frame."""
        rows, columns = np.mgrid[: self.shape[0], : self.shape[1]]
        middle = self._paths().uniform(0.3, 0.7, 2) * self.shape
        disc = np.hypot(rows - middle[0], columns - middle[1]) < DISC * self.shape[1]

        def changed(number: int, view: Floats) -> Floats:
            for _ in range(START_FRAMES, number):
                view = view - np.where(disc, speed * self.sensor.std(view), 0)
            return view

        return self._taken([self._start()] * count, changed=changed, moving=disc)

    def _paths(self) -> np.random.Generator:
        return np.random.default_rng([*self.seed, 1])

    def _start(self, moved: Iterable[float] = (0.0, 0.0, 0.0, 0.0)) -> Floats:
        """Return the pose after a turn about the vertical axis and a shift, from the start of the camera."""
        angle, *place = moved
        first = np.random.default_rng([*self.seed, 2]).uniform((-0.4, -0.15, -0.15, -0.15), (0.4, 0.15, 0.15, 0.15))
        return turned(first[0] + angle, list(first[1:] + np.array(place)))

    def _taken(
        self,
        poses: Iterable[Floats],
        objects: list[tuple[float, float, float, float]] | None = None,
        changed: Callable[[int, Floats], Floats] = lambda number, view: view,
        moving: Mask | None = None,
    ) -> list[StreamFrame]:
        rng = np.random.default_rng([*self.seed, 3])
        camera, frames = NoisyCamera(self.sensor, rng), []
        for number, pose in enumerate(poses):
            empty = changed(number, 1000 * room_view(pose, self.intrinsics, self.shape, self.balls))
            view, shadow = self._with_object(empty, pose, objects[number] if objects else None)
            depth = camera.take(view)
            depth[shadow | _holes(view, self.sensor, rng)] = np.nan
            mask = (view < empty) | shadow if moving is None else moving
            frames.append(StreamFrame(depth, view, self.sensor.std(view), pose, mask, shadow))
        return frames

    def _with_object(
        self, empty: Floats, pose: Floats, ball: tuple[float, float, float, float] | None
    ) -> tuple[Floats, Mask]:
        """Put a ball before a view; return the view and the shadow to the left of the ball."""
        if ball is None:
            return empty, np.zeros(self.shape, bool)
        view = 1000 * room_view(pose, self.intrinsics, self.shape, (*self.balls, ball))
        hit, width = view < empty - 10, max(1, round(SHADOW * self.shape[1]))
        return np.where(hit, view, empty), np.pad(hit, ((0, 0), (0, width)))[:, width:] & ~hit


def _holes(view: Floats, sensor: Sensor, rng: np.random.Generator) -> Mask:
    """Draw the pixels that a frame misses: some at steps, and small areas anywhere."""
    low, high = range_of_neighbours(view)
    at_steps = (high - low > STEP_STDS * sensor.std(view)) & (rng.random(view.shape) < LOST_AT_STEPS)
    return at_steps | (correlated_noise(view.shape, Correlation(HOLE_PX, HOLE_PX, 2.0), rng) > HOLE_SIGMAS)

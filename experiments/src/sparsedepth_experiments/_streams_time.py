"""CPU time and memory of streams, beside a bilateral filter of the same frames in turn."""

from __future__ import annotations

import gc
import time
import tracemalloc
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsedepth.data.sensor_frames import intrinsics, pose, sequence
from sparsedepth.data.simulated_streams import STREAM_SENSORS, StreamScene
from sparsedepth.sensors import Sensor
from sparsedepth.streams import Intrinsics, Stream
from sparsedepth_experiments._opencv import opencv_bilateral
from sparsedepth_experiments._streams_runs import KINECT, Run, distinct, simulated_run

MEMORY_SHAPE = (48, 64)
"""Size of the frames that show whether memory grows."""
TIMED = {
    "poses": (True, True, True),
    "poses, unknown sensor": (False, True, True),
    "aligned, no poses": (True, False, True),
    "static": (True, False, False),
    "static, unknown sensor": (False, False, False),
}
"""Whether sensor, poses and intrinsics are given."""


@dataclass(frozen=True)
class Timing:
    """CPU seconds a frame, all in: mean, median and slowest, and those of the bilateral filter."""

    mean: float
    median: float
    slowest: float
    bilateral: float | None = None

    @property
    def ratio(self) -> float | None:
        """Mean seconds a frame over those of the bilateral filter."""
        return self.mean / self.bilateral if self.bilateral else None


def timings(run: Run) -> dict[str, Timing]:
    """Time streams of all kinds on the frames of a camera that moves."""
    return {name: _timed(run, *given) for name, given in TIMED.items()}


def _timed(run: Run, known: bool, posed: bool, moves: bool) -> Timing:
    camera = Intrinsics(*run.intrinsics) if moves else None
    stream, peer = Stream(run.sensor if known else None, camera, unit="mm"), opencv_bilateral()
    ours, theirs = [], []
    for k, frame in enumerate(run.frames):
        ours.append(_seconds(stream.push, frame, pose=run.poses[k] if posed else None))
        if peer is not None:
            theirs.append(_seconds(peer, frame))
    numbers = float(np.mean(ours)), float(np.median(ours)), max(ours)
    return Timing(*numbers, float(np.mean(theirs)) if theirs else None)


def _seconds(work: Any, *given: Any, **named: Any) -> float:
    start = time.process_time()
    work(*given, **named)
    return time.process_time() - start


def kinect_frames() -> Run:
    """Load the distinct frames of the Kinect sequence, 640 x 480, without references."""
    frames = sequence(KINECT)
    numbers = distinct(frames, max(frames))
    poses = [pose(KINECT, number) / np.array([1, 1, 1, 1000.0]) for number in numbers]
    sensor = Sensor.preset("kinect_v1")
    return Run([frames[number] for number in numbers], {}, sensor, sensor.std, intrinsics(KINECT), poses)


def simulated_frames(seed: int, shape: tuple[int, int], count: int) -> Run:
    """Simulate frames of a Kinect that moves."""
    scene = StreamScene(STREAM_SENSORS["kinect_v1"], (seed, 9), shape)
    return simulated_run(scene, scene.moving(count), moves=True)


def growth_of_memory(seed: int, count: int) -> int:
    """Return by how many bytes a stream of small frames grows from its first tenth to its end."""
    scene = StreamScene(STREAM_SENSORS["kinect_v1"], (seed, 8), MEMORY_SHAPE)
    frames = scene.moving(20)
    frames = [*frames, *frames[-2:0:-1]]  # forth and back
    stream, sizes = Stream(scene.sensor, Intrinsics(*scene.intrinsics), unit="mm"), []
    tracemalloc.start()
    for k in range(count):
        frame = frames[k % len(frames)]
        stream.push(frame.depth, pose=frame.pose)
        if k + 1 in (count // 10, count):
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    return sizes[1] - sizes[0]

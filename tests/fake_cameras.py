"""Stand-ins for the vendors' packages, as far as their documentation promises and the drivers use them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np


def raw_frames(n: int, shape: tuple[int, int] = (6, 8)) -> list[np.ndarray]:
    """Stored numbers, a hole in each frame."""
    frames = [np.full(shape, 4000 + number, np.uint16) for number in range(n)]
    for frame in frames:
        frame[0, 0] = 0
    return frames


class FakeRealSense:
    """Module ``pyrealsense2`` with a device that gives a few frames, and then nothing."""

    stream = SimpleNamespace(depth="depth", color="color")
    format = SimpleNamespace(z16="z16", rgb8="rgb8")

    def __init__(self, raw: list[np.ndarray], scale: float = float(np.float32(0.00025)), plugged: bool = True) -> None:
        self.raw, self.scale, self.plugged = raw, scale, plugged
        self.started = self.stopped = 0
        self.asked: list[tuple[Any, ...]] = []

    def config(self) -> Any:
        return SimpleNamespace(
            enable_device=lambda serial: self.asked.append(("device", serial)),
            enable_stream=lambda *words: self.asked.append(words),
        )

    def align(self, target: str) -> Any:
        return SimpleNamespace(process=lambda frames: self.asked.append(("aligned to", target)) or frames)

    def pipeline(self) -> Any:
        waiting = iter(enumerate(self.raw))

        def start(config: Any) -> Any:
            if not self.plugged:
                raise RuntimeError("No device connected")
            self.started += 1
            return self.profile()

        def wait_for_frames(milliseconds: int) -> Any:
            assert milliseconds >= 1000
            found = next(waiting, None)
            if found is None:
                raise RuntimeError(f"Frame didn't arrive within {milliseconds}")
            return self.frames(*found)

        def stop() -> None:
            self.stopped += 1

        return SimpleNamespace(start=start, wait_for_frames=wait_for_frames, stop=stop)

    def profile(self) -> Any:
        numbers = SimpleNamespace(fx=60.5, fy=61.5, ppx=3.5, ppy=2.5, width=8, height=6)
        video = SimpleNamespace(get_intrinsics=lambda: numbers)
        sensor = SimpleNamespace(get_depth_scale=lambda: self.scale)
        return SimpleNamespace(
            get_stream=lambda kind: SimpleNamespace(as_video_stream_profile=lambda: video),
            get_device=lambda: SimpleNamespace(first_depth_sensor=lambda: sensor),
        )

    def frames(self, number: int, raw: np.ndarray) -> Any:
        depth = SimpleNamespace(get_data=lambda: raw, get_timestamp=lambda: 1000.0 * number / 30)
        colour = SimpleNamespace(get_data=lambda: np.zeros((*raw.shape, 3), np.uint8))
        return SimpleNamespace(get_depth_frame=lambda: depth, get_color_frame=lambda: colour)


class FakeOpenNI:
    """Module ``openni.openni2`` with a device that gives a few frames, and then nothing."""

    PIXEL_FORMAT_DEPTH_1_MM, PIXEL_FORMAT_DEPTH_100_UM = 100, 101

    def __init__(
        self, raw: list[np.ndarray], pixel_format: int = 101, plugged: bool = True, depth: bool = True
    ) -> None:
        self.raw, self.pixel_format, self.plugged, self.depth = raw, pixel_format, plugged, depth
        self.loaded = self.started = 0
        self.opened: list[Any] = []

    def initialize(self) -> None:
        self.loaded += 1

    def unload(self) -> None:
        self.loaded = 0

    def Device(self, uri: bytes | None) -> Any:  # noqa: N802 (the name of the package's class)
        if not self.plugged:
            raise OSError("DeviceOpen using default: no devices found")
        self.opened.append(uri)
        return SimpleNamespace(create_depth_stream=lambda: self if self.depth else None)

    def start(self) -> None:
        self.started += 1

    def stop(self) -> None:
        self.started -= 1

    def get_video_mode(self) -> Any:
        height, width = self.raw[0].shape
        return SimpleNamespace(resolutionX=width, resolutionY=height, fps=30, pixelFormat=self.pixel_format)

    def get_horizontal_fov(self) -> float:
        return 2 * np.arctan(0.5)

    def get_vertical_fov(self) -> float:
        return 2 * np.arctan(0.375)

    def wait_for_any_stream(self, streams: list[Any], seconds: float) -> Any:
        assert streams == [self]
        assert seconds >= 1, "it counts seconds, not milliseconds"
        return self if self.raw else None

    def read_frame(self) -> Any:
        raw = self.raw.pop(0)
        return SimpleNamespace(
            height=raw.shape[0], width=raw.shape[1], timestamp=33333, get_buffer_as_uint16=lambda: raw.ravel()
        )

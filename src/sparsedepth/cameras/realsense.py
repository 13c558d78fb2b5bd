"""RealSense cameras by the vendor's package pyrealsense2; tried with a fake of it, not with hardware."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np

from sparsedepth.cameras.protocol import PATIENCE_SECONDS, CameraFrame
from sparsedepth.files.profiles import PROFILES
from sparsedepth.geometry import Intrinsics
from sparsedepth.vocabulary import DepthImage, InputError


class RealSenseCamera:
    """A RealSense camera: depth in millimetres by the unit of the device, and colour aligned to it if wanted.

    Parameters
    ----------
    serial
        Serial number of the device; "" = any.
    shape
        Height and width of the depth images; None = what the device prefers.
    frames_per_second
        Rate; None = what the device prefers.
    colour
        Whether pictures come with the depth.
    """

    def __init__(
        self,
        serial: str = "",
        shape: tuple[int, int] | None = None,
        frames_per_second: int | None = None,
        colour: bool = False,
    ) -> None:
        self._serial, self._shape, self._rate, self._colour = serial, shape, frames_per_second, colour
        self.intrinsics: Intrinsics | None = None

    def __enter__(self) -> Self:
        rs = self._rs = _driver()
        self._pipeline = rs.pipeline()
        try:
            profile = self._pipeline.start(self._config())
        except RuntimeError as error:
            named = f" {self._serial}" if self._serial else ""
            raise InputError(
                f"the RealSense camera{named} does not start: {error}; is it plugged in, and free?"
            ) from None
        found = profile.get_stream(rs.stream.depth).as_video_stream_profile().get_intrinsics()
        self.intrinsics = Intrinsics(found.fx, found.fy, found.ppx, found.ppy)
        self._unit_mm = float(f"{1000 * profile.get_device().first_depth_sensor().get_depth_scale():.6g}")
        self._align = rs.align(rs.stream.depth) if self._colour else None
        return self

    def __exit__(self, *_: object) -> None:
        self._pipeline.stop()

    def __iter__(self) -> Iterator[CameraFrame]:
        while True:
            try:
                frames = self._pipeline.wait_for_frames(int(1000 * PATIENCE_SECONDS))
            except RuntimeError as error:
                raise InputError(f"the RealSense camera gave no frame: {error}; is it still plugged in?") from None
            frames = frames if self._align is None else self._align.process(frames)
            depth, colour = frames.get_depth_frame(), frames.get_color_frame() if self._colour else None
            if depth:
                yield CameraFrame(self._image(depth), int(1e6 * depth.get_timestamp()), _pixels(colour))

    def _config(self) -> Any:
        rs, config = self._rs, self._rs.config()
        if self._serial:
            config.enable_device(self._serial)
        height, width = self._shape or (0, 0)  # 0 = any, as the driver documents
        config.enable_stream(rs.stream.depth, width, height, rs.format.z16, self._rate or 0)
        if self._colour:
            config.enable_stream(rs.stream.color, rs.format.rgb8)
        return config

    def _image(self, depth: Any) -> DepthImage:
        """Copy the pixels: the driver reuses its memory."""
        raw = np.asarray(depth.get_data())
        values = np.where(raw > 0, raw.astype(np.float32) * np.float32(self._unit_mm), np.float32(np.nan))
        return DepthImage(values, "mm", profile=replace(PROFILES["mm"], scale=1 / self._unit_mm))


def _pixels(picture: Any) -> Any:
    return np.array(picture.get_data()) if picture else None


def _driver() -> Any:
    try:
        import pyrealsense2  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise InputError(
            "a RealSense camera needs the package pyrealsense2; install it: pip install 'sparsedepth[camera]'"
        ) from None
    return pyrealsense2

"""Cameras of OpenNI 2 (Orbbec Astra, ASUS Xtion, PrimeSense, Kinect v1); tried with a fake of it, not with hardware."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from sparsedepth.cameras.protocol import PATIENCE_SECONDS, CameraFrame
from sparsedepth.files.profiles import PROFILES
from sparsedepth.geometry import Intrinsics
from sparsedepth.vocabulary import DepthImage, InputError


class OpenNICamera:
    """A camera of OpenNI 2: depth in millimetres.

    OpenNI tells fields of view instead of intrinsics. Focal lengths are computed from these, and the principal point is
    taken to be the centre of the picture.

    Parameters
    ----------
    uri
        Address of the device, or an .oni recording; "" = any device.
    """

    def __init__(self, uri: str = "") -> None:
        self._uri = uri
        self.intrinsics: Intrinsics | None = None

    def __enter__(self) -> Self:
        self._driver = _driver()
        try:
            self._driver.initialize()
            device = self._driver.Device(self._uri.encode() or None)
            self._stream = device.create_depth_stream()
        except Exception as error:  # the package raises classes of its own, which differ between its two versions
            self._driver.unload()
            raise InputError(f"the OpenNI camera does not start: {error}; are OpenNI 2 and the camera there?") from None
        if self._stream is None:
            self._driver.unload()
            raise InputError("the OpenNI camera has no depth; give another one as openni:URI")
        self._stream.start()
        mode = self._stream.get_video_mode()
        self._unit_mm = 0.1 if mode.pixelFormat == self._driver.PIXEL_FORMAT_DEPTH_100_UM else 1.0
        self.intrinsics = self._from_fields_of_view(mode.resolutionX, mode.resolutionY)
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.stop()
        self._driver.unload()

    def __iter__(self) -> Iterator[CameraFrame]:
        while self._driver.wait_for_any_stream([self._stream], PATIENCE_SECONDS) is not None:
            frame = self._stream.read_frame()
            raw = np.array(frame.get_buffer_as_uint16(), np.float32)[: frame.height * frame.width]
            values = np.where(raw > 0, raw * np.float32(self._unit_mm), np.float32(np.nan))
            image = DepthImage(values.reshape(frame.height, frame.width), "mm", profile=PROFILES["mm"])
            yield CameraFrame(image, 1000 * int(frame.timestamp))
        raise InputError(f"the OpenNI camera gave no frame for {PATIENCE_SECONDS:g} s; is it still plugged in?")

    def _from_fields_of_view(self, width: int, height: int) -> Intrinsics:
        across, down = self._stream.get_horizontal_fov(), self._stream.get_vertical_fov()
        fx, fy = (size / 2 / math.tan(angle / 2) for size, angle in ((width, across), (height, down)))
        return Intrinsics(fx, fy, (width - 1) / 2, (height - 1) / 2)


def _driver() -> Any:
    """Import the bindings by their newer or their older name."""
    try:
        from openni import openni2  # pyright: ignore[reportMissingImports]
    except ImportError:
        try:
            from primesense import openni2  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise InputError(
                "an OpenNI camera needs the package openni; install it: pip install 'sparsedepth[camera]'"
            ) from None
    return openni2

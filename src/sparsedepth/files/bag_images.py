"""Decode the depth images of bags: plain ones, compressed ones, and those of RealSense recordings."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparsedepth.files import png
from sparsedepth.files.profiles import PROFILES
from sparsedepth.files.stored import Budget, Pixels
from sparsedepth.vocabulary import DepthImage, InputError

ENCODINGS = {"16UC1": "u2", "mono16": "u2", "32FC1": "f4"}
"""Encodings of depth: integers count depth units, most often millimetres; floats count metres."""
MAX_PIXELS = 2**26
"""Larger images of a bag are refused."""
COMPRESSED_HEADER_BYTES = 12
"""Of compressed depth: a format, and two numbers of its quantisation; a PNG file follows."""


@dataclass(frozen=True)
class Message:
    """An image of a bag, and the metres of a stored number if the message itself holds them."""

    image: Any
    unit_m: float | None = None

    @property
    def encoding(self) -> str:
        """Encoding of the pixels, also of compressed ones."""
        return str(getattr(self.image, "encoding", "") or self.image.format.partition(";")[0].strip())


def parse_message(reader: Any, raw: bytes, kind: str) -> Message:
    """Parse an image; RealSense tools put four bytes behind those of ROS 1, the metres of a stored number."""
    from rosbags.highlevel import AnyReaderError

    try:
        return Message(reader.deserialize(raw, kind))
    except AnyReaderError:
        if reader.is2 or len(raw) < 4:
            raise
        return Message(reader.deserialize(raw[:-4], kind), struct.unpack("<f", raw[-4:])[0])


def is_depth(message: Message) -> bool:
    """Tell whether an image holds depth that can be decoded."""
    compressed = str(getattr(message.image, "format", "compressedDepth"))
    return message.encoding in ENCODINGS and "compressedDepth" in compressed and "rvl" not in compressed


def decode_depth(message: Message, path: str, unit_m: float) -> DepthImage:
    """Decode an image to millimetres from integers of ``unit_m`` metres, or to metres from floats."""
    if not is_depth(message):
        raise InputError(f"{path} holds images of {message.encoding}; depth is one of {', '.join(ENCODINGS)}")
    plain = hasattr(message.image, "height")
    pixels = _plain(message.image, path) if plain else _compressed(message, path)
    values = np.where(np.isfinite(pixels) & (pixels > 0), pixels, np.nan).astype(np.float32)
    if message.encoding == "32FC1":
        return DepthImage(values, "m", profile=PROFILES["m"])
    if unit_m == 0.001:
        return DepthImage(values, "mm", profile=PROFILES["mm"])
    profile = replace(PROFILES["mm"], scale=0.001 / unit_m)
    return DepthImage((values * np.float64(1000 * unit_m)).astype(np.float32), "mm", profile=profile)


def _plain(image: Any, path: str) -> Pixels:
    height, width = int(image.height), int(image.width)
    kind = np.dtype(ENCODINGS[str(image.encoding)]).newbyteorder(">" if image.is_bigendian else "<")
    step = int(image.step) or width * kind.itemsize
    if not 0 < height * width <= MAX_PIXELS or step < width * kind.itemsize or image.data.size < height * step:
        raise InputError(f"{path} holds an image of {height} x {width} pixels that does not fit its data")
    rows = image.data[: height * step].reshape(height, step)[:, : width * kind.itemsize]
    return np.ascontiguousarray(rows).view(kind)


def _compressed(message: Message, path: str) -> Pixels:
    """Decode a compressed image; floats are stored as quantised inverse depths."""
    content = message.image.data.tobytes()
    try:
        pixels = png.decode(content[COMPRESSED_HEADER_BYTES:], Budget(MAX_PIXELS, 4 * MAX_PIXELS))
    except (InputError, OSError, SyntaxError, ValueError) as error:
        raise InputError(f"{path} holds a compressed image that is broken: {error}") from None
    if message.encoding != "32FC1":
        return pixels
    factor, offset = struct.unpack("<ff", content[4:COMPRESSED_HEADER_BYTES])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(pixels > 0, factor / (pixels.astype(np.float32) - offset), 0)

"""Read depth images of ROS bags, of ROS 1, ROS 2 and RealSense recordings; needs the extra ``sparsedepth[bags]``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sparsedepth.files.profiles import PROFILES
from sparsedepth.vocabulary import DepthImage, InputError

ENCODINGS = {"16UC1": "u2", "mono16": "u2", "32FC1": "f4"}
"""Encodings of depth: millimetres in integers, metres in floats."""
MAX_PIXELS = 2**26
"""Larger images of a bag are refused."""


def is_bag(path: str | Path) -> bool:
    """Tell whether a path is a bag: a file of ROS 1, or a folder or file of ROS 2.

    >>> is_bag("walk.bag"), is_bag("frames/")
    (True, False)
    """
    found = Path(path)
    return found.suffix in (".bag", ".db3", ".mcap") or (found / "metadata.yaml").exists()


def read_bag(path: str | Path, topic: str | None = None) -> Iterator[tuple[int, DepthImage]]:
    """Read the depth images of a bag one after the other.

    Parameters
    ----------
    path
        A bag of ROS 1 or ROS 2, or a RealSense recording.
    topic
        Topic of the images; None = the only one that holds depth.

    Yields
    ------
    Stamp in nanoseconds and image: millimetres from integers, metres from floats; 0 and NaN are missing.

    Raises
    ------
    InputError
        If the bag cannot be read, or holds no such images.
    """
    try:
        from rosbags.highlevel import AnyReader, AnyReaderError
    except ImportError:
        raise InputError("a bag needs the package rosbags; install it: pip install 'sparsedepth[bags]'") from None
    try:
        with AnyReader([Path(path)]) as reader:
            yield from _images(reader, str(path), topic)
    except AnyReaderError as error:
        raise InputError(f"{path} cannot be read as a bag ({error}); give a ROS 1 or ROS 2 bag") from None


def _images(reader: Any, path: str, topic: str | None) -> Iterator[tuple[int, DepthImage]]:
    images = [c for c in reader.connections if c.msgtype in ("sensor_msgs/msg/Image", "sensor_msgs/Image")]
    chosen = [c for c in images if c.topic == topic] if topic is not None else _of_depth(reader, images)
    names = sorted({connection.topic for connection in chosen})
    if len(names) != 1:
        there = ", ".join(sorted({connection.topic for connection in images})) or "none"
        wanted = "no topic of depth images" if not names else f"{len(names)} topics of depth images"
        raise InputError(f"{path} has {wanted}; name one by --topic; its topics of images are: {there}")
    for connection, stamp, raw in reader.messages(chosen):
        yield stamp, _decoded(reader.deserialize(raw, connection.msgtype), path)


def _of_depth(reader: Any, images: list[Any]) -> list[Any]:
    """Return the connections whose first image has an encoding of depth."""
    found = []
    for connection in images:
        first = next(iter(reader.messages([connection])), None)
        if first is not None and reader.deserialize(first[2], connection.msgtype).encoding in ENCODINGS:
            found.append(connection)
    return found


def _decoded(message: Any, path: str) -> DepthImage:
    height, width, encoding = int(message.height), int(message.width), str(message.encoding)
    if encoding not in ENCODINGS:
        raise InputError(f"{path} holds images of {encoding}; depth is one of {', '.join(ENCODINGS)}")
    kind = np.dtype(ENCODINGS[encoding]).newbyteorder(">" if message.is_bigendian else "<")
    step = int(message.step) or width * kind.itemsize
    if not 0 < height * width <= MAX_PIXELS or step < width * kind.itemsize or message.data.size < height * step:
        raise InputError(f"{path} holds an image of {height} x {width} pixels that does not fit its data")
    rows = message.data[: height * step].reshape(height, step)[:, : width * kind.itemsize]
    pixels = np.ascontiguousarray(rows).view(kind).astype(np.float32)
    whole = kind.kind == "u"
    values = np.where(np.isfinite(pixels) & (pixels > 0), pixels, np.nan)
    return DepthImage(values, "mm" if whole else "m", profile=PROFILES["mm" if whole else "m"])

"""Read depth images of ROS bags, of ROS 1, ROS 2 and RealSense recordings; needs the extra ``sparsedepth[bags]``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sparsedepth.checks import one_line
from sparsedepth.files.bag_images import Message, decode_depth, is_depth, parse_message
from sparsedepth.vocabulary import DepthImage, InputError

IMAGES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
BAG_SUFFIXES = (".bag", ".db3", ".mcap")
MILLIMETRE = 0.001
"""Metres of a stored integer, unless the bag says otherwise."""


@dataclass(frozen=True)
class DepthTopic:
    """The depth images of a bag.

    Parameters
    ----------
    topic
        Name of the topic.
    frames
        Number of images.
    shape
        Height and width of the first one, in pixels.
    unit_m
        Metres of a stored integer.
    intrinsics
        (fx, fy, cx, cy) in pixels, of the ``camera_info`` of the images; None = there is none of their size.
    """

    topic: str
    frames: int
    shape: tuple[int, int]
    unit_m: float
    intrinsics: tuple[float, float, float, float] | None


def is_bag(path: str | Path) -> bool:
    """Tell whether a path is a bag: a file of ROS 1, or a folder or file of ROS 2.

    >>> is_bag("walk.bag"), is_bag("frames/")
    (True, False)
    """
    found = Path(path)
    return found.suffix in BAG_SUFFIXES or (found / "metadata.yaml").exists()


def describe_bag(path: str | Path, topic: str | None = None) -> DepthTopic:
    """Find the depth images of a bag, their unit and the intrinsics of their camera.

    Parameters
    ----------
    path
        A bag of ROS 1 or ROS 2, or a RealSense recording (.bag, or .db3 of newer tools).
    topic
        Topic of the images; None = the only one that holds depth.

    Returns
    -------
    DepthTopic

    Raises
    ------
    InputError
        If the bag cannot be read, or holds no such images.
    """
    with _opened(path) as reader:
        return _describe(reader, _chosen(reader, str(path), topic), str(path))


def read_bag(path: str | Path, topic: str | None = None) -> Iterator[tuple[int, DepthImage]]:
    """Read the depth images of a bag one after the other.

    Parameters
    ----------
    path
        A bag of ROS 1 or ROS 2, or a RealSense recording (.bag, or .db3 of newer tools).
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
    with _opened(path) as reader:
        chosen = _chosen(reader, str(path), topic)
        unit_m = _describe(reader, chosen, str(path)).unit_m
        for connection, stamp, raw in reader.messages(chosen):
            yield stamp, decode_depth(parse_message(reader, raw, connection.msgtype), str(path), unit_m)


@contextmanager
def _opened(path: str | Path) -> Iterator[Any]:
    try:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore
    except ImportError:
        raise InputError("a bag needs the package rosbags; install it: pip install 'sparsedepth[bags]'") from None
    if not Path(path).exists():
        raise InputError(f"there is no bag {path}")
    try:
        with AnyReader([Path(path)], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader:
            yield reader
    except InputError:
        raise
    except Exception as error:  # readers fail in many ways on broken or hostile files
        reason = one_line(error) or type(error).__name__
        raise InputError(f"{path} cannot be read as a bag ({reason}); give a ROS 1 or ROS 2 bag") from None


def _chosen(reader: Any, path: str, topic: str | None) -> list[Any]:
    """Return the connections of the one topic of depth images."""
    images = [connection for connection in reader.connections if connection.msgtype in IMAGES]
    chosen = [c for c in images if c.topic == topic] if topic is not None else _of_depth(reader, images)
    names = sorted({connection.topic for connection in chosen})
    if len(names) != 1:
        there = ", ".join(sorted({connection.topic for connection in images})) or "none"
        wanted = "no topic of depth images" if not names else f"{len(names)} topics of depth images"
        raise InputError(f"{path} has {wanted}; name one by --topic; its topics of images are: {there}")
    return chosen


def _of_depth(reader: Any, images: list[Any]) -> list[Any]:
    """Return the connections whose first image holds depth; infrared pictures of 16 bits give way to depth by name."""
    found = [c for c in images if (message := _first(reader, c)) is not None and is_depth(message)]
    named = [connection for connection in found if "depth" in connection.topic.lower()]
    return named or found


def _first(reader: Any, connection: Any) -> Message | None:
    raw = next(iter(reader.messages([connection])), None)
    return None if raw is None else parse_message(reader, raw[2], connection.msgtype)


def _describe(reader: Any, chosen: list[Any], path: str) -> DepthTopic:
    firsts = [message for connection in chosen if (message := _first(reader, connection)) is not None]
    if not firsts:
        raise InputError(f"{path} has no image in {chosen[0].topic}; record it again, or name another --topic")
    unit_m = _unit_m(reader, chosen[0].topic, firsts[0])
    height, width = decode_depth(firsts[0], path, unit_m).values.shape
    frames = sum(connection.msgcount for connection in chosen)
    intrinsics = _intrinsics(reader, chosen[0].topic, (height, width))
    return DepthTopic(chosen[0].topic, frames, (height, width), unit_m, intrinsics)


def _unit_m(reader: Any, topic: str, first: Message) -> float:
    """Return the metres of a stored integer: an option of the RealSense sensor, or what its first image says."""
    device = "/".join(topic.split("/")[:3])  # /device_0/sensor_0
    said = _message(reader, f"{device}/option/Depth_Units/value")
    for found in (None if said is None else said.data, first.unit_m):
        try:
            unit_m = float(np.float32(found)) if found is not None else 0.0
        except ValueError:
            continue
        if 0 < unit_m < 1:
            return float(f"{unit_m:.6g}")  # as it was before it became float32
    return MILLIMETRE


def _intrinsics(reader: Any, topic: str, shape: tuple[int, int]) -> tuple[float, float, float, float] | None:
    """Return the intrinsics that go with the images, or of the same stream of a RealSense recording."""
    parent = topic.removesuffix("/compressedDepth").rpartition("/")[0]
    for name in (f"{parent}/camera_info", f"{parent.rpartition('/')[0]}/info/camera_info"):
        info = _message(reader, name)
        matrix = getattr(info, "k", getattr(info, "K", None))
        if matrix is None or (info.height, info.width) != shape:
            continue
        fx, fy, cx, cy = (float(matrix[at]) for at in (0, 4, 2, 5))
        if np.isfinite([fx, fy, cx, cy]).all() and min(fx, fy) > 0:
            return fx, fy, cx, cy
    return None


def _message(reader: Any, topic: str) -> Any:
    """Return the first message of a topic; None = there is none."""
    for connection in reader.connections:
        if connection.topic == topic:
            raw = next(iter(reader.messages([connection])), None)
            return None if raw is None else reader.deserialize(raw[2], connection.msgtype)
    return None

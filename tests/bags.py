"""Bags as recorders write them: plain ones of ROS 2, and RealSense recordings of ROS 1 and ROS 2."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

INTRINSICS = (60.5, 61.5, 31.0, 24.0)
DEVICE = "/device_0/sensor_0"


def matrix() -> np.ndarray:
    fx, fy, cx, cy = INTRINSICS
    return np.array([fx, 0, cx, 0, fy, cy, 0, 0, 1.0])


class Messages:
    """Messages of a store of types; those of ROS 1 have a sequence number in their header."""

    def __init__(self, store: Any) -> None:
        self.types, self.ros1 = store.types, "seq" in store.types["std_msgs/msg/Header"].__dataclass_fields__

    def header(self, number: int) -> Any:
        stamp = self.types["builtin_interfaces/msg/Time"](number, 0)
        first = {"seq": number} if self.ros1 else {}
        return self.types["std_msgs/msg/Header"](**first, stamp=stamp, frame_id="0")

    def image(self, number: int, pixels: np.ndarray, encoding: str) -> Any:
        data = pixels.view(np.uint8).ravel()
        words = (*pixels.shape, encoding, 0, pixels.strides[0], data)
        return self.types["sensor_msgs/msg/Image"](self.header(number), *words)

    def compressed(self, number: int, pixels: np.ndarray, head: bytes = bytes(12), encoding: str = "16UC1") -> Any:
        content = io.BytesIO()
        Image.fromarray(pixels).save(content, "png")
        data = np.frombuffer(head + content.getvalue(), np.uint8)
        words = (f"{encoding}; compressedDepth png", data)
        return self.types["sensor_msgs/msg/CompressedImage"](self.header(number), *words)

    def camera_info(self, shape: tuple[int, int]) -> Any:
        region = self.types["sensor_msgs/msg/RegionOfInterest"](0, 0, 0, 0, False)
        numbers = (np.zeros(5), matrix(), np.eye(3).ravel(), np.zeros(12))
        words = (*shape, "None", *numbers, 0, 0, region)
        return self.types["sensor_msgs/msg/CameraInfo"](self.header(0), *words)


def write_plain(path: Path, frames: list[np.ndarray], encoding: str = "16UC1") -> None:
    """Write a bag of ROS 2 with the images, a picture in colour beside them, and their camera."""
    from rosbags.rosbag2 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    made = Messages(store)
    with Writer(path, version=9) as bag:
        told = [("/camera/depth/camera_info", made.camera_info(frames[0].shape))]
        for number, frame in enumerate(frames):
            told.append(("/camera/depth/image_raw", made.image(number, frame, encoding)))
            told.append(("/camera/color/image_raw", made.image(number, np.zeros_like(frame, np.uint8), "rgb8")))
        _write(bag, told, store, lambda message, kind: bytes(store.serialize_cdr(message, kind)))


def write_realsense_1(path: Path, frames: list[np.ndarray], unit_m: float, option: bool = True) -> None:
    """Write a recording as librealsense does up to version 2.55: each image has its unit behind it, in four bytes."""
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    made = Messages(store)
    told: list[tuple[str, Any]] = [(f"{DEVICE}/Depth_0/info/camera_info", made.camera_info(frames[0].shape))]
    if option:
        told.append((f"{DEVICE}/option/Depth_Units/value", store.types["std_msgs/msg/Float32"](np.float32(unit_m))))
    for number, frame in enumerate(frames):
        told.append((f"{DEVICE}/Depth_0/image/data", made.image(number, frame, "mono16")))
        told.append((f"{DEVICE}/Infrared_1/image/data", made.image(number, frame, "mono16")))

    def content(message: Any, kind: str) -> bytes:
        behind = struct.pack("<f", unit_m) if kind.endswith("/Image") else b""
        return bytes(store.serialize_ros1(message, kind)) + behind

    with Writer(path) as bag:
        _write(bag, told, store, content)


def write_realsense_2(path: Path, frames: list[np.ndarray], unit_m: float) -> None:
    """Write a recording as newer librealsense does: compressed images, and options as texts."""
    from rosbags.rosbag2 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    made = Messages(store)
    told = [
        (f"{DEVICE}/option/Depth_Units/value", store.types["std_msgs/msg/String"](f"{unit_m:.6f}")),
        (f"{DEVICE}/Depth_0/image/camera_info", made.camera_info(frames[0].shape)),
    ]
    for number, frame in enumerate(frames):
        told.append((f"{DEVICE}/Depth_0/image/data/compressedDepth", made.compressed(number, frame)))
    with Writer(path, version=9) as bag:
        _write(bag, told, store, lambda message, kind: bytes(store.serialize_cdr(message, kind)))


def write_compressed_floats(path: Path, frames: list[np.ndarray], factor: float, offset: float) -> None:
    """Write metres as compressed_depth_image_transport does: quantised inverse depths."""
    from rosbags.rosbag2 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    made, head = Messages(store), struct.pack("<iff", 0, factor, offset)
    codes = [np.rint(factor / frame + offset).astype(np.uint16) for frame in frames]
    told = [("/depth/compressedDepth", made.compressed(n, code, head, "32FC1")) for n, code in enumerate(codes)]
    with Writer(path, version=9) as bag:
        _write(bag, told, store, lambda message, kind: bytes(store.serialize_cdr(message, kind)))


def _write(bag: Any, told: list[tuple[str, Any]], store: Any, content: Any) -> None:
    connections: dict[str, Any] = {}
    for number, (topic, message) in enumerate(told):
        if topic not in connections:
            connections[topic] = bag.add_connection(topic, message.__msgtype__, typestore=store)
        bag.write(connections[topic], number, content(message, message.__msgtype__))

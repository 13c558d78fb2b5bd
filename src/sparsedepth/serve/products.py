"""The files in which the result of a job can be downloaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.files import PROFILES, read, write, write_array
from sparsedepth.files.profiles import from_text
from sparsedepth.files.tiff_writing import encode
from sparsedepth.serve.ply import write_points
from sparsedepth.stream_video import VideoWriter
from sparsedepth.vocabulary import DepthImage, InputError, Metadata, Profile, Restoration

RAW = {"before.f32": "<f4", "after.f32": "<f4", "variance.f32": "<f4", "origin.u8": "u1"}
"""The arrays themselves, row by row; NaN = unknown."""
CARRIED = Path("carried.tiff")
"""One pixel with the tags of the uploaded TIFF, such as its place on the ground."""


def load_result(facts: dict[str, Any], frame: int = 0) -> Restoration:
    """Load the result of a job, or of one frame of a stream, from the working folder."""
    names = ("after.f32", "variance.f32", "origin.u8")
    depth, variance, origin = (load_raw(name, facts["shape"], frame) for name in names)
    result = Restoration(depth, variance, origin, facts["unit"], facts["kind"], from_text(facts["profile"]))
    return replace(result, metadata=read(CARRIED).metadata) if CARRIED.exists() else result


def save_metadata(metadata: Metadata | None) -> None:
    """Save the tags of an uploaded TIFF for its products, which are made by another process."""
    if metadata is not None and metadata.format == "tiff":
        CARRIED.write_bytes(encode(np.zeros((1, 1), metadata.dtype), metadata.entries))


def frame_bytes(name: str, shape: tuple[int, int], frame: int) -> range:
    """Return the bytes of one frame in the file of an array."""
    size = np.dtype(RAW[name]).itemsize * shape[0] * shape[1]
    return range(frame * size, (frame + 1) * size)


def load_raw(name: str, shape: tuple[int, int], frame: int = 0) -> NDArray[Any]:
    """Load an array by the name of its file; that of a stream holds one after the other."""
    place = frame_bytes(name, shape, frame)
    return np.fromfile(name, RAW[name], shape[0] * shape[1], offset=place.start).reshape(shape)


def save_raw(name: str, array: NDArray[Any]) -> None:
    """Save an array under the name of its file."""
    np.ascontiguousarray(array, RAW[name]).tofile(name)


def _png(path: Path, result: Restoration) -> None:
    """Write 16 bits: as the map came, in millimetres, or as KITTI holds disparities; else at the best power of two."""
    usual = {"m": PROFILES["mm"], "mm": PROFILES["mm"], "px": PROFILES["kitti-disparity"]}.get(result.unit)
    try:
        came = result.profile
        write(path, result, profile=usual if came is None or came.dtype == "float32" else None)
    except InputError:
        write(path, result, profile=_widest(result.image))


def _widest(image: DepthImage) -> Profile:
    """Return the profile with the finest power of two a unit that 16 bits hold."""
    largest = max(float(np.nanmax(image.values, initial=0)), 1e-30)
    scale = 2.0 ** np.clip(np.floor(np.log2(65534 / largest)), -126, 126)
    return replace(Profile("", image.unit, image.kind), scale=float(scale), invalid=(0.0,), dtype="uint16")


def _variance(path: Path, result: Restoration) -> None:
    write_array(path, result.variance, metadata=result.metadata)


@dataclass(frozen=True)
class Product:
    """How a file is made, its media type, and its label on the page."""

    write: Callable[[Path, Restoration], None] | None
    """None = the points, which need the intrinsics of the camera."""
    media: str
    label: str

    def make(self, path: Path, result: Restoration, intrinsics: Sequence[float] | None) -> None:
        """Write the file."""
        if self.write is None:
            write_points(path, result, intrinsics)
        else:
            self.write(path, result)


def _stack(path: Path, facts: dict[str, Any]) -> None:
    """Write all frames of a stream as arrays of (frames, height, width), uncompressed: they are many."""
    shape = (facts["frames"], *facts["shape"])
    names = {"depth": "after.f32", "variance": "variance.f32", "origin": "origin.u8"}
    arrays = {key: np.memmap(name, RAW[name], "r", shape=shape) for key, name in names.items()}
    with open(path, "wb") as file:
        np.savez(file, allow_pickle=False, unit=np.array(facts["unit"]), kind=np.array(facts["kind"]), **arrays)


def _video(path: Path, facts: dict[str, Any]) -> None:
    """Write a video: before, after and standard deviation."""
    video = VideoWriter(path)
    for frame in range(facts["frames"]):
        video.add(load_raw("before.f32", facts["shape"], frame), load_result(facts, frame))
    video.close()


@dataclass(frozen=True)
class StreamProduct:
    """How a file of all frames is made, its media type, and its label on the page."""

    make: Callable[[Path, dict[str, Any]], None]
    media: str
    label: str


OCTETS = "application/octet-stream"
STREAM_PRODUCTS = {
    "stream.npz": StreamProduct(_stack, OCTETS, "npz: all frames, variance, origin"),
    "stream.gif": StreamProduct(_video, "image/gif", "GIF: before, after, deviation"),
}
PRODUCTS = {
    "result.npz": Product(write, OCTETS, "npz: map, variance, origin"),
    "result.tiff": Product(write, "image/tiff", "TIFF"),
    "result.pfm": Product(write, OCTETS, "PFM"),
    "result.png": Product(_png, "image/png", "PNG, 16-bit"),
    "result.ply": Product(None, OCTETS, "PLY, points"),
    "result.pcd": Product(None, OCTETS, "PCD, points"),
    "variance.tiff": Product(_variance, "image/tiff", "variance, TIFF"),
    "origin.png": Product(lambda path, result: write_array(path, result.origin), "image/png", "origin, PNG"),
}

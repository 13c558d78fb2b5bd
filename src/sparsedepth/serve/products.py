"""The files that a finished job can be taken home in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.files import PROFILES, write, write_array
from sparsedepth.files.profiles import from_text
from sparsedepth.serve.cloud import write_ply
from sparsedepth.vocabulary import DepthImage, DepthMap, InputError, Profile

RAW = {"before.f32": "<f4", "after.f32": "<f4", "variance.f32": "<f4", "origin.u8": "u1"}
"""The arrays themselves, row by row; NaN = unknown."""


@dataclass(frozen=True, eq=False)
class Result:
    """What a job made, from its folder."""

    image: DepthImage
    variance: DepthMap
    origin: NDArray[np.uint8]

    @classmethod
    def of(cls, facts: dict[str, Any]) -> Result:
        profile = from_text(facts["profile"])
        after, variance, origin = (
            load_raw(name, facts["shape"]) for name in ("after.f32", "variance.f32", "origin.u8")
        )
        return cls(DepthImage(after, facts["unit"], facts["kind"], profile), variance, origin)


def load_raw(name: str, shape: tuple[int, int]) -> NDArray[Any]:
    return np.fromfile(name, RAW[name]).reshape(shape)


def save_raw(name: str, array: NDArray[Any]) -> None:
    np.ascontiguousarray(array, RAW[name]).tofile(name)


def _npz(path: Path, result: Result) -> None:
    write(path, result.image, variance=result.variance, origin=result.origin)


def _floats(path: Path, result: Result) -> None:
    write(path, result.image)


def _png(path: Path, result: Result) -> None:
    """16 bits: as the map came, or in millimetres, or as KITTI holds disparities; else at the best power of two."""
    usual = {"m": PROFILES["mm"], "mm": PROFILES["mm"], "px": PROFILES["kitti-disparity"]}.get(result.image.unit)
    try:
        came = result.image.profile
        write(path, result.image, profile=usual if came is None or came.dtype == "float32" else None)
    except InputError:
        write(path, result.image, profile=_widest(result.image))


def _widest(image: DepthImage) -> Profile:
    """The finest power of two a unit that 16 bits hold."""
    largest = max(float(np.nanmax(image.values, initial=0)), 1e-30)
    scale = 2.0 ** np.clip(np.floor(np.log2(65534 / largest)), -126, 126)
    return replace(Profile("", image.unit, image.kind), scale=float(scale), invalid=(0.0,), dtype="uint16")


def _ply(path: Path, result: Result) -> None:
    image = result.image
    path.write_bytes(write_ply(image.values, result.variance, result.origin, image.kind, image.unit))


@dataclass(frozen=True)
class Product:
    """How a file is made, what it is, and its name beside a button."""

    write: Callable[[Path, Result], None]
    media: str
    label: str


OCTETS = "application/octet-stream"
PRODUCTS = {
    "result.npz": Product(_npz, OCTETS, "npz: map, variance, origin"),
    "result.tiff": Product(_floats, "image/tiff", "TIFF, 32-bit float"),
    "result.pfm": Product(_floats, OCTETS, "PFM"),
    "result.png": Product(_png, "image/png", "PNG, 16-bit"),
    "result.ply": Product(_ply, OCTETS, "PLY, points"),
    "variance.tiff": Product(lambda path, result: write_array(path, result.variance), "image/tiff", "variance, TIFF"),
    "origin.png": Product(lambda path, result: write_array(path, result.origin), "image/png", "origin, PNG"),
}

"""Encode point clouds as binary PLY and PCD files, little-endian."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.vocabulary import InputError, Origin

if TYPE_CHECKING:
    from sparsedepth.geometry.clouds import PointCloud

SUFFIXES = (".ply", ".pcd")
_ORIGINS = ", ".join(f"{origin.value} {origin.name.lower()}" for origin in Origin)
PLY_TYPES = {"<f4": "float", "|u1": "uchar", "<u4": "uint"}


def encode_cloud(cloud: PointCloud, suffix: str, comments: Sequence[str] = ()) -> bytes:
    """Encode a cloud as the file of a suffix; comments are lines of its header."""
    if suffix not in SUFFIXES:
        raise InputError(f"clouds are written as {' or '.join(SUFFIXES)}, not as {suffix!r}; choose one of these")
    lines = [f"x right, y down, z away from the camera, in {cloud.unit or 'an unknown unit'}", *comments]
    return (encode_ply if suffix == ".ply" else encode_pcd)(cloud, lines)


def _columns(cloud: PointCloud) -> dict[str, NDArray[Any]]:
    """Return the numbers of each point by their names, but for colours."""
    parts: dict[str, NDArray[Any]] = dict(zip("xyz", cloud.points.T, strict=True))
    parts |= dict(zip(("nx", "ny", "nz"), cloud.normals.T, strict=True))
    return {name: part.astype("<f4") for name, part in (parts | {"std": cloud.std}).items()} | {"origin": cloud.origin}


def _rows(columns: dict[str, NDArray[Any]], n: int) -> bytes:
    rows = np.empty(n, [(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        rows[name] = column
    return rows.tobytes()


def encode_ply(cloud: PointCloud, comments: Sequence[str]) -> bytes:
    """Encode binary PLY: x, y, z, nx, ny, nz, std, origin, and red, green, blue if there are colours."""
    columns = _columns(cloud)
    if cloud.colours is not None:
        columns |= dict(zip(("red", "green", "blue"), cloud.colours.T, strict=True))
    lines = [
        "ply",
        "format binary_little_endian 1.0",
        *(f"comment {comment}" for comment in comments),
        f"comment std is the standard deviation along the ray; origin: {_ORIGINS}",
        f"element vertex {len(cloud)}",
        *(f"property {PLY_TYPES[column.dtype.str]} {name}" for name, column in columns.items()),
        "end_header\n",
    ]
    return "\n".join(lines).encode() + _rows(columns, len(cloud))


def encode_pcd(cloud: PointCloud, comments: Sequence[str]) -> bytes:
    """Encode binary PCD 0.7 with the field names of PCL; a colour is one number, 0xRRGGBB, held as a float."""
    columns = _columns(cloud)
    for new, old in (("normal_x", "nx"), ("normal_y", "ny"), ("normal_z", "nz")):
        columns[new] = columns.pop(old)
    if cloud.colours is not None:
        red, green, blue = cloud.colours.T.astype("<u4")
        columns["rgb"] = (red << 16 | green << 8 | blue).view("<f4")
    lines = [
        *(f"# {comment}" for comment in ("PCD v0.7", *comments)),
        "VERSION 0.7",
        f"FIELDS {' '.join(columns)}",
        f"SIZE {' '.join(str(column.dtype.itemsize) for column in columns.values())}",
        f"TYPE {' '.join('F' if column.dtype.kind == 'f' else 'U' for column in columns.values())}",
        f"COUNT {' '.join('1' for _ in columns)}",
        f"WIDTH {len(cloud)}",
        "HEIGHT 1",
        "VIEWPOINT 0 0 0 1 0 0 0",
        f"POINTS {len(cloud)}",
        "DATA binary\n",
    ]
    return "\n".join(lines).encode() + _rows(columns, len(cloud))

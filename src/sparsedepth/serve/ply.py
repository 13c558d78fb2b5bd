"""Make the points of a result: a camera is assumed where none is known, and what is no depth is a relief."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray

from sparsedepth.geometry import Intrinsics, PointCloud, intrinsics_from, point_cloud
from sparsedepth.geometry.cloud_files import encode_cloud
from sparsedepth.vocabulary import Floats, Restoration

FIELD_OF_VIEW_DEGREES = 60.0
"""Assumed width of the picture: a depth map does not say the focal length of its camera."""


def write_points(path: Path, result: Restoration, intrinsics: Sequence[float] | None) -> None:
    """Write the points of a result, coloured by depth; the suffix of the path names the format."""
    if result.kind != "depth":
        cloud, shape = _relief(result), f"a relief of the {result.kind}"
    else:
        assumed = Intrinsics.from_field_of_view(FIELD_OF_VIEW_DEGREES, (result.depth.shape[0], result.depth.shape[1]))
        camera = intrinsics_from(intrinsics) or assumed
        colours = _colours(result.depth)
        cloud = point_cloud(result, camera, colours)
        guess = f"a pinhole camera of {FIELD_OF_VIEW_DEGREES:g} degrees is assumed"
        shape = guess if intrinsics is None else str(camera)
    path.write_bytes(encode_cloud(cloud, path.suffix, [shape]))


def _relief(result: Restoration) -> PointCloud:
    """Return columns, rows and values as points."""
    pixels = np.argwhere(np.isfinite(result.depth)).astype(np.int32)
    rows, columns = pixels.T
    at = rows, columns
    return PointCloud(
        points=np.stack([columns, rows, -result.depth[at]], axis=1).astype(np.float32),
        normals=np.full((len(pixels), 3), np.nan, np.float32),
        std=np.sqrt(result.variance[at]),
        origin=result.origin[at],
        pixels=pixels,
        colours=_colours(result.depth)[at],
    )


def _colours(values: Floats) -> NDArray[np.uint8]:
    known = values[np.isfinite(values)]
    low, high = np.percentile(known, (0.5, 99.5)) if known.size else (0.0, 1.0)
    shown = np.where(np.isfinite(values), values, low)
    return colormaps["viridis"]((shown - low) / max(high - low, 1e-30), bytes=True)[..., :3]

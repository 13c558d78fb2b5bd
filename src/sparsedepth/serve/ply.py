"""Encode a map as points in space, in a PLY file."""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray

from sparsedepth.vocabulary import DepthMap, Floats, Kind

FIELD_OF_VIEW_DEGREES = 60.0
"""Assumed width of the picture: a depth map does not say the focal length of its camera."""


def points(depth: DepthMap, kind: Kind) -> Floats:
    """Return points (pixels, 3): right, down and away from a pinhole camera; what is no depth is a relief."""
    height, width = depth.shape
    down, right = np.mgrid[:height, :width].astype(np.float32)
    if kind != "depth":
        return np.stack([right, down, -depth], axis=-1).reshape(-1, 3)
    focal = width / 2 / np.tan(np.radians(FIELD_OF_VIEW_DEGREES / 2))
    across, along = (right - (width - 1) / 2) / focal, (down - (height - 1) / 2) / focal
    return np.stack([across * depth, along * depth, depth], axis=-1).reshape(-1, 3)


def write_ply(depth: DepthMap, variance: DepthMap, origin: NDArray[np.uint8], kind: Kind, unit: str) -> bytes:
    """Encode the known pixels as binary PLY, coloured by depth, each with its variance and its origin."""
    known = np.isfinite(depth).ravel()
    number = np.dtype("<f4")
    columns = np.dtype([("place", number, 3), ("colour", "u1", 3), ("variance", number), ("origin", "u1")])
    rows = np.zeros(int(known.sum()), columns)
    rows["place"] = points(depth, kind)[known]
    rows["colour"] = _colours(depth.ravel()[known])
    rows["variance"] = variance.ravel()[known]
    rows["origin"] = origin.ravel()[known]
    shape = (
        f"a pinhole camera of {FIELD_OF_VIEW_DEGREES:g} degrees is assumed"
        if kind == "depth"
        else f"a relief of the {kind}"
    )
    lines = [
        "ply",
        "format binary_little_endian 1.0",
        f"comment {kind} in {unit or 'an unknown unit'}; {shape}",
        f"element vertex {len(rows)}",
        *(f"property float {name}" for name in "xyz"),
        *(f"property uchar {name}" for name in ("red", "green", "blue")),
        "property float variance",
        "property uchar origin",
        "end_header\n",
    ]
    return "\n".join(lines).encode() + rows.tobytes()


def _colours(values: Floats) -> NDArray[np.uint8]:
    if not values.size:
        return np.zeros((0, 3), np.uint8)
    low, high = np.percentile(values, (0.5, 99.5))
    return colormaps["viridis"]((values - low) / max(high - low, 1e-30), bytes=True)[:, :3]

"""Point clouds: the pixels of a depth map as points in space, each with its standard deviation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsedepth.atomic_files import write_atomically
from sparsedepth.geometry.cloud_files import encode_cloud
from sparsedepth.geometry.intrinsics import Intrinsics, intrinsics_from
from sparsedepth.geometry.normals import normals
from sparsedepth.vocabulary import (
    DepthImage,
    DepthMap,
    Floats,
    InputError,
    Match,
    Origin,
    Restoration,
    Unit,
    as_array,
    unit_factor,
)


@dataclass(frozen=True, eq=False)
class PointCloud:
    """Points in space, row by row of the map they come from.

    Parameters
    ----------
    points
        (n, 3) float32 in ``unit``: x to the right, y down, z away from the camera, which is at 0.
    normals
        (n, 3) float32, of length 1, towards the camera; NaN where a pixel shows no surface.
    std
        (n,) float32, standard deviation along the ray from the camera, in ``unit``; NaN = unknown.
    origin
        (n,) uint8, the `Origin` of each pixel.
    pixels
        (n, 2) int32, row and column of each pixel in the map.
    colours
        (n, 3) uint8, red, green and blue; None = none were given.
    unit
        "m", "mm", or "" where nobody said.

    Examples
    --------
    >>> cloud = point_cloud(np.full((4, 6), 2.0), (5, 5, 2.5, 1.5), unit="m")
    >>> len(cloud), cloud.to("mm").points[0]
    (24, array([-1000.,  -600.,  2000.], dtype=float32))
    """

    points: Floats
    normals: Floats
    std: Floats
    origin: NDArray[np.uint8]
    pixels: NDArray[np.int32]
    colours: NDArray[np.uint8] | None = None
    unit: Unit = ""

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        colours = "" if self.colours is None else ", colours"
        return f"PointCloud({len(self)} points in {self.unit or 'an unknown unit'}, normals, std{colours})"

    @property
    def covariance(self) -> Floats:
        """Covariance of each point, (n, 3, 3), in squared units: all of it lies along the ray."""
        along = self.points / np.linalg.norm(self.points, axis=1, keepdims=True) * self.std[:, None]
        return along[:, :, None] * along[:, None, :]

    def to(self, unit: Unit) -> PointCloud:
        """Return the same cloud in metres or millimetres."""
        factor = np.float32(unit_factor(self.unit, "depth", unit))
        return replace(self, points=self.points * factor, std=self.std * factor, unit=unit)

    def select(self, chosen: ArrayLike | slice) -> PointCloud:
        """Return the points of a mask, of indices, or of a slice, in that order."""
        index: Any = chosen if isinstance(chosen, slice) else np.asarray(chosen)
        arrays = {name: getattr(self, name) for name in ("points", "normals", "std", "origin", "pixels", "colours")}
        return replace(self, **{name: array[index] for name, array in arrays.items() if array is not None})

    def write(self, path: str | Path) -> None:
        """Write a binary PLY or PCD file, whole or not at all.

        Each point has x, y, z, its normal, its std, its origin, and its colour if there is one.

        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "wall.ply"
        >>> point_cloud(np.full((4, 6), 2.0), (5, 5, 2.5, 1.5), unit="m").write(path)
        >>> path.read_bytes()[:3]
        b'ply'
        """
        write_atomically(Path(path), encode_cloud(self, Path(path).suffix.lower()))

    def to_open3d(self) -> Any:
        """Return an `open3d.geometry.PointCloud` with points, normals and colours; it needs Open3D."""
        try:
            import open3d  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise InputError(
                f"to_open3d needs the package open3d ({error}); install it, or write a .ply that it reads"
            ) from None
        cloud, vectors = open3d.geometry.PointCloud(), open3d.utility.Vector3dVector
        cloud.points = vectors(self.points.astype(np.float64))
        cloud.normals = vectors(self.normals.astype(np.float64))
        if self.colours is not None:
            cloud.colors = vectors(self.colours / 255)
        return cloud


def point_cloud(
    result: Restoration | DepthImage | Match | ArrayLike,
    intrinsics: Intrinsics | str | Path | Sequence[float],
    colour: ArrayLike | None = None,
    *,
    variance: ArrayLike | None = None,
    unit: Unit | None = None,
    max_std: float | None = None,
) -> PointCloud:
    """Project the pixels of a depth map into space.

    Pixels that are unknown, refused, or not in front of the camera are left out. The others keep their order.

    Parameters
    ----------
    result
        What `denoise` or `inpaint` return, a `DepthImage`, or an array (height, width), NaN = unknown. Inverse depth is
        turned into depth; disparities need the calibration of a stereo camera first.
    intrinsics
        `Intrinsics`, four numbers fx, fy, cx, cy, or the name of a calibration file, scaled to the map if need be.
    colour
        A grey or colour picture of the same view and size, (height, width) or (height, width, 3), 8 or 16 bits.
    variance
        Of the depths, (height, width), in squared units; a result has its own.
    unit
        Of a map that does not say its own: "m" or "mm".
    max_std
        Points with a larger standard deviation along the ray, in units, are left out; so are those of unknown one.

    Returns
    -------
    PointCloud
        Points, normals, standard deviations, origins and colours.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsedepth import DepthImage, point_cloud
    >>> wall = DepthImage(np.full((4, 6), 2.0), "m")
    >>> cloud = point_cloud(wall, (5.0, 5.0, 2.5, 1.5))
    >>> cloud
    PointCloud(24 points in m, normals, std)
    >>> cloud.points[0], cloud.normals[0]
    (array([-1. , -0.6,  2. ], dtype=float32), array([-0., -0., -1.], dtype=float32))
    """
    image, spread, origin = _parts(result, variance, unit)
    depth, spread = _as_depth(image, spread)
    camera = intrinsics_from(intrinsics, depth.shape)
    if camera is None:
        raise InputError("a cloud needs the intrinsics of the camera; give Intrinsics(fx, fy, cx, cy)")
    colours = None if colour is None else _colours(colour, depth.shape)
    cloud = _project(depth, spread, origin, camera, image.unit if image.kind == "depth" else _metric(image.unit))
    if colours is not None:
        cloud = replace(cloud, colours=colours[tuple(cloud.pixels.T)])
    if max_std is None:
        return cloud
    return cloud.select(cloud.std <= max_std)


def _parts(
    result: Restoration | DepthImage | Match | ArrayLike, variance: ArrayLike | None, unit: Unit | None
) -> tuple[DepthImage, DepthMap, NDArray[np.uint8]]:
    """Return the map, its variances (NaN = unknown) and its origins."""
    if isinstance(result, Match):
        raise InputError("a match holds disparities; turn them into depth first: StereoCalibration.depth, or --calib")
    image = result.image if isinstance(result, Restoration) else result
    image = image if isinstance(image, DepthImage) else DepthImage(as_array("the map", image), unit or "")
    if unit is not None and image.unit not in ("", unit):
        raise InputError(f"the map is in {image.unit} and unit is {unit!r}; drop unit, or convert the cloud: .to()")
    image = replace(image, unit=unit if unit is not None else image.unit)
    shape, given = image.values.shape, getattr(result, "variance", None) if variance is None else variance
    spread = np.full(shape, np.nan) if given is None else as_array("the variance", given).astype(np.float64)
    spread = np.ma.filled(spread, np.nan)
    if spread.shape != shape:
        raise InputError(f"the variance has shape {spread.shape} and the map {shape}; give one for each pixel")
    if (spread < 0).any():
        raise InputError(f"the smallest variance is {np.nanmin(spread):g}; give none below 0")
    origin = result.origin if isinstance(result, Restoration) else np.full(shape, Origin.MEASURED, np.uint8)
    return image, spread, np.asarray(origin)


def _as_depth(image: DepthImage, variance: DepthMap) -> tuple[DepthMap, DepthMap]:
    """Return depths and their variances; those of inverse depths are of first order."""
    if image.kind == "disparity":
        raise InputError("the map holds disparities; turn them into depth first: StereoCalibration.depth, or --calib")
    if image.kind == "height":
        raise InputError(
            "the map holds heights, which no pinhole camera sees; take columns, rows and heights as points"
        )
    values = np.where(image.values > 0, image.values, np.nan)
    if image.kind == "depth":
        return values, variance
    depth = 1 / values.astype(np.float64)
    return depth.astype(np.float32), variance * depth**4


def _metric(unit: Unit) -> Unit:
    return "m" if unit == "1/m" else ""


def _project(
    depth: DepthMap, variance: DepthMap, origin: NDArray[np.uint8], camera: Intrinsics, unit: Unit
) -> PointCloud:
    pixels = np.argwhere(np.isfinite(depth)).astype(np.int32)
    rows, columns = pixels.T
    ray = np.stack([(columns - camera.cx) / camera.fx, (rows - camera.cy) / camera.fy, np.ones(len(pixels))], axis=1)
    at = rows, columns
    # A variance of which nothing is known does not keep a plane from being fitted.
    smooth = np.where(np.isfinite(variance), variance, 0)
    with np.errstate(invalid="ignore"):
        std = np.sqrt(variance[at]) * np.linalg.norm(ray, axis=1)
    return PointCloud(
        points=(ray * depth[at][:, None]).astype(np.float32),
        normals=normals(depth, smooth, camera)[at],
        std=std.astype(np.float32),
        origin=origin[at],
        pixels=pixels,
        unit=unit,
    )


def _colours(colour: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Return red, green and blue of each pixel, of 8 bits."""
    picture = np.asarray(as_array("the colour picture", colour))
    picture = picture if picture.ndim == 3 else picture[..., None]
    if picture.shape[:2] != shape or picture.ndim != 3 or picture.shape[2] not in (1, 3):
        raise InputError(
            f"the colour picture has shape {picture.shape} and the map {shape}; give one of the same view and size"
        )
    white = {"uint16": 65535.0}.get(picture.dtype.name, 1.0 if picture.dtype.kind == "f" else 255.0)
    if not (np.isfinite(picture).all() and picture.min() >= 0 and picture.max() <= white):
        raise InputError(f"the colour picture has numbers that are not within 0..{white:g}; give 8 or 16 bits, or 0..1")
    bright = picture if white == 255 else np.rint(picture / np.float64(white) * 255)
    return np.repeat(bright.astype(np.uint8), 3 // picture.shape[2], axis=2)

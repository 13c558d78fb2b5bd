"""Cameras and points in space.

* ``Intrinsics(fx, fy, cx, cy)``: focal lengths and principal point, from numbers or from a calibration file.
* ``point_cloud(result, intrinsics) -> PointCloud``: points, normals and standard deviations along the rays.
"""

from sparsedepth.geometry.clouds import PointCloud, point_cloud
from sparsedepth.geometry.intrinsics import Intrinsics, intrinsics_from

__all__ = ["Intrinsics", "PointCloud", "intrinsics_from", "point_cloud"]

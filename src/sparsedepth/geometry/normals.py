"""Normals of the surface that a depth map shows, by a plane fitted around each pixel.

With u = x / z and v = y / z, the plane ``a x + b y + c z = 1`` has the inverse depth ``a u + b v + c``. The inverse
depths of a window are fitted by least squares, so planes have their exact normals. Neighbours on another surface are
left out.
"""

from __future__ import annotations

from math import radians, tan

import numpy as np

from sparsedepth.geometry.intrinsics import Intrinsics
from sparsedepth.vocabulary import DepthMap, Floats

RADIUS_PX = 2
"""Of the window, 5 x 5 pixels."""
MAX_TILT_DEGREES = 85.0
"""Neighbours that only a surface seen at a smaller grazing angle could join are on another one."""
NOISE_STDS = 3.0
"""Standard deviations of a difference that noise may add."""
MIN_DETERMINANT = 0.5
"""Of the fit, in px^4 a neighbour squared: less is a line of pixels, which has no normal."""


def normals(depth: DepthMap, variance: DepthMap, intrinsics: Intrinsics) -> Floats:
    """Compute unit normals, (height, width, 3) float32, towards the camera; NaN where a window shows no surface.

    Parameters
    ----------
    depth
        (height, width), NaN = unknown.
    variance
        Of the depths, in squared units; infinities are taken as unknown depths.
    intrinsics
        Of the camera.

    Returns
    -------
    (height, width, 3): x to the right, y down, z away from the camera.
    """
    inverse, noise = _inverse(depth, variance)
    a, b, c = _slopes(inverse, noise, intrinsics)
    across, down = intrinsics.rays((depth.shape[0], depth.shape[1]))
    a, b = a * intrinsics.fx, b * intrinsics.fy
    found = np.stack([a, b, c - a * across - b * down], axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found /= -np.linalg.norm(found, axis=-1, keepdims=True)
    return found.astype(np.float32)


def _inverse(depth: DepthMap, variance: DepthMap) -> tuple[Floats, Floats]:
    """Return inverse depths, and the standard deviation of each."""
    known = np.isfinite(depth) & np.isfinite(variance) & (depth > 0)
    inverse = np.full(depth.shape, np.nan)
    inverse[known] = 1 / depth[known].astype(np.float64)
    noise = np.where(known, np.sqrt(np.where(known, variance, 0)) * inverse**2, np.nan)
    return inverse, noise


def _slopes(inverse: Floats, noise: Floats, intrinsics: Intrinsics) -> tuple[Floats, Floats, Floats]:
    """Fit the slopes of inverse depth across and down, a pixel, and its value in each pixel."""
    sums = _window_sums(inverse, noise, intrinsics)
    n, x, y, xx, xy, yy, q, qx, qy = sums
    with np.errstate(invalid="ignore", divide="ignore"):
        sxx, sxy, syy = xx - x * x / n, xy - x * y / n, yy - y * y / n
        sqx, sqy = qx - q * x / n, qy - q * y / n
        determinant = sxx * syy - sxy * sxy
        determinant = np.where(determinant > MIN_DETERMINANT, determinant, np.nan)
        a, b = (sqx * syy - sqy * sxy) / determinant, (sqy * sxx - sqx * sxy) / determinant
        return a, b, inverse + (q - a * x - b * y) / n


def _window_sums(inverse: Floats, noise: Floats, intrinsics: Intrinsics) -> Floats:
    """Sum 1, x, y, their products, and differences of inverse depth, over the neighbours on the same surface."""
    (height, width), r = inverse.shape, RADIUS_PX
    padded, padded_noise = (np.pad(each, r, constant_values=np.nan) for each in (inverse, noise))
    steepest = tan(radians(MAX_TILT_DEGREES)) / min(intrinsics.fx, intrinsics.fy)
    sums = np.zeros((9, height, width))
    for dy in range(-r, r + 1):
        for dx in range(-r, r + 1):
            window = np.s_[r + dy : r + dy + height, r + dx : r + dx + width]
            step, other = padded[window] - inverse, padded_noise[window]
            far = np.hypot(dx, dy) * steepest * inverse + NOISE_STDS * np.sqrt(noise**2 + other**2)
            near = np.abs(step) <= far  # NaN is not
            step = np.where(near, step, 0)
            for number, each in enumerate((1, dx, dy, dx * dx, dx * dy, dy * dy)):
                sums[number] += each * near
            for number, each in enumerate((1, dx, dy), 6):
                sums[number] += each * step
    return sums

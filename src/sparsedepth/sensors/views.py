"""Views of one scene: distinct frames, warped to one camera and aligned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsedepth.sensors.settings import MAD_TO_STD, SensorSettings
from sparsedepth.vocabulary import DepthMap, Floats, InputError


def stacked_views(
    frames: Sequence[DepthMap] | Floats,
    poses: Sequence[Floats] | None,
    intrinsics: tuple | None,
    settings: SensorSettings,
) -> Floats:
    """Check frames, leave out repeated ones, and bring them to the view of the middle one."""
    maps = [np.asarray(frame, float) for frame in frames]
    if not maps or any(frame.ndim != 2 or frame.shape != maps[0].shape for frame in maps):
        raise InputError("the frames must be maps (height, width) of one shape; give a list of them")
    if poses is not None and (len(poses) != len(maps) or intrinsics is None):
        raise InputError(f"{len(maps)} frames came with {len(poses)} poses; give one each, and intrinsics")
    numbers = [0] + [n for n in range(1, len(maps)) if not np.array_equal(maps[n], maps[n - 1], equal_nan=True)]
    if len(numbers) < settings.least_frames:
        raise InputError(
            f"{len(numbers)} distinct frames came ({len(maps)} in all); give at least {settings.least_frames} of one "
            "scene, each as the camera took it"
        )
    maps = [np.where(frame > 0, frame, np.nan) for frame in (maps[n] for n in numbers)]
    if poses is None or intrinsics is None:
        return np.stack(maps)
    matrices = [np.asarray(poses[n], float) for n in numbers]
    middle = len(maps) // 2
    views = [
        frame if n == middle else warped(frame, np.linalg.inv(matrices[middle]) @ matrices[n], intrinsics)
        for n, frame in enumerate(maps)
    ]
    return _aligned(np.stack(views), middle, settings)


def warped(depth: DepthMap, motion: Floats, intrinsics: tuple[float, float, float, float]) -> Floats:
    """Warp a map to the view of another camera; the nearest of several surfaces counts.

    Parameters
    ----------
    depth
        (height, width).
    motion
        (4, 4), from the camera of the map to the other one.
    intrinsics
        (fx, fy, cx, cy) in pixels, of both.

    Returns
    -------
    (height, width); NaN where nothing falls.
    """
    fx, fy, cx, cy = intrinsics
    rows, columns = np.nonzero(np.isfinite(depth))
    z = depth[rows, columns]
    points = np.stack([(columns - cx) * z / fx, (rows - cy) * z / fy, z, np.ones_like(z)])
    x, y, far = (motion @ points)[:3]
    front = far > 0
    x, y, far = x[front], y[front], far[front]
    column, row = np.round(x / far * fx + cx).astype(int), np.round(y / far * fy + cy).astype(int)
    inside = (row >= 0) & (row < depth.shape[0]) & (column >= 0) & (column < depth.shape[1])
    view = np.full(depth.shape, np.inf)
    np.minimum.at(view, (row[inside], column[inside]), far[inside])
    return np.where(np.isinf(view), np.nan, view)


def _aligned(stack: Floats, middle: int, settings: SensorSettings) -> Floats:
    """Remove the smooth disagreement of each view with the middle one, in inverse depth: error of the poses."""
    height, width = stack.shape[1:]
    y, x = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    inverse = 1 / stack
    terms = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y, inverse[middle] / np.nanmedian(inverse[middle])], -1)
    for n in range(len(stack)):
        both = np.isfinite(inverse[n] - inverse[middle])
        if n == middle or both.sum() < settings.align_pixels:
            continue
        every, gap = slice(None, None, settings.align_stride), (inverse[n] - inverse[middle])[both]
        inverse[n] = inverse[n] - np.nan_to_num(terms) @ _huber(terms[both][every], gap[every], settings)
        spread = settings.align_sigmas * MAD_TO_STD * np.median(np.abs(gap - np.median(gap)))
        far = np.abs(inverse[n] - inverse[middle]) > spread
        inverse[n][far | ~both] = np.nan
    with np.errstate(divide="ignore"):
        return np.where(inverse > 0, 1 / inverse, np.nan)


def _huber(design: Floats, values: Floats, settings: SensorSettings) -> Floats:
    """Fit a linear model by iteratively reweighted least squares with Huber's weights."""
    weight, found = np.ones(len(values)), np.zeros(design.shape[1])
    for _ in range(settings.huber_iterations):
        found = np.linalg.lstsq(design * weight[:, None], values * weight, rcond=None)[0]
        residual = np.abs(values - design @ found)
        scale = max(MAD_TO_STD * float(np.median(residual)), 1e-300)
        weight = np.sqrt(np.minimum(1.0, settings.huber * scale / np.maximum(residual, 1e-300)))
    return found

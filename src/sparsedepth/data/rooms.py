"""Synthetic indoor scenes: clean depth maps for simulated sensors, drawn by seed or converted from disparities."""

from __future__ import annotations

import numpy as np

from sparsedepth.vocabulary import DepthMap, Floats


def room(near: float, far: float, rng: np.random.Generator, shape: tuple[int, int] = (480, 640)) -> Floats:
    """Draw a scene: a slanted wall, a floor, boxes, a ball and thin poles between two depths.

    Parameters
    ----------
    near, far
        Smallest and largest depth, in any unit.
    rng
        Source of randomness.
    shape
        Height and width in pixels, more than 200 each.

    Returns
    -------
    (height, width) in the unit of ``near`` and ``far``, without holes or noise.

    Examples
    --------
    >>> scene = room(900.0, 3000.0, np.random.default_rng(0), (240, 320))
    >>> scene.shape, bool(scene.min() > 800), bool(scene.max() <= 3000)
    ((240, 320), True, True)
    """
    height, width = shape
    rows, columns = np.mgrid[:height, :width]
    wall = 1 / (1 / far + (1 / (0.6 * far) - 1 / far) * np.abs(columns / width - rng.uniform(0.2, 0.8)))
    scene = np.minimum(wall, 1 / np.maximum((rows / height - 0.35) / (0.65 * near * 1.2), 1e-9))
    for _ in range(8):
        top, left = rng.integers(0, height - 60), rng.integers(0, width - 60)
        box = slice(top, top + rng.integers(30, 160)), slice(left, left + rng.integers(30, 160))
        tilt = 1 + rng.normal(0, 5e-4) * columns[box] + rng.normal(0, 5e-4) * rows[box]
        scene[box] = np.minimum(scene[box], np.clip(rng.uniform(near, far) * tilt, near, far))
    middle, radius = (rng.integers(100, height - 100), rng.integers(100, width - 100)), rng.integers(40, 90)
    distance = np.hypot(rows - middle[0], columns - middle[1])
    ball = rng.uniform(near, far) * (1 - 0.1 * np.sqrt(np.maximum(1 - (distance / radius) ** 2, 0)))
    scene = np.where(distance < radius, np.minimum(scene, ball), scene)
    for thickness in (2, 3, 5):
        column = rng.integers(10, width - 10)
        scene[:, column : column + thickness] = np.minimum(scene[:, column : column + thickness], 1.1 * near)
    return scene


def depth_of_disparity(disparity: DepthMap, median_depth: float) -> Floats:
    """Convert disparities to depths whose median is given.

    The focal length times the baseline is assumed to be the median disparity times ``median_depth``. The files of
    Middlebury do not hold it for cropped maps, and a simulated sensor needs depths within its range.

    Parameters
    ----------
    disparity
        (height, width) in pixels, positive; NaN = missing.
    median_depth
        Median of the result, in any unit.

    Returns
    -------
    (height, width) in the unit of ``median_depth``; NaN where the disparity is not positive.

    Examples
    --------
    >>> depth_of_disparity(np.array([[10.0, 20.0, 40.0]]), 1000.0)
    array([[2000., 1000.,  500.]])
    """
    known = np.where(disparity > 0, disparity, np.nan).astype(float)
    return median_depth * np.nanmedian(known) / known

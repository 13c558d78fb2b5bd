"""Scenes for tests of sensors."""

from __future__ import annotations

import numpy as np

from sparsedepth.vocabulary import Floats


def room(near: float, far: float, shape: tuple[int, int] = (240, 320), seed: int = 0) -> Floats:
    """Draw a slanted wall, a floor, boxes, and a thin pole between two depths."""
    rng = np.random.default_rng(seed)
    height, width = shape
    rows, columns = np.mgrid[:height, :width]
    scene = 1 / (1 / far + (1 / (0.6 * far) - 1 / far) * columns / width)
    scene = np.minimum(scene, 1 / np.maximum((rows / height - 0.4) / (0.72 * near), 1e-9))
    for _ in range(4):
        top, left = rng.integers(0, height - 60), rng.integers(0, width - 60)
        box = slice(top, top + rng.integers(30, 90)), slice(left, left + rng.integers(30, 90))
        scene[box] = np.minimum(scene[box], rng.uniform(near, far))
    scene[:, width // 3 : width // 3 + 3] = 1.1 * near
    return scene

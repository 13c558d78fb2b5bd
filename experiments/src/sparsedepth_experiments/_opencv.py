"""The bilateral filter of OpenCV, for those who have installed it: the measure of time of the stream experiment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsedepth.vocabulary import DepthMap

DIAMETER_PX, COLOUR_MM, SPACE_PX = 9, 30.0, 4.0


def opencv_bilateral() -> Callable[[DepthMap], Any] | None:
    """Return ``cv2.bilateralFilter(d=9)`` on one thread; None = OpenCV is not installed."""
    try:
        import cv2
    except ImportError:
        return None
    cv2.setNumThreads(1)
    return lambda depth: cv2.bilateralFilter(np.nan_to_num(depth).astype(np.float32), DIAMETER_PX, COLOUR_MM, SPACE_PX)

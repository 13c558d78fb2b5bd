"""The Motorcycle pair that scikit-image ships (Middlebury 2014, quarter size): a real map that needs no download."""

from __future__ import annotations

import numpy as np
from skimage.data import stereo_motorcycle

from sparsedepth.vocabulary import DepthMap


def motorcycle_disparity() -> DepthMap:
    """500 x 741 disparities in pixels, sub-pixel accurate, NaN = unknown (about 7 %)."""
    disparity = stereo_motorcycle()[2].astype(np.float32)
    return np.where(np.isfinite(disparity), disparity, np.nan)

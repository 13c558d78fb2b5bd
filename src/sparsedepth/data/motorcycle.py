"""The Motorcycle pair that scikit-image ships (Middlebury 2014, quarter size): a real map that needs no download."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsedepth.extras import needed_for
from sparsedepth.vocabulary import DepthImage, DepthMap, StereoPair

FOCAL_PX, CENTRE_PX, DOFFS_PX, BASELINE_MM = 994.978, (311.193, 254.877), 31.086, 193.001
"""The calibration, as `skimage.data.stereo_motorcycle` gives it: of the left camera, and of the pair."""


def motorcycle_disparity() -> DepthMap:
    """Read the 500 x 741 disparities in pixels, sub-pixel accurate, NaN = unknown (about 7 %)."""
    disparity = _shipped()[2].astype(np.float32)
    return np.where(np.isfinite(disparity), disparity, np.nan)


def motorcycle_depth() -> DepthImage:
    """Compute the depths that were measured, 2.1 to 5.0 m, in millimetres."""
    return DepthImage(FOCAL_PX * BASELINE_MM / (motorcycle_disparity() + DOFFS_PX), "mm")


def motorcycle_pair() -> StereoPair:
    """Read the two views, in colour, with a range that holds every true disparity."""
    left, right, _ = _shipped()
    return StereoPair.from_images(left, right, int(np.ceil(np.nanmax(motorcycle_disparity()))) + 2)


def _shipped() -> Any:
    with needed_for("the Motorcycle pair", "reproduce"):
        from skimage.data import stereo_motorcycle

    return stereo_motorcycle()

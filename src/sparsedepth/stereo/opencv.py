"""OpenCV's semi-global block matching, as a baseline and as a matcher; the extra [stereo] installs it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.components import connected_components
from sparsedepth.stereo.occlusion import fill_background
from sparsedepth.vocabulary import DepthMap, Floats, InputError, StereoPair

BLOCK_SIDE_PX = 3
STEPS_PER_PX = 16.0
"""OpenCV's disparities are whole numbers of these."""


def block_matching(pair: StereoPair) -> DepthMap:
    """Match by eight-path SGBM with its own left-right and speckle checks; NaN where they fail."""
    cv2 = _opencv()
    left, right = _views(pair)
    found = _matcher(cv2, pair).compute(left, right)[:, _margin(pair) :] / np.float32(STEPS_PER_PX)
    return np.where(found >= 0, found, np.float32(np.nan))


def filled(pair: StereoPair) -> DepthMap:
    """Match by `block_matching`, and fill its holes from the background in the row."""
    found = block_matching(pair)
    return fill_background(np.nan_to_num(found), np.isnan(found))


def filtered(pair: StereoPair) -> DepthMap:
    """Match both views by SGBM, and smooth along the left one's colours by weighted least squares (SGBM + WLS)."""
    cv2 = _opencv()
    left, right = _views(pair)
    matcher = _matcher(cv2, pair)
    other = cv2.ximgproc.createRightMatcher(matcher)
    smoother = cv2.ximgproc.createDisparityWLSFilter(matcher)
    smoother.setLambda(8000.0)
    smoother.setSigmaColor(1.5)
    found = smoother.filter(matcher.compute(left, right), left, disparity_map_right=other.compute(right, left))
    return np.maximum(found[:, _margin(pair) :] / np.float32(STEPS_PER_PX), 0)


def _opencv() -> Any:
    try:
        import cv2
    except ImportError:
        raise InputError("this needs OpenCV; install it with: pip install 'sparsedepth[stereo]'") from None
    if not hasattr(cv2, "ximgproc"):
        raise InputError("this needs OpenCV with its extra modules; pip install opencv-contrib-python-headless")
    return cv2


def _margin(pair: StereoPair) -> int:
    """Compute the columns to pad on the left, where OpenCV leaves out as many; its ranges are multiples of 16."""
    return -(-(pair.max_disparity + 1) // 16) * 16


def _views(pair: StereoPair) -> list[Any]:
    margin = ((0, 0), (_margin(pair), 0), (0, 0))
    channels = 3 if pair.left.shape[2] == 3 else 1
    pictures = (view if channels == 3 else view.mean(axis=2, keepdims=True) for view in (pair.left, pair.right))
    return [np.pad(np.rint(picture).astype(np.uint8), margin, mode="edge") for picture in pictures]


def _matcher(cv2: Any, pair: StereoPair) -> Any:
    area = (3 if pair.left.shape[2] == 3 else 1) * BLOCK_SIDE_PX**2
    return cv2.StereoSGBM_create(
        minDisparity=0,
        numDisparities=_margin(pair),
        blockSize=BLOCK_SIDE_PX,
        P1=8 * area,
        P2=32 * area,
        disp12MaxDiff=1,
        uniquenessRatio=10,
        speckleWindowSize=100,
        speckleRange=2,
        preFilterCap=63,
        mode=cv2.STEREO_SGBM_MODE_HH,
    )


def mean_shift_segments(picture: Floats, *, space: float = 4.0, colour: float = 5.0) -> NDArray[np.int32]:
    """Segment a picture into neighbours that mean shift (Comaniciu & Meer 2002) brings to one colour.

    ``space`` is the radius of its window in pixels, ``colour`` that in OpenCV's Luv of bytes. Many segments are of one
    pixel.
    """
    cv2 = _opencv()
    channels = picture if picture.shape[2] == 3 else np.repeat(picture.mean(axis=2, keepdims=True), 3, axis=2)
    luv = cv2.cvtColor(np.rint(channels).astype(np.uint8), cv2.COLOR_RGB2Luv)
    shifted = cv2.pyrMeanShiftFiltering(luv, space, colour).astype(np.int32)
    return connected_components(shifted, 1) - np.int32(1)

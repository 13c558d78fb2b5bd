"""Metrics of restored maps: errors, calibration of variances, and the best parameter of a competitor.

Pixels whose truth is NaN never count. A NaN in the estimate where the truth is known is an error. ``missing="ignore"``
leaves those pixels out. Where pixels are counted, ``missing="bad"`` counts them as bad.
"""

from sparsedepth.metrics.certainty import (
    Calibration,
    Sparsification,
    average_precision,
    calibration,
    sparsification,
)
from sparsedepth.metrics.errors import (
    Best,
    FixedAndBroken,
    bad_pixels,
    fixed_and_broken,
    mae,
    oracle,
    psnr,
    rmse,
)

__all__ = [
    "Best",
    "Calibration",
    "FixedAndBroken",
    "Sparsification",
    "average_precision",
    "bad_pixels",
    "calibration",
    "fixed_and_broken",
    "mae",
    "oracle",
    "psnr",
    "rmse",
    "sparsification",
]

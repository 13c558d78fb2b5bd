"""Outdoor laser scans, one range a beam: four panoramas of 128 beams, and a dense tilting scan."""

from __future__ import annotations

import numpy as np

from sparsedepth.data import data_set, require_choice
from sparsedepth.files import read_map
from sparsedepth.vocabulary import DepthMap

PANORAMAS = ("street_trees_os2", "street_os0", "corner_os1_a", "trees_os1_sparse")
SCANS = (*PANORAMAS, "walkway")
VALUES_PER_METRE = 1000.0
MIN_RANGE_M = {"walkway": 0.3}
"""Metres within which a scanner saw only the robot that carried it."""


def scan(name: str) -> DepthMap:
    """Read ranges in metres, the sky at the top; NaN = no echo."""
    require_choice("laser scan", name, SCANS)
    folder = data_set("laser", name)
    ranges = read_map(folder / ("range_mm.npz" if name in PANORAMAS else "range_mm.png"), scale=VALUES_PER_METRE)
    return np.where(ranges < MIN_RANGE_M.get(name, 0), np.nan, ranges)


def log_scan(name: str) -> DepthMap:
    """Read natural logarithms of the ranges in metres; NaN = no echo.

    Relative steps count alike near and far, as the statistics of scenes ask; a few far returns no longer set the scale.
    """
    return np.log(scan(name))

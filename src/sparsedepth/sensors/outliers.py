"""Outliers of a frame counted in standard deviations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsedepth.sensors.filters import half_offsets, shifted
from sparsedepth.sensors.settings import DEFAULT, SensorSettings
from sparsedepth.vocabulary import Floats

Mask = NDArray[np.bool_]


def find_outliers(counted: Floats, settings: SensorSettings = DEFAULT) -> Mask:
    """Find pixels that nearly none of their 24 neighbours support and that continue no line.

    Parameters
    ----------
    counted
        (height, width) in standard deviations of the noise; NaN = missing.
    settings
        Distance within which pixels support each other, and the least fraction that must.

    Returns
    -------
    (height, width), true at outliers.
    """
    limit = np.float32(settings.outlier_sigmas)
    padded = np.pad(counted, 2, constant_values=np.nan)
    support, neighbours = (np.zeros(counted.shape, np.uint8) for _ in range(2))
    for rows, columns in half_offsets(2, 1):
        for side in (shifted(padded, rows, columns, 2), shifted(padded, -rows, -columns, 2)):
            away = side - counted
            support += np.abs(away, out=away) < limit
            neighbours += np.isfinite(side)
    lonely = np.isfinite(counted) & (support < np.float32(settings.outlier_support) * neighbours)
    return lonely & ~_on_line(padded, limit)


def _on_line(padded: Floats, limit: np.float32) -> Mask:
    """Find pixels in the middle of two opposite neighbours, at both distances in one of four directions.

    A steep surface, or one of few pixels, has few neighbours of equal depth, but continues along some line.
    """
    centre = shifted(padded, 0, 0, 2)
    found = np.zeros(centre.shape, bool)
    for rows, columns in half_offsets(1, 1):
        along = np.ones(centre.shape, bool)
        for distance in (1, 2):
            ahead, behind = (shifted(padded, sign * distance * rows, sign * distance * columns, 2) for sign in (1, -1))
            along &= np.abs((ahead + behind) * np.float32(0.5) - centre) < limit
        found |= along
    return found

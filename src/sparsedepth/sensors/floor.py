"""The least standard deviation of a map of unknown origin: rounding, and what second differences show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from sparsedepth.sensors.blind import ROUNDING, step_points
from sparsedepth.sensors.settings import DEFAULT, SensorSettings
from sparsedepth.vocabulary import DepthMap, Floats


@dataclass(frozen=True, eq=False)
class NoiseFloor:
    """Least standard deviation of the pixels of a map, by the steps that a sample of it shows."""

    depths: Floats
    steps: Floats
    settings: SensorSettings

    @classmethod
    def fit(cls, sample: DepthMap, settings: SensorSettings = DEFAULT) -> NoiseFloor:
        """Measure the quantisation steps of a sample (height, width); NaN = missing."""
        depths, steps = step_points(sample, settings) or (np.zeros(1), np.zeros(1))
        return cls(depths, steps, settings)

    def rounding(self, depth: Floats) -> Floats:
        """Compute the standard deviation of rounding at depths of any shape; NaN at NaN."""
        return np.interp(depth, self.depths, self.steps) / ROUNDING

    def __call__(self, depth: DepthMap) -> Floats:
        """Compute the least standard deviation of each pixel, in the unit of the map; NaN where the depth is."""
        return np.maximum(_shown(depth, self.settings.floor_window_px), self.rounding(depth))


def least_std(depth: DepthMap, settings: SensorSettings = DEFAULT) -> Floats:
    """Compute the least standard deviation that a map of unknown origin can have at each pixel.

    It is the larger of the rounding error and of what second differences show around the pixel: the smaller of those
    along rows and along columns, so that steps of the scene do not count.

    Parameters
    ----------
    depth
        (height, width) in any unit; NaN = missing.
    settings
        Quantile and bins of the step, and the window of the differences.

    Returns
    -------
    (height, width) in the unit of the map; NaN where the depth is.

    Examples
    --------
    >>> stairs = np.repeat(np.arange(1.0, 33.0), 4)[None, :] + np.zeros((32, 1))
    >>> bool(np.all(least_std(stairs) >= 1 / np.sqrt(12) - 1e-9))
    True
    """
    values = np.asarray(depth, float)
    values = np.where(np.isfinite(values), values, np.nan)
    return NoiseFloor.fit(values, settings)(values)


def _shown(depth: Floats, side: int) -> Floats:
    """Compute the standard deviation of white noise that second differences around each pixel show; NaN at NaN."""
    padded = np.pad(depth, 1, constant_values=np.nan)
    centre, inner = padded[1:-1, 1:-1], slice(1, -1)
    across = np.abs(padded[inner, 2:] + padded[inner, :-2] - 2 * centre)
    down = np.abs(padded[2:, inner] + padded[:-2, inner] - 2 * centre)
    square = np.fmin(across, down) ** 2 / 6
    seen = np.isfinite(square).astype(float)
    total = ndimage.uniform_filter(seen, side)
    around = ndimage.uniform_filter(np.where(seen > 0, square, 0.0), side) / np.maximum(total, 0.5 / side**2)
    shown = np.sqrt(np.where(total > 0, np.maximum(around, 0.0), 0.0))
    return np.where(np.isfinite(depth), shown, np.nan)

"""The least standard deviation of a map of unknown origin: rounding, and what second differences show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsedepth.kernels import floor as kernels
from sparsedepth.sensors.blind import ROUNDING, step_points
from sparsedepth.sensors.record import Sensor
from sparsedepth.sensors.settings import DEFAULT, SensorSettings
from sparsedepth.vocabulary import DepthMap, Floats

SHOWN = 0.55
"""Median of the smallest second differences, for noise of variance one (simulated)."""


@dataclass(frozen=True, eq=False)
class NoiseFloor:
    """Least standard deviation of the pixels of a map, by the steps that a sample of it shows."""

    depths: Floats
    steps: Floats
    windows: Sensor | None = None
    """Noise that windows of the sample show, if it is more than rounding."""
    windows_ratio: float = DEFAULT.windows_ratio

    @classmethod
    def fit(
        cls,
        sample: DepthMap,
        settings: SensorSettings = DEFAULT,
        windows: Sensor | None = None,
        sharpness: float = 1.0,
    ) -> NoiseFloor:
        """Measure the quantisation steps of a sample (height, width); NaN = missing.

        Windows count as far as their quietest tenth does: ``sharpness`` of their noise.
        """
        found = step_points(sample, settings) if _is_quantised(sample) else None
        depths, steps = found or (np.zeros(1), np.zeros(1))
        return cls(depths, steps, windows, min(settings.windows_ratio, sharpness))

    def rounding(self, depth: Floats) -> Floats:
        """Compute the standard deviation of rounding at depths of any shape; NaN at NaN."""
        return np.interp(depth, self.depths, self.steps) / ROUNDING

    def in_windows(self, depth: DepthMap) -> Floats:
        """Compute the least standard deviation of pixels that were not smoothed; NaN at NaN."""
        if self.windows is None:
            return np.where(np.isnan(depth), np.nan, 0.0)
        return self.windows_ratio * self.windows.std(depth)

    def __call__(self, depth: DepthMap) -> Floats:
        """Compute the least standard deviation of each pixel, in the unit of the map; NaN where the depth is."""
        return np.maximum(_shown(depth), self.rounding(depth))


def least_std(depth: DepthMap, settings: SensorSettings = DEFAULT) -> Floats:
    """Compute the least standard deviation that a map of unknown origin can have at each pixel.

    It is the larger of two numbers: the rounding error, and what second differences around the pixel show. Of four
    directions the smallest counts, so that steps of the scene do not.

    Parameters
    ----------
    depth
        (height, width) in any unit; NaN = missing.
    settings
        Quantile and bins of the step.

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


def _is_quantised(sample: DepthMap) -> bool:
    """Tell whether most pixels share their value with at least two others."""
    values, counts = np.unique(sample[np.isfinite(sample)], return_counts=True)
    return len(values) > 0 and int(counts[counts > 2].sum()) > int(counts.sum()) / 2


def _shown(depth: Floats) -> Floats:
    """Compute the standard deviation of white noise that second differences around each pixel show; NaN at NaN.

    The smallest of the differences in four directions leaves planes and straight edges out. Medians of three, twice
    along both axes, see nearly 5 x 5 pixels and ignore outliers. Noise of variance one has a median of `SHOWN`.
    """
    depth = np.ascontiguousarray(depth, np.float64)
    shown, scratch = np.empty_like(depth), np.empty_like(depth)
    kernels.shown(*depth.shape, depth, SHOWN, scratch, shown)
    return shown

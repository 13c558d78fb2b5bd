"""The least standard deviation of a map of unknown origin: rounding, and what second differences show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsedepth.sensors.blind import ROUNDING, step_points
from sparsedepth.sensors.settings import DEFAULT, SensorSettings
from sparsedepth.vocabulary import DepthMap, Floats


@dataclass(frozen=True, eq=False)
class NoiseFloor:
    """Least standard deviation of the pixels of a map, by the steps that a sample of it shows."""

    depths: Floats
    steps: Floats

    @classmethod
    def fit(cls, sample: DepthMap, settings: SensorSettings = DEFAULT) -> NoiseFloor:
        """Measure the quantisation steps of a sample (height, width); NaN = missing."""
        depths, steps = step_points(sample, settings) or (np.zeros(1), np.zeros(1))
        return cls(depths, steps)

    def rounding(self, depth: Floats) -> Floats:
        """Compute the standard deviation of rounding at depths of any shape; NaN at NaN."""
        return np.interp(depth, self.depths, self.steps) / ROUNDING

    def __call__(self, depth: DepthMap) -> Floats:
        """Compute the least standard deviation of each pixel, in the unit of the map; NaN where the depth is."""
        return np.maximum(_shown(depth), self.rounding(depth))


def least_std(depth: DepthMap, settings: SensorSettings = DEFAULT) -> Floats:
    """Compute the least standard deviation that a map of unknown origin can have at each pixel.

    It is the larger of the rounding error and of what second differences show around the pixel: the smaller of those
    along rows and along columns, so that steps of the scene do not count.

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


def _shown(depth: Floats) -> Floats:
    """Compute the standard deviation of white noise that second differences around each pixel show; NaN at NaN.

    The smaller of the differences along rows and along columns has a median of 1.01 for noise of variance one. Medians
    of three, twice along both axes, see nearly 5 x 5 pixels and ignore outliers.
    """
    padded = np.pad(depth, 1, constant_values=np.nan)
    centre, inner = padded[1:-1, 1:-1], slice(1, -1)
    across = np.abs(padded[inner, 2:] + padded[inner, :-2] - 2 * centre)
    down = np.abs(padded[2:, inner] + padded[:-2, inner] - 2 * centre)
    shown = np.fmin(across, down)
    for _ in range(2):
        shown = _median_of_three(_median_of_three(shown).T).T
    return np.where(np.isfinite(depth), np.where(np.isfinite(shown), shown, 0.0), np.nan)


def _median_of_three(values: Floats) -> Floats:
    """Return the median of each value and its neighbours in the row; NaN is ignored."""
    padded = np.pad(values, ((0, 0), (1, 1)), constant_values=np.nan)
    left, right = padded[:, :-2], padded[:, 2:]
    return np.fmax(np.fmin(left, values), np.fmin(np.fmax(left, values), right))

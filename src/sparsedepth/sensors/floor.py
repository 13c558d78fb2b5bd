"""The least standard deviation of a map of unknown origin: rounding, and what second differences show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsedepth.kernels import floor as kernels
from sparsedepth.sensors.blind import ROUNDING, step_points
from sparsedepth.sensors.laws import TableLaw
from sparsedepth.sensors.settings import DEFAULT, SensorSettings
from sparsedepth.vocabulary import DepthMap, Floats

SHOWN = 0.55
"""Median of the smallest second differences, for noise of variance one (simulated)."""


@dataclass(frozen=True, eq=False)
class NoiseFloor:
    """Least standard deviation of the pixels of a map, by the steps that a sample of it shows."""

    depths: Floats
    steps: Floats
    windows: TableLaw | None = None
    """Noise that windows of the sample show, if it is more than rounding."""
    windows_ratio: float = DEFAULT.windows_ratio

    @classmethod
    def fit(
        cls,
        sample: DepthMap,
        settings: SensorSettings = DEFAULT,
        windows: TableLaw | None = None,
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

    def __call__(self, depth: DepthMap) -> Floats:
        """Compute the least standard deviation of each pixel, in the unit of the map; NaN where the depth is."""
        return np.maximum(_shown(depth), self.rounding(depth))

    def raised(
        self,
        variance: Floats,
        value: Floats,
        valid: NDArray[np.bool_],
        kept: NDArray[np.bool_],
        scale: float = 1.0,
        centre: float = 0.0,
    ) -> Floats:
        """Raise variances to the least ones of a map.

        Parameters
        ----------
        variance
            (height, width), in units of the squared scale.
        value
            (height, width); depths are ``value * scale + centre``; NaN = missing.
        valid
            (height, width), pixels around which second differences show noise.
        kept
            (height, width), pixels that were not smoothed; they have at least the noise of windows.
        scale, centre
            In the unit of the map.

        Returns
        -------
        (height, width), in units of the squared scale.
        """
        value, raised = np.ascontiguousarray(value, np.float64), np.array(variance, np.float64, order="C")
        masks = (np.ascontiguousarray(mask).view(np.uint8) for mask in (valid, kept))
        law, smallest = _logarithms(self.windows, self.windows_ratio)
        steps = _with_slopes(self.depths, self.steps / ROUNDING)
        tables = (steps.shape[1], steps, law.shape[1], law, smallest)
        scratch = np.empty(kernels.scratch(value.shape[1]))
        kernels.raised(*value.shape, value, scale, centre, SHOWN, *masks, *tables, scratch, raised)
        return raised


def _logarithms(law: TableLaw | None, ratio: float) -> tuple[Floats, float]:
    """Return the table of a law in logarithms, times a ratio, and the smallest depth that it takes."""
    if law is None:
        return np.zeros((3, 0)), 1.0
    lengths = np.log(ratio * np.array(law.lengths))
    return _with_slopes(np.log(law.depths), lengths), law.smallest


def _with_slopes(places: Floats, heights: Floats) -> Floats:
    """Return a table with the slopes from its knots on, (3, knots): 0 behind the last one and between equal ones."""
    apart, slopes = np.diff(places), np.zeros(len(places))
    np.divide(np.diff(heights), apart, out=slopes[:-1], where=apart > 0)
    return np.stack([places, heights, slopes])


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
    ordered = np.sort(sample[np.isfinite(sample)])
    third = ordered[2:] == ordered[:-2]
    sharing = third.sum() + 2 * (third[1:] & ~third[:-1]).sum() + 2 * third[:1].sum()
    return bool(sharing > len(ordered) / 2)


def _shown(depth: Floats) -> Floats:
    """Compute the standard deviation of white noise that second differences around each pixel show; NaN at NaN.

    The smallest of the differences in four directions leaves planes and straight edges out. Medians of three, twice
    along both axes, see nearly 5 x 5 pixels and ignore outliers. Noise of variance one has a median of `SHOWN`.
    """
    depth = np.ascontiguousarray(depth, np.float64)
    shown, scratch = np.empty_like(depth), np.empty(kernels.scratch(depth.shape[1]))
    kernels.shown(*depth.shape, depth, SHOWN, scratch, shown)
    return shown

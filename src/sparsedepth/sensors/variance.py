"""Variance after smoothing: correlated noise that is left, lost structure and misfits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsedepth.sensors.filters import blurred
from sparsedepth.sensors.laws import Correlation
from sparsedepth.sensors.settings import DEFAULT, SensorSettings
from sparsedepth.vocabulary import Floats

Mask = NDArray[np.bool_]


def variance_ratio(
    residual: Floats,
    excess: Floats,
    samples: Floats,
    used: Mask,
    correlation: Correlation,
    settings: SensorSettings = DEFAULT,
) -> Floats:
    """Predict the variance after smoothing as a ratio of that before.

    White noise falls with the number of samples. Correlated noise falls as the mean correlation within their area, and
    a part of it is too long to fall. Where residuals are larger than usual, structure was smoothed too. A pixel far
    from its smoothed value is an outlier or a small structure, with some probability.

    Parameters
    ----------
    residual
        (height, width), what smoothing removed, in standard deviations that windows show.
    excess
        (height, width), squared residuals around each pixel, over the median of the frame.
    samples
        (height, width), number of samples averaged.
    used
        (height, width), true where a value was averaged.
    correlation
        Spatial correlation of the noise.
    settings
        Fraction of unseen noise, window of residuals.

    Returns
    -------
    (height, width).
    """
    kept = mean_correlation(samples, correlation, settings)
    correlated = np.maximum(kept, _unseen(correlation, settings))
    ratio = settings.bias + correlation.white / samples + (1 - correlation.white) * correlated
    rough = np.clip(excess, settings.least_excess, settings.largest_excess) ** settings.excess_power
    misfit = np.where(used, np.maximum(residual**2 - settings.misfit_from**2, 0), 0)
    return np.minimum(ratio * rough, settings.largest_ratio) + settings.misfit * misfit


def squared_residual(residual: Floats, used: Mask, settings: SensorSettings = DEFAULT) -> Floats:
    """Average squared residuals around each pixel, without the part that adjacent pixels do not share.

    Parameters
    ----------
    residual
        (height, width), what smoothing removed, in standard deviations that windows show.
    used
        (height, width), true where a value was averaged.
    settings
        Widths of the windows.

    Returns
    -------
    (height, width).
    """
    share = used.astype(np.float32)
    clipped = np.where(used, np.clip(residual, -3, 3), 0).astype(np.float32)
    if settings.detail_px > 0:
        clipped = blurred(clipped, settings.detail_px) / np.maximum(
            blurred(share, settings.detail_px), np.float32(0.05)
        )
    total = np.maximum(blurred(share, settings.residual_px), np.float32(1e-3))
    return blurred(clipped * clipped * share, settings.residual_px) / total


def mean_correlation(samples: Floats, correlation: Correlation, settings: SensorSettings = DEFAULT) -> Floats:
    """Compute the mean correlation of two samples of a Gaussian window, by the number of samples on the grid.

    Parameters
    ----------
    samples
        Number of samples; each stands for one cell of the grid.
    correlation
        Spatial correlation; its white part is left out.
    settings
        Stride of the grid.

    Returns
    -------
    Mean correlations, in the shape of the samples.
    """
    variances = np.geomspace(0.05, 4000.0, 64)
    distance = (np.arange(400) + 0.5) * 0.25
    shape = np.exp(-((distance / _length(correlation)) ** correlation.exponent))
    density = distance * np.exp(-(distance**2) / (2 * variances[:, None]))
    means = (density * shape).sum(1) / np.maximum(density.sum(1), 1e-300)
    area = settings.stride_px**2 * samples
    return np.interp(2 * area / (4 * np.pi), variances, means)


def _length(correlation: Correlation) -> float:
    return max(float(np.sqrt(correlation.along_rows * correlation.along_columns)), 0.2)


def _unseen(correlation: Correlation, settings: SensorSettings) -> float:
    """Predict the fraction of correlated noise that is longer than any window: the longer, the longer its tail."""
    ramp = (_length(correlation) - settings.unseen_from_px) / (settings.unseen_to_px - settings.unseen_from_px)
    return settings.unseen * float(np.clip(ramp, 0.0, 1.0))

"""White noise of a map, as the crossed differences of adjacent pixels show it where the map is flattest.

Crossed differences cancel planes and straight edges. Noise that adjacent pixels share hides from them.
"""

from __future__ import annotations

import numpy as np

from sparsedepth.sensors.settings import DEFAULT, SensorSettings
from sparsedepth.vocabulary import DepthMap, Floats

LOW_QUANTILE, HIGH_QUANTILE = 0.25, 0.75
"""Quantiles of the differences in a block."""
GAUSSIAN_QUANTILE = 0.262
"""The low quantile in the flattest fifth of the blocks, for Gaussian noise of standard deviation one."""


def white_std(depth: DepthMap, settings: SensorSettings = DEFAULT) -> float:
    """Estimate the standard deviation of white noise that is the same everywhere.

    Parameters
    ----------
    depth
        (height, width) in any unit; NaN = missing.
    settings
        Side of the blocks, and which of them are flat.

    Returns
    -------
    In the unit of the map; 0 if fewer than four blocks are valid.

    Examples
    --------
    >>> noise = np.random.default_rng(0).standard_normal((120, 120))
    >>> round(white_std(0.2 * noise), 1)
    0.2
    """
    blocks = block_quantiles(depth, LOW_QUANTILE, settings)
    valid = blocks[np.isfinite(blocks)]
    return float(np.percentile(valid, settings.flat_percentile) / GAUSSIAN_QUANTILE) if len(valid) >= 4 else 0.0


def block_depths(depth: DepthMap, settings: SensorSettings = DEFAULT) -> Floats:
    """Return the median depth of each block, NaN where few pixels are valid."""
    return _quantile(_in_blocks(depth[:-1, :-1], settings.difference_block_px), 0.5)


def block_quantiles(depth: DepthMap, quantile: float = LOW_QUANTILE, settings: SensorSettings = DEFAULT) -> Floats:
    """Return a quantile of the crossed differences in each block, NaN where few pixels are valid."""
    crossed = np.abs(depth[1:, 1:] - depth[1:, :-1] - depth[:-1, 1:] + depth[:-1, :-1]) / 2
    return _quantile(_in_blocks(crossed, settings.difference_block_px), quantile)


def _quantile(blocks: Floats, quantile: float) -> Floats:
    valid = np.isfinite(blocks).sum(axis=2)
    at = (quantile * valid).astype(int)[..., None]
    value = np.take_along_axis(np.sort(blocks, axis=2), at, axis=2)[..., 0]
    return np.where(valid > blocks.shape[2] / 2, value, np.nan)


def _in_blocks(values: Floats, side: int) -> Floats:
    """Return the pixels of each block, (rows, columns, pixels); NaN where there is no room for one."""
    rows, columns = (max(n // side, 1) for n in values.shape)
    values = values[: rows * side, : columns * side]
    if values.size < rows * columns * side**2:
        return np.full((rows, columns, side**2), np.nan)
    return values.reshape(rows, side, columns, side).transpose(0, 2, 1, 3).reshape(rows, columns, -1)

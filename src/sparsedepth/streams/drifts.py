"""Slow change of regions: means of many pixels show what single ones hide in their noise."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from sparsedepth.sensors import Correlation
from sparsedepth.streams.belief import FLOAT
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.vocabulary import Floats


class Drifts:
    """Finds regions whose mean innovations have one sign."""

    def __init__(
        self, shape: tuple[int, int], correlation: Correlation, run_std: float, settings: StreamSettings
    ) -> None:
        self._shape, self._settings = shape, settings
        side = settings.drift_block_px
        self._grid = shape[0] // side, shape[1] // side
        self._std = run_std * np.sqrt(_mean_correlation(correlation, side * settings.drift_blocks))

    def found(self, run: Floats) -> Floats:
        """Return the evidence of slow change around each pixel.

        Parameters
        ----------
        run
            Mean innovations of all pixels, flat, in standard deviations.

        Returns
        -------
        Flat, -1 to 1; 0 where a region shows no more than noise does.
        """
        side, blocks = self._settings.drift_block_px, self._settings.drift_blocks
        if min(self._grid) < blocks:
            return np.zeros(len(run), FLOAT)
        height, width = self._grid
        inner = run.reshape(self._shape)[: height * side, : width * side]
        means = inner.reshape(height, side, width, side).mean((1, 3))
        means = ndimage.uniform_filter(means, blocks, mode="nearest")
        size = np.clip(np.abs(means) / FLOAT(self._std) - FLOAT(self._settings.drift_sigmas), 0, 1)
        return self._spread(np.copysign(size, means))

    def _spread(self, blocks: Floats) -> Floats:
        """Return the values of blocks at all of their pixels; the last ones go on to the borders."""
        rows, columns = (
            np.minimum(np.arange(size) // self._settings.drift_block_px, number - 1)
            for size, number in zip(self._shape, self._grid, strict=True)
        )
        return blocks[rows][:, columns].ravel()


def _mean_correlation(correlation: Correlation, side: int) -> float:
    """Compute the mean correlation of all pairs of pixels in a square."""
    lag = np.arange(-side + 1.0, side)
    weight = (side - np.abs(lag)) / side**2
    return float(weight @ correlation(lag[:, None], lag[None, :]) @ weight)

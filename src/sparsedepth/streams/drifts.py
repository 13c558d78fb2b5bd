"""Slow change of regions: means of many pixels show what single ones hide in their noise."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from sparsedepth.sensors import Correlation
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.vocabulary import Floats


class Drifts:
    """Finds regions whose innovations have one sign, in this frame or over the last ones.

    Parameters
    ----------
    shape
        Height and width of the frames.
    correlation
        Spatial correlation of the noise.
    run_std
        Standard deviation of the mean innovation of a pixel that does not change.
    settings
        Blocks, regions and thresholds.
    """

    def __init__(
        self, shape: tuple[int, int], correlation: Correlation, run_std: float, settings: StreamSettings
    ) -> None:
        self._shape, self._run_std, self._settings = shape, np.float32(run_std), settings
        side = settings.drift_block_px
        self.grid = shape[0] // side, shape[1] // side
        self._regions = [
            (blocks, np.float32(np.sqrt(_mean_correlation(correlation, side * blocks))), more)
            for blocks, more in settings.drift_regions
            if min(self.grid) >= blocks
        ]

    def found(self, sums: Floats) -> tuple[Floats, Floats]:
        """Find slow change in regions of several sizes.

        Parameters
        ----------
        sums
            Sums over blocks, (3, rows, columns) of blocks: pixels within the gate, their innovations, and the mean
            innovations of all pixels; in standard deviations.

        Returns
        -------
        Evidence of change, from -1 to 1; 0 = no more than noise shows. And the expected squared error of the means, in
        variances of a measurement. Both are (rows, columns) of blocks.
        """
        evidence, lag = np.zeros(self.grid, np.float32), np.zeros(self.grid, np.float32)
        known, score, run = sums / np.float32(self._settings.drift_block_px**2)
        for blocks, std, more in self._regions:
            share, now, over_time = (
                ndimage.uniform_filter(each, blocks, mode="nearest") for each in (known, score, run)
            )
            now /= np.maximum(share, np.float32(self._settings.drift_share)) * std
            over_time /= std * self._run_std
            for mean, limit in ((over_time, self._settings.drift_sigmas), (now, self._settings.onset_sigmas)):
                found = np.copysign(np.clip(np.abs(mean) - np.float32(limit + more), 0, 1), mean)
                np.copyto(evidence, found, where=np.abs(found) > np.abs(evidence))
            excess = np.square(now) - np.float32(self._settings.lag_sigmas**2)
            np.maximum(lag, excess * np.square(std), out=lag)
        return evidence, lag * (1 - np.abs(evidence))

    def spread(self, blocks: Floats) -> Floats:
        """Return the values of blocks at all of their pixels, flat; the last ones go on to the borders."""
        if 0 in self.grid:
            return np.zeros(self._shape[0] * self._shape[1], np.float32)
        rows, columns = (
            np.minimum(np.arange(size) // self._settings.drift_block_px, number - 1)
            for size, number in zip(self._shape, self.grid, strict=True)
        )
        return blocks[rows][:, columns].ravel()


def _mean_correlation(correlation: Correlation, side: int) -> float:
    """Compute the mean correlation of all pairs of pixels in a square."""
    lag = np.arange(-side + 1.0, side)
    weight = (side - np.abs(lag)) / side**2
    return float(weight @ correlation(lag[:, None], lag[None, :]) @ weight)

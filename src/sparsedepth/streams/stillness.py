"""Find what moves before a camera without poses: differences of successive frames go back and forth, or go on."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from sparsedepth.streams.settings import StreamSettings
from sparsedepth.vocabulary import Floats


class Stillness:
    """Compares the differences of successive frames, in means of blocks.

    Noise goes back and forth. If frames have the correlation r, two successive differences x, y have -(1 - r) / 2.
    Their agreement, 2 x y / (x^2 + y^2), has a mean of -0.27 to -0.18. Where the scene or the camera moves on, it is
    positive. No knowledge of the spatial correlation is needed.
    """

    def __init__(self, shape: tuple[int, int], settings: StreamSettings) -> None:
        side = settings.still_block_px
        self._shape, self._settings = shape, settings
        self._grid = shape[0] // side, shape[1] // side
        self._last: Floats | None = None

    def forget(self) -> None:
        """Restart, after the belief was warped."""
        self._last = None

    def moving(self, value: Floats, before: Floats, noise: Floats) -> np.ndarray | None:
        """Take a frame; find the pixels that it and the two frames before show in motion.

        Parameters
        ----------
        value, before
            This and the last frame on the axis, flat; NaN = missing.
        noise
            Variance of one measurement.

        Returns
        -------
        (height, width), true where regions move on; None = nothing can be said.
        """
        if min(self._grid) < self._settings.still_region:
            return None
        means, last = self._block_means(value, before, noise), self._last
        self._last = means
        if last is None:
            return None
        with np.errstate(invalid="ignore"):
            agreement = 2 * means * last / (np.square(means) + np.square(last))
        known = np.isfinite(agreement)
        size = self._settings.still_region
        share = ndimage.uniform_filter(known.astype(float), size, mode="constant")
        total = ndimage.uniform_filter(np.where(known, agreement, 0.0), size, mode="constant")
        moves = (total > self._settings.still_correlation * share) & (share >= self._settings.still_share)
        moves |= self._moves_everywhere(agreement[known])
        side = self._settings.still_block_px
        every = np.repeat(np.repeat(moves, side, 0), side, 1)
        return np.pad(every, [(0, full - part) for full, part in zip(self._shape, every.shape, strict=True)], "edge")

    def _moves_everywhere(self, agreement: Floats) -> bool:
        """Tell whether all blocks together show more agreement than noise has."""
        if len(agreement) == 0:
            return False
        limit = self._settings.noise_agreement + self._settings.noise_sigmas / np.sqrt(len(agreement))
        return float(agreement.mean()) > limit

    def _block_means(self, value: Floats, before: Floats, noise: Floats) -> Floats:
        """Compute the means of the differences in blocks, in standard deviations; NaN where few are known."""
        (height, width), side, every = self._grid, self._settings.still_block_px, self._settings.still_stride_px
        parts = [
            each.reshape(self._shape)[: height * side : every, : width * side : every]
            for each in (value, before, noise)
        ]
        limit = np.float32(self._settings.huber_sigmas)
        with np.errstate(invalid="ignore"):
            score = np.clip((parts[0] - parts[1]) / np.sqrt(2 * parts[2]), -limit, limit)
        known = score == score
        blocks = height, side // every, width, side // every
        count = known.reshape(blocks).sum((1, 3))
        total = np.where(known, score, np.float32(0)).reshape(blocks).sum((1, 3))
        return np.where(count > (side // every) ** 2 / 2, total / np.maximum(count, 1), np.nan)

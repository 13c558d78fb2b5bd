"""Changes of the scene: new surfaces, single outliers, and memory of what moved and in its shadow."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from sparsedepth.streams.belief import Belief, Change
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.vocabulary import Floats

AROUND = tuple((down, across) for down in (-1, 0, 1) for across in (-1, 0, 1) if (down, across) != (0, 0))
"""Offsets of the eight adjacent pixels."""


def follow_surfaces(
    belief: Belief, value: Floats, change: Change, shape: tuple[int, int], settings: StreamSettings
) -> tuple[np.ndarray, np.ndarray]:
    """Restart pixels that jump together with their neighbours; forget memory near them.

    Parameters
    ----------
    belief
        State of all pixels, changed in place.
    value
        Measurements on the axis, flat; NaN = missing.
    change
        Result of the update.
    shape
        Height and width.
    settings
        Thresholds.

    Returns
    -------
    Flat numbers of the pixels of new surfaces, and of those that jumped alone: outliers, until a second measurement
    agrees.
    """
    pixels = np.flatnonzero(change.jumped)
    together = _support(pixels, value, change, shape, settings) >= settings.support
    new = pixels[together]
    belief.renew(new, value[new], change.noise[new])
    if len(new):
        _forget_shadow(belief, value, new, shape, settings)
    return new, pixels[~together]


class Arrivals:
    """Forgets missing pixels of a static camera to which another surface came lately: it may have moved on.

    Parameters
    ----------
    pixels
        Number of pixels.
    settings
        Thresholds.
    """

    def __init__(self, pixels: int, settings: StreamSettings) -> None:
        self._settings = settings
        self._last, self._since = np.empty(pixels, np.float32), np.empty(pixels, np.int16)
        self.restart()

    def restart(self) -> None:
        """Restart, after the camera has moved."""
        self._last[:], self._since[:] = np.nan, self._settings.memory_frames

    def forget_passing(self, belief: Belief, value: Floats, noise: Floats) -> None:
        """Forget what may have passed.

        Parameters
        ----------
        belief
            State of all pixels after a frame, changed in place.
        value, noise
            Measurements on the axis, NaN = missing, and their variances, flat.
        """
        last, since, never = self._last, self._since, self._settings.memory_frames
        measured = value == value
        limit = np.float32(2 * self._settings.candidate_sigmas**2)
        with np.errstate(invalid="ignore"):
            other = measured & (np.square(belief.mean - last) > limit * noise)
        np.copyto(last, belief.mean, where=measured)
        np.minimum(since + 1, never, out=since)
        since[other] = 0
        belief.forget(np.flatnonzero(~measured & (since < never)))


def _support(
    pixels: np.ndarray, value: Floats, change: Change, shape: tuple[int, int], settings: StreamSettings
) -> np.ndarray:
    """Count the adjacent pixels that jumped to about the same depth."""
    width = shape[1]
    jumped = np.pad(np.where(change.jumped, value, np.float32(np.nan)).reshape(shape), 1, constant_values=np.nan)
    flat, place = jumped.ravel(), pixels + 2 * (pixels // width) + width + 3
    tolerance = np.float32(2 * settings.candidate_sigmas) * np.sqrt(2 * change.noise[pixels])
    count = np.zeros(len(pixels), np.int8)
    for down, across in AROUND:
        count += np.abs(flat[place + down * (width + 2) + across] - value[pixels]) <= tolerance
    return count


def _forget_shadow(
    belief: Belief, value: Floats, new: np.ndarray, shape: tuple[int, int], settings: StreamSettings
) -> None:
    """Forget remembered pixels near new surfaces."""
    block = settings.block_px
    rows, columns = new // shape[1] // block, new % shape[1] // block
    coarse = np.zeros((-(-shape[0] // block), -(-shape[1] // block)), np.uint8)
    coarse[rows, columns] = 1
    near = ndimage.maximum_filter(coarse, 2 * (-(-settings.shadow_px // block)) + 1, mode="constant")
    missing = np.flatnonzero((value != value) & (belief.mean == belief.mean))
    inside = near[missing // shape[1] // block, missing % shape[1] // block] > 0
    belief.forget(missing[inside])

"""Holes that were never seen: filled on key frames in the background, and carried like what is remembered."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from scipy import ndimage

from sparsedepth.hole_filling import Filling
from sparsedepth.streams.axis import Axis
from sparsedepth.streams.belief import Belief
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.streams.warp import View, warp
from sparsedepth.vocabulary import Floats, Origin, Restoration


class _Pending(NamedTuple):
    """A key frame that is being filled."""

    due: int
    filled: Future[Restoration]


class KeyFrames:
    """Fills the holes of some frames in a thread, and adds them to the belief a fixed number of frames later.

    The delay is fixed, so results do not depend on the speed of the thread. A filled pixel has a count of 0: the first
    measurement replaces it.

    Parameters
    ----------
    shape
        Height and width.
    filling
        From which side holes are filled.
    settings
        Distance and delay of key frames.
    """

    def __init__(self, shape: tuple[int, int], filling: Filling, settings: StreamSettings) -> None:
        self._shape, self._filling, self._settings = shape, filling, settings
        self._pending: _Pending | None = None
        self._worker: ThreadPoolExecutor | None = None
        self._changed = np.zeros([-(-size // settings.block_px) for size in shape], bool)
        self.travel: Floats = np.eye(4)
        """Motion of the camera since the key frame, (4, 4), in the unit of the map."""

    def forget(self) -> None:
        """Drop the key frame: the camera moved in an unknown way."""
        self._pending = None

    def note_changes(self, pixels: np.ndarray) -> None:
        """Note the flat numbers of pixels of new surfaces: filled pixels near them are out of date."""
        if self._pending is not None:
            block = self._settings.block_px
            self._changed[pixels // self._shape[1] // block, pixels % self._shape[1] // block] = True

    def take(self, number: int, result: Restoration) -> None:
        """Start to fill a frame if it is a key frame; number counts the frames from 1."""
        first, every = self._settings.key_first_frames, self._settings.key_every_frames
        unknown = float(np.mean(result.origin == Origin.REFUSED))
        if (number - first) % every or not 0 < unknown < 1 or self._pending is not None:
            return
        self._worker = self._worker or ThreadPoolExecutor(1, "key-frames")
        copy = Restoration(result.depth.copy(), result.variance.copy(), result.origin.copy())
        self._pending = _Pending(number + self._settings.key_delay_frames, self._worker.submit(self._fill, copy))
        self._changed[:], self.travel = False, np.eye(4)

    def _fill(self, result: Restoration) -> Restoration:
        self._filling.fill(result, "depth")
        return result

    def add_due(self, number: int, belief: Belief, axis: Axis, view: View | None) -> None:
        """Add the filled pixels of a key frame to the belief, if they are due.

        Parameters
        ----------
        number
            Number of the frame.
        belief
            State of all pixels, changed in place where nothing was ever measured.
        axis
            Axis of the belief.
        view
            The camera, if it moves.
        """
        if self._pending is None or number < self._pending.due:
            return
        found, self._pending = self._on_axis(self._pending.filled.result(), axis), None
        if view is not None and not np.array_equal(self.travel, np.eye(4)):
            moved = Belief.empty(len(found.mean))
            warp(found, moved, self.travel, view, axis, self._settings)
            found = moved
        here = (found.count == 0) & np.isfinite(found.mean) & (belief.count == 0) & ~self._out_of_date()
        belief.mean[here], belief.variance[here], belief.missed[here] = found.mean[here], found.variance[here], 0

    def _on_axis(self, result: Restoration, axis: Axis) -> Belief:
        """Return the filled map as a belief; only filled pixels have a count of 0."""
        belief = Belief.empty(result.depth.size)
        with np.errstate(invalid="ignore", divide="ignore"):
            belief.mean[:] = axis.count(result.depth.ravel())
            belief.variance[:] = (result.variance * np.square(axis.slope(result.depth))).ravel()
        belief.count[:] = (result.origin != Origin.FILLED).ravel()
        return belief

    def _out_of_date(self) -> np.ndarray:
        """Find the pixels near surfaces that changed since the key frame, flat."""
        block = self._settings.block_px
        near = ndimage.maximum_filter(self._changed, 2 * (-(-self._settings.shadow_px // block)) + 1, mode="constant")
        every = np.repeat(np.repeat(near, block, 0), block, 1)
        return every[: self._shape[0], : self._shape[1]].ravel()

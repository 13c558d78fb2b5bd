"""Where a frame is taken from: bring the belief to its view, or forget what does not fit."""

from __future__ import annotations

from typing import Literal

import numpy as np

from sparsedepth.geometry import Intrinsics
from sparsedepth.streams.align import align
from sparsedepth.streams.axis import Axis
from sparsedepth.streams.belief import Belief
from sparsedepth.streams.camera import METRE, moved_px
from sparsedepth.streams.disagreement import remove_disagreement
from sparsedepth.streams.frames import Frame
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.streams.stillness import Stillness
from sparsedepth.streams.warp import View, warp
from sparsedepth.vocabulary import Floats, Unit

State = Literal["empty", "started", "static", "tracking", "lost"]
"""No frame yet; the first one; a camera that stands still; one whose motion is known; one that moves unknown."""


class Tracker:
    """The belief of a stream in the view of its last frame.

    Parameters
    ----------
    shape
        Height and width.
    camera
        Intrinsics; None = the camera stands still, as far as is known.
    pose
        That of the first frame; None = frames come without.
    unit
        Unit of the maps.
    settings
        Thresholds.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        camera: Intrinsics | None,
        pose: Floats | None,
        unit: Unit,
        settings: StreamSettings,
    ) -> None:
        self.shape, self.pose = shape, pose
        self.belief, self._spare = Belief.empty(shape[0] * shape[1]), Belief.empty(shape[0] * shape[1])
        self._camera, self._unit, self._settings = camera, unit, settings
        self._motion, self._is_aligned = np.eye(4), True
        self._stillness = Stillness(shape, settings)
        self._previous: Floats | None = None

    def place(self, value: Floats, noise: Floats, frame: Frame, axis: Axis) -> State:
        """Bring the belief to the view of a frame, or forget it if it does not fit.

        Parameters
        ----------
        value, noise
            Measurements on the axis and their variances, flat; NaN = missing.
        frame
            The frame as it came.
        axis
            Axis of the belief.

        Returns
        -------
        How the frame was placed.
        """
        before, self._previous = self._previous, value
        if before is None:
            return "started"
        motion = self._motion_to(value, noise, frame, axis)
        self.pose = frame.pose
        if motion is not None:
            self._move(motion, value, noise, axis)
        if not self._is_aligned or self._agreement(value, noise) < self._settings.least_agreement:
            self.belief.forget(slice(None))
            return "lost"
        return "tracking" if motion is not None else self._forget_moving(value, before, noise)

    def _move(self, motion: Floats, value: Floats, noise: Floats, axis: Axis) -> None:
        warp(self.belief, self._spare, motion, self._view(), axis, self._settings)
        self.belief, self._spare = self._spare, self.belief
        remove_disagreement(self.belief, value, noise, self.shape, self._settings)
        self._stillness.forget()

    def _forget_moving(self, value: Floats, before: Floats, noise: Floats) -> State:
        """Forget regions that move on from frame to frame; if most do, the camera moves."""
        moving = self._stillness.moving(value, before, noise)
        if moving is None or not moving.any():
            return "static"
        self.belief.forget(np.flatnonzero(moving))
        return "lost" if moving.mean() > self._settings.most_moving else "static"

    def _motion_to(self, value: Floats, noise: Floats, frame: Frame, axis: Axis) -> Floats | None:
        """Return the motion from the last camera to this one; None = it stands still, as far as is known."""
        if self._camera is None:
            return None
        if frame.pose is not None:
            assert self.pose is not None
            motion = np.linalg.inv(frame.pose) @ self.pose
            motion[:3, 3] *= METRE[self._unit]
        else:
            motion = self._aligned(value, noise, axis)
        middle = float(np.median(frame.values[frame.values > 0])) if (frame.values > 0).any() else 1.0
        return None if moved_px(motion, self._camera, self.shape, middle) < self._settings.still_px else motion

    def _aligned(self, value: Floats, noise: Floats, axis: Axis) -> Floats:
        view = self._view()
        starts = () if np.array_equal(self._motion, np.eye(4)) else (self._motion,)
        found = align(self.belief, value, noise, view, axis, self._settings, starts)
        moves = found.cost < (1 - self._settings.align_gain) * found.start_cost
        self._motion = found.motion if moves else np.eye(4)
        fits = found.agreement >= self._settings.align_agreement and found.cost <= self._settings.align_cost
        self._is_aligned = fits or found.cost == np.inf  # too few pixels to compare
        return self._motion

    def _view(self) -> View:
        assert self._camera is not None
        return View(self._camera, self.shape)

    def _agreement(self, value: Floats, noise: Floats) -> float:
        """Compute the fraction of pixels where the frame agrees with the belief; 1 if nothing can be compared."""
        every = slice(None, None, self._settings.fit_stride_px)
        score, mean, spread, level = (
            each.reshape(self.shape)[every, every] for each in (value, self.belief.mean, self.belief.variance, noise)
        )
        with np.errstate(invalid="ignore"):
            size = np.square(score - mean) / (spread + level * self.belief.scale.reshape(self.shape)[every, every])
        known = size[size == size]
        return float((known < self._settings.agreement_sigmas**2).mean()) if known.size else 1.0

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
from sparsedepth.streams.flow import shows_motion
from sparsedepth.streams.frames import Frame
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.streams.stillness import Stillness
from sparsedepth.streams.warp import View, warp
from sparsedepth.vocabulary import Floats, Unit

State = Literal["empty", "started", "static", "tracking", "lost"]
"""No frame yet; the first one; a camera that stands still; one whose motion is known; one that may move."""


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
        self._aside: tuple[Floats, Floats] | None = None
        self.motion: Floats | None = np.eye(4)
        """Motion of the camera from the last frame to this one, (4, 4), in the unit of the map; None = unknown."""
        self.overdue: tuple[Floats, Floats] | None = None
        """Measurements and noise of the last frame, if they are to be fused before this one."""

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
        before, self._previous, self.overdue = self._previous, value, None
        if before is None:
            return "started"
        motion = self._motion_to(value, noise, frame, axis)
        self.pose, self.motion = frame.pose, np.eye(4) if motion is None else motion
        if motion is not None:
            self._move(motion, value, noise, axis)
        if not self._is_aligned or self._fit(value, noise)[0] < self._settings.least_agreement:
            self._aside = None
            return self._forgotten()
        return "tracking" if motion is not None else self._watch(value, before, noise)

    def _watch(self, value: Floats, before: Floats, noise: Floats) -> State:
        """Set the belief aside if the camera may have begun to move; take it up again if the next frame fits it."""
        aside, self._aside = self._aside, None
        moves_on = self._moves_on(value, before, noise)
        if moves_on is None:
            return self._forgotten()
        if aside is not None and not shows_motion(self._spare, value, noise, self.shape, self._settings):
            self.belief, self._spare, self.overdue = self._spare, self.belief, aside
        elif self._may_move(value, noise):
            self.belief, self._spare, self._aside = self._spare, self.belief, (value, noise)
            return self._forgotten()
        self.belief.forget(moves_on)
        return "static"

    def _may_move(self, value: Floats, noise: Floats) -> bool:
        """Tell whether the innovations show motion; those of a single frame also if they are larger than noise."""
        if self.belief.count.max(initial=0) == 1 and self._fit(value, noise)[1] > self._settings.motion_square:
            return True
        return shows_motion(self.belief, value, noise, self.shape, self._settings)

    def _forgotten(self) -> State:
        self.belief.forget(slice(None))
        self.motion = None
        return "lost"

    def _move(self, motion: Floats, value: Floats, noise: Floats, axis: Axis) -> None:
        warp(self.belief, self._spare, motion, self.view, axis, self._settings)
        self.belief, self._spare = self._spare, self.belief
        remove_disagreement(self.belief, value, noise, self.shape, self._settings)
        self._stillness.forget()

    def _moves_on(self, value: Floats, before: Floats, noise: Floats) -> np.ndarray | None:
        """Return the numbers of the pixels that move on from frame to frame; None if most do: the camera moves."""
        moving = self._stillness.moving(value, before, noise)
        if moving is None:
            return np.empty(0, np.int64)
        return None if moving.mean() > self._settings.most_moving else np.flatnonzero(moving)

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
        view = self.view
        starts = () if np.array_equal(self._motion, np.eye(4)) else (self._motion,)
        found = align(self.belief, value, noise, view, axis, self._settings, starts)
        moves = found.cost < (1 - self._settings.align_gain) * found.start_cost
        self._motion = found.motion if moves else np.eye(4)
        self._is_aligned = not moves or found.fits  # one that seems to stand still is watched as one without intrinsics
        return self._motion

    @property
    def view(self) -> View:
        """Camera and shape of a stream that moves."""
        assert self._camera is not None
        return View(self._camera, self.shape)

    def _fit(self, value: Floats, noise: Floats) -> tuple[float, float]:
        """Return the fraction of pixels where the frame agrees with the belief, and the mean square, each limited.

        Squares are those of innovations in standard deviations. Both are 1 if nothing can be compared.
        """
        every = slice(None, None, self._settings.fit_stride_px)
        score, mean, spread, level = (
            each.reshape(self.shape)[every, every] for each in (value, self.belief.mean, self.belief.variance, noise)
        )
        with np.errstate(invalid="ignore"):
            size = np.square(score - mean) / (spread + level * self.belief.scale.reshape(self.shape)[every, every])
        known = size[size == size]
        if not known.size:
            return 1.0, 1.0
        limit = self._settings.align_sigmas**2
        return float((known < self._settings.agreement_sigmas**2).mean()), float(np.minimum(known, limit).mean())

"""The newest frame of a camera, for work that is slower than the camera."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from threading import Condition, Thread
from typing import Self

from sparsedepth.cameras.protocol import Camera, CameraFrame

POLL_SECONDS = 0.05
"""How soon a stop is noticed."""


class NewestFrames:
    """The frames of a camera, read in a thread: when work falls behind, the oldest waiting frame is dropped.

    Parameters
    ----------
    camera
        A camera that streams.
    waiting
        Number of frames that may wait.

    Examples
    --------
    >>> from sparsedepth.cameras import SimulatedCamera
    >>> with SimulatedCamera(frames=3, paced=False) as camera, NewestFrames(camera, waiting=3) as newest:
    ...     n_frames = len(list(newest))
    >>> n_frames, newest.dropped
    (3, 0)
    """

    def __init__(self, camera: Camera, waiting: int = 1) -> None:
        self._camera = camera
        self._frames: deque[CameraFrame] = deque(maxlen=waiting)
        self._changed = Condition()
        self._thread = Thread(target=self._read, name="camera", daemon=True)
        self._stopped = self._ended = False
        self._failure: BaseException | None = None
        self.dropped = 0
        """Frames that came and were never taken, so far."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join()

    def stop(self) -> None:
        """End the iteration after the frame in work; safe in a signal handler."""
        self._stopped = True

    def __iter__(self) -> Iterator[CameraFrame]:
        while (frame := self._take()) is not None:
            yield frame

    def _take(self) -> CameraFrame | None:
        """Wait for a frame; None = the camera has ended or was stopped. An error of the camera is raised here."""
        while not self._stopped:
            with self._changed:
                if not self._frames and not self._ended:
                    self._changed.wait(POLL_SECONDS)
                if self._frames:
                    return self._frames.popleft()
                if self._failure is not None:
                    raise self._failure
                if self._ended:
                    return None
        return None

    def _read(self) -> None:
        try:
            for frame in self._camera:
                if self._stopped:
                    break
                self._put(frame)
        except BaseException as error:  # raised where frames are taken
            self._failure = error
        with self._changed:
            self._ended = True
            self._changed.notify()

    def _put(self, frame: CameraFrame) -> None:
        with self._changed:
            self.dropped += len(self._frames) == self._frames.maxlen
            self._frames.append(frame)
            self._changed.notify()


def for_seconds(frames: NewestFrames, seconds: float | None) -> Iterator[CameraFrame]:
    """Yield the frames of some seconds, counted from the first frame; None = without end."""
    first = None
    for frame in frames:
        first = time.monotonic() if first is None else first
        if seconds is not None and time.monotonic() - first >= seconds:
            return
        yield frame

"""Where the results of the command stream go: files written in a thread of their own, and a video."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self

from sparsedepth.cli.batch.plan import require_folder, require_new
from sparsedepth.files import write
from sparsedepth.stream_video import VideoWriter
from sparsedepth.vocabulary import DepthMap, Restoration

MAX_WAITING = 4
"""Results that wait to be written; then the next frame waits for the first of them."""


class StreamResults:
    """The files of a stream, one a frame; compressing them takes as long as restoring them, hence the thread.

    Parameters
    ----------
    folder
        Folder of the files; it is made if need be.
    suffix
        Their format.
    video
        A video of all frames; None = none is made.
    force
        Whether files that exist are overwritten.
    """

    def __init__(self, folder: Path, suffix: str, video: Path | None, force: bool) -> None:
        self._suffix, self._force = suffix, force
        require_new([] if video is None else [video], force)
        self._video = None if video is None else VideoWriter(video)
        self._folder = require_folder(folder)
        self._pool = ThreadPoolExecutor(1)
        self._waiting: deque[Future[None]] = deque()

    def require_empty(self) -> None:
        """Refuse a folder with results in it, unless forced: the frames of a live camera do not come again."""
        require_new(sorted(self._folder.glob(f"*{self._suffix}")), self._force)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()
        while self._waiting and error is None:
            self._waiting.popleft().result()
        if self._video is not None and error is None:
            self._video.close()

    def add(self, name: str, before: DepthMap, result: Restoration) -> None:
        """Add a result; an error of an earlier one is raised here."""
        path = self._folder / f"{name}{self._suffix}"
        require_new([path], self._force)
        if len(self._waiting) >= MAX_WAITING:
            self._waiting.popleft().result()
        self._waiting.append(self._pool.submit(write, path, result))
        if self._video is not None:
            self._video.add(before, result)

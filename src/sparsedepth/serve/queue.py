"""The queue of jobs, from arrival to expiry: one process decodes and encodes, another one restores."""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sparsedepth.process_pool import WorkerDied, WorkerTimeout
from sparsedepth.serve.limits import HTTPError, Limits
from sparsedepth.serve.processes import WorkerProcess
from sparsedepth.serve.products import PRODUCTS, RAW, STREAM_PRODUCTS, frame_bytes

State = Literal["arriving", "waiting", "running", "done", "failed"]
EXPIRY_CHECK_SECONDS = 2.0


@dataclass(eq=False)
class Job:
    """A request, its state and its results."""

    id: str
    what: str
    folder: Path
    state: State = "arriving"
    stage: str = "arriving"
    work: dict[str, Any] = field(default_factory=dict)
    """The task for the worker, without its folder and facts."""
    facts: dict[str, Any] = field(default_factory=dict)
    pace: tuple[str, ...] = ()
    """Jobs with the same key take the same time a pixel."""
    failure: HTTPError | None = None
    began: float = 0.0
    ended: float = 0.0
    n_bytes: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def pixels(self) -> int:
        """The number of pixels of its map, or of all frames of its stream."""
        height, width = self.facts.get("shape", (0, 0))
        return height * width * self.facts.get("frames", 1)

    @property
    def seconds(self) -> float:
        """Seconds since it has begun; 0 before."""
        return (self.ended or time.monotonic()) - self.began if self.began else 0.0


class JobQueue:
    """All jobs of the service; use it as ``async with``."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._jobs: dict[str, Job] = {}
        self._waiting: deque[Job] = deque()
        self._wake = asyncio.Event()
        self._running: Job | None = None
        self._attempt: asyncio.Task[Any] | None = None
        self._decoder, self._worker = WorkerProcess(), WorkerProcess(warm=True)
        self._paces: dict[tuple[str, ...], float] = {}

    async def __aenter__(self) -> JobQueue:
        self._root = Path(tempfile.mkdtemp(prefix="sparsedepth-"))
        self._loops: list[asyncio.Task[None]] = []
        try:
            await asyncio.gather(self._decoder.start(), self._worker.start())
        except BaseException:
            await self.__aexit__()
            raise
        self._loops = [asyncio.create_task(self._work()), asyncio.create_task(self._tidy())]
        return self

    async def __aexit__(self, *_: object) -> None:
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        await asyncio.gather(self._decoder.stop(), self._worker.stop())
        shutil.rmtree(self._root, ignore_errors=True)

    def admit(self, what: str) -> Job:
        """Reserve a place in the queue, from the first byte on; refused when it is full."""
        if sum(job.state in ("arriving", "waiting") for job in self._jobs.values()) >= self.limits.queue:
            raise HTTPError(429, "too many jobs are waiting; come back in a few seconds", retry_after="5")
        name = secrets.token_urlsafe(16)
        job = Job(name, what, self._root / name)
        job.folder.mkdir()
        self._jobs[name] = job
        return job

    async def decode(self, job: Job, task: dict[str, Any], shown: dict[str, str]) -> None:
        """Decode an upload now, so that errors in it are reported at once."""
        job.stage = "reading"
        task = task | {"folder": str(job.folder), "shown": shown}
        job.facts = await self._decoder.run(task, self.limits.decode_seconds)

    def enqueue(self, job: Job, work: dict[str, Any], pace: tuple[str, ...]) -> None:
        """Put a decoded job into the queue."""
        job.work, job.pace = work, pace
        job.state, job.stage = "waiting", "waiting"
        self._waiting.append(job)
        self._wake.set()

    def find(self, name: str) -> Job:
        """Return the job of that name."""
        job = self._jobs.get(name)
        if job is None:
            kept = f"{self.limits.keep_seconds / 60:g} minutes at most"
            raise HTTPError(404, f"there is no such job; results are kept for {kept}")
        return job

    def forget(self, job: Job) -> None:
        """Stop a job if it runs, and remove all its files."""
        self._jobs.pop(job.id, None)
        if job in self._waiting:
            self._waiting.remove(job)
        if job is self._running and self._attempt is not None:
            self._attempt.cancel()
        job.failure = job.failure or HTTPError(404, "the job was given up")
        job.over.set()
        shutil.rmtree(job.folder, ignore_errors=True)

    def position(self, job: Job) -> int | None:
        """Return how many jobs are before it in the queue; None when it does not wait."""
        return self._waiting.index(job) + (self._running is not None) if job in self._waiting else None

    def expected_seconds(self, job: Job) -> float | None:
        """Predict the time of a job by the last one of its kind, if there was one."""
        pace = self._paces.get(job.pace)
        return None if pace is None else pace * job.pixels

    def expires_in(self, job: Job) -> float | None:
        """Return the seconds until the results are removed."""
        return max(0.0, job.ended + self.limits.keep_seconds - time.monotonic()) if job.ended else None

    def count(self) -> dict[str, int]:
        """Count the jobs."""
        return {"waiting": len(self._waiting), "running": int(self._running is not None), "jobs": len(self._jobs)}

    async def product(self, job: Job, name: str, frame: int | None = None) -> tuple[Path, range | None]:
        """Return a file of a finished job, or of its input when that is decoded, and the bytes of the wanted frame.

        Products are made when they are first asked for. A frame of a stream has all products of a map.
        """
        known = (*PRODUCTS, *RAW, *(STREAM_PRODUCTS if job.what == "stream" else ()))
        if name not in known:
            raise HTTPError(404, f"there is no {name[:50]!r}; choose one of {', '.join(known)}")
        if job.failure is not None:
            raise job.failure
        if job.state != "done" and not (name == "before.f32" and job.facts and job.state != "arriving"):
            raise HTTPError(409, "the job is not done; ask again later")
        frames = job.facts["frames"] if job.what == "stream" else 1
        frame = min(frame or 0, 0) if job.what != "stream" else frame
        if frame is not None and frame >= frames:
            raise HTTPError(404, f"there is no frame {frame}; the stream has {frames}, the first is 0")
        if name in RAW:
            return job.folder / name, None if frame is None else frame_bytes(name, job.facts["shape"], frame)
        if name in STREAM_PRODUCTS or job.what != "stream":
            return await self._made(job, name, 0, name), None
        return await self._made(job, name, frame or 0, f"{frame or 0}-{name}"), None

    async def _made(self, job: Job, name: str, frame: int, file: str) -> Path:
        """Make a product, unless it is there."""
        path = job.folder / file
        if path.exists():
            return path
        task = {"do": "product", "folder": str(job.folder), "facts": job.facts, "name": name, "frame": frame}
        try:
            await self._decoder.run(task | {"file": file}, self.limits.decode_seconds)
        except HTTPError:
            self.find(job.id)  # it may have expired meanwhile
            raise
        if job.folder.exists():
            job.n_bytes += path.stat().st_size
        return path

    async def _work(self) -> None:
        """Run the waiting jobs, one after the other."""
        while True:
            with suppress(WorkerDied, WorkerTimeout):  # the next job will say
                await self._worker.start()
            while not self._waiting:
                self._wake.clear()
                await self._wake.wait()
            job = self._running = self._waiting.popleft()
            job.state, job.stage, job.began = "running", "starting", time.monotonic()
            self._attempt = asyncio.create_task(self._run(job))
            try:
                await asyncio.wait([self._attempt])
            finally:
                self._attempt.cancel()
                self._running = None
            job.over.set()

    async def _run(self, job: Job) -> None:
        def report(stage: str) -> None:
            job.stage = stage

        task = job.work | {"folder": str(job.folder), "facts": job.facts}
        try:
            job.facts = await self._worker.run(task, self.limits.job_seconds, report)
            job.state, job.stage = "done", "done"
            self._paces[job.pace] = job.seconds / max(job.pixels, 1)
            job.n_bytes = sum(file.stat().st_size for file in job.folder.iterdir())
        except HTTPError as failure:
            job.failure, job.state, job.stage = failure, "failed", "failed"
        except OSError:
            job.failure, job.state, job.stage = HTTPError(404, "the job was given up"), "failed", "failed"
        finally:  # and not later: a client that sees the job done also sees when it expires
            job.ended = time.monotonic()

    async def _tidy(self) -> None:
        """Remove expired jobs, and the oldest results when there are too many."""
        while True:
            await asyncio.sleep(EXPIRY_CHECK_SECONDS)
            ended = sorted((job for job in self._jobs.values() if job.ended), key=lambda job: job.ended)
            kept = sum(job.n_bytes for job in ended)
            for job in ended:
                if self.expires_in(job) == 0 or kept > self.limits.keep_bytes:
                    kept -= job.n_bytes
                    self.forget(job)


async def finished(job: Job, gone: Coroutine[Any, Any, None]) -> None:
    """Wait until the job is over, or until its client is gone."""
    waiting = [asyncio.create_task(job.over.wait()), asyncio.create_task(gone)]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

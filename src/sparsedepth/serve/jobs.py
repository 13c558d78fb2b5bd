"""Jobs from arrival to expiry: a bounded queue, one process that decodes and encodes, one that restores."""

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
from sparsedepth.serve.limits import Limits, Refusal
from sparsedepth.serve.processes import Worker
from sparsedepth.serve.products import PRODUCTS, RAW

State = Literal["arriving", "waiting", "running", "done", "failed"]
LOOK_SECONDS = 2.0


@dataclass(eq=False)
class Job:
    """A request and what has become of it."""

    id: str
    what: str
    folder: Path
    state: State = "arriving"
    stage: str = "arriving"
    work: dict[str, Any] = field(default_factory=dict)
    """The task for the bench, without its folder and facts."""
    facts: dict[str, Any] = field(default_factory=dict)
    pace: tuple[str, ...] = ()
    """Jobs of the same pace take the same time a pixel."""
    failure: Refusal | None = None
    began: float = 0.0
    ended: float = 0.0
    n_bytes: int = 0
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def pixels(self) -> int:
        height, width = self.facts.get("shape", (0, 0))
        return height * width

    @property
    def seconds(self) -> float:
        """Spent on it so far, once it has begun."""
        return (self.ended or time.monotonic()) - self.began if self.began else 0.0


class Jobs:
    """All that is known to the service; use it as ``async with``."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._jobs: dict[str, Job] = {}
        self._waiting: deque[Job] = deque()
        self._wake = asyncio.Event()
        self._running: Job | None = None
        self._attempt: asyncio.Task[Any] | None = None
        self._desk, self._bench = Worker(), Worker(warm=True)
        self._paces: dict[tuple[str, ...], float] = {}

    async def __aenter__(self) -> Jobs:
        self._root = Path(tempfile.mkdtemp(prefix="sparsedepth-"))
        self._loops: list[asyncio.Task[None]] = []
        try:
            await asyncio.gather(self._desk.start(), self._bench.start())
        except BaseException:
            await self.__aexit__()
            raise
        self._loops = [asyncio.create_task(self._work()), asyncio.create_task(self._tidy())]
        return self

    async def __aexit__(self, *_: object) -> None:
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        await asyncio.gather(self._desk.stop(), self._bench.stop())
        shutil.rmtree(self._root, ignore_errors=True)

    def admit(self, what: str) -> Job:
        """A place in the queue, kept from the first byte on; refused when there is none."""
        if sum(job.state in ("arriving", "waiting") for job in self._jobs.values()) >= self.limits.queue:
            raise Refusal(429, "too many jobs are waiting; come back in a few seconds", retry_after="5")
        name = secrets.token_urlsafe(16)
        job = Job(name, what, self._root / name)
        job.folder.mkdir()
        self._jobs[name] = job
        return job

    async def take_in(self, job: Job, task: dict[str, Any], shown: dict[str, str]) -> None:
        """Decode what has arrived, so that what is wrong with it is said at once."""
        job.stage = "reading"
        told = task | {"folder": str(job.folder), "shown": shown}
        job.facts = await self._desk.do(told, self.limits.desk_seconds)

    def enqueue(self, job: Job, work: dict[str, Any], pace: tuple[str, ...]) -> None:
        job.work, job.pace = work, pace
        job.state, job.stage = "waiting", "waiting"
        self._waiting.append(job)
        self._wake.set()

    def find(self, name: str) -> Job:
        job = self._jobs.get(name)
        if job is None:
            kept = f"{self.limits.keep_seconds / 60:g} minutes at most"
            raise Refusal(404, f"there is no such job; results are kept for {kept}")
        return job

    def forget(self, job: Job) -> None:
        """Stop it if it runs, and remove all there is of it."""
        self._jobs.pop(job.id, None)
        if job in self._waiting:
            self._waiting.remove(job)
        if job is self._running and self._attempt is not None:
            self._attempt.cancel()
        job.failure = job.failure or Refusal(404, "the job was given up")
        job.over.set()
        shutil.rmtree(job.folder, ignore_errors=True)

    def position(self, job: Job) -> int | None:
        """How many are before it in the queue; None when it does not wait."""
        return self._waiting.index(job) + (self._running is not None) if job in self._waiting else None

    def expected_seconds(self, job: Job) -> float | None:
        """By the pace of the last job of its kind, if there was one."""
        pace = self._paces.get(job.pace)
        return None if pace is None else pace * job.pixels

    def expires_in(self, job: Job) -> float | None:
        return max(0.0, job.ended + self.limits.keep_seconds - time.monotonic()) if job.ended else None

    def count(self) -> dict[str, int]:
        return {"waiting": len(self._waiting), "running": int(self._running is not None), "jobs": len(self._jobs)}

    async def product(self, job: Job, name: str) -> Path:
        """The file of a finished job, made when it is first asked for; of its input, as soon as there is one."""
        if name not in PRODUCTS and name not in RAW:
            raise Refusal(404, f"there is no {name[:50]!r}; choose one of {', '.join((*PRODUCTS, *RAW))}")
        if job.failure is not None:
            raise job.failure
        if job.state != "done" and not (name == "before.f32" and job.facts and job.state != "arriving"):
            raise Refusal(409, "the job is not done; ask again later")
        path = job.folder / name
        if name in PRODUCTS and not path.exists():
            await self._make(job, name)
        return path

    async def _make(self, job: Job, name: str) -> None:
        task = {"do": "product", "folder": str(job.folder), "facts": job.facts, "name": name}
        try:
            await self._desk.do(task, self.limits.desk_seconds)
        except Refusal:
            self.find(job.id)  # it may have expired meanwhile
            raise
        if job.folder.exists():
            job.n_bytes += (job.folder / name).stat().st_size

    async def _work(self) -> None:
        """Do what waits, one after the other."""
        while True:
            with suppress(WorkerDied, WorkerTimeout):  # the next job will say
                await self._bench.start()
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
        def tell(stage: str) -> None:
            job.stage = stage

        task = job.work | {"folder": str(job.folder), "facts": job.facts}
        try:
            job.facts = await self._bench.do(task, self.limits.job_seconds, tell)
            job.state, job.stage = "done", "done"
            self._paces[job.pace] = job.seconds / max(job.pixels, 1)
            job.n_bytes = sum(file.stat().st_size for file in job.folder.iterdir())
        except Refusal as failure:
            job.failure, job.state, job.stage = failure, "failed", "failed"
        except OSError:
            job.failure, job.state, job.stage = Refusal(404, "the job was given up"), "failed", "failed"
        finally:  # and not later: whoever sees that it is done sees when it expires
            job.ended = time.monotonic()

    async def _tidy(self) -> None:
        """Forget what has expired, and the oldest results when there are too many."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            ended = sorted((job for job in self._jobs.values() if job.ended), key=lambda job: job.ended)
            kept = sum(job.n_bytes for job in ended)
            for job in ended:
                if self.expires_in(job) == 0 or kept > self.limits.keep_bytes:
                    kept -= job.n_bytes
                    self.forget(job)


async def finished(job: Job, gone: Coroutine[Any, Any, None]) -> None:
    """Wait until the job is over, or until nobody waits for it any more."""
    waiting = [asyncio.create_task(job.over.wait()), asyncio.create_task(gone)]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

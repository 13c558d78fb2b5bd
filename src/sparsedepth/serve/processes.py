"""A worker process of the service, for coroutines: its failures are HTTP errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from sparsedepth.process_pool import ProcessPool, WorkerDied, WorkerTimeout
from sparsedepth.serve.limits import HTTPError

START_SECONDS = 60.0
POLL_SECONDS = 0.1


class WorkerProcess:
    """A process that runs one task at a time; a task that lasts too long, or is cancelled, ends with the process."""

    def __init__(self, *, warm: bool = False) -> None:
        self._pool = ProcessPool("sparsedepth.serve.worker:worker_entry", 1, ({"warm": warm}, {}))
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Wait for a process that is ready."""
        await self._in_thread(lambda: self._pool.start(START_SECONDS))

    async def stop(self) -> None:
        """End the process for good, whatever it is doing."""
        await asyncio.to_thread(self._pool.close)

    async def run(self, task: dict[str, Any], seconds: float, report: Callable[[str], None] = lambda _: None) -> Any:
        """Run a task when its turn comes and return its result; an `HTTPError` if it fails or takes too long."""
        async with self._turn:
            try:
                await self.start()
                answer = await self._in_thread(
                    lambda: self._pool.run((task, {}), seconds=seconds, report=lambda header: report(header["stage"]))
                )
            except WorkerTimeout:
                raise HTTPError(
                    503,
                    f"this took longer than {seconds:g} seconds and was stopped; send a smaller map, or ask for less",
                ) from None
            except WorkerDied:
                raise HTTPError(503, "the process that did this ended; it may have run out of memory") from None
        header = answer[0]
        if "status" in header:
            raise HTTPError(header["status"], header["sentence"])
        return header["done"]

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        """Run work on the process in a thread and wait for it; cancellation kills the process."""
        working = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            while not working.done():  # the process may be starting
                self._pool.kill()
                await asyncio.wait([working], timeout=POLL_SECONDS)
            working.exception()
            raise

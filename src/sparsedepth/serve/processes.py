"""A process that runs one task at a time, reports its progress, and can be killed."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

from sparsedepth.serve.limits import HTTPError

START_SECONDS = 60.0


class WorkerProcess:
    """A process that reads tasks and writes answers as lines of JSON; a task that lasts too long is killed."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the process, unless it runs, and wait until it is ready."""
        if self._process is not None and self._process.returncode is None:
            return
        pipe = asyncio.subprocess.PIPE
        command = (sys.executable, "-m", "sparsedepth.serve.worker", *self._arguments)
        creating = asyncio.ensure_future(asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe))
        try:
            process = await asyncio.shield(creating)
        except asyncio.CancelledError:
            self._process = await creating  # `stop` must know of it
            raise
        self._process = process
        async with asyncio.timeout(START_SECONDS):
            await self._answer(process)

    async def stop(self) -> None:
        """End the process, whatever it is doing."""
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()
            if process.stdin is not None:
                process.stdin.close()

    async def run(self, task: dict[str, Any], seconds: float, report: Callable[[str], None] = lambda _: None) -> Any:
        """Run a task when its turn comes and return its result; an `HTTPError` if it fails or takes too long."""
        async with self._turn:
            try:
                await self.start()
                process = self._process
                if process is None:
                    raise EOFError
                async with asyncio.timeout(seconds):
                    return await self._result(process, task, report)
            except TimeoutError:
                await self.stop()
                raise HTTPError(
                    503,
                    f"this took longer than {seconds:g} seconds and was stopped; send a smaller map, or ask for less",
                ) from None
            except asyncio.CancelledError:
                await self.stop()
                raise
            except (EOFError, OSError):
                await self.stop()
                raise HTTPError(503, "the process that did this ended; it may have run out of memory") from None

    async def _result(
        self, process: asyncio.subprocess.Process, task: dict[str, Any], report: Callable[[str], None]
    ) -> Any:
        assert process.stdin is not None
        process.stdin.write(json.dumps(task).encode() + b"\n")
        await process.stdin.drain()
        while True:
            answer = await self._answer(process)
            if "stage" in answer:
                report(answer["stage"])
            elif "status" in answer:
                raise HTTPError(answer["status"], answer["sentence"])
            else:
                return answer["done"]

    async def _answer(self, process: asyncio.subprocess.Process) -> dict[str, Any]:
        assert process.stdout is not None
        line = await process.stdout.readline()
        if not line:
            raise EOFError
        return json.loads(line)

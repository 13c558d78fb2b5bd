"""Worker processes that answer requests, report progress, and can be killed.

Threads of one process wait for each other's Python; processes do not. And what runs in a process of its own can be
stopped at any time, whatever it does. Messages are a header in JSON and named arrays of numbers, so that reading one
runs nothing. Workers end when the process that started them does, however it ends: their standard input ends then.
"""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread, Timer
from typing import IO, Any, cast

from numpy.typing import NDArray

from sparsedepth.messages import Header, Message, decode_message, encode_message
from sparsedepth.vocabulary import InputError

Report = Callable[[Header], None]
Answer = Callable[[Header, dict[str, NDArray[Any]], Report], Message]
"""Answers a request; may report its progress."""


class WorkerDied(Exception):  # noqa: N818 (an event, as subprocess.TimeoutExpired is)
    """The process ended before it had answered: it was killed, or it ran out of memory."""


class WorkerTimeout(Exception):  # noqa: N818
    """The answer took longer than it was allowed to, so that the process was killed."""


def ignore(header: Header) -> None:
    """Take a report of progress, and do nothing."""


class ProcessPool:
    """Workers that answer requests, one at a time each; threads may ask at the same time.

    Parameters
    ----------
    entry : str
        ``"module:function"``. In each worker the function gets the header and the arrays of ``setup`` and returns an
        `Answer`, which is called for every request.
    n_workers : int
        The number of processes.
    setup : Message
        What workers need to know before the first request.
    environment : mapping of str to str
        Environment variables of the workers, besides those of this process.

    Notes
    -----
    A process is started when it is first needed, or by `spawn` and `start`. One that ended is replaced for the next
    request. An `InputError` of the worker is raised here; any other error is a `RuntimeError` that names it.
    """

    def __init__(
        self, entry: str, n_workers: int, setup: Message = ({}, {}), environment: Mapping[str, str] | None = None
    ) -> None:
        self._workers = [_Worker(entry, encode_message("setup", setup), environment or {}) for _ in range(n_workers)]
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)

    def spawn(self) -> None:
        """Start the processes of all idle workers that have none, without waiting for them."""
        with self._all_idle() as idle:
            for worker in idle:
                worker.spawn()

    def start(self, seconds: float | None = None) -> None:
        """Start the processes of all idle workers that have none, and wait until they are ready.

        Parameters
        ----------
        seconds : float, optional
            The time after which a worker that is not ready is killed.
        """
        with self._all_idle() as idle:
            for worker in idle:
                with worker.ended_by_error():
                    worker.spawn()
            for worker in idle:
                with worker.ended_by_error():
                    worker.wait_until_ready(seconds)

    def run(self, request: Message, *, seconds: float | None = None, report: Report = ignore) -> Message:
        """Ask the next idle worker.

        Parameters
        ----------
        request : Message
            The header and the arrays.
        seconds : float, optional
            The time after which the worker is killed.
        report : callable
            Gets the header of every report of progress, in the thread that asks.

        Returns
        -------
        Message
            The header and the arrays of the answer.
        """
        content, worker = encode_message("request", request), self._idle.get()
        try:
            with worker.ended_by_error():
                kind, answer = worker.ask(content, seconds, report)
        finally:
            self._idle.put(worker)
        if kind == "input_error":
            raise InputError(answer[0]["text"])
        if kind == "error":
            raise RuntimeError(answer[0]["text"])
        return answer

    def kill(self) -> None:
        """Kill all workers; requests that were running raise `WorkerDied`, the next ones start them again."""
        for worker in self._workers:
            worker.kill()

    def close(self) -> None:
        """End all workers for good, whatever they are doing; every request from now on raises `WorkerDied`."""
        for worker in self._workers:
            worker.close()
        for worker in [self._idle.get() for _ in self._workers]:
            worker.reap()
            self._idle.put(worker)

    @contextmanager
    def _all_idle(self) -> Iterator[list[_Worker]]:
        """Hold the workers that nobody is asking."""
        idle: list[_Worker] = []
        with suppress(Empty):
            while True:
                idle.append(self._idle.get_nowait())
        try:
            yield idle
        finally:
            for worker in idle:
                self._idle.put(worker)

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Worker:
    """One process, which has the modules of this one but not its program: that may do anything when it is imported.

    Only `kill` and `close` may be called while another thread waits for an answer.
    """

    def __init__(self, entry: str, setup: bytes, environment: Mapping[str, str]) -> None:
        self._program = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            f"from sparsedepth.process_pool import worker_main; worker_main({entry!r})"
        )
        self._setup, self._environment = setup, {**os.environ, **environment}
        self._lock, self._closed = Lock(), False
        self._process: subprocess.Popen[bytes] | None = None
        self._is_set_up = self._is_ready = False

    def spawn(self) -> None:
        """Start the process unless it runs."""
        if self._process is not None and self._process.poll() is not None:
            self.reap()
        with self._lock:
            if self._closed:
                raise WorkerDied
            if self._process is None:
                self._is_set_up = self._is_ready = False
                self._process = subprocess.Popen(
                    [sys.executable, "-c", self._program],
                    env=self._environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    start_new_session=True,  # Ctrl-C goes to the process that asks
                )

    def wait_until_ready(self, seconds: float | None) -> None:
        with self._killed_after(seconds):
            self._send(b"")
            while not self._is_ready:
                self._receive()

    def ask(self, request: bytes, seconds: float | None, report: Report) -> tuple[str, Message]:
        """Send a request, pass its reports on, and return the kind and the content of the answer."""
        if self._process is None:
            self.spawn()
        with self._killed_after(seconds):
            self._send(request)
            while True:
                kind, message = self._receive()
                if kind == "progress":
                    report(message[0])
                elif kind != "ready":
                    return kind, message

    def _send(self, content: bytes) -> None:
        into = cast(IO[bytes], cast(Any, self._process).stdin)
        into.write(content if self._is_set_up else self._setup + content)
        self._is_set_up = True
        into.flush()

    def _receive(self) -> tuple[str, Message]:
        kind, message = decode_message(cast(IO[bytes], cast(Any, self._process).stdout))
        self._is_ready = True
        return kind, message

    @contextmanager
    def _killed_after(self, seconds: float | None) -> Iterator[None]:
        if seconds is None:
            yield
            return
        is_late = Event()
        timer = Timer(seconds, lambda: (is_late.set(), self.kill()))
        timer.start()
        try:
            yield
        except (EOFError, OSError):
            if not is_late.is_set():
                raise
        finally:
            timer.cancel()
            timer.join()  # it has killed the process by now, or never will
        if is_late.is_set():
            raise WorkerTimeout

    @contextmanager
    def ended_by_error(self) -> Iterator[None]:
        """End the process after any error, since it may be halfway through an answer."""
        try:
            yield
        except BaseException as error:
            self.reap()
            if isinstance(error, EOFError | OSError):
                raise WorkerDied from None
            raise

    def kill(self) -> None:
        with self._lock:
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        with self._lock:
            self._closed = True
        self.kill()

    def reap(self) -> None:
        """Kill the process, wait for its end, and close its pipes."""
        self.kill()
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # of a request that nobody reads any more
                    cast(IO[bytes], pipe).close()


def worker_main(entry: str) -> None:
    """Run as a worker: answer the requests on standard input until it ends, or nobody reads the answers."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints does not mix with the answers
    requests: SimpleQueue[Message] = SimpleQueue()
    Thread(target=_listen, args=(requests,), daemon=True).start()

    def send(kind: str, message: Message) -> None:
        answers.write(encode_message(kind, message))
        answers.flush()

    try:
        module, function = entry.split(":")
        answer: Answer = getattr(import_module(module), function)(*requests.get())
        send("ready", ({}, {}))
        while True:
            send(*_attempt(answer, requests.get(), lambda header: send("progress", (header, {}))))
    except BrokenPipeError:
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # without waiting for the thread that listens


def _listen(requests: SimpleQueue[Message]) -> None:
    """Take requests in the background: the end of the asking process ends this one in the middle of its work."""
    with suppress(EOFError):
        while True:
            requests.put(decode_message(sys.stdin.buffer)[1])
    os._exit(0)


def _attempt(answer: Answer, request: Message, report: Report) -> tuple[str, Message]:
    try:
        return "answer", answer(*request, report)
    except BrokenPipeError:
        raise
    except InputError as error:
        return "input_error", ({"text": str(error)}, {})
    except Exception as error:
        return "error", ({"text": f"{type(error).__name__}: {error}"}, {})

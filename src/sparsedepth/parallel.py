"""Worker threads that share the cores without treading on each other: one BLAS thread each."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, Generic, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")
Value = TypeVar("Value")


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _OneBlasThread:
    """Within it, a matrix product uses the thread that calls it and no other; may be entered by many threads at once.

    The limit belongs to the process, so the first one in sets it and the last one out takes it back.
    """

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._libraries: ThreadpoolController | None = None
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._libraries = self._libraries or ThreadpoolController()
                self._limit = self._libraries.limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


one_blas_thread = _OneBlasThread()


def in_threads(work: Callable[[Item], Any], items: Iterable[Item], threads: int) -> None:
    """Do every item."""
    for _ in in_order(work, items, threads):
        pass


def in_order(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """The results in the order of the items, at most two a thread waiting: memory stays bounded."""
    if threads == 1:
        with one_blas_thread:
            yield from map(work, items)
        return
    waiting: deque[Future[Result]] = deque()
    with one_blas_thread, ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) >= 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


class Once(Generic[Value]):
    """A value that is computed when it is first asked for, once, also if several threads ask."""

    def __init__(self, make: Callable[[], Value]) -> None:
        self._make = make
        self._lock = Lock()
        self._made: list[Value] = []

    def __call__(self) -> Value:
        with self._lock:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]

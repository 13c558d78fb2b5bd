"""Threads that share the cores of this process, each with one BLAS thread."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from threading import Lock
from typing import Any, Generic, TypeVar

from threadpoolctl import OpenBLASController, ThreadpoolController

from sparsedepth.checks import positive

Item = TypeVar("Item")
Result = TypeVar("Result")
Value = TypeVar("Value")


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def n_threads(threads: int | None) -> int:
    """Check a number of threads; None = all cores."""
    return cores() if threads is None else positive("threads", threads)


class SharedContext:
    """A context that belongs to the process, for any number of threads: the first one enters it, the last one leaves.

    Parameters
    ----------
    make : callable
        Returns the context manager; called each time that the first thread enters.

    Examples
    --------
    >>> from contextlib import contextmanager
    >>> @SharedContext
    ... @contextmanager
    ... def heated():
    ...     print("on")
    ...     yield
    ...     print("off")
    >>> with heated, heated:
    ...     print("warm")
    on
    warm
    off
    """

    def __init__(self, make: Callable[[], AbstractContextManager[Any]]) -> None:
        self._make = make
        self._lock, self._n_inside = Lock(), 0
        self._entered: AbstractContextManager[Any] = nullcontext()

    def __enter__(self) -> None:
        with self._lock:
            if self._n_inside == 0:
                self._entered = self._make()
                self._entered.__enter__()
            self._n_inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._entered.__exit__(None, None, None)


@SharedContext
@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let matrix products use the thread that calls them and no other."""
    _let_any_thread_set_limits()
    limit = _blas_libraries(len(sys.modules)).limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        _let_any_thread_set_limits()
        limit.restore_original_limits()
        _let_any_thread_set_limits()


@lru_cache(maxsize=1)
def _blas_libraries(n_modules: int) -> ThreadpoolController:
    """Find the libraries of this process; to look for them takes two milliseconds, so only after further imports."""
    del n_modules
    return ThreadpoolController()


def _let_any_thread_set_limits() -> None:
    """Undo that, since threadpoolctl 3.8, limits are ignored unless the thread sets them that was first to do so."""
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


def run_in_threads(work: Callable[[Item], Any], items: Iterable[Item], threads: int) -> None:
    """Apply a function to every item, for its effect."""
    for _ in map_in_threads(work, items, threads):
        pass


def map_in_threads(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """Yield the results of a function in the order of the items, which several threads work on.

    At most two items for each thread are taken ahead, so that memory stays bounded.
    """
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

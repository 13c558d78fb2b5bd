"""Threads that share the tasks of a match: never more at work than asked for, however tasks are nested.

A task may have tasks of its own. They are offered to the threads of the same team. A thread that would wait for another
one works on what is offered meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from threading import Condition, Thread, local
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")

BANDS_PER_THREAD = 4
"""Bands of rows that a thread works on one after another, so that threads end at about the same time."""
_here = local()


class _Job:
    """A call that any thread of a team may make."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self.done = False
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._work()
        except BaseException as failure:  # raised again by the thread that waits for it
            self.failure = failure


class _Team:
    """Threads with a list of offered jobs."""

    def __init__(self) -> None:
        self._offered: deque[_Job] = deque()
        self._change = Condition()
        self._closed = False

    def share(self, work: Callable[[], None], helpers: int) -> None:
        """Call a function here and in as many other threads as are free, at most so many."""
        jobs = [_Job(work) for _ in range(helpers)]
        with self._change:
            self._offered.extend(jobs)
            self._change.notify_all()
        try:
            work()
        finally:
            for job in jobs:
                self._finish(job)
        for job in jobs:
            if job.failure is not None:
                raise job.failure

    def serve(self) -> None:
        """Run jobs until the team is closed."""
        _here.team = self
        while (job := self._next(None)) is not None:
            self._run(job)

    def close(self) -> None:
        """Let the threads end."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def _finish(self, job: _Job) -> None:
        """Withdraw a job that nobody began, or run others until it is done."""
        with self._change:
            if job in self._offered:
                self._offered.remove(job)
                return
        while (other := self._next(job)) is not None:
            self._run(other)

    def _next(self, awaited: _Job | None) -> _Job | None:
        """Wait for a job to run; None = the awaited one is done, or the team is closed."""
        with self._change:
            while True:
                if self._closed if awaited is None else awaited.done:
                    return None
                if self._offered:
                    return self._offered.popleft()
                self._change.wait()

    def _run(self, job: _Job) -> None:
        job.run()
        with self._change:
            job.done = True
            self._change.notify_all()


@contextmanager
def team(threads: int) -> Iterator[None]:
    """Keep threads for every `at_once` of a block; inside another such block, that one's threads are used."""
    if threads < 2 or getattr(_here, "team", None) is not None:
        yield
        return
    mine = _Team()
    helpers = [Thread(target=mine.serve, name="sparsedepth-match", daemon=True) for _ in range(threads - 1)]
    for helper in helpers:
        helper.start()
    _here.team = mine
    try:
        yield
    finally:
        _here.team = None
        mine.close()
        for helper in helpers:
            helper.join()


def at_once(tasks: Iterable[Callable[[], Result]], threads: int = 1) -> list[Result]:
    """Call functions in threads, of which the calling one is the first; return their results in order."""
    waiting = deque(enumerate(tasks))
    results: list[Any] = [None] * len(waiting)

    def work() -> None:
        while waiting:
            try:
                number, task = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            try:
                results[number] = task()
            except BaseException:
                waiting.clear()
                raise

    helpers = min(threads, len(waiting)) - 1
    if helpers < 1:
        work()
        return results
    with team(threads):
        _here.team.share(work, helpers)
    return results


def in_bands(work: Callable[[int, int], Any], n_rows: int, threads: int = 1) -> None:
    """Call a function with the first row of each band and the first behind it, in threads."""
    n_bands = 1 if threads == 1 else threads * BANDS_PER_THREAD
    edges = np.linspace(0, n_rows, n_bands + 1).astype(int).tolist()
    at_once([partial(work, *ends) for ends in pairwise(edges)], threads)

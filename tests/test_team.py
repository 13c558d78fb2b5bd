"""Laws of the threads that share the tasks of a match."""

from __future__ import annotations

import threading
import time
from functools import partial

import pytest

from sparsedepth.stereo.team import at_once, in_bands, team


class Busy:
    """Counts how many threads are inside at the same time, at most."""

    def __init__(self) -> None:
        self.lock, self.inside, self.most = threading.Lock(), set(), 0

    def work(self) -> None:
        with self.lock:
            self.inside.add(threading.get_ident())
            self.most = max(self.most, len(self.inside))
        time.sleep(0.002)
        with self.lock:
            self.inside.discard(threading.get_ident())


def helpers() -> int:
    return sum(thread.name == "sparsedepth-match" for thread in threading.enumerate())


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_nested_tasks_take_no_more_threads_than_asked_for(threads):
    busy = Busy()

    def outer() -> list[None]:
        return at_once([busy.work] * 6, threads)

    with team(threads):
        at_once([outer] * 4, threads)
        assert busy.most == threads
        assert helpers() == threads - 1
    assert helpers() == 0
    at_once([outer] * 4, threads)
    assert busy.most == threads


def test_a_thread_that_waits_works_on_what_the_others_offer():
    """One task is short, the other has many parts: both threads work on these."""
    workers = set()

    def part() -> None:
        workers.add(threading.get_ident())
        time.sleep(0.002)

    at_once([lambda: None, lambda: at_once([part] * 20, 2)], 2)
    assert len(workers) == 2


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("failing", [0, 3, 7])
def test_a_failure_in_a_nested_task_is_raised_and_leaves_no_thread(threads, failing):
    def inner(number: int) -> int:
        if number == failing:
            raise LookupError(number)
        return number

    def outer(first: int) -> list[int]:
        return at_once([partial(inner, first + number) for number in range(4)], threads)

    with pytest.raises(LookupError, match=str(failing)):
        at_once([partial(outer, first) for first in (0, 4)], threads)
    assert helpers() == 0
    assert at_once([partial(inner, 8), partial(inner, 9)], threads) == [8, 9]


def test_nothing_new_begins_after_a_failure():
    begun = []

    def task(number: int) -> None:
        begun.append(number)
        raise LookupError

    with pytest.raises(LookupError):
        at_once([partial(task, number) for number in range(50)], 2)
    assert len(begun) <= 2


def test_callers_in_several_threads_have_teams_of_their_own():
    results = {}

    def caller(number: int) -> None:
        results[number] = at_once([partial(pow, number, power) for power in range(5)], 2)

    callers = [threading.Thread(target=caller, args=(number,)) for number in range(6)]
    for each in callers:
        each.start()
    for each in callers:
        each.join(timeout=30)
    assert results == {number: [number**power for power in range(5)] for number in range(6)}


@pytest.mark.parametrize(("rows", "threads"), [(1, 1), (1, 3), (7, 2), (100, 3)])
def test_bands_cover_all_rows_once(rows, threads):
    seen, lock = [], threading.Lock()

    def work(begin: int, end: int) -> None:
        with lock:
            seen.extend(range(begin, end))

    in_bands(work, rows, threads)
    assert sorted(seen) == list(range(rows))

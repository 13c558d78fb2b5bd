"""Worker threads, and values that they share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import sleep

import pytest

from sparsedepth.parallel import Once


def test_a_value_is_computed_when_it_is_first_asked_for_and_only_then():
    calls = []
    once = Once(lambda: calls.append(0) or len(calls))
    assert calls == []
    assert [once(), once(), once()] == [1, 1, 1]
    assert len(calls) == 1


def ask_together(n: int) -> tuple[list[int], list[object]]:
    """Ask for a value from several threads at the same time; return the computations, and what each thread got."""
    calls, together = [], Barrier(n)

    def make() -> object:
        calls.append(0)
        sleep(0.001)
        return object()

    once = Once(make)

    def ask(_: int) -> object:
        together.wait()
        return once()

    with ThreadPoolExecutor(n) as pool:
        return calls, list(pool.map(ask, range(n)))


def test_a_value_is_computed_once_also_if_many_threads_ask_at_the_same_time():
    for _ in range(20):
        calls, found = ask_together(8)
        assert len(calls) == 1
        assert all(each is found[0] for each in found)


def test_none_is_a_value_like_any_other():
    calls = []
    once = Once(lambda: calls.append(0))
    assert once() is None
    assert once() is None
    assert len(calls) == 1


def test_a_value_that_could_not_be_computed_is_tried_again():
    results = iter([ZeroDivisionError("first"), 7])

    def make() -> int:
        found = next(results)
        if isinstance(found, Exception):
            raise found
        return found

    once = Once(make)
    with pytest.raises(ZeroDivisionError, match="first"):
        once()
    assert once() == 7

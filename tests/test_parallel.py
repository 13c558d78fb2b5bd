"""Threads that share one process: contexts entered by many, results in order."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from sparsedepth.parallel import SharedContext, map_in_threads, one_blas_thread


def test_the_first_enters_and_the_last_leaves():
    events, inside = [], 0

    @SharedContext
    @contextmanager
    def counted():
        events.append("enter")
        yield
        events.append("leave")

    def visit(number):
        nonlocal inside
        with counted:
            inside += 1
            assert events.count("enter") == events.count("leave") + 1
            time.sleep(0.001 * (number % 3))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(visit, range(200)))
    assert inside == 200
    assert events == ["enter", "leave"] * (len(events) // 2)


def test_a_context_is_left_when_its_thread_fails():
    open_contexts = []

    @SharedContext
    @contextmanager
    def held():
        open_contexts.append(1)
        try:
            yield
        finally:
            open_contexts.pop()

    with pytest.raises(ZeroDivisionError), held, held:
        raise ZeroDivisionError
    assert not open_contexts


def test_a_context_that_cannot_be_entered_is_tried_again():
    attempts = []

    @SharedContext
    @contextmanager
    def fails_once():
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError
        yield

    with pytest.raises(OSError), fails_once:
        pass
    with fails_once:
        assert len(attempts) == 2


@pytest.mark.parametrize("threads", [1, 3])
def test_results_come_in_order_and_few_items_are_taken_ahead(threads):
    taken = []
    lock = threading.Lock()

    def items():
        for number in range(50):
            taken.append(number)
            yield number

    def work(number):
        time.sleep(0.002 * (number % 4))
        with lock:
            return number**2

    for number, result in enumerate(map_in_threads(work, items(), threads)):
        assert result == number**2
        assert len(taken) <= number + 1 + 2 * threads


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_any_thread_may_limit_blas_and_any_other_give_it_back():
    with threadpool_limits(limits=2, user_api="blas"):
        first, second = threading.Event(), threading.Event()

        def enters_first():
            with one_blas_thread:
                first.set()
                assert second.wait(10)

        def leaves_last():
            assert first.wait(10)
            with one_blas_thread:
                second.set()
                entering.result(10)
                return blas_threads()

        for _ in range(3):
            with one_blas_thread:
                assert blas_threads() == {1}
            first.clear()
            second.clear()
            with ThreadPoolExecutor(2) as pool:
                entering = pool.submit(enters_first)
                assert pool.submit(leaves_last).result(10) == {1}
            assert blas_threads() == {2}

"""Worker processes: they answer, they fail alone, they can be killed, and none outlives the one that asks."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest

from sparsedepth import InputError
from sparsedepth.process_pool import ProcessPool, WorkerDied, WorkerTimeout

ENTRY = f"{__name__}:entry"


def entry(setup, arrays):
    """What the workers of these tests do."""

    def answer(header, given, report):
        for step in range(header.get("steps", 0)):
            report({"step": step})
        time.sleep(header.get("sleep", 0))
        print("words that are no answer")
        if "refuse" in header:
            raise InputError(header["refuse"])
        if "fail" in header:
            raise KeyError(header["fail"])
        if "exit" in header:
            os._exit(3)
        return {"said": header, "setup": setup, "pid": os.getpid(), "mode": os.environ.get("MODE")}, {**arrays, **given}

    return answer


@pytest.fixture(scope="module")
def pool():
    with ProcessPool(ENTRY, 1, ({"name": "one"}, {"atoms": np.eye(3)}), {"MODE": "quiet"}) as running:
        yield running


ARRAYS = {
    "floats": np.random.default_rng(0).normal(size=(3, 4)),
    "many": np.zeros((300, 400), np.float32),
    "turned": np.arange(6, dtype=np.uint8).reshape(2, 3).T,
    "foreign": np.arange(3, dtype=">i2"),
    "empty": np.empty((0, 3)),
    "single": np.array(2.5),
    "mask": np.array([True, False]),
}


def test_messages_arrive_as_they_were_sent(pool):
    header, arrays = pool.run(({"text": "grün", "numbers": [1, 2.5, None]}, ARRAYS))
    assert header["said"] == {"text": "grün", "numbers": [1, 2.5, None]}
    assert header["setup"] == {"name": "one"}
    assert header["mode"] == "quiet"
    np.testing.assert_array_equal(arrays.pop("atoms"), np.eye(3))
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)


def test_objects_are_not_sent(pool):
    with pytest.raises(TypeError, match="objects"):
        pool.run(({}, {"array": np.array([{}])}))


def test_reports_come_in_order_before_the_answer(pool):
    reports = []
    pool.run(({"steps": 3}, {}), report=reports.append)
    assert reports == [{"step": 0}, {"step": 1}, {"step": 2}]


def test_errors_are_raised_here_and_the_worker_goes_on(pool):
    pid = pool.run(({}, {}))[0]["pid"]
    with pytest.raises(InputError, match="no such map"):
        pool.run(({"refuse": "no such map"}, {}))
    with pytest.raises(RuntimeError, match="KeyError: 'x'"):
        pool.run(({"fail": "x"}, {}))
    assert pool.run(({}, {}))[0]["pid"] == pid


@pytest.mark.slow
def test_a_request_that_takes_too_long_ends_with_its_worker(pool):
    pid = pool.run(({}, {}))[0]["pid"]
    began = time.monotonic()
    with pytest.raises(WorkerTimeout):
        pool.run(({"sleep": 60}, {}), seconds=0.2)
    assert time.monotonic() - began < 10
    assert not psutil.pid_exists(pid)
    assert pool.run(({}, {}), seconds=60)[0]["pid"] != pid


@pytest.mark.slow
def test_a_worker_that_ends_is_replaced(pool):
    with pytest.raises(WorkerDied):
        pool.run(({"exit": True}, {}))
    pid = pool.run(({}, {}))[0]["pid"]
    psutil.Process(pid).kill()
    pool_starts_another(pool, pid)


def pool_starts_another(pool, pid):
    deadline = time.monotonic() + 10
    while psutil.pid_exists(pid) and time.monotonic() < deadline:
        pool.start(60)
    assert pool.run(({}, {}))[0]["pid"] != pid


def test_a_failure_while_reporting_ends_the_answer(pool):
    def fails(header):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        pool.run(({"steps": 1}, {}), report=fails)
    assert pool.run(({"text": "next"}, {}))[0]["said"] == {"text": "next"}


@pytest.mark.slow
def test_kill_ends_what_runs_and_the_next_request_is_answered(pool):
    pool.start(60)
    killer = threading.Timer(0.3, pool.kill)
    killer.start()
    with pytest.raises(WorkerDied):
        pool.run(({"sleep": 60}, {}))
    killer.join()
    assert pool.run(({"text": "next"}, {}))[0]["said"] == {"text": "next"}


@pytest.mark.slow
def test_close_ends_what_runs_and_starts_nothing_more():
    pool = ProcessPool(ENTRY, 2)
    pool.start(60)
    pids = {child.pid for child in psutil.Process().children()}
    with ThreadPoolExecutor(1) as asking:
        running = asking.submit(pool.run, ({"sleep": 60}, {}))
        time.sleep(0.2)
        pool.close()
        with pytest.raises(WorkerDied):
            running.result(10)
    assert sum(psutil.pid_exists(pid) for pid in pids) <= len(pids) - 2
    with pytest.raises(WorkerDied):
        pool.run(({}, {}))


@pytest.mark.slow
def test_workers_work_at_the_same_time():
    with ProcessPool(ENTRY, 2) as pool, ThreadPoolExecutor(4) as asking:
        answers = list(asking.map(lambda k: pool.run(({"k": k, "sleep": 0.2}, {}))[0], range(6)))
    assert [answer["said"]["k"] for answer in answers] == list(range(6))
    assert len({answer["pid"] for answer in answers}) == 2


def test_an_entry_that_fails_is_a_dead_worker(capfd):
    with ProcessPool("sparsedepth.process_pool:no_such_function", 1) as pool, pytest.raises(WorkerDied):
        pool.run(({}, {}))
    assert "no_such_function" in capfd.readouterr().err

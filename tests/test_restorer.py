"""Streams: a frame's result is that of `denoise`, whatever came before it and however many are done at once."""

from __future__ import annotations

import itertools
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
import psutil
import pytest

from sparsedepth import InputError, Origin, Restorer, denoise, inpaint
from sparsedepth.restore import Settings
from sparsedepth.sensors import PowerLaw, Sensor

pytestmark = pytest.mark.slow


def frames(n: int | None = None):
    """A step that moves through a slant, with outliers and holes."""
    for number in itertools.count() if n is None else range(n):
        rng = np.random.default_rng(number)
        depth = np.add.outer(0.01 * np.arange(26), 0.02 * np.arange(30)) + (np.arange(30) > 8 + number % 12)
        depth += np.where(rng.random(depth.shape) < 0.03, rng.normal(0, 1, depth.shape), 0)
        depth[rng.random(depth.shape) < 0.04] = np.nan
        yield depth.astype(np.float32)


def same(one, other):
    for name in ("depth", "variance", "origin"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("method", ["calibrated", "paper"])
def test_a_stream_gives_what_each_frame_would_give_alone(method):
    restorer = Restorer(quality="fast", method=method)
    for threads in (1, 2):
        results = list(restorer.each(frames(5), threads=threads))
        assert len(results) == 5
        for frame, result in zip(frames(5), results, strict=True):
            same(result, denoise(frame, quality="fast", method=method, threads=1))


def test_processes_give_the_same():
    several = [{"invalid": [0.5, 1.0]}, {"holes": "all"}, {"correct": False}, {"method": "paper"}]
    several += [{"sensor": "clean"}, {"sensor": Sensor(noise=PowerLaw(0.01))}, {"fill": "background"}]
    for options in several:
        restorer = Restorer(quality="fast", **options)
        for one, other in zip(restorer.each(frames(3), processes=2), restorer.each(frames(3), threads=1), strict=True):
            same(one, other)


def test_a_masked_array_is_restored_in_this_process():
    restorer, frame = Restorer(quality="fast", method="paper"), next(frames())
    masked = np.ma.masked_array(frame, frame > 1)
    (result,) = restorer.each([masked], processes=1)
    same(result, restorer(masked))
    with pytest.raises(InputError, match="real numbers"):
        list(restorer.each([frame.astype(complex)], processes=1))


def test_an_error_in_a_process_is_that_of_the_frame():
    results = Restorer(quality="fast").each(iter([next(frames()), np.zeros(3)]), processes=1)
    next(results)
    with pytest.raises(InputError, match="shape"):
        next(results)


def test_a_process_that_dies_is_replaced():
    restorer, frame = Restorer(quality="fast"), next(frames())
    others = set(psutil.Process().children())
    with restorer.in_processes(1) as pool:
        (worker,) = set(psutil.Process().children()) - others
        worker.kill()
        with pytest.raises(MemoryError, match="died"):
            pool(frame)
        same(pool(frame), restorer(frame))


ABANDONS = """
import os, signal
import psutil
from sparsedepth import Restorer
pool = Restorer(quality="fast").in_processes(1)
print(psutil.Process().children()[0].pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is killed like this on Windows")
def test_processes_end_with_the_one_that_started_them():
    done = subprocess.run([sys.executable, "-c", ABANDONS], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    pid = int(done.stdout)
    for _ in range(300):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.1)
    pytest.fail("it still waits")


def test_options_hold_for_every_frame():
    frame = next(frames())
    same(Restorer("default", "fast", correct=False)(frame), inpaint(frame, quality="fast"))
    variance = np.full(frame.shape, 0.01)
    same(Restorer(quality="fast")(frame, variance=variance), denoise(frame, quality="fast", variance=variance))


def test_an_endless_stream_is_read_as_it_is_needed():
    taken = []
    endless = (taken.append(0) or frame for frame in frames())
    results = Restorer(quality="fast", method="paper").each(endless, threads=2)
    for number in range(1, 4):
        next(results)
        assert len(taken) <= number + 4


def test_a_restorer_can_be_pickled():
    restorer = Restorer(quality="fast", method="paper")
    frame = next(frames())
    same(pickle.loads(pickle.dumps(restorer))(frame), restorer(frame))


def test_settings_replace_thresholds():
    frame = next(frames())
    plain, cautious = Restorer(quality="fast"), Restorer(quality="fast", settings=cautious_settings())
    assert (plain(frame).origin == Origin.CORRECTED).any()
    assert not (cautious(frame).origin == Origin.CORRECTED).any()
    same(pickle.loads(pickle.dumps(cautious))(frame), cautious(frame))
    (streamed,) = cautious.each([frame], threads=2)
    same(streamed, cautious(frame))


def test_processes_have_the_default_settings():
    with pytest.raises(InputError, match="use threads"):
        next(Restorer(quality="fast", settings=cautious_settings()).each(frames(1), processes=1))


def cautious_settings() -> Settings:
    """Return settings by which a map has too few outliers to be corrected."""
    return replace(Settings(), outliers=replace(Settings().outliers, min_count=np.inf))


def test_invalid_options_are_refused_before_the_first_frame():
    impossible: list[dict[str, Any]] = [{"quality": "quick"}, {"method": "magic"}, {"dictionary": "none such"}]
    impossible.append({"dictionary": 3})
    for options in impossible:
        with pytest.raises(InputError):
            Restorer(**options)

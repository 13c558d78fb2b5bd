"""Many clients at once: whoever is not served is told so, /healthz stays quick, memory stays bounded."""

from __future__ import annotations

import runpy
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
import pytest

from running_service import command_line, png, scene

pytestmark = pytest.mark.service

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "serving.py"
TOKEN = "sesame"
SECONDS = 1.5


@pytest.fixture(scope="module")
def commanded() -> Iterator[tuple[Any, str]]:
    with command_line("--token", TOKEN) as (process, url):
        yield process, url


@pytest.mark.parametrize("clients", [1, 8, 64])
def test_under_load(commanded, clients):
    process, url = commanded
    measure = runpy.run_path(str(BENCHMARK))["measure"]
    load = measure(psutil.Process(process.pid), url, clients, SECONDS, png(scene()), TOKEN)
    assert load.failures == []
    assert set(load.statuses) <= {200, 202, 204, 429, 503}
    assert load.jobs > 0
    assert np.percentile(load.health, 90) < load.seconds / load.jobs, "/healthz does not wait for jobs"
    assert load.megabytes < 1500


def test_the_command_asks_for_its_token_and_ends_when_it_is_stopped(commanded):
    process, url = commanded
    assert httpx.get(f"{url}/healthz").json()["status"] == "ok"
    assert httpx.get(f"{url}/v1/about").status_code == 401
    children = psutil.Process(process.pid).children()
    assert len(children) == 2
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    _, alive = psutil.wait_procs(children, timeout=5)
    assert not alive

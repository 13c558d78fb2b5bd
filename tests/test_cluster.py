"""A real scheduler and real worker processes on loopback: the same bytes as without them, also when one is killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import sparsedepth
from sparsedepth import Dictionary, InputError
from sparsedepth.cli.batch import journal
from sparsedepth.cluster import connect
from sparsedepth.files import write_array

pytest.importorskip("distributed", reason="clusters need the extra [cluster]")
pytestmark = pytest.mark.cluster
QUICK = ("--quality", "fast", "--method", "paper", "--profile", "mm")
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass
class Cluster:
    """Processes that work for one scheduler."""

    folder: Path
    scheduler: subprocess.Popen = field(init=False)
    workers: list[subprocess.Popen] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._file = self.folder / "scheduler.json"
        here = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        self.scheduler = self._start("scheduler", *here, "--scheduler-file", str(self._file))
        wait_until(self._is_written, self.scheduler)
        self.address = json.loads(self._file.read_text())["address"]

    def _is_written(self) -> bool:
        """The scheduler opens its file before it writes: for a moment there is nothing in it."""
        return self._file.exists() and self._file.read_text().rstrip().endswith("}")

    def hire(self) -> None:
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self.folder))
        self.workers.append(self._start("worker", self.address, *options))

    def kill_one(self) -> None:
        victim = self.workers.pop()
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def _start(self, what: str, *options: str) -> subprocess.Popen:
        words = [sys.executable, "-m", f"distributed.cli.dask_{what}", *options]
        log = open(self.folder / f"{what}{len(self.workers)}.log", "w")  # noqa: SIM115 (the process keeps it)
        with log:
            return subprocess.Popen(words, stdout=log, stderr=log, env=ONE_THREAD)


def wait_until(condition: Callable[[], bool], process: subprocess.Popen, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition(), "it did not come to pass"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        running.hire()
        yield running
    finally:
        running.end()


@pytest.fixture(autouse=True)
def two_workers(cluster):
    while len(cluster.workers) < 2:
        cluster.hire()


def begin(*arguments: object) -> subprocess.Popen:
    words = [sys.executable, "-m", "sparsedepth", *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ONE_THREAD)


def ended(process: subprocess.Popen) -> str:
    out, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    return out


def results(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != journal.NAME}


def test_a_folder_while_a_worker_is_killed(cluster, tmp_path):
    (tmp_path / "in").mkdir()
    for index in range(40):
        depth = 1000 + np.add.outer(np.arange(60.0), 3 * np.arange(80.0)) + 400 * (np.arange(80) > 20 + index % 40)
        depth[np.random.default_rng(index).random(depth.shape) < 0.05] = 0
        write_array(tmp_path / f"in/{index:02d}.png", depth.astype(np.uint16))
    (tmp_path / "in/bad.png").write_bytes(b"no map")
    out, straight = tmp_path / "out", tmp_path / "straight"
    process = begin("denoise", tmp_path / "in", "-o", out, *QUICK, "--cluster", cluster.address, "--json")
    wait_until(lambda: out.exists() and len(os.listdir(out)) > 8, process)
    cluster.kill_one()
    told, said = process.communicate(timeout=120)
    assert process.returncode == 1, said
    assert json.loads(told)["failed"] == 1
    assert "bad.png" in said
    begin("denoise", tmp_path / "in", "-o", straight, *QUICK).communicate(timeout=120)
    assert len(results(out)) == 40
    assert results(out) == results(straight)
    lines = [json.loads(line) for line in (out / journal.NAME).read_text().splitlines() if line]
    finished = [line["output"] for line in lines if "files" in line]
    assert len(finished) == len(set(finished)) == 40, "nothing is lost, nothing is done twice"


def test_warnings_come_back(cluster, tmp_path):
    depth = 1000 + np.add.outer(np.arange(60.0), 3 * np.arange(80.0))
    depth[::9, ::9] = 65535
    write_array(tmp_path / "coded.png", depth.astype(np.uint16))
    common = ("inpaint", tmp_path / "coded.png", *QUICK, "--profile", "mm", "--cluster", cluster.address, "--json")
    facts = json.loads(ended(begin(*common, "-o", tmp_path / "out.png")))
    assert "65535" in facts["files"][0]["warnings"][0]
    process = begin(*common, "-o", tmp_path / "strict.png", "--strict")
    assert "65535" in process.communicate(timeout=120)[1]
    assert process.returncode == 1


def test_a_dictionary_while_a_worker_is_killed(cluster, tmp_path):
    y, x = np.mgrid[:60, :80]
    np.save(tmp_path / "map.npy", (5 + 0.02 * x + 2 * (x + y > 60) + (y > 40)).astype(np.float32))
    common = ("learn", tmp_path / "map.npy", "--patch", 6, "--atoms", 40, "--steps", 60, "--batch", 300)
    here, there = tmp_path / "here.safetensors", tmp_path / "there.safetensors"
    checkpoint = Path(f"{there}.checkpoint")
    process = begin(*common, "-o", there, "--cluster", cluster.address, "--checkpoint-every", 0)
    wait_until(checkpoint.exists, process)
    cluster.kill_one()
    ended(process)
    ended(begin(*common, "-o", here))
    one, other = Dictionary.load(here), Dictionary.load(there)
    np.testing.assert_array_equal(one.atoms, other.atoms)
    assert one.about["held_out_energy"] == other.about["held_out_energy"]


def test_what_is_missing_is_said(cluster, monkeypatch):
    with pytest.raises(InputError, match=r"install one everywhere"):
        connect(cluster.address, "0.0")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(InputError, match=r"no scheduler answers.*dask scheduler"):
        connect(nobody, sparsedepth.__version__, patience=0.5)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"sparsedepth\[cluster\]"):
        connect(cluster.address, sparsedepth.__version__)

"""Measure the service under load, and how soon the page shows something. Writes docs/results/serving.md.

Clients upload maps, follow their jobs and download the results, as fast as they may. Meanwhile another process asks for
/healthz. The memory is that of the server and its processes.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
from PIL import Image

from sparsedepth.markdown import machine, table, write_made_part

QUALITY = "fast"
CHROMIUM_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
                  "--disable-component-update", "--disable-sync", "--no-first-run")  # fmt: skip


@dataclass
class Load:
    """The measurements of one number of clients."""

    clients: int
    seconds: float
    statuses: Counter[int] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    jobs: int = 0
    health: list[float] = field(default_factory=list)
    """Seconds of each answer of /healthz."""
    megabytes: float = 0.0
    """At most."""

    def row(self) -> list[str]:
        spread = [f"{1000 * np.percentile(self.health, share):.0f}" for share in (50, 99, 100)]
        return [str(self.clients), f"{self.jobs}", f"{self.jobs / self.seconds:.2f}", str(self.statuses[429]),
                str(len(self.failures)), *spread, f"{self.megabytes:.0f}"]  # fmt: skip


HEAD = ["clients", "jobs done", "a second", "429", "other errors", "/healthz median, ms", "99 %, ms", "longest, ms",
        "memory, MB"]  # fmt: skip


@contextmanager
def running(*options: str) -> Iterator[tuple[psutil.Process, str]]:
    """Run `sparsedepth serve` in a process of its own; return its address."""
    command = [sys.executable, "-m", "sparsedepth", "serve", "--port", "0", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        if not said.startswith("serving at"):
            raise RuntimeError(f"the service did not start: {said}{process.stderr.read()}")
        yield psutil.Process(process.pid), said.split()[2].rstrip("/")
    finally:
        process.terminate()
        process.communicate(timeout=30)


def noisy_map(height: int, width: int, seed: int = 0) -> bytes:
    """Build a synthetic room in millimetres, as PNG: slants, boxes, 2 % outliers, 5 % missing."""
    rng = np.random.default_rng(seed)
    depth = np.add.outer(np.linspace(1200, 2400, height), np.linspace(0, 600, width))
    for _ in range(12):
        top, left = rng.integers(0, height), rng.integers(0, width)
        depth[top : top + height // 5, left : left + width // 6] -= rng.uniform(100, 500)
    depth += np.where(rng.random(depth.shape) < 0.02, rng.normal(0, 400, depth.shape), rng.normal(0, 2, depth.shape))
    depth[rng.random(depth.shape) < 0.05] = 0
    content = io.BytesIO()
    Image.fromarray(np.clip(depth, 0, 65535).astype(np.uint16)).save(content, "png")
    return content.getvalue()


def measure(server: psutil.Process, url: str, clients: int, seconds: float, upload: bytes, token: str = "") -> Load:
    """Let some clients work for some seconds."""
    load = Load(clients, seconds)
    over = threading.Event()
    memory = threading.Thread(target=_watch_memory, args=(server, load, over))
    memory.start()
    place = httpx.URL(url)
    command = [sys.executable, Path(__file__).with_name("health_probe.py"), place.host, str(place.port), str(seconds)]
    probe = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    asyncio.run(_all_clients(url, load, upload, token))
    said, _ = probe.communicate(timeout=60)
    over.set()
    memory.join()
    load.health = json.loads(said)
    return load


def _watch_memory(server: psutil.Process, load: Load, over: threading.Event) -> None:
    while not over.wait(0.1):
        total = 0
        for process in (server, *server.children(recursive=True)):
            try:
                total += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        load.megabytes = max(load.megabytes, total / 1e6)


async def _all_clients(url: str, load: Load, upload: bytes, token: str) -> None:
    began = time.monotonic()
    known = {"authorization": f"Bearer {token}"} if token else {}
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits, headers=known) as client:
        await asyncio.gather(*(_client(client, load, upload, began + load.seconds) for _ in range(load.clients)))
    load.seconds = time.monotonic() - began


async def _client(client: httpx.AsyncClient, load: Load, upload: bytes, end: float) -> None:
    """Upload, follow, download; when there is no room, try again a little later. One job at least is waited for."""

    async def ask(method: str, path: str, **options: Any) -> httpx.Response:
        answer = await client.request(method, path, **options)
        load.statuses[answer.status_code] += 1
        if answer.status_code >= 400 and answer.status_code not in (429, 503):
            load.failures.append(f"{path}: {answer.status_code} {answer.text}")
        return answer

    while time.monotonic() < end:
        try:
            files, options = {"depth": ("a.png", upload)}, {"quality": QUALITY}
            answer = await ask("POST", "/v1/denoise", files=files, data=options)
            if answer.status_code != 202:
                await asyncio.sleep(0.3)
                continue
            links = answer.json()["links"]
            state, seen = "waiting", {}
            while state in ("waiting", "running") and (time.monotonic() < end or not load.jobs):
                await asyncio.sleep(0.2)
                seen = (await ask("GET", links["self"])).json()
                state = seen["state"]
            if state == "done":
                load.jobs += (await ask("GET", links["self"] + "/result.npz")).status_code == 200
            elif state == "failed":
                load.failures.append(f"{links['self']}: failed: {seen}")
            await ask("DELETE", links["self"])
        except httpx.HTTPError as error:
            load.failures.append(repr(error))


def first_pictures(server: psutil.Process, url: str, upload: Path, times: int) -> list[tuple[float, ...]]:
    """Measure seconds from the choice of a file to both pictures; CPU seconds of the service."""
    from playwright.sync_api import sync_playwright

    found = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=list(CHROMIUM_FLAGS))
        for _ in range(times):
            page = browser.new_page()
            page.goto(url)
            page.wait_for_selector("body[data-plots=drawn]", timeout=120_000)  # the example of a first visit
            page.select_option("#quality", QUALITY)
            before = _cpu(server)
            page.set_input_files("#files", upload)
            page.wait_for_selector("body[data-state=sending]")
            page.wait_for_selector("body[data-plots=drawn]", timeout=120_000)
            marks = page.evaluate(
                "Object.fromEntries(performance.getEntriesByType('mark').map((mark) => [mark.name, mark.startTime]))"
            )
            shown = ((marks[name] - marks["asked"]) / 1000 for name in ("input shown", "result shown"))
            found.append((*shown, _cpu(server) - before))
            page.close()
        browser.close()
    return found


def _cpu(server: psutil.Process) -> float:
    times = [process.cpu_times() for process in (server, *server.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="for each number of clients")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--output", type=Path, default=Path("docs/results/serving.md"))
    options = parser.parse_args()
    upload = noisy_map(480, 640)
    busy = os.getloadavg()[0]
    with running() as (server, url):
        drops = []
        if shutil.which("chromium"):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "map.png")
                path.write_bytes(upload)
                drops = first_pictures(server, url, path, 5)
        loads = [measure(server, url, clients, options.seconds, upload) for clients in options.clients]
    failures = [failure for load in loads for failure in load.failures]
    parts = [
        f"Maps of 640 x 480 pixels (16-bit PNG, {len(upload) >> 10} KiB), quality `{QUALITY}`. Clients run on the same "
        "machine as the service; each uploads, follows its job, downloads the npz and begins again, "
        f"{options.seconds:g} seconds long. {machine()} Load average at the start {busy:.1f}.",
        table(HEAD, [load.row() for load in loads]),
        "Errors: " + ("; ".join(failures[:5]) if failures else "none but 429 (the queue is full)."),
    ]
    if drops:
        shown = ["; ".join(f"{seconds:.2f}" for seconds in column) for column in zip(*drops, strict=True)]
        parts.append(
            "On the page, in Chromium, seconds from choosing such a file until a picture is on the screen, five times: "
            f"the input {shown[0]}; the result {shown[1]}. CPU seconds that the service took for it: {shown[2]}."
        )
    print(write_made_part(options.output, "The service under load", "python benchmarks/serving.py", parts))


if __name__ == "__main__":
    main()

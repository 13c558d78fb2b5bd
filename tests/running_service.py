"""A service that runs beside the tests, and its clients."""

from __future__ import annotations

import io
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
from PIL import Image

from sparsedepth.serve.limits import Limits
from sparsedepth.serve.server import Server, address, listen

JOB_SECONDS = 60


@dataclass(frozen=True)
class Service:
    """Where it is, and one client of it."""

    url: str
    client: httpx.Client

    @property
    def place(self) -> tuple[str, int]:
        url = httpx.URL(self.url)
        return url.host, url.port or 80

    def connect(self) -> socket.socket:
        return socket.create_connection(self.place, timeout=20)

    def post(
        self, task: str, files: dict[str, Any] | None = None, answer: str = "links", **fields: Any
    ) -> httpx.Response:
        texts = {name: (None, str(value)) for name, value in fields.items()}
        return self.client.post(f"/v1/{task}", files=texts | (files or {}), params={"answer": answer})

    def job(self, name: str) -> dict[str, Any]:
        return self.client.get(f"/v1/jobs/{name}").json()

    def finished(self, answer: httpx.Response) -> dict[str, Any]:
        """What became of an accepted job."""
        assert answer.status_code == 202, answer.text
        end = time.monotonic() + JOB_SECONDS
        while time.monotonic() < end:
            told = self.job(answer.json()["id"])
            if told.get("state") not in ("waiting", "running"):
                return told
            time.sleep(0.05)
        raise AssertionError("the job did not end")

    def idle(self) -> None:
        """Wait until nothing is left to do."""
        end = time.monotonic() + JOB_SECONDS
        while time.monotonic() < end:
            told = self.client.get("/healthz").json()
            if told["waiting"] == told["running"] == 0:
                return
            time.sleep(0.05)
        raise AssertionError("the service is still busy")


@contextmanager
def service(limits: Limits, token: str | None = None) -> Iterator[Service]:
    """A service in a thread of this process."""
    bound, ready = listen("127.0.0.1", 0), threading.Event()
    server = Server(bound, limits, token, ready.set)
    thread = threading.Thread(target=server.work)
    thread.start()
    try:
        assert ready.wait(60)
        url = address(bound).rstrip("/")
        with httpx.Client(base_url=url, timeout=JOB_SECONDS) as client:
            yield Service(url, client)
    finally:
        server.should_exit = True
        thread.join(30)
        bound.close()


@contextmanager
def command_line(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`sparsedepth serve` in a process of its own, and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sparsedepth", "serve", "--port", "0", *options], stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert said.startswith("serving at http://"), said
        yield process, said.split()[2].rstrip("/")
    finally:
        process.terminate()
        process.communicate(timeout=30)


def png(values: np.ndarray) -> bytes:
    content = io.BytesIO()
    Image.fromarray(values.astype(np.uint16)).save(content, "png")
    return content.getvalue()


def scene(height: int = 40, width: int = 60, seed: int = 0) -> np.ndarray:
    """Millimetres: a slant with a box on it, some outliers, a hole."""
    rng = np.random.default_rng(seed)
    depth = np.add.outer(np.linspace(1500, 1900, height), np.linspace(0, 300, width))
    depth[height // 4 : height // 2, width // 4 : width // 2] -= 400
    noisy = rng.random(depth.shape) < 0.02
    depth += np.where(noisy, rng.normal(0, 300, depth.shape), 0)
    depth[5:8, 5:8] = 0
    return depth.round()


def depth_file(values: np.ndarray | None = None, name: str = "scan.png") -> dict[str, Any]:
    return {"depth": (name, png(scene() if values is None else values))}

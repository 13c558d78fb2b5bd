"""Say what is installed, and test that it works: the command doctor."""

from __future__ import annotations

import platform
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import numpy as np
import typer

import sparsedepth
from sparsedepth.cli.options import JsonOption
from sparsedepth.cli.terminal import print_json, print_line
from sparsedepth.files import read, write
from sparsedepth.kernels.library import load
from sparsedepth.parallel import cores

DEVELOPMENT = {"all", "bench", "dev", "docs", "fuzz", "release", "test"}
"""Extras that hold no feature."""


def doctor_command(as_json: JsonOption = False) -> None:
    """Print the installed versions, extras and kernels, and test that restoring works.

    It takes a few seconds. The exit code is 1 if a test fails.
    """
    facts = {"versions": _versions(), "kernels": _kernels(), "cores": cores(), "extras": _extras(), "tests": _tests()}
    if as_json:
        print_json(facts)
    else:
        _print(facts)
    if any(found["error"] for found in facts["tests"].values()):
        raise typer.Exit(1)


def _versions() -> dict[str, str]:
    """Return the versions of the program, of Python and of what the core needs."""
    needed = [name for name, extra in _requirements() if not extra]
    ours = {"sparsedepth": sparsedepth.__version__, "Python": platform.python_version(), "system": platform.platform()}
    return ours | {name: _version(name) for name in needed}


def _version(package: str) -> str:
    """Return the version of a package, "" = it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _requirements() -> Iterator[tuple[str, str]]:
    """List the packages that the program declares, each with the extra that it is for, "" = the core."""
    for line in requires("sparsedepth") or []:
        found = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        yield re.split(r"[^\w.-]", line)[0], found[1] if found else ""


def _extras() -> dict[str, dict[str, str]]:
    """Return the packages of each extra and their versions, "" = missing."""
    extras: dict[str, dict[str, str]] = {}
    for package, extra in _requirements():
        if extra and extra not in DEVELOPMENT and package != "sparsedepth":
            extras.setdefault(extra, {})[package] = _version(package)
    return extras


def _kernels() -> str:
    """Return the instruction set of the compiled kernels that this processor runs, or why there is none."""
    try:
        return Path(load()._name).stem
    except (ImportError, OSError) as error:
        return f"missing: {error}"


def _tests() -> dict[str, dict[str, Any]]:
    """Run the tests by name."""
    tests: dict[str, Callable[[], None]] = {"restore": _restore, "stream": _stream, "match": _match, "files": _files}
    return {name: run_test(test) for name, test in tests.items()}


def run_test(test: Callable[[], None]) -> dict[str, Any]:
    """Run a test; return its seconds and what went wrong, None = nothing."""
    start, error = time.monotonic(), None
    try:
        test()
    except Exception as found:
        error = f"{type(found).__name__}: {found}"
    return {"seconds": round(time.monotonic() - start, 2), "error": error}


def _require(condition: Any, sentence: str) -> None:
    if not condition:
        raise ValueError(sentence)


def _ramp() -> Any:
    """Return a tilted plane, (48, 64), in metres."""
    return np.add.outer(np.zeros(48), np.linspace(1.0, 2.0, 64)).astype(np.float32)


def _restore() -> None:
    truth = _ramp()
    noisy = truth.copy()
    noisy[10, 20], noisy[30, 30:33] = 5.0, np.nan
    result = sparsedepth.denoise(noisy, sensor="clean")
    _require(abs(result.depth - truth).max() < 0.1, "an outlier was not corrected, or a hole not filled")
    _require((result.variance > 0).all(), "a variance is not positive")


def _stream() -> None:
    truth, rng = _ramp() * 1000, np.random.default_rng(0)
    stream = sparsedepth.Stream("kinect_v1")
    frames = [sparsedepth.DepthImage(truth + rng.normal(0, 3, truth.shape).astype(np.float32), "mm") for _ in range(5)]
    results = [stream.push(frame) for frame in frames]
    _require(np.std(results[-1].depth - truth) < np.std(frames[-1].values - truth), "a stream did not lessen the noise")


def _match() -> None:
    left = np.random.default_rng(0).random((48, 96)).astype(np.float32)
    found = sparsedepth.match(left, np.roll(left, -4, axis=1), max_disparity=8)
    _require(np.median(found.disparity[:, 16:]) == 4, "a shift of 4 px was not found")


def _files() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".png", ".tiff", ".npz"):
            path = Path(folder) / f"map{suffix}"
            write(path, _ramp(), profile="tum" if suffix == ".png" else "m")
            _require(abs(read(path).values - _ramp()).max() < 1e-3, f"a map did not survive as {suffix}")


def _print(facts: dict[str, Any]) -> None:
    for name, found in facts["versions"].items():
        print_line(f"{name}: {found or 'missing'}")
    print_line(f"kernels: {facts['kernels']}; cores: {facts['cores']}")
    for extra, packages in facts["extras"].items():
        missing = [package for package, found in packages.items() if not found]
        hint = f"{', '.join(missing)} missing; pip install 'sparsedepth[{extra}]'" if missing else "installed"
        print_line(f"extra {extra}: {hint}")
    for name, found in facts["tests"].items():
        print_line(f"test {name}: {found['error'] or 'passed'}, {found['seconds']:.1f} s")

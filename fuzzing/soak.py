"""Hours of mixed work in one process, with its memory sampled: ``python fuzzing/soak.py --minutes 60``.

Each turn restores a folder of good and bad files by the command line, and reads one file of every kind that fuzzing
starts from, whole and damaged. A line of JSON goes to ``fuzzing/soak.jsonl``; ``--page`` tells docs/trust.md of all
that are there.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import io
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reading_laws import law_of, suffix_of
from seeds import seeds
from sparsedepth.cli import main as command
from sparsedepth.files import write
from sparsedepth.markdown import commit, machine, table, write_made_part

HERE = Path(__file__).parent
KINDS = ("png", "pgm", "pfm", "tiff", "npy", "npz", "exr", "photo", "dictionary")


def fill(folder: Path, rng: np.random.Generator) -> None:
    """Six good maps with holes and outliers, and bad files of five kinds."""
    y, x = np.mgrid[:48, :64]
    for number, suffix in enumerate((".png", ".pgm", ".pfm", ".tiff", ".npy", ".npz")):
        depth = 1000 + 4.0 * x + 3 * y + 300 * (x > 20 + number)
        depth[rng.random(depth.shape) < 0.02] *= 1.5
        depth[rng.random(depth.shape) < 0.05] = np.nan
        write(folder / f"good{suffix}", depth, profile="mm")
    for suffix in (".png", ".tiff", ".npy", ".npz", ".pfm"):
        whole = (folder / f"good{suffix}").read_bytes()
        (folder / f"cut{suffix}").write_bytes(whole[: int(len(whole) * rng.random())])


def turn(folder: Path, files: dict[str, list[bytes]], rng: np.random.Generator) -> dict[str, int]:
    """One turn; how many files were restored, failed, read and refused."""
    for path in folder.glob("in/*"):
        path.unlink()
    fill(folder / "in", rng)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        command(["denoise", str(folder / "in"), "-o", str(folder / "out"), "--quality", "fast", "--force", "--json"])
    told = json.loads(said.getvalue())
    count = {"restored": len(told["files"]) - told["failed"], "failed": told["failed"], "read": 0, "refused": 0}
    for kind, contents in files.items():
        content = bytearray(contents[rng.integers(len(contents))])
        for place in rng.integers(0, len(content), rng.integers(0, 4)):
            content[place] = rng.integers(256)
        path = folder / f"x{suffix_of(kind)}"
        path.write_bytes(content)
        count[law_of(kind)(path)] += 1
    return count


def resident() -> float:
    """Megabytes that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Books(ctypes.Structure):
    """What malloc of the GNU C library tells of itself (``mallinfo2``)."""

    _fields_ = [
        (name, ctypes.c_size_t) for name in ("arena", "o", "s", "h", "mapped", "us", "fs", "used", "unused", "top")
    ]


def in_use() -> float:
    """Megabytes that were asked of malloc and not given back; NaN where it does not tell."""
    tell = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if tell is None:
        return float("nan")
    tell.restype = Books
    books = tell()
    return (books.used + books.mapped) / 2**20


def soak(seconds: float) -> dict[str, Any]:
    """Turn after turn; the files counted, and for each tenth of the turns the medians of both kinds of memory."""
    files = {kind: list(seeds(kind)) for kind in KINDS}
    rng, total, samples = np.random.default_rng(0), dict.fromkeys(("restored", "failed", "read", "refused"), 0), []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name, open(os.devnull, "w") as nowhere:
        folder = Path(name)
        (folder / "in").mkdir()
        while time.monotonic() - began < seconds:
            with contextlib.redirect_stderr(nowhere):
                for what, number in turn(folder, files, rng).items():
                    total[what] += number
            samples.append((resident(), in_use()))
    tenths = [np.median(part, axis=0).round(1).tolist() for part in np.array_split(samples, 10) if len(part)]
    spent = {"minutes": round((time.monotonic() - began) / 60, 1), "cpu_seconds": round(time.process_time())}
    return {**spent, "turns": len(samples), **total, "tenths": tenths}


def told(runs: list[dict[str, Any]]) -> list[str]:
    """The made part of the page: what was done, and the curve of the memory."""
    done = table(
        ["run", "commit", "malloc", "minutes", "CPU seconds", "turns", "restored", "failed", "read", "refused"],
        [
            [str(n), f"`{run['commit']}`", run["malloc"], f"{run['minutes']:.0f}"]
            + [f"{run[what]:,}" for what in ("cpu_seconds", "turns", "restored", "failed", "read", "refused")]
            for n, run in enumerate(runs, 1)
        ],
    )
    rows = []
    for n, run in enumerate(runs, 1):
        for kind, curve in zip(("resident", "in use"), np.transpose(run["tenths"]), strict=True):
            growth = f"{curve[-1] / curve[1] - 1:+.1%}"
            rows.append([str(n), kind, *(f"{size:.1f}" for size in curve), growth])
    head = ["run", "MB, median of each tenth of the turns", *(str(n) for n in range(1, 11)), "second to last"]
    return [machine(), done, table(head, rows)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--page", action="store_true", help="tell docs/trust.md, instead of running")
    options = parser.parse_args()
    record = HERE / "soak.jsonl"
    if options.page:
        runs = [json.loads(line) for line in record.read_text().splitlines()]
        command_line = f"python fuzzing/soak.py --minutes {max(run['minutes'] for run in runs):.0f}"
        print(write_made_part(HERE.parent / "docs" / "trust.md", "Trust", command_line, told(runs), "soak"))
        return
    settings = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("MALLOC_")]
    report = {"commit": commit(), "malloc": ", ".join(settings) or "as it is", **soak(60 * options.minutes)}
    with open(record, "a") as file:
        file.write(json.dumps(report) + "\n")
    print(json.dumps(report))


if __name__ == "__main__":
    main()

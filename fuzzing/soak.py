"""Hours of mixed work in one process, with its memory sampled: ``python fuzzing/soak.py --minutes 60``.

Each turn restores a folder of good and bad files by the command line, and reads one file of every kind that fuzzing
starts from, whole and damaged. Prints a line of JSON at the end, and one a minute on standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reading_laws import law_of, suffix_of
from seeds import seeds
from sparsedepth.cli import main as command
from sparsedepth.files import write

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    options = parser.parse_args()
    files = {kind: list(seeds(kind)) for kind in KINDS}
    rng, total, samples = np.random.default_rng(0), dict.fromkeys(("restored", "failed", "read", "refused"), 0), []
    began = told = time.monotonic()
    with tempfile.TemporaryDirectory() as name, open(os.devnull, "w") as nowhere:
        folder = Path(name)
        (folder / "in").mkdir()
        while time.monotonic() - began < 60 * options.minutes:
            with contextlib.redirect_stderr(nowhere):
                for what, number in turn(folder, files, rng).items():
                    total[what] += number
            samples.append(resident())
            if time.monotonic() - told > 60:
                told = time.monotonic()
                print(f"{(told - began) / 60:.0f} min, {len(samples)} turns, {samples[-1]:.1f} MB", file=sys.stderr)
    part = max(len(samples) // 10, 1)
    early, late = (float(np.median(some)) for some in (samples[part : 2 * part] or samples, samples[-part:]))
    report = {"minutes": round((time.monotonic() - began) / 60, 1), "turns": len(samples), **total}
    report |= {"early_mb": round(early, 1), "late_mb": round(late, 1), "growth": round(late / early - 1, 4)}
    report |= {"cpu_seconds": round(time.process_time())}
    print(json.dumps(report))


if __name__ == "__main__":
    main()

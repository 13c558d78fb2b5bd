"""Compare the time to start with that of the libraries below, each in a new process, by turns.

Writes docs/results/startup.md.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median

from sparsedepth.markdown import machine, table, write_made_part

MAIN = "from sparsedepth.cli import main; main"
TASKS = {
    "`python -c pass`": "pass",
    "`import typer`": "import typer",
    "`import scipy.ndimage`": "import scipy.ndimage",
    "`import sparsedepth`": "import sparsedepth",
    "`from sparsedepth import denoise`": "from sparsedepth import denoise",
    "`sparsedepth --help`": f"{MAIN}(['--help'])",
    "`sparsedepth denoise --help`": f"{MAIN}(['denoise', '--help'])",
    "`sparsedepth show --help`": f"{MAIN}(['show', '--help'])",
}
WISHES = {
    "`sparsedepth --help`": ("`import typer`", 3),
    "`import sparsedepth`": ("`import scipy.ndimage`", 2),
}
"""Task -> its peer, and how many times the peer's time it may take."""


def seconds(code: str) -> float:
    """Measure the processor seconds of a new interpreter that runs code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def row(name: str, taken: dict[str, float]) -> list[str]:
    """Format the time of a task, and how it compares with its peer."""
    if name not in WISHES:
        return [name, f"{taken[name]:.3f}", "", "", ""]
    peer, most = WISHES[name]
    times = taken[name] / taken[peer]
    return [name, f"{taken[name]:.3f}", f"{times:.2f} times {peer}", f"{most}", "yes" if times <= most else "no"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/results/startup.md"))
    parser.add_argument("--repeats", type=int, default=15)
    wishes = parser.parse_args()
    all_taken: dict[str, list[float]] = {name: [] for name in TASKS}
    for turn in range(wishes.repeats + 1):
        for name, code in TASKS.items():
            taken = seconds(code)
            if turn:  # the first turn writes byte code and fills the disk cache
                all_taken[name].append(taken)
    medians = {name: median(taken) for name, taken in all_taken.items()}
    parts = [
        f"A new interpreter each, by turns; processor seconds, medians of {wishes.repeats} turns. {machine()}",
        table(["task", "CPU s", "ratio", "asked for at most", "met"], [row(name, medians) for name in TASKS]),
    ]
    command = f"python benchmarks/startup.py --repeats {wishes.repeats}"
    print(write_made_part(wishes.output, "Start-up time", command, parts))


if __name__ == "__main__":
    main()

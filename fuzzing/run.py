"""Fuzz every reader, or those named, for some minutes each, and keep count.

``python fuzzing/run.py --minutes 10`` runs all. Files that break a law are kept in ``fuzzing/findings``, those that
reach something new in ``fuzzing/corpus``; ``fuzzing/tally.jsonl`` gets a line for each stretch.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from sparsedepth.markdown import table, write_made_part

HERE = Path(__file__).parent
TARGETS = ["png", "pgm", "pfm", "tiff", "npy", "npz", "exr", "photo", "dictionary"]
LIMITS = ["-timeout=10", "-rss_limit_mb=3000", "-max_len=8192", "-print_final_stats=1"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all by default")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--folder", type=Path, default=HERE)
    parser.add_argument("--page", action="store_true", help="tell docs/trust.md of what was run, instead of running")
    options = parser.parse_args()
    if options.page:
        page = HERE.parent / "docs" / "trust.md"
        print(write_made_part(page, "Trust", f"make fuzz MINUTES={options.minutes:g}", [tally(options.folder)], "fuzz"))
        return
    found = sum(fuzz(target, 60 * options.minutes, options.folder) for target in options.targets or TARGETS)
    print(tally(options.folder))
    sys.exit(1 if found else 0)


def fuzz(target: str, seconds: float, folder: Path) -> int:
    """Fuzz until the time is over, starting again after each finding; the number of findings."""
    findings, corpus = folder / "findings", folder / "corpus" / target
    findings.mkdir(parents=True, exist_ok=True)
    end, found = time.monotonic() + seconds, 0
    while (left := int(end - time.monotonic())) > 0 and found < 10:
        command = [sys.executable, str(HERE / "fuzz.py"), target, str(corpus), *LIMITS, f"-max_total_time={left}"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        run = subprocess.run(
            [*command, f"-artifact_prefix={findings / target}-"], capture_output=True, text=True, errors="replace"
        )
        executed = re.search(r"number_of_executed_units: (\d+)", run.stderr)
        rate = re.search(r"average_exec_per_sec: +(\d+)", run.stderr)
        slowest = re.search(r"slowest_unit_time_sec: +(\d+)", run.stderr)
        peak = re.search(r"peak_rss_mb: +(\d+)", run.stderr)
        kept = re.findall(r"Test unit written to (\S+)", run.stderr)
        found += bool(kept) or run.returncode != 0
        line = {
            "target": target,
            "executions": int(executed[1]) if executed else 0,
            "seconds": round(int(executed[1]) / max(int(rate[1]), 1)) if executed and rate else 0,
            "cpu_seconds": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before),
            "slowest": int(slowest[1]) if slowest else None,
            "peak_mb": int(peak[1]) if peak else None,
            "findings": [Path(each).name for each in kept],
        }
        with open(folder / "tally.jsonl", "a") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)
        if run.returncode != 0:
            print(run.stderr[-3000:], file=sys.stderr, flush=True)
    return found


def tally(folder: Path) -> str:
    """A table of all that was ever run, a line for each target."""
    lines = [json.loads(line) for line in (folder / "tally.jsonl").read_text().splitlines()]
    rows = [_row(target, [line for line in lines if line["target"] == target]) for target in TARGETS]
    head = ["reader", "inputs", "minutes", "CPU seconds", "slowest, s", "largest memory, MB", "findings"]
    return table(head, [*rows, _row("**all**", lines)])


def _row(name: str, lines: list[dict[str, Any]]) -> list[str]:
    inputs, seconds, spent = (sum(line[what] for line in lines) for what in ("executions", "seconds", "cpu_seconds"))
    slowest, peak = (max((line[what] or 0 for line in lines), default=0) for what in ("slowest", "peak_mb"))
    found = sum(len(line["findings"]) for line in lines)
    return [
        name,
        f"{inputs:,}",
        f"{seconds / 60:.1f}",
        f"{spent:,}",
        f"< {slowest + 1}",
        f"{peak}",
        f"{found}",
    ]


if __name__ == "__main__":
    main()

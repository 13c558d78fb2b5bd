"""Measure the PSNR of every row of the zoo on every development map, and compare two measurements.

Measure a tree with its own sources, then compare; an older tree is a `git worktree`:

    PYTHONPATH=../before/src:../before/experiments/src python tools/zoo_means.py measure before.json
    PYTHONPATH=src:experiments/src python tools/zoo_means.py measure after.json
    python tools/zoo_means.py compare before.json after.json

Needs SPARSEDEPTH_DATA; about four minutes a tree on one core. One draw of the noise for each row and map.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np

MAX_PSNR = 99.0
"""Decibels of a map that came back unchanged."""


def measure(every: int, quality: str) -> dict[str, float]:
    """Return the PSNR of each kind, row and map, in dB; every so many maps are measured."""
    from sparsedepth import denoise, inpaint
    from sparsedepth.metrics import psnr
    from sparsedepth_experiments import _zoo as zoo

    found = {}
    for source in zoo.development_sources()[::every]:
        for row in zoo.rows():
            if source.kind not in getattr(row, "kinds", zoo.KINDS):  # older trees have every row on every map
                continue
            spoilt = row.done(source, 0)
            options = {"holes": "all"} if row.holes else {}
            result = (inpaint if row.holes else denoise)(spoilt.depth, quality=quality, threads=1, **options)
            decibels = psnr(result.depth, spoilt.truth, missing="ignore")
            found[f"{source.kind}|{row.name}|{source}"] = min(decibels, MAX_PSNR)
    return found


def compare(before: dict[str, float], after: dict[str, float]) -> None:
    """Print the mean change of each row, its standard error and its extremes, and the mean of all."""
    changes = defaultdict(list)
    for key in before.keys() & after.keys():
        changes[tuple(key.split("|")[:2])].append(after[key] - before[key])
    for (kind, row), values in sorted(changes.items()):
        error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
        extremes = f"{min(values):+.2f} ... {max(values):+.2f}"
        print(f"{kind:10} {row:20} {np.mean(values):+.2f} ± {error:.2f}  {extremes}  ({len(values)} maps)")
    print(f"all {np.mean([value for values in changes.values() for value in values]):+.3f}")


def main() -> None:
    """Run one of the two commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("output", type=Path)
    measuring.add_argument("--every", type=int, default=1, help="measure every so many maps")
    measuring.add_argument("--quality", default="balanced", help="quality of restoring")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.command == "measure":
        options.output.write_text(json.dumps(measure(options.every, options.quality)))
    else:
        compare(json.loads(options.before.read_text()), json.loads(options.after.read_text()))


if __name__ == "__main__":
    main()

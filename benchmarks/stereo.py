"""Compare match with OpenCV. Writes docs/results/match-speed.md; graph_cuts.py writes docs/results/stereo-speed.md."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from sparsedepth import match
from sparsedepth.data.middlebury import StereoScene, benchmark_pair
from sparsedepth.data.motorcycle import motorcycle_disparity, motorcycle_pair
from sparsedepth.markdown import machine, table, write_made_part
from sparsedepth.metrics import bad_pixels
from sparsedepth.stereo import opencv
from sparsedepth.vocabulary import DepthMap, StereoPair

OURS, PEER = "**match**", "OpenCV SGBM (HH)"
MOST_TIMES, LEAST_SPEED_UP = 10, 1.7
"""What was asked: CPU time over that of OpenCV, and the speed of two threads over that of one."""
_kept: list[StereoPair] = []
"""The pair that a process of `two_processes` matches."""


def scenes() -> tuple[str, StereoScene, str, StereoScene]:
    """Load one scene with few labels and one with 60; without the data sets, Motorcycle in two sizes."""
    if os.environ.get("SPARSEDEPTH_DATA"):
        return "Tsukuba", benchmark_pair("Tsukuba"), "Teddy", benchmark_pair("Teddy")
    return "Motorcycle, a quarter", motorcycle(4), "Motorcycle, 60 %", motorcycle(5 / 3)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Measure the CPU seconds of a call; return its result too."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def match_scenes() -> dict[str, StereoScene]:
    """Load Motorcycle, and Teddy at 64 disparities; without the data sets, Motorcycle in 60 % of its size."""
    whole = {"Motorcycle": motorcycle(1)}
    if not os.environ.get("SPARSEDEPTH_DATA"):
        return whole | {"Motorcycle, 60 %": motorcycle(5 / 3)}
    teddy = benchmark_pair("Teddy")
    return whole | {"Teddy": replace(teddy, pair=replace(teddy.pair, max_disparity=63))}


def motorcycle(factor: float) -> StereoScene:
    """Make Motorcycle smaller by a factor."""
    pair, truth = motorcycle_pair(), motorcycle_disparity()
    rows, columns = (np.arange(int(side / factor)) * factor for side in truth.shape)
    pick = np.ix_(rows.astype(int), columns.astype(int))
    disparity = truth[pick] / factor
    known = np.isfinite(disparity)
    reach = int(np.ceil(np.nanmax(disparity))) + 1
    return StereoScene(StereoPair(pair.left[pick], pair.right[pick], reach), disparity, known, known, known)


@dataclass(frozen=True)
class Measured:
    """Medians of CPU and of elapsed seconds, and bad pixels in percent."""

    cpu: float
    elapsed: float
    bad: float


def measure(scene: StereoScene, repeats: int) -> dict[str, Measured]:
    """Run all matchers in turn, so that the load of the machine is the same for all."""
    pair = scene.pair
    truth = np.where(scene.evaluated, scene.disparity, np.nan)
    views: dict[str, Any] = {"left": pair.left, "right": pair.right, "max_disparity": pair.max_disparity}
    work: dict[str, Callable[[], DepthMap]] = {
        OURS: lambda: match(**views, threads=1).disparity,
        f"{OURS}, two threads": lambda: match(**views, threads=2).disparity,
        PEER: lambda: opencv.block_matching(pair),
        f"{PEER}, filled": lambda: opencv.filled(pair),
        "OpenCV SGBM + WLS": lambda: opencv.filtered(pair),
    }
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    bad = {}
    for _ in range(repeats + 1):
        for name, each in work.items():
            cpu, elapsed = time.process_time(), time.perf_counter()
            disparity = each()
            spent[name].append((time.process_time() - cpu, time.perf_counter() - elapsed))
            bad[name] = 100 * bad_pixels(np.nan_to_num(disparity), truth, 1.0)
    return {
        name: Measured(median(cpu for cpu, _ in times[1:]), median(elapsed for _, elapsed in times[1:]), bad[name])
        for name, times in spent.items()
    }


def two_processes(scene: StereoScene, repeats: int) -> float:
    """Measure how many times as many matches two processes of one thread finish as one: what the machine allows."""
    with ProcessPoolExecutor(2, initializer=_keep, initargs=(scene.pair,)) as pool:
        list(pool.map(_match_kept, [1, 1]))  # what is loaded once
        alone = pool.submit(_match_kept, repeats).result()
        both = list(pool.map(_match_kept, [repeats, repeats]))
    return 2 * alone / float(np.mean(both))


def _keep(pair: StereoPair) -> None:
    _kept.append(pair)


def _match_kept(repeats: int) -> float:
    """Return the elapsed seconds of some matches with one thread."""
    (pair,) = _kept
    begin = time.perf_counter()
    for _ in range(repeats):
        match(pair.left, pair.right, max_disparity=pair.max_disparity, threads=1)
    return time.perf_counter() - begin


def section(name: str, scene: StereoScene, found: dict[str, Measured]) -> list[str]:
    """Format the table of a scene."""
    size = f"{scene.pair.shape[1]}x{scene.pair.shape[0]}"
    rows = [
        [
            matcher,
            f"{each.cpu:.3f}",
            f"{each.cpu / found[PEER].cpu:.1f}",
            f"{each.elapsed:.3f}",
            "" if matcher == PEER else f"{each.bad:.2f}",
        ]
        for matcher, each in found.items()
    ]
    head = ["", "CPU s", "times SGBM", "elapsed s", "bad pixels, %"]
    return [f"{name}, {size}, {scene.pair.max_disparity + 1} disparities, colour:", table(head, rows)]


def bars(name: str, found: dict[str, Measured], processes: float) -> list[list[str]]:
    """Decide what was asked."""
    times = found[OURS].cpu / found[PEER].cpu
    speed_up = found[OURS].elapsed / found[f"{OURS}, two threads"].elapsed
    return [
        [f"{name}: at most {MOST_TIMES} times the CPU time of SGBM", yes(times <= MOST_TIMES), f"{times:.1f}"],
        [f"{name}: two threads {LEAST_SPEED_UP} times as fast", yes(speed_up >= LEAST_SPEED_UP), f"{speed_up:.2f}"],
        [f"{name}: matches of two processes of one thread, over those of one", "", f"{processes:.2f}"],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--output", type=Path, default=Path("docs/results/match-speed.md"))
    options = parser.parse_args()
    sections, asked = [], []
    for name, scene in match_scenes().items():
        found = measure(scene, options.repeats)
        sections += section(name, scene, found)
        asked += bars(name, found, two_processes(scene, options.repeats))
    made = write_made_part(
        options.output,
        "Speed of match",
        f"python benchmarks/stereo.py --repeats {options.repeats}",
        [
            f"Medians over interleaved repeats, after one that does not count. {machine()}",
            "## match",
            "`match` searches both views, fills what they do not both show, and estimates the variance. SGBM has eight "
            "paths over blocks of 3 pixels; its holes count as filled in the row below it.",
            *sections,
            "## What was asked",
            "Two processes share nothing but the memory: what they gain is the most that two threads could.",
            table(["", "", ""], asked),
        ],
    )
    print(made)


def yes(holds: bool) -> str:
    return "yes" if holds else "**no**"


if __name__ == "__main__":
    main()

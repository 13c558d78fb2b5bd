"""Compare match with OpenCV. Writes a part of docs/results/stereo-speed.md; graph_cuts.py writes the other."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
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


def scenes() -> tuple[str, StereoScene, str, StereoScene]:
    """Load one scene with few labels and one with 60; without the data sets, Motorcycle in two sizes."""
    if os.environ.get("SPARSEDEPTH_DATA"):
        return "Tsukuba", benchmark_pair("Tsukuba"), "Teddy", benchmark_pair("Teddy")
    return "Motorcycle, a quarter", motorcycle(4), "Motorcycle, 60 %", motorcycle(5 / 3)


def motorcycle(factor: float) -> StereoScene:
    pair, truth = motorcycle_pair(), motorcycle_disparity()
    rows, columns = (np.arange(int(side / factor)) * factor for side in truth.shape)
    pick = np.ix_(rows.astype(int), columns.astype(int))
    disparity = truth[pick] / factor
    known = np.isfinite(disparity)
    reach = int(np.ceil(np.nanmax(disparity))) + 1
    return StereoScene(StereoPair(pair.left[pick], pair.right[pick], reach), disparity, known, known, known)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def matchers(scene: StereoScene, repeats: int) -> tuple[list[list[str]], dict[str, float]]:
    pair = scene.pair
    truth = np.where(scene.evaluated, scene.disparity, np.nan)
    views: dict[str, Any] = {"left": pair.left, "right": pair.right, "max_disparity": pair.max_disparity}
    work: dict[str, Callable[[], DepthMap]] = {
        "**match**, no prior": lambda: match(**views, prior=False).disparity,
        "**match**": lambda: match(**views).disparity,
        "OpenCV SGBM, filled": lambda: opencv.filled(pair),
        "OpenCV SGBM + WLS": lambda: opencv.filtered(pair),
    }
    seconds: dict[str, list[float]] = {name: [] for name in work}
    bad = {}
    for _ in range(repeats):
        for name, each in work.items():
            spent, disparity = timed(each)
            seconds[name].append(spent)
            bad[name] = 100 * bad_pixels(disparity, truth, 1.0)
    return (
        [[name, f"{median(seconds[name]):.2f}", f"{bad[name]:.2f}"] for name in work],
        {name: median(seconds[name]) for name in work},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=Path("docs/results/stereo-speed.md"))
    options = parser.parse_args()
    *_, many, many_scene = scenes()
    match_rows, seconds = matchers(many_scene, options.repeats)
    bars = []
    for name, most in (("**match**, no prior", 3), ("**match**", 10)):
        bars.append([f"{name}: at most {most} CPU s", yes(seconds[name] <= most), f"{seconds[name]:.2f}"])
    size = f"{many_scene.pair.shape[1]}x{many_scene.pair.shape[0]}"
    made = write_made_part(
        options.output,
        "Speed of stereo",
        f"python benchmarks/stereo.py --repeats {options.repeats}",
        [
            f"CPU seconds, medians over interleaved repeats. {machine()}",
            "## match",
            f"{many}, {size}, {many_scene.pair.max_disparity + 1} disparities, both views, colour; OpenCV is C++ with "
            "vector instructions, ours NumPy.",
            table(["", "CPU s", "bad pixels, %"], match_rows),
            "## What was asked",
            table(["", "", ""], bars),
        ],
    )
    print(made)


def yes(holds: bool) -> str:
    return "yes" if holds else "**no**"


if __name__ == "__main__":
    main()

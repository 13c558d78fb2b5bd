"""Compare the time of restoring a map of 640x480 with that of non-local means, in one process and by turns.

Writes docs/results/restoring-speed.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np
from skimage.restoration import denoise_nl_means
from threadpoolctl import threadpool_limits

from sparsedepth import denoise, inpaint
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.synthetic import corrupted
from sparsedepth.markdown import machine, table, write_made_part
from sparsedepth.vocabulary import DepthMap

QUALITIES = {"fast": 0.2, "balanced": 1.5, "best": 10}
"""And how many times non-local means each may take."""
SHARES = (0.01, 0.05)
"""Of noisy pixels: more of them are more work."""


def seconds(work: Callable[[], object]) -> float:
    """Measure processor seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


def maps() -> dict[str, DepthMap]:
    """Build a map with holes, and the same with its holes filled."""
    depth = motorcycle_disparity()[:480, :640]
    return {"yes": depth, "no": inpaint(depth, holes="all").depth}


def ratios(clean: DepthMap, share: float, repeats: int) -> dict[str, list[float]]:
    """Measure the seconds of non-local means, and of each quality, turn by turn."""
    depth = corrupted(clean, share, np.random.default_rng(0))
    filled = np.where(np.isfinite(depth), depth, np.nanmedian(depth))

    def non_local_means() -> object:
        return denoise_nl_means(filled, patch_size=7, patch_distance=10, h=float(np.nanstd(depth)) / 10, fast_mode=True)

    taken: dict[str, list[float]] = {name: [] for name in ("non-local means", *QUALITIES)}
    for turn in range(repeats):
        taken["non-local means"].append(seconds(non_local_means))
        for quality in QUALITIES:
            if quality != "best" or turn == 0:
                taken[quality].append(seconds(lambda quality=quality: denoise(depth, quality=quality, threads=1)))
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/results/restoring-speed.md"))
    parser.add_argument("--repeats", type=int, default=3)
    wishes = parser.parse_args()
    denoise(motorcycle_disparity()[:64, :64], threads=1)  # what is loaded once
    rows = []
    with threadpool_limits(1):
        for (holes, clean), share in product(maps().items(), SHARES):
            taken = ratios(clean, share, wishes.repeats)
            peer = median(taken["non-local means"])
            for quality, most in QUALITIES.items():
                ours = median(taken[quality])
                times = ours / peer
                rows.append(
                    [
                        holes,
                        f"{share:.0%}",
                        quality,
                        f"{ours:.2f}",
                        f"{times:.2f}",
                        f"{most:g}",
                        "yes" if times <= most else "no",
                    ]
                )
    parts = [
        f"`denoise` of the Motorcycle disparities, 640x480, with holes or with them filled, and with impulses at a "
        f"share of the pixels; one thread, processor seconds, medians of {wishes.repeats} turns (`best`: one). "
        f"Non-local means are scikit-image's fast ones, patch 7, distance 10. {machine()}",
        table(["holes", "noisy", "quality", "CPU s", "times non-local means", "asked for at most", "met"], rows),
    ]
    command = f"python benchmarks/restoring.py --repeats {wishes.repeats}"
    print(write_made_part(wishes.output, "Speed of restoring", command, parts))


if __name__ == "__main__":
    main()

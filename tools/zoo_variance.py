"""Measure the variance over all rows of the zoo together: squared error / variance in tenths, and its mean by row.

    python tools/zoo_variance.py [--quality fast] [--every 2]

Needs SPARSEDEPTH_DATA; about six minutes with quality "fast" on one core. One draw of the noise for each row and map.
Errors and variances are divided by the variance of the true map, so that all maps count alike.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np

from sparsedepth import denoise, inpaint
from sparsedepth_experiments import _zoo as zoo

DECILES = 10


def measure(quality: str, every: int) -> dict[str, list[tuple[np.ndarray, np.ndarray]]]:
    """Return squared errors and variances of each kind and row, a pair of vectors for each map."""
    found = defaultdict(list)
    for source in zoo.development_sources()[::every]:
        for row in zoo.rows():
            if source.kind not in row.kinds:
                continue
            spoilt = row.done(source, 0)
            result = (inpaint if row.holes else denoise)(spoilt.depth, threads=1, quality=quality)
            known = np.isfinite(spoilt.truth) & np.isfinite(result.variance)
            scale = float(np.nanvar(spoilt.truth))
            squared = np.square(result.depth - spoilt.truth)[known].astype(float) / scale
            found[f"{source.kind}, {row.name}"].append((squared, result.variance[known].astype(float) / scale))
    return found


def report(found: dict[str, list[tuple[np.ndarray, np.ndarray]]]) -> None:
    """Print the mean ratio of each row, then the tenths of all pixels, from the least variance to the largest."""
    for row, pairs in found.items():
        squared, variance = (np.concatenate(part) for part in zip(*pairs, strict=True))
        print(f"{row:40} {(squared / variance).mean():10.2f}")
    every = [pair for pairs in found.values() for pair in pairs]
    squared, variance = (np.concatenate(part) for part in zip(*every, strict=True))
    ratio = (squared / variance)[np.argsort(variance, kind="stable")]
    print(
        "tenths",
        " ".join(f"{part.mean():.2f}" for part in np.array_split(ratio, DECILES)),
        "all",
        f"{ratio.mean():.2f}",
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quality", default="balanced")
    parser.add_argument("--every", type=int, default=1, help="measure every so many maps")
    options = parser.parse_args()
    report(measure(options.quality, options.every))


if __name__ == "__main__":
    main()

"""Learns the weights of `sparsedepth.restore.variance_filled` on maps with known truth, and says how they do on others.

Crops of Middlebury 2005 and 2006, of sensors' frames, simulated laser scans, foliage and planes, with pixels missing at
random and in the shadows of a second camera or a projector. The weights make squared error / variance likeliest (a
gamma law). Held-out numbers are of scenes that were not learned from, or, with --kinds, of the other half of the kinds
of maps. Needs SPARSEDEPTH_DATA; about eight minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from suspicion import finer_scans, foliage, planes

from sparsedepth import inpaint
from sparsedepth.data import kinect, synthetic
from sparsedepth.data.crops import crops
from sparsedepth.data.middlebury import disparities, disparity_files
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.simulated_scans import simulated_scans
from sparsedepth.data.time_of_flight import mug
from sparsedepth.metrics import calibration
from sparsedepth.restore import pipeline, variance_filled
from sparsedepth.vocabulary import DepthMap, Floats, Vector

COUNTS = {"disparity": 1.0, "sensor": 0.5, "scan": 1.0, "foliage": 0.3, "planes": 0.3}
"""How much the maps of a kind count together: those that are measured in docs/results more than others."""
HALVES = {"disparity": 0, "sensor": 0, "planes": 0, "scan": 1, "foliage": 1}
FOLDS = 4
LEARNED = 400
"""Pixels of each map to learn from."""
DAMPING = 1e-4
EXACT = 1e-8
"""Squared error below which nothing is learned."""
Damage = Callable[[DepthMap, int, np.random.Generator], DepthMap]
HOLES: dict[str, Damage] = {
    "5% missing": lambda depth, near, rng: synthetic.with_missing(depth, 0.05, rng),
    "50% missing": lambda depth, near, rng: synthetic.with_missing(depth, 0.5, rng),
    "80% missing": lambda depth, near, rng: synthetic.with_missing(depth, 0.8, rng),
    "95% missing": lambda depth, near, rng: synthetic.with_missing(depth, 0.95, rng),
    "matching shadows": lambda depth, near, rng: synthetic.with_matching_shadows(depth, near),
    "Kinect shadows": synthetic.with_kinect_shadows,
}


@dataclass(frozen=True, eq=False)
class Hidden:
    """What the promise of scattered pixels is learned from."""

    answers: Floats
    unknown: NDArray[np.bool_]
    hidden: NDArray[np.bool_]
    squared: Floats


@dataclass(frozen=True, eq=False)
class Run:
    """A map with holes that was filled; in deviations of what was known."""

    kind: str
    scene: str
    holes: str
    answer: Floats
    unknown: NDArray[np.bool_]
    judged: NDArray[np.bool_]
    """Unknown pixels whose truth is known."""
    squared: Vector
    """The errors of the judged ones."""
    promised: Vector
    """Their variance as it is."""
    hidden: Hidden | None
    """None where holes keep together."""

    def promise(self) -> Vector:
        """The variance of the judged pixels by the present weights."""
        if self.hidden is None:
            return variance_filled.expected_error(self.answer, self.unknown)[self.judged]
        told = self.hidden
        own = variance_filled.Scattered.of(told.answers, told.unknown, told.hidden, told.squared)
        return own(self.answer, self.unknown)[self.judged]

    def unit(self) -> float:
        """The squared error in which the law is."""
        if self.hidden is None:
            return 1.0
        told = self.hidden
        return variance_filled.Scattered.of(told.answers, told.unknown, told.hidden, told.squared).usual

    def lesson(self) -> tuple[Floats, Vector]:
        """The signs of some judged pixels, and their squared errors in units of the law.

        The share that is missing does not count where holes keep together: it means something else on each kind of map.
        """
        unit = self.unit()
        if self.hidden is None:
            telling = variance_filled.signs(self.answer, self.unknown, variance_filled.LEAST**2)
            telling[:, -1] = 0
        else:
            telling = variance_filled.signs_of_scattered(self.answer, self.unknown, unit)
        telling = telling[self.judged[self.unknown]]
        some = np.random.default_rng(len(telling)).permutation(len(telling))[:LEARNED]
        return telling[some], (np.minimum(self.squared[some], variance_filled.MOST) + EXACT) / unit


def sources() -> Iterator[tuple[str, str, int, DepthMap]]:
    """Kind, scene, whether large values are near (1) or far (-1), and map."""
    for year in (2005, 2006):
        for i, (file, depth) in enumerate(zip(disparity_files(year), disparities(year), strict=True)):
            yield from (("disparity", file.parent.name, 1, crop.depth) for crop in crops(depth, 1, seed=700 + i))
    for i in (0, 3, 6):
        found = crops(kinect.frames()[i], 1, seed=700 + i)
        yield from (("sensor", "kinect", -1, np.log(crop.depth)) for crop in found)
    yield from (("sensor", "mug", -1, np.log(crop.depth)) for crop in crops(mug().depth, 2, seed=701))
    yield from (("sensor", "Motorcycle", 1, crop.depth) for crop in crops(motorcycle_disparity(), 3, seed=702))
    yield from (("scan", f"scan {i}", -1, depth) for i, depth in enumerate(simulated_scans(16)))
    yield from (("scan", f"finer scan {i}", -1, depth) for i, depth in enumerate(islice(finer_scans(), 16)))
    yield from (("foliage", f"foliage {i}", -1, foliage(np.random.default_rng([92, i]))) for i in range(6))
    yield from (("planes", f"planes {i}", 1, planes(np.random.default_rng([91, i]))) for i in range(8))


def filled(kind: str, scene: str, holes: str, truth: DepthMap, holed: DepthMap) -> Run | None:
    """None where nothing of which the truth is known is missing."""
    told: list[Hidden] = []

    class Recorded(variance_filled.Scattered):
        @classmethod
        def of(cls, answers, unknown, hidden, squared):
            told.append(Hidden(answers, unknown, hidden, squared))
            return super().of(answers, unknown, hidden, squared)

    pipeline.Scattered = Recorded
    result = inpaint(holed, outward=True, threads=1)
    unknown = np.isnan(holed)
    judged = unknown & np.isfinite(truth) & np.isfinite(result.variance)
    if not judged.any():
        return None
    spread, middle = float(np.nanstd(holed)), float(np.nanmedian(holed))
    answer = (result.depth.astype(np.float64) - middle) / spread
    squared = np.square((result.depth - truth)[judged] / spread)
    promised = result.variance[judged] / spread**2
    return Run(kind, scene, holes, answer, unknown, judged, squared, promised, told[0] if told else None)


def learned(runs: Sequence[Run]) -> Vector:
    """The weights under which the squared errors are likeliest."""
    lessons, kinds = [run.lesson() for run in runs], [run.kind for run in runs]
    telling, squared = (np.concatenate(values) for values in zip(*lessons, strict=True))
    pixels = {kind: sum(len(s) for (_, s), k in zip(lessons, kinds, strict=True) if k == kind) for kind in set(kinds)}
    count = np.concatenate([np.full(len(s), COUNTS[k] / pixels[k]) for (_, s), k in zip(lessons, kinds, strict=True)])
    count /= count.sum()
    mean, deviation = telling.mean(axis=0), telling.std(axis=0) + 1e-9
    mean[0], deviation[0] = 0, 1
    scaled = (telling - mean) / deviation

    def loss(weights: Vector) -> tuple[float, Vector]:
        logarithm = scaled @ weights
        ratio = squared * np.exp(-np.clip(logarithm, -25, 25))
        damped = DAMPING * weights * (np.arange(len(weights)) > 0)
        return float(count @ (logarithm + ratio) + damped @ weights), scaled.T @ (count * (1 - ratio)) + 2 * damped

    start = np.zeros(scaled.shape[1])
    start[0] = np.log(count @ squared)
    weights = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 300}).x / deviation
    weights[0] -= (weights * mean)[1:].sum()
    return weights


def both_laws(runs: Sequence[Run]) -> tuple[Vector, Vector]:
    """The weights for scattered pixels and for holes that keep together."""
    scattered = [run for run in runs if run.hidden is not None]
    together = [run for run in runs if run.hidden is None]
    return learned(scattered), learned(together)


def held_out(runs: Sequence[Run], fold: Sequence[int]) -> list[Vector]:
    """What each map would be promised by weights that were learned from the other folds."""
    promises: list[Vector] = [np.empty(0)] * len(runs)
    for held in set(fold):
        laws = both_laws([run for run, of in zip(runs, fold, strict=True) if of != held])
        variance_filled.SCATTERED, variance_filled.TOGETHER = laws
        for i, of in enumerate(fold):
            if of == held:
                promises[i] = runs[i].promise()
    return promises


def judge(runs: Sequence[Run], promises: Sequence[Vector], by_holes: bool) -> None:
    """Kind by kind; 5 % missing is not among what docs/results pools."""
    for kind in COUNTS:
        pooled = [i for i, run in enumerate(runs) if run.kind == kind and run.holes != "5% missing"]
        groups = {kind: pooled}
        if by_holes:
            groups |= {
                f"  {kind}, {h}": [i for i, r in enumerate(runs) if (r.kind, r.holes) == (kind, h)] for h in HOLES
            }
        for name, those in groups.items():
            squared, told = (
                np.concatenate([values[i] for i in those]) for values in ([r.squared for r in runs], promises)
            )
            ratio = calibration(np.sqrt(squared), np.maximum(told, 1e-14)).ratio
            print(f"{name:30}", " ".join(f"{r:6.2f}" for r in ratio), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", action="store_true", help="hold out whole kinds of maps, not scenes")
    parser.add_argument("--holes", action="store_true", help="also judge each kind of holes by itself")
    wishes = parser.parse_args()
    runs = []
    for number, (kind, scene, near, depth) in enumerate(sources()):
        truth = (depth / np.nanstd(depth)).astype(np.float32)
        for h, (holes, damage) in enumerate(HOLES.items()):
            run = filled(kind, scene, holes, truth, damage(truth, near, np.random.default_rng([number, h])))
            runs += [run] if run is not None else []
        print(f"{number + 1} maps", end="\r", flush=True)
    scenes = list(dict.fromkeys((run.kind, run.scene) for run in runs))
    fold = [HALVES[r.kind] if wishes.kinds else scenes.index((r.kind, r.scene)) % FOLDS for r in runs]
    print("squared error / variance in tenths of the variance, as it is:")
    judge(runs, [run.promised for run in runs], wishes.holes)
    print(f"held out, by {'kinds' if wishes.kinds else 'scenes'}:")
    judge(runs, held_out(runs, fold), wishes.holes)
    for name, weights in zip(("SCATTERED", "TOGETHER"), both_laws(runs), strict=True):
        print(name, "=", np.round(weights, 3).tolist())


if __name__ == "__main__":
    main()

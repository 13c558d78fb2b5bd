"""Learns the weights of `sparsedepth.restore.variance_known` on maps with known truth, and says how they do on others.

Crops of Middlebury 2005 and 2006, of sensors' frames and simulated laser scans, with 1, 5, 10 and 20 % of impulses. The
weights of corrected pixels make squared error / variance likeliest (a gamma law), those of kept pixels the total error
of each map: single kept pixels err too rarely and too much. Maps are restored by networks that have not learned from
them, which benchmarks/suspicion.py leaves. Held-out numbers are of scenes that were not learned from here, either.
Needs SPARSEDEPTH_DATA; about ten minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from scipy.optimize import minimize
from scipy.special import expit

from sparsedepth import Dictionary
from sparsedepth.data import kinect
from sparsedepth.data.crops import crops
from sparsedepth.data.middlebury import disparities, disparity_files
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.simulated_scans import simulated_scans
from sparsedepth.data.synthetic import corrupted
from sparsedepth.data.time_of_flight import mug
from sparsedepth.metrics import calibration
from sparsedepth.restore import calibrated, suspicion, variance_known
from sparsedepth.restore.door import Work
from sparsedepth.restore.evidence import gather, quantum_of
from sparsedepth.vocabulary import DepthMap, Floats, Vector
from suspicion import FOLDS as NETWORKS
from suspicion import fold_of

SHARES = (0.01, 0.05, 0.1, 0.2)
COUNTS = {"disparity": 2.0, "sensor": 0.5, "scan": 1.5}
"""How much the maps of a kind count together: those that are measured in docs/results more than others."""
FOLDS = 4
DAMPING = 1e-3
LEAST = 0.2
"""Squared error, in map variances, that no map is trusted to stay below: one impulse more or less."""


@dataclass(frozen=True, eq=False)
class Pixels:
    """Some pixels of a map."""

    signs: Floats
    """What tells their error."""
    lost: Vector
    """The squared error of kept pixels that their chance leaves open; that of corrected ones if they were clean."""
    squared: Vector
    """Their true error."""


@dataclass(frozen=True, eq=False)
class Run:
    """A noisy map, restored; in deviations of the map."""

    kind: str
    scene: str
    kept: Pixels
    """Those that may be noisy."""
    sure: int
    """The number of the other kept ones, which did not change."""
    corrected: Pixels
    signs_of_clean: Floats
    clean: Vector
    """Whether each of the corrected ones was."""


def sources() -> Iterator[tuple[str, str, DepthMap]]:
    """Kind, scene and map."""
    for year, every in ((2005, 1), (2006, 3)):
        for i, (file, depth) in list(enumerate(zip(disparity_files(year), disparities(year), strict=True)))[::every]:
            yield from (("disparity", file.parent.name, crop.depth) for crop in crops(depth, 1, seed=100 + i))
    for i, frame in ((1, kinect.frames()[1]), (6, kinect.frames()[6])):
        yield from (("sensor", "kinect", np.log(crop.depth)) for crop in crops(frame, 2, seed=100 + i))
    yield from (("sensor", "mug", np.log(crop.depth)) for crop in crops(mug().depth, 2, seed=101))
    yield from (("sensor", "Motorcycle", crop.depth) for crop in crops(motorcycle_disparity(), 2, seed=102))
    yield from (("scan", f"scan {i}", depth) for i, depth in enumerate(simulated_scans(22)) if i >= 6)


def restored(kind: str, scene: str, truth: DepthMap, noisy_map: DepthMap) -> Run:
    work = Work.of(noisy_map, None, Dictionary.builtin("default").patch_shape, None)
    coding = calibrated.coding(None, "balanced")
    sample = work.sample()
    quantum = quantum_of(sample.depth)
    first_look = gather(sample, coding, quantum, 1)
    detector, evidence, weighed, _ = calibrated._detector(sample, first_look, coding, quantum, True, 1)
    believed = detector.correct(sample, evidence, weighed, 1)
    law, known = detector.doubt.law, np.isfinite(sample.depth)
    squared = np.square(believed.value - (truth - work.reference) / work.spread)
    lost, left_open = np.square(weighed.weight * evidence.residual), variance_known.left_open(evidence, weighed)
    kept, corrected = known & ~believed.noisy, believed.noisy
    doubtful = kept & (evidence.score > 0)
    theirs = evidence.at(doubtful)
    signs_of_kept = variance_known.signs_of_kept(law, quantum > 0, theirs, weighed.chance[doubtful])
    theirs = evidence.at(corrected)
    return Run(
        kind,
        scene,
        Pixels(_matrix(signs_of_kept), left_open[doubtful], squared[doubtful]),
        int((kept & ~doubtful).sum()),
        Pixels(_matrix(variance_known.signs_of_corrected(law, theirs)), lost[corrected], squared[corrected]),
        _matrix(variance_known.signs_of_clean(theirs, weighed.chance[corrected])),
        (noisy_map == truth)[corrected],
    )


def _matrix(signs: list[Floats | float]) -> Floats:
    return np.stack(np.broadcast_arrays(*signs), axis=1)


def counts(runs: Sequence[Run]) -> Vector:
    """How much each counts."""
    kinds = [run.kind for run in runs]
    return np.array([COUNTS[kind] / kinds.count(kind) for kind in kinds])


class Scaled:
    """A matrix of signs whose columns, but the first, have mean 0 and deviation 1: what damping needs."""

    def __init__(self, signs: Floats):
        self.mean, self.deviation = signs.mean(axis=0), signs.std(axis=0) + 1e-9
        self.mean[0], self.deviation[0] = 0, 1
        self.signs = (signs - self.mean) / self.deviation

    def back(self, weights: Vector) -> Vector:
        plain = weights / self.deviation
        plain[0] -= (plain * self.mean)[1:].sum()
        return plain


def least(loss: Callable[[Vector], tuple[float, Vector]], start: Vector, free: Sequence[int]) -> Vector:
    """Minimise, with a little damping of all weights but the free ones."""
    damped = np.full(len(start), DAMPING)
    damped[list(free)] = 0

    def whole(weights: Vector) -> tuple[float, Vector]:
        value, slope = loss(weights)
        return value + float(damped @ np.square(weights)), slope + 2 * damped * weights

    return minimize(whole, start, jac=True, method="L-BFGS-B", options={"maxiter": 150}).x


def learn_kept(runs: Sequence[Run]) -> Vector:
    """The total error of each map, as likely as a Poisson law makes it within the map and a gamma law between maps."""
    scaled = Scaled(np.concatenate([run.kept.signs for run in runs]))
    lost, squared = (np.concatenate([getattr(run.kept, name) for run in runs]) for name in ("lost", "squared"))
    run_of = np.repeat(np.arange(len(runs)), [len(run.kept.lost) for run in runs])
    weights = np.zeros(scaled.signs.shape[1])
    weights[0] = np.log(squared.mean())
    total = np.full(len(runs), squared.sum() / len(runs))
    for _ in range(4):
        count = (counts(runs) / total)[run_of]

        def loss(weights: Vector, count: Vector = count) -> tuple[float, Vector]:
            noise = expit(scaled.signs @ weights)
            promised = lost + noise + 1e-12
            slope = count * (1 - squared / promised) * noise * (1 - noise)
            return float(count @ (promised - squared * np.log(promised))), scaled.signs.T @ slope

        weights = least(loss, weights, free=[0])
        total = np.bincount(run_of, lost + expit(scaled.signs @ weights), len(runs)) + LEAST
    return scaled.back(weights)


def learn_corrected(runs: Sequence[Run], labels: float = 0.1) -> tuple[Vector, Vector]:
    """Squared error over variance by a gamma law; a little also whether a pixel was clean, which is known here."""
    scaled = Scaled(np.concatenate([run.corrected.signs for run in runs]))
    odds = Scaled(np.concatenate([run.signs_of_clean for run in runs]))
    lost, squared = (np.concatenate([getattr(run.corrected, name) for run in runs]) for name in ("lost", "squared"))
    clean = np.concatenate([run.clean for run in runs])
    count = np.repeat(counts(runs), [len(run.clean) for run in runs])
    count /= count.sum()
    n = scaled.signs.shape[1]

    def loss(weights: Vector) -> tuple[float, Vector]:
        noise, chance = expit(scaled.signs @ weights[:n]), expit(odds.signs @ weights[n:])
        promised = (1 - chance) * noise + chance * lost + 1e-9
        ratio = (squared + 1e-9) / promised
        value = count @ (np.log(promised) + ratio - labels * np.log(np.where(clean, chance, 1 - chance) + 1e-12))
        slope = count * (1 - ratio) / promised
        of_noise = slope * (1 - chance) * noise * (1 - noise)
        of_chance = slope * (lost - noise) * chance * (1 - chance) - labels * count * (clean - chance)
        return float(value), np.concatenate([scaled.signs.T @ of_noise, odds.signs.T @ of_chance])

    start = np.zeros(n + odds.signs.shape[1])
    start[0], start[n] = np.log(count @ squared), -4
    weights = least(loss, start, free=[0, n])
    return scaled.back(weights[:n]), odds.back(weights[n:])


def promised(run: Run, kept: Vector, corrected: Vector, clean: Vector) -> tuple[Vector, Vector]:
    """The variances of the kept pixels, sure ones last, and of the corrected ones."""
    of_kept = np.append(run.kept.lost + expit(run.kept.signs @ kept), np.zeros(run.sure))
    chance = expit(run.signs_of_clean @ clean)
    of_corrected = (1 - chance) * expit(run.corrected.signs @ corrected) + chance * run.corrected.lost
    return (
        variance_known.Steps.of(of_kept, variance_known.SHARED["kept"])(of_kept),
        variance_known.Steps.of(of_corrected, variance_known.SHARED["corrected"])(of_corrected),
    )


def judge(runs: Sequence[Run], promises: Sequence[tuple[Vector, Vector]]) -> None:
    for kind in COUNTS:
        those = [(run, promise) for run, promise in zip(runs, promises, strict=True) if run.kind == kind]
        kept = [(np.append(run.kept.squared, np.zeros(run.sure)), promise[0]) for run, promise in those]
        corrected = [(run.corrected.squared, promise[1]) for run, promise in those]
        for name, pairs in (("measured", kept), ("corrected", corrected), ("all known", kept + corrected)):
            squared, told = (np.concatenate(values) for values in zip(*pairs, strict=True))
            ratio = calibration(np.sqrt(squared), np.maximum(told, 1e-14)).ratio
            print(f"{kind}, {name}:", " ".join(f"{r:.2f}" for r in ratio), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folds", type=Path, default=Path("out/suspicion"), help="of benchmarks/suspicion.py")
    folds = parser.parse_args().folds
    networks = [suspicion.Network.of(load_file(folds / f"{held}.safetensors")) for held in range(NETWORKS)]
    runs = []
    for number, (kind, scene, depth) in enumerate(sources()):
        unseen = networks[fold_of(scene)]
        suspicion.network = lambda unseen=unseen: unseen
        truth = (depth / np.nanstd(depth)).astype(np.float32)
        for share in SHARES:
            noisy = corrupted(truth, share, np.random.default_rng([number, round(100 * share)]))
            runs.append(restored(kind, scene, truth, noisy))
        print(f"{number + 1} maps", end="\r", flush=True)
    scenes = list(dict.fromkeys((run.kind, run.scene) for run in runs))
    fold = [scenes.index((run.kind, run.scene)) % FOLDS for run in runs]
    promises: list[tuple[Vector, Vector]] = [(np.empty(0), np.empty(0))] * len(runs)
    for held in range(FOLDS):
        others = [run for run, of in zip(runs, fold, strict=True) if of != held]
        weights = (learn_kept(others), *learn_corrected(others))
        for i, of in enumerate(fold):
            if of == held:
                promises[i] = promised(runs[i], *weights)
    print("squared error / variance in tenths of the variance, held out:")
    judge(runs, promises)
    for name, weights in zip(("KEPT", "CORRECTED", "CLEAN"), (learn_kept(runs), *learn_corrected(runs)), strict=True):
        print(name, "=", np.round(weights, 3).tolist())


if __name__ == "__main__":
    main()

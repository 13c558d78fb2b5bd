"""Fit the coefficients of `sparsedepth.restore.variance_measured` on maps with known truth; report held-out scenes.

Crops of both views of all Middlebury scenes of 2005 and 2006, of sensors' frames, simulated laser scans of two kinds
and leaves before a slope, with 1, 5, 10 and 20 % of impulses, drawn several times: errors of kept pixels are rare. The
weights make the squared errors likeliest under Tweedie's law, which is between a gamma law, for which the ratio of
error and variance counts, and a Poisson law, for which the sum of the errors does. Maps are restored by networks that
have not learned from them, which training/outlier_classifier.py leaves. Held-out numbers are of scenes
that were not learned from here, either, and of whole kinds. Needs SPARSEDEPTH_DATA; about ten minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file
from scipy.optimize import minimize
from scipy.special import expit
from suspicion import FOLDS as NETWORKS
from suspicion import finer_scans, fold_of, foliage

from sparsedepth import Dictionary
from sparsedepth.data import kinect
from sparsedepth.data.crops import crops
from sparsedepth.data.middlebury import disparities, disparity_files
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.simulated_scans import simulated_scans
from sparsedepth.data.synthetic import corrupted
from sparsedepth.data.time_of_flight import mug
from sparsedepth.metrics import calibration, sparsification
from sparsedepth.restore import classifier, pipeline, variance_measured
from sparsedepth.restore.noise_model import Law
from sparsedepth.restore.scores import gather, quantum_of
from sparsedepth.restore.tiling import Work
from sparsedepth.restore.variance_measured import RANGES, Surroundings, Weights
from sparsedepth.vocabulary import DepthMap, Floats, Vector

SHARES = (0.01, 0.05, 0.1, 0.2)
DRAWS = 2
COUNTS = {"disparity": 2.0, "sensor": 0.5, "scan": 1.0, "finer scan": 1.0, "leaves": 0.1}
"""How much the maps of a kind count together: those that are measured in docs/results more than others."""
OTHERS = ("scan", "finer scan"), ("leaves",), ("disparity",)
"""Kinds that are held out as a whole."""
FOLDS = 3
DAMPING = 1e-3
POWERS = {"kept": 1.8, "corrected": 1.5}
"""The variance of a pixel's squared error grows like its mean to this power."""
BENT = 1e-2
"""What it costs that the error bends with the range."""
DULL, THINNED = 1e-10, 8
"""Kept pixels whose squared error is below this are thinned to one in so many for learning."""
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Kept:
    """The pixels of a map that were kept."""

    wide: Vector
    texture: Vector
    left: Vector
    """What is left open of suspects; 0 elsewhere."""
    squared: Vector
    """Their true error."""


@dataclass(frozen=True, eq=False)
class Corrected:
    """The pixels of a map that were corrected."""

    signs: Floats
    signs_of_clean: Floats
    taken: Vector
    """The squared error of each if it was clean."""
    clean: Vector
    """Whether it was."""
    squared: Vector


@dataclass(frozen=True, eq=False)
class Run:
    """A noisy map, restored; in deviations of the map."""

    kind: str
    scene: str
    quantised: bool
    law: Law
    unit: float
    """Of the map as it was given, in deviations of the true one."""
    kept: Kept
    corrected: Corrected


def sources() -> Iterator[tuple[str, str, DepthMap]]:
    """Kind, scene and map."""
    for year in (2005, 2006):
        for i, (file, depth) in enumerate(zip(disparity_files(year), disparities(year), strict=True)):
            yield from (("disparity", file.parent.name, crop.depth) for crop in crops(depth, 1, seed=100 + i))
    for i, frame in ((1, kinect.frames()[1]), (6, kinect.frames()[6])):
        yield from (("sensor", "kinect", np.log(crop.depth)) for crop in crops(frame, 2, seed=100 + i))
    yield from (("sensor", "mug", np.log(crop.depth)) for crop in crops(mug().depth, 2, seed=101))
    yield from (("sensor", "Motorcycle", crop.depth) for crop in crops(motorcycle_disparity(), 2, seed=102))
    yield from (("scan", f"scan {i}", depth) for i, depth in enumerate(simulated_scans(22)) if i >= 6)
    yield from (("finer scan", f"finer scan {i}", depth) for i, depth in enumerate(islice(finer_scans(), 16)))
    twigs = (foliage(np.random.default_rng([92, i]), (0.8, 2.3), rough=0.5, nearest=1.5) for i in range(6))
    yield from (("leaves", f"leaves {i}", depth) for i, depth in enumerate(twigs))


def restored(kind: str, scene: str, truth: DepthMap, noisy_map: DepthMap) -> Run | None:
    """None if the noise is taken for one that is everywhere."""
    work = Work.of(noisy_map, None, Dictionary.builtin("default").patch_shape, None)
    coding = pipeline.coding(None, "balanced")
    sample = work.sample()
    quantum = quantum_of(sample.depth)
    first_look = gather(sample, coding, quantum, 1)
    detector, evidence, weighed, _ = pipeline._detector(sample, first_look, coding, quantum, True, 1)
    if detector.smoother is not None:
        return None
    believed = detector.correct(sample, evidence, weighed, 1)
    noise = detector.doubt.noise
    squared = np.square(believed.value - (truth - work.reference) / work.spread)
    kept, noisy = np.isfinite(sample.depth) & ~believed.noisy, believed.noisy
    around, left = Surroundings.of(believed.value), variance_measured.left_open(evidence, weighed)
    theirs, about = evidence.at(noisy), around.at(noisy)
    return Run(
        kind,
        scene,
        quantum > 0,
        noise.law,
        work.spread,
        Kept(around.wide[kept], variance_measured.log_texture(evidence.at(kept)), left[kept], squared[kept]),
        Corrected(
            _matrix(variance_measured.signs_of_corrected(noise.law, about, theirs)),
            _matrix(variance_measured.signs_of_clean(noise.undecided, theirs, weighed.chance[noisy])),
            np.square(weighed.weight[noisy] * theirs.residual),
            (noisy_map == truth)[noisy],
            squared[noisy],
        ),
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


@dataclass(frozen=True, eq=False)
class Fit:
    """How badly promised variances fit squared errors, by Tweedie's law."""

    power: float
    squared: Vector
    count: Vector

    @classmethod
    def of(cls, power: float, squared: Vector, count: Vector) -> Fit:
        squared, count = squared + ROUNDING, count / count.sum()
        return cls(power, squared, count / (count @ np.sqrt(squared)) ** (2 * (2 - power)))

    def __call__(self, promised: Vector) -> tuple[float, Vector]:
        """The misfit, and its slope with respect to each promise."""
        promised, power = promised + ROUNDING, self.power
        misfit = self.squared * promised ** (1 - power) / (power - 1) + promised ** (2 - power) / (2 - power)
        return float(self.count @ misfit), self.count * (promised ** (1 - power) - self.squared * promised**-power)


def learned(runs: Sequence[Run]) -> Weights:
    table, by, seen = learn_kept(runs)
    return Weights(table, by, seen, *learn_corrected(runs))


def learn_kept(runs: Sequence[Run]) -> tuple[Vector, Vector, Vector]:
    """The error by range, how it changes with texture and share, and that of suspects."""
    rng, parts = np.random.default_rng(0), []
    for run, count in zip(runs, counts(runs), strict=True):
        kept, dull = run.kept, run.kept.squared < DULL
        some = ~dull | (rng.random(len(dull)) < 1 / THINNED)
        share = np.log(max(run.law.share, 1e-4))
        hats = np.stack([np.interp(kept.wide[some], RANGES, unit) for unit in np.eye(len(RANGES))], axis=1)
        signs = np.column_stack([hats, kept.texture[some], np.full(len(hats), share)])
        given = np.full(len(hats), share - np.log(run.law.size))
        parts.append((signs, given, kept.left[some], kept.squared[some], count * np.where(dull, THINNED, 1)[some]))
    signs, given, left, squared, count = (np.concatenate(values) for values in zip(*parts, strict=True))
    middle = signs[:, len(RANGES) :].mean(axis=0)
    signs[:, len(RANGES) :] -= middle
    log_left, fit = np.log(np.maximum(left, 1e-12)), Fit.of(POWERS["kept"], squared, count)
    n = signs.shape[1]

    def loss(weights: Vector) -> tuple[float, Vector]:
        missed = np.exp(np.clip(signs @ weights[:n] + given, -30, variance_measured.LARGEST))
        more = np.where(left > 0, np.exp(weights[n] + weights[n + 1] * log_left), 0)
        value, slope = fit(missed + left + more)
        of_more = slope * more
        bends = np.diff(weights[: len(RANGES)], 2)
        of_bends = np.zeros(n)
        for at, times in enumerate((1, -2, 1)):
            of_bends[at : at + len(bends)] += 2 * BENT * times * bends
        of_signs = signs.T @ (slope * missed) + of_bends
        return float(value + BENT * bends @ bends), np.concatenate([of_signs, [of_more.sum(), of_more @ log_left]])

    start = np.concatenate([np.linspace(-15, -2, len(RANGES)), [0, 0, 0, 0.7]])
    weights = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 200}).x
    table, by, seen = np.split(weights, [len(RANGES), n])
    return table - by @ middle, by, seen


def learn_corrected(runs: Sequence[Run], labels: float = 1.0) -> tuple[Vector, Vector]:
    """The errors, and whether a pixel was clean, which is known here."""
    scaled = Scaled(np.concatenate([run.corrected.signs for run in runs]))
    odds = Scaled(np.concatenate([run.corrected.signs_of_clean for run in runs]))
    taken, squared, clean = (
        np.concatenate([getattr(run.corrected, name) for run in runs]) for name in ("taken", "squared", "clean")
    )
    count = np.repeat(counts(runs), [len(run.corrected.clean) for run in runs])
    count, fit = count / count.sum(), Fit.of(POWERS["corrected"], squared, count)
    n = scaled.signs.shape[1]

    def loss(weights: Vector) -> tuple[float, Vector]:
        noise, chance = expit(scaled.signs @ weights[:n]), expit(odds.signs @ weights[n:])
        value, slope = fit((1 - chance) * noise + chance * taken)
        value -= labels * count @ np.log(np.where(clean, chance, 1 - chance) + 1e-12)
        of_noise = slope * (1 - chance) * noise * (1 - noise)
        of_chance = slope * (taken - noise) * chance * (1 - chance) - labels * count * (clean - chance)
        return float(value), np.concatenate([scaled.signs.T @ of_noise, odds.signs.T @ of_chance])

    start = np.zeros(n + odds.signs.shape[1])
    start[0], start[n] = np.log(count @ squared), -4
    weights = least(loss, start, free=[0, n])
    return scaled.back(weights[:n]), odds.back(weights[n:])


def promised(run: Run, weights: Weights) -> tuple[Vector, Vector]:
    """The variances of the kept pixels and of the corrected ones."""
    kept, corrected = run.kept, run.corrected
    expected = variance_measured.missed(weights, run.law, kept.wide, kept.texture)
    expected += variance_measured.seen(weights, kept.left)
    limit, mean = variance_measured.surest(expected)
    clean = expit(corrected.signs_of_clean @ weights.clean)
    wrong = expit(corrected.signs @ weights.corrected)
    return np.where(expected <= limit, mean, expected), clean * corrected.taken + (1 - clean) * wrong


def judge(runs: Sequence[Run], promises: Sequence[tuple[Vector, Vector]]) -> None:
    """The tenths of each kind, and the area between the sparsification curves (AUSE)."""
    for kind in dict.fromkeys(run.kind for run in runs):
        those = [(run, promise) for run, promise in zip(runs, promises, strict=True) if run.kind == kind]
        kept, corrected = (
            [(getattr(run, name).squared * run.unit**2, promise[i] * run.unit**2) for run, promise in those]
            for i, name in enumerate(("kept", "corrected"))
        )
        for name, pairs in (("measured", kept), ("corrected", corrected), ("all known", kept + corrected)):
            squared, told = (np.concatenate(values) for values in zip(*pairs, strict=True))
            error, told = np.sqrt(squared), np.maximum(told, 1e-14)
            ratios = " ".join(f"{ratio:.2f}" for ratio in calibration(error, told).ratio)
            print(f"{kind}, {name}: {ratios}; AUSE {sparsification(error, told).area:.3f}", flush=True)


def alike(runs: Sequence[Run], quantised: bool) -> list[Run]:
    return [run for run in runs if run.quantised == quantised]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folds", type=Path, default=Path("out/suspicion"), help="of training/outlier_classifier.py")
    folds = parser.parse_args().folds
    networks = [classifier.Network.of(load_file(folds / f"{held}.safetensors")) for held in range(NETWORKS)]
    found = []
    for number, (kind, scene, depth) in enumerate(sources()):
        unseen = networks[fold_of(scene)]
        classifier.network = lambda unseen=unseen: unseen
        truth = (depth / np.nanstd(depth)).astype(np.float32)
        for share in SHARES:
            for draw in range(DRAWS):
                rng = np.random.default_rng([number, round(100 * share), draw])
                found.append(restored(kind, scene, truth, corrupted(truth, share, rng)))
        print(f"{number + 1} maps", end="\r", flush=True)
    report([run for run in found if run is not None])


def report(runs: Sequence[Run]) -> None:
    """What is learned, and how it does on scenes and kinds that it was not learned from."""
    scenes = list(dict.fromkeys((run.kind, run.scene) for run in runs))
    fold = [scenes.index((run.kind, run.scene)) % FOLDS for run in runs]
    promises: list[tuple[Vector, Vector]] = [(np.empty(0), np.empty(0))] * len(runs)
    for held in range(FOLDS):
        others = [run for run, of in zip(runs, fold, strict=True) if of != held]
        weights = {quantised: learned(alike(others, quantised)) for quantised in (False, True)}
        for i, (run, of) in enumerate(zip(runs, fold, strict=True)):
            if of == held:
                promises[i] = promised(run, weights[run.quantised])
    print("squared error / variance in tenths of the variance, scenes held out:")
    judge(runs, promises)
    for kinds in OTHERS:
        print(f"{' and '.join(kinds)} held out as a whole:")
        those = [run for run in runs if run.kind in kinds]
        others = [run for run in runs if run.kind not in kinds]
        weights = {quantised: learned(alike(others, quantised)) for quantised in {run.quantised for run in those}}
        judge(those, [promised(run, weights[run.quantised]) for run in those])
    for name, quantised in (("QUANTISED", True), ("FINE", False)):
        print(f"{name} = Weights(")
        for part, numbers in vars(learned(alike(runs, quantised))).items():
            print(f"    {part}=np.array({np.round(numbers, 3).tolist()}),")
        print(")")


if __name__ == "__main__":
    main()

"""Learns the network of `sparsedepth.restore.classifier` on maps with known noise, and says how it does on others.

Crops of Middlebury 2005 and 2006, of sensors' frames, simulated laser scans of four kinds and planes, as they are and
with small things added, which are no noise; some quantised, some with holes. With 1, 5 and 20 % of impulses of half,
once and twice the paper's size, with a few, with none, and with noise on one side; seen at the first look and at the
last one. The network makes the logarithm of the squared error of each map least, in the mean. Looks depend on the
network that is there, so it is learned from what the one before shows. Networks that have not learned from a third of
the scenes each are kept for training/variance_measured.py. Needs SPARSEDEPTH_DATA; about half an hour.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, pairwise, product
from pathlib import Path
from zlib import crc32

import numpy as np
from safetensors.numpy import save_file
from scipy.ndimage import gaussian_filter
from scipy.special import expit

from sparsedepth.data import kinect
from sparsedepth.data.crops import crops
from sparsedepth.data.middlebury import disparities, disparity_files
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.simulated_scans import simulated_ranges, simulated_scans
from sparsedepth.data.synthetic import corrupted, quantised, with_missing
from sparsedepth.data.time_of_flight import mug
from sparsedepth.restore import pipeline
from sparsedepth.restore.classifier import Network, signs_of, vetoes
from sparsedepth.restore.posterior import DOUBTFUL
from sparsedepth.restore.scores import Evidence, gather, quantum_of
from sparsedepth.restore.tiling import Work
from sparsedepth.vocabulary import DepthMap, Floats, Vector

LEVELS = tuple(product((0.01, 0.05, 0.2), (0.5, 1.0, 2.0)))
"""The shares and amplitudes of the noise; each map has some of them, drawn by chance, without and with things."""
DRAWS = 3
RARE = (0.001, 0.002, 0.004)
"""The share of the noise of two more draws, the first of which has none at all."""
OTHER_SHAPE, QUANTISED, WITH_HOLES = 0.15, 0.2, 0.1
"""How often noise is Laplace's, a map is rounded to some levels, and pixels are hidden."""
FAST = 0.2
"""The share of maps that are looked at as `fast` does."""
THINGS = (4, 16)
"""How many things a map gets, at least and fewer than."""
HIDDEN = (48, 24)
EPOCHS, BATCH, RATE, DECAY = 40, 4096, 3e-3, 1e-4
ANEW = 5
"""Epochs after which maps count anew."""
STRONGEST = 300
"""The pull of a pixel on the odds, at most, in mean ones: single large errors would lead all others astray."""
FOLDS = 3
LEAST = 0.03
"""Squared error, in map variances, below which a map is as good as restored."""


@dataclass(frozen=True, eq=False)
class Seen:
    """The doubtful pixels of a noisy map at one look; in deviations of the map."""

    kind: str
    scene: str
    signs: Floats
    vetoed: Vector
    noise: Vector
    residual: Vector
    elsewhere: float
    """The squared noise of all other pixels."""

    def left(self, weight: Vector) -> float:
        """The squared error of the map if so much is taken."""
        return self.elsewhere + float(np.square(self.noise - weight * self.residual).sum())


def sources() -> Iterator[tuple[str, str, DepthMap]]:
    """Kind, scene and map."""
    for year in (2005, 2006):
        for i, (file, depth) in enumerate(zip(disparity_files(year), disparities(year), strict=True)):
            yield from (("disparity", file.parent.name, crop.depth) for crop in crops(depth, 1, seed=300 + i))
    for i, frame in ((0, kinect.frames()[0]), (4, kinect.frames()[4])):
        yield from (("sensor", "kinect", np.log(crop.depth)) for crop in crops(frame, 2, seed=i))
    yield from (("sensor", "mug", np.log(crop.depth)) for crop in crops(mug().depth, 2, seed=1))
    yield from (("sensor", "Motorcycle", crop.depth) for crop in crops(motorcycle_disparity(), 2, seed=2))
    yield from (("scan", f"scan {i}", depth) for i, depth in enumerate(simulated_scans(40)))
    yield from (("scan", f"finer scan {i}", depth) for i, depth in enumerate(islice(finer_scans(), 32)))
    yield from (("scan", f"leaves {i}", depth) for i, depth in enumerate(islice(single_leaves(), 32)))
    yield from (("planes", f"planes {i}", planes(np.random.default_rng([91, i]))) for i in range(72))


def finer_scans(size: int = 100, known: float = 0.7) -> Iterator[DepthMap]:
    """Simulated scans of half the step, or with half the step across only: rows of scanners lie far apart."""
    for seed in range(10_000):
        rng = np.random.default_rng([78, seed])
        ranges = np.log(simulated_ranges(rng, 2 * size))
        top, left = rng.integers(0, size + 1, 2)
        rows = slice(top, top + size) if seed % 2 else slice(seed % 4 // 2, None, 2)
        scan = ranges[rows, left : left + size]
        if np.isfinite(scan).mean() > known:
            yield scan


def single_leaves(size: int = 100, known: float = 0.6) -> Iterator[DepthMap]:
    """Simulated scans through sparse crowns: single returns in front of everything else, denser towards a middle."""
    rows, columns = np.indices((size, size))
    for seed in range(10_000):
        rng = np.random.default_rng([79, seed])
        ranges = simulated_ranges(rng, size)
        for _ in range(rng.integers(1, 4)):
            (row, column), (high, wide) = rng.uniform(0, size, 2), rng.uniform(8, 35, 2)
            away = ((rows - row) / high) ** 2 + ((columns - column) / wide) ** 2
            luck = rng.random((size, size))
            if rng.random() < 0.5:
                luck = np.minimum(luck, np.roll(luck, 1, axis=rng.integers(2)) + rng.choice([0.0, 0.3]))
            leaf = luck < rng.choice([0.003, 0.01, 0.03, 0.1, 0.3]) * np.exp(-away)
            ranges = np.where(leaf, np.minimum(ranges, _leaves(ranges[away < 1], rng, (size, size))), ranges)
        if np.isfinite(ranges).mean() > known:
            yield np.log(ranges)


def _leaves(behind: Floats, rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Ranges of leaves in front of what is behind them."""
    nearest = np.nanmin(behind, initial=40.0, where=np.isfinite(behind))
    begin, depth = rng.uniform(0.3, 0.95) * nearest, rng.uniform(0.02, 0.2) * nearest
    return begin + np.abs(rng.normal(0, depth, shape))


def foliage(
    rng: np.random.Generator,
    widths: tuple[float, float] = (0.7, 1.8),
    rough: float = 0.4,
    nearest: float = 1.0,
    size: int = 100,
) -> DepthMap:
    """Logarithms of ranges of a slope seen through leaves of some width, which keep to their trees; some are lost.

    Not learned from here: for benchmarks of the variance.
    """

    def field(scale: float) -> Floats:
        values = gaussian_filter(rng.standard_normal((size, size)), scale)
        return values / values.std()

    rows, columns = np.indices((size, size)) / size
    slope = 6 + 14 * (1 - rows) + 3 * np.sin(3 * columns + rng.uniform(0, 6))
    leaves = field(rng.uniform(*widths)) + 1.2 * field(12.0) > 1
    near = 4 + 0.6 * field(5.0) + rough * field(0.7)
    depth = np.log(np.where(leaves, np.maximum(near, nearest), slope)) + 0.002 * rng.standard_normal((size, size))
    return np.where(rng.random((size, size)) < 0.01, np.nan, depth)


def planes(rng: np.random.Generator, size: int = 100) -> DepthMap:
    """A few slanted planes with straight borders; some maps are quantised, some a little rough."""
    rows, columns = np.indices((size, size)) / size

    def plane() -> Floats:
        down, right, offset = rng.normal(0, [2, 2, 1])
        return down * (rows - 0.5) + right * (columns - 0.5) + offset

    depth = plane()
    for _ in range(rng.integers(0, 4)):
        angle, (row, column) = rng.uniform(0, np.pi), rng.uniform(0.2, 0.8, 2)
        depth = np.where((rows - row) * np.sin(angle) + (columns - column) * np.cos(angle) > 0, plane(), depth)
    step, roughness = rng.choice([0, 0, 0.03, 0.1]), rng.choice([0, 0.002])
    depth = np.round(depth / step) * step if step else depth
    return depth + roughness * rng.standard_normal(depth.shape)


def with_things(depth: DepthMap, rng: np.random.Generator) -> DepthMap:
    """Small things in front of a map or behind it: squares, poles and wires, as deep as what is there or level."""
    rows, columns = np.indices(depth.shape)
    depth = depth.copy()
    for _ in range(rng.integers(*THINGS)):
        height, width = sorted((rng.integers(1, 8), rng.integers(2, 8) * rng.choice([1, 1, 4])))
        if rng.random() < 0.5:
            height, width = width, height
        lean = rng.choice([0.0, 0.0, rng.uniform(-1, 1)])
        row, column = (rng.integers(-3, size) for size in depth.shape)
        across = columns - column - np.rint(lean * (rows - row))
        thing = (rows >= row) & (rows < row + height) & (across >= 0) & (across < width) & np.isfinite(depth)
        if thing.any():
            offset = rng.choice([-1, 1]) * rng.uniform(0.15, 2.5)
            depth[thing] = offset + (depth[thing] if rng.random() < 0.5 else depth[thing].mean())
    return depth


def spoilt(truth: DepthMap, share: float, rng: np.random.Generator, amplitude: float) -> DepthMap:
    """With impulses, mostly the paper's, else of heavier tails."""
    if rng.random() > OTHER_SHAPE:
        return corrupted(truth, share, rng, amplitude)
    noise = rng.laplace(0, amplitude / 2, truth.shape) * np.nanstd(truth)
    return (truth + np.where(rng.random(truth.shape) < share, noise, 0)).astype(np.float32)


def on_one_side(plain: DepthMap, rng: np.random.Generator) -> Iterator[tuple[DepthMap, DepthMap]]:
    """True and noisy maps whose noise lies on one side only, without and with things."""
    for truth in (plain, with_things(plain, rng)):
        share, amplitude = rng.choice([*RARE[1:], 0.01, 0.05, 0.2]), rng.choice([0.5, 1.0, 2.0])
        noise = np.abs(corrupted(truth, share, rng, amplitude) - truth)
        yield truth, truth + np.float32(rng.choice([-1, 1])) * noise


def variants(plain: DepthMap, rng: np.random.Generator) -> Iterator[tuple[DepthMap, DepthMap]]:
    """True and noisy maps."""
    for base in (plain, with_things(plain, rng)):
        levels = [*rng.permutation(LEVELS)[:DRAWS], (rng.choice(RARE), rng.choice([0.5, 1.0, 2.0])), (0.0, 1.0)]
        for share, amplitude in levels:
            truth = quantised(base, int(rng.choice([32, 64, 128]))) if rng.random() < QUANTISED else base
            truth = with_missing(truth, rng.uniform(0.2, 0.6), rng) if rng.random() < WITH_HOLES else truth
            yield truth, spoilt(truth, share, rng, amplitude)


def looked_at(kind: str, scene: str, truth: DepthMap, noisy: DepthMap, quality: str = "balanced") -> Iterator[Seen]:
    """What is seen of a map at the first look and at the last one."""
    coding = pipeline.coding(None, quality)
    work = Work.of(noisy, None, coding.dictionary.patch_shape, None)
    sample = work.sample()
    quantum = quantum_of(sample.depth)
    first = gather(sample, coding, quantum, 1)
    detector, last, _, _ = pipeline._detector(sample, first, coding, quantum, True, 1)
    noise = np.nan_to_num((noisy - truth) / work.spread)

    def at(evidence: Evidence) -> Seen:
        where = evidence.score > DOUBTFUL
        law = detector.doubt.law
        signs, lost = (tell(sample, evidence, law, quantum, where) for tell in (signs_of, vetoes))
        elsewhere = float(np.square(noise[~where]).sum())
        return Seen(kind, scene, signs, lost, noise[where], evidence.residual[where], elsewhere)

    yield at(first)
    yield at(last)


def learned(maps: Sequence[Seen], seed: int = 0) -> Network:
    """By Adam, with a rate that falls like a cosine; maps count anew, by what is left of them, every few epochs."""
    rng = np.random.default_rng(seed)
    signs = np.concatenate([seen.signs for seen in maps])
    given, noise, residual = (
        np.concatenate([getattr(seen, name) for seen in maps]).astype(np.float32)
        for name in ("vetoed", "noise", "residual")
    )
    map_of = np.repeat(np.arange(len(maps)), [len(seen.noise) for seen in maps])
    network = _beginning(signs, rng)
    shown = network.scaled(signs)
    numbers = [array for layer in network.layers for array in layer]
    speeds, squares = ([np.zeros_like(array) for array in numbers] for _ in range(2))
    steps, step = EPOCHS * (len(noise) // BATCH), 0
    for epoch in range(EPOCHS):
        if epoch % ANEW == 0:
            count = _counts(network, shown, given, noise, residual, map_of, maps)
        order = rng.permutation(len(noise))
        for begin in range(0, len(noise) - BATCH + 1, BATCH):
            some = order[begin : begin + BATCH]
            slopes = _slopes(network, shown[some], given[some], noise[some], residual[some], count[map_of[some]])
            step += 1
            rate = RATE * (1 + np.cos(np.pi * step / steps)) / 2
            for array, slope, speed, square in zip(numbers, slopes, speeds, squares, strict=True):
                speed += 0.1 * (slope - speed)
                square += 0.001 * (slope * slope - square)
                move = speed / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
                array -= np.float32(rate) * (move + np.float32(DECAY) * array)
    return network


def _beginning(signs: Floats, rng: np.random.Generator) -> Network:
    widths = (signs.shape[1], *HIDDEN, 1)
    layers = tuple(
        ((rng.standard_normal((a, b)) * np.sqrt(1.5 / a)).astype(np.float32), np.zeros(b, np.float32))
        for a, b in pairwise(widths)
    )
    layers[-1][0][:] *= 0.3
    return Network(signs.mean(axis=0), signs.std(axis=0) + np.float32(1e-3), layers)


def _counts(
    network: Network,
    shown: Floats,
    given: Vector,
    noise: Vector,
    residual: Vector,
    map_of: Vector,
    maps: Sequence[Seen],
) -> Vector:
    """How much the squared error of each map counts: the slope of its logarithm."""
    weight = expit(network.layer_by_layer(shown)[-1][:, 0] + given)
    left = np.bincount(map_of, np.square(noise - weight * residual), len(maps))
    count = 1 / (left + [seen.elsewhere for seen in maps] + LEAST)
    return (count / (count[map_of] * np.square(residual)).mean()).astype(np.float32)


def _slopes(
    network: Network, shown: Floats, given: Vector, noise: Vector, residual: Vector, count: Vector
) -> list[Floats]:
    """Of the mean counted squared error, with respect to the weights and offsets of each layer."""
    *seen, last = network.layer_by_layer(shown)
    weight = expit(last[:, 0] + given)
    pull = 2 * count * (weight * residual - noise) * residual
    slope = (np.clip(pull, -STRONGEST, STRONGEST) * weight * (1 - weight) / len(noise)).astype(np.float32)[:, None]
    slopes: list[Floats] = []
    for (weights, _), below in zip(network.layers[::-1], seen[::-1], strict=True):
        slopes = [below.T @ slope, slope.sum(axis=0), *slopes]
        slope = (slope @ weights.T) * (1 - below * below)
    return slopes


def judge(maps: Sequence[Seen], weights: Sequence[Vector]) -> None:
    for kind in dict.fromkeys(seen.kind for seen in maps):
        gains = [
            10 * np.log10((seen.left(np.zeros(len(weight))) + LEAST) / (seen.left(weight) + LEAST))
            for seen, weight in zip(maps, weights, strict=True)
            if seen.kind == kind
        ]
        print(f"{kind}: {np.mean(gains):.2f} dB, held out, at the worst {np.min(gains):.1f}", flush=True)


def fold_of(scene: str) -> int:
    """Which of the held-out networks has not learned from a scene."""
    return crc32(scene.encode()) % FOLDS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("src/sparsedepth/models/outlier_classifier.safetensors"))
    parser.add_argument("--folds", type=Path, default=Path("out/suspicion"), help="for the held-out networks")
    wishes = parser.parse_args()
    with ProcessPoolExecutor(2) as pool:
        maps = [seen for some in pool.map(all_of, enumerate(sources())) for seen in some]
    fold = [fold_of(seen.scene) for seen in maps]
    sets = [[seen for seen, of in zip(maps, fold, strict=True) if of != held] for held in range(FOLDS)]
    with ThreadPoolExecutor(2) as threads:
        *networks, whole = threads.map(learned, [*sets, maps])
    judge(maps, [expit(networks[of](seen.signs) + seen.vetoed) for seen, of in zip(maps, fold, strict=True)])
    wishes.folds.mkdir(parents=True, exist_ok=True)
    for held, network in enumerate(networks):
        store(network, wishes.folds / f"{held}.safetensors")
    store(whole, wishes.output)


def all_of(source: tuple[int, tuple[str, str, DepthMap]]) -> list[Seen]:
    """What is seen of all variants of a numbered map."""
    number, (kind, scene, depth) = source
    plain = (depth / np.nanstd(depth)).astype(np.float32)
    maps: list[Seen] = []
    for seed, kinds in ((5, variants), (6, on_one_side)):
        rng = np.random.default_rng([seed, number])
        for truth, noisy in kinds(plain, rng):
            maps += looked_at(kind, scene, truth, noisy, "fast" if rng.random() < FAST else "balanced")
    return maps


def store(network: Network, output: Path) -> None:
    arrays = {"mean": network.mean, "deviation": network.deviation}
    for i, (weights, offsets) in enumerate(network.layers):
        arrays |= {f"weights{i}": weights, f"offsets{i}": offsets}
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, output)


if __name__ == "__main__":
    main()

"""Fit the classifier of `sparsedepth.restore.outliers` to maps with known noise, and report held-out scenes.

The maps are crops of Middlebury 2005 and 2006 and of sensors' frames, simulated scans of three kinds, and planes. Each
comes as it is, and with small structures added, which are no outliers. Some are quantised, some have holes. They get 1,
5 and 20 % of impulses of half, once and twice the paper's amplitude, a few impulses, none, or impulses of one sign.
Their suspects are taken after the first scoring and after the last.

The network minimises the mean log squared error of the maps. The scores after the first depend on a classifier: the
shipped one. Three more networks, each fitted without a third of the scenes, are kept for
training/variance_measured.py. Needs SPARSEDEPTH_DATA; about half an hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise, product
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from command_line import parse, training_parser
from provenance import provenance
from scenes import (
    QUICK_DATA,
    REAL_DATA,
    Scene,
    disparity_crops,
    finer_scans,
    motorcycle_crops,
    planes,
    real_files,
    sensor_crops,
    sparse_crowns,
)
from sparsedepth.data.simulated_scans import simulated_scans
from sparsedepth.data.synthetic import corrupted, quantised, with_missing
from sparsedepth.fitted import save_fitted
from sparsedepth.parallel import one_blas_thread
from sparsedepth.restore.outliers import OutlierClassifier, OutlierModel
from sparsedepth.restore.pipeline import Corrector, Survey, patch_coder
from sparsedepth.restore.scores import PixelScores
from sparsedepth.restore.settings import Settings
from sparsedepth.tiling import TiledMap
from sparsedepth.vocabulary import DepthMap, Floats, Vector

WHAT = "weights of the outlier classifier: features to log-odds, two hidden layers"
DATA = f"{REAL_DATA}; simulated scans of three kinds and planes drawn from seeds"
SEED = 0
LEVELS = tuple(product((0.01, 0.05, 0.2), (0.5, 1.0, 2.0)))
"""Fractions and amplitudes of the impulses; each map gets some of them, drawn at random."""
LEVELS_PER_MAP = 3
RARE_FRACTIONS = (0.001, 0.002, 0.004)
"""Fractions of one more draw."""
LAPLACE_PROBABILITY, QUANTISED_PROBABILITY, HOLES_PROBABILITY = 0.15, 0.2, 0.1
"""How often impulses follow Laplace's distribution, a map is quantised, and pixels are missing."""
FAST_PROBABILITY = 0.2
"""How often a map is scored with quality "fast"."""
STRUCTURES = (4, 16)
"""Least number of structures that are added to a map, and the number that it stays below."""
HIDDEN_UNITS = (48, 24)
EPOCHS, BATCH, LEARNING_RATE, WEIGHT_DECAY = 40, 4096, 3e-3, 1e-4
REWEIGHT_EPOCHS = 5
"""Epochs after which the weights of the maps are computed again."""
MAX_GRADIENT = 300
"""Largest derivative by the weight of a pixel, in mean ones, so that single large errors do not dominate."""
FOLDS = 3
ERROR_FLOOR = 0.03
"""Squared error of a map, in map variances, below which it is as good as restored."""


@dataclass(frozen=True, eq=False)
class Suspects:
    """The suspects of a noisy map after one scoring; in map standard deviations."""

    kind: str
    scene: str
    features: Floats
    penalty: Vector
    noise: Vector
    residual: Vector
    other_error: float
    """Squared noise of all other pixels."""

    def squared_error(self, weight: Vector) -> float:
        """Return the squared error of the map if the suspects are blended with that weight."""
        return self.other_error + float(np.square(self.noise - weight * self.residual).sum())

    def probability(self, classifier: OutlierClassifier) -> Vector:
        """Return the probability of an outlier of each suspect."""
        return expit(classifier(self.features) + self.penalty)


def scenes() -> Iterator[Scene]:
    """Yield all training maps."""
    yield from disparity_crops(seed=300)
    yield from sensor_crops(frames=(0, 4), per_frame=2, motorcycle=2, seed=0)
    yield from (Scene("scan", f"scan {i}", depth) for i, depth in enumerate(simulated_scans(40)))
    yield from (Scene("scan", f"finer scan {i}", depth) for i, depth in enumerate(islice(finer_scans(), 32)))
    yield from (Scene("scan", f"crowns {i}", depth) for i, depth in enumerate(islice(sparse_crowns(), 32)))
    yield from (Scene("planes", f"planes {i}", planes(np.random.default_rng([91, i]))) for i in range(72))


def quick_scenes() -> Iterator[Scene]:
    """Yield a few small maps, of all folds."""
    yield from motorcycle_crops("disparity", 1, 24)
    yield from (Scene("planes", f"planes {i}", planes(np.random.default_rng([91, i]), 24)) for i in range(2))


def with_structures(depth: DepthMap, rng: np.random.Generator) -> DepthMap:
    """Add small structures in front of a map or behind it: squares, poles and wires, parallel to it or level."""
    rows, columns = np.indices(depth.shape)
    depth = depth.copy()
    for _ in range(rng.integers(*STRUCTURES)):
        height, width = sorted((rng.integers(1, 8), rng.integers(2, 8) * rng.choice([1, 1, 4])))
        if rng.random() < 0.5:
            height, width = width, height
        lean = rng.choice([0.0, 0.0, rng.uniform(-1, 1)])
        row, column = (rng.integers(-3, size) for size in depth.shape)
        across = columns - column - np.rint(lean * (rows - row))
        inside = (rows >= row) & (rows < row + height) & (across >= 0) & (across < width) & np.isfinite(depth)
        if inside.any():
            offset = rng.choice([-1, 1]) * rng.uniform(0.15, 2.5)
            depth[inside] = offset + (depth[inside] if rng.random() < 0.5 else depth[inside].mean())
    return depth


def with_impulses(truth: DepthMap, fraction: float, rng: np.random.Generator, amplitude: float) -> DepthMap:
    """Add impulses: mostly the paper's, else of heavier tails."""
    if rng.random() > LAPLACE_PROBABILITY:
        return corrupted(truth, fraction, rng, amplitude)
    noise = rng.laplace(0, amplitude / 2, truth.shape) * np.nanstd(truth)
    return (truth + np.where(rng.random(truth.shape) < fraction, noise, 0)).astype(np.float32)


def two_sided_variants(plain: DepthMap, rng: np.random.Generator) -> Iterator[tuple[DepthMap, DepthMap]]:
    """Yield true and noisy maps, without structures and with them."""
    for base in (plain, with_structures(plain, rng)):
        drawn = rng.permutation(LEVELS)[:LEVELS_PER_MAP]
        levels = [*drawn, (rng.choice(RARE_FRACTIONS), rng.choice([0.5, 1.0, 2.0])), (0.0, 1.0)]
        for fraction, amplitude in levels:
            truth = quantised(base, int(rng.choice([32, 64, 128]))) if rng.random() < QUANTISED_PROBABILITY else base
            truth = with_missing(truth, rng.uniform(0.2, 0.6), rng) if rng.random() < HOLES_PROBABILITY else truth
            yield truth, with_impulses(truth, fraction, rng, amplitude)


def one_sided_variants(plain: DepthMap, rng: np.random.Generator) -> Iterator[tuple[DepthMap, DepthMap]]:
    """Yield true and noisy maps whose noise has one sign, without structures and with them."""
    for truth in (plain, with_structures(plain, rng)):
        fraction, amplitude = rng.choice([*RARE_FRACTIONS[1:], 0.01, 0.05, 0.2]), rng.choice([0.5, 1.0, 2.0])
        noise = np.abs(corrupted(truth, fraction, rng, amplitude) - truth)
        yield truth, truth + np.float32(rng.choice([-1, 1])) * noise


def score_variants(numbered: tuple[int, Scene]) -> list[Suspects]:
    """Return the suspects of all variants of a numbered map."""
    number, scene = numbered
    maps: list[Suspects] = []
    for seed, variants in ((5, two_sided_variants), (6, one_sided_variants)):
        rng = np.random.default_rng([seed, number])
        for truth, noisy in variants(scene.truth, rng):
            maps += score(scene, truth, noisy, "fast" if rng.random() < FAST_PROBABILITY else "balanced")
    return maps


def score(scene: Scene, truth: DepthMap, noisy: DepthMap, quality: str = "balanced") -> list[Suspects]:
    """Return the suspects of a noisy map after the first scoring and after the last."""
    settings = Settings()
    coder = patch_coder(None, quality, settings)
    source = TiledMap.from_array(noisy, None, coder.dictionary.patch_shape, None, settings.tiling)
    with one_blas_thread:
        survey = Survey.of(source.sample, coder, settings, 1)
        corrector = Corrector.fit(survey, True, 1)
        noise = np.nan_to_num((noisy - truth) / source.scale)
        both = (survey.scores, corrector.judged[0])
        return [_suspects(scene, survey, corrector.model, scores, noise) for scores in both]


def _suspects(scene: Scene, survey: Survey, model: OutlierModel, scores: PixelScores, noise: Floats) -> Suspects:
    where = scores.score > model.settings.outliers.min_score
    features, penalty = (compute(survey.sample, scores, where) for compute in (model.features, model.penalties))
    other_error = float(np.square(noise[~where]).sum())
    return Suspects(scene.kind, scene.name, features, penalty, noise[where], scores.residual[where], other_error)


@dataclass(frozen=True, eq=False)
class Examples:
    """The suspects of many maps, one row a pixel."""

    inputs: Floats
    """Standardised features."""
    penalty: Vector
    noise: Vector
    residual: Vector
    map_number: NDArray[np.intp]

    @classmethod
    def of(cls, maps: Sequence[Suspects], classifier: OutlierClassifier) -> Examples:
        penalty, noise, residual = (
            np.concatenate([getattr(suspects, name) for suspects in maps]).astype(np.float32)
            for name in ("penalty", "noise", "residual")
        )
        map_number = np.repeat(np.arange(len(maps)), [len(suspects.noise) for suspects in maps])
        return cls(classifier.standardise(_all_features(maps)), penalty, noise, residual, map_number)

    def __len__(self) -> int:
        return len(self.noise)

    def at(self, rows: NDArray[np.intp]) -> Examples:
        return Examples(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


class Adam:
    """Adam with decoupled weight decay and a learning rate that falls like a cosine."""

    def __init__(self, parameters: Sequence[Floats], n_steps: int) -> None:
        self.parameters, self.n_steps, self.step = parameters, n_steps, 0
        self.means, self.squares = ([np.zeros_like(array) for array in parameters] for _ in range(2))

    def update(self, gradients: Sequence[Floats]) -> None:
        """Make one step, in place."""
        self.step += 1
        rate = LEARNING_RATE * (1 + np.cos(np.pi * self.step / self.n_steps)) / 2
        for array, gradient, mean, square in zip(self.parameters, gradients, self.means, self.squares, strict=True):
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient * gradient - square)
            move = mean / (1 - 0.9**self.step) / (np.sqrt(square / (1 - 0.999**self.step)) + 1e-8)
            array -= np.float32(rate) * (move + np.float32(WEIGHT_DECAY) * array)


def fit(maps: Sequence[Suspects], epochs: int = EPOCHS) -> OutlierClassifier:
    """Fit a network to the suspects of maps."""
    rng = np.random.default_rng(SEED)
    classifier = _initial_classifier(_all_features(maps), rng)
    examples = Examples.of(maps, classifier)
    batch = min(BATCH, len(examples))
    adam = Adam([array for layer in classifier.layers for array in layer], epochs * (len(examples) // batch))
    map_weights = _map_weights(classifier, examples, maps)
    for epoch in range(epochs):
        if epoch and epoch % REWEIGHT_EPOCHS == 0:
            map_weights = _map_weights(classifier, examples, maps)
        order = rng.permutation(len(examples))
        for begin in range(0, len(examples) - batch + 1, batch):
            adam.update(_gradients(classifier, examples.at(order[begin : begin + batch]), map_weights))
    return classifier


def _all_features(maps: Sequence[Suspects]) -> Floats:
    return np.concatenate([suspects.features for suspects in maps])


def _initial_classifier(features: Floats, rng: np.random.Generator) -> OutlierClassifier:
    """Draw a network; its last layer is small, so that it starts undecided."""
    widths = (features.shape[1], *HIDDEN_UNITS, 1)
    layers = tuple(
        ((rng.standard_normal((a, b)) * np.sqrt(1.5 / a)).astype(np.float32), np.zeros(b, np.float32))
        for a, b in pairwise(widths)
    )
    layers[-1][0][:] *= 0.3
    return OutlierClassifier(features.mean(axis=0), features.std(axis=0) + np.float32(1e-3), layers)


def _map_weights(classifier: OutlierClassifier, examples: Examples, maps: Sequence[Suspects]) -> Vector:
    """Return the derivative of the log of the squared error of each map by that error, in mean gradients."""
    weight = expit(classifier.activations(examples.inputs)[-1][:, 0] + examples.penalty)
    error = np.square(examples.noise - weight * examples.residual)
    total = np.bincount(examples.map_number, error, len(maps)) + [suspects.other_error for suspects in maps]
    weights = 1 / (total + ERROR_FLOOR)
    return (weights / (weights[examples.map_number] * np.square(examples.residual)).mean()).astype(np.float32)


def _gradients(classifier: OutlierClassifier, examples: Examples, map_weights: Vector) -> list[Floats]:
    """Return the gradients of the weighted squared error by the weights and the biases of each layer."""
    *below, last = classifier.activations(examples.inputs)
    weight = expit(last[:, 0] + examples.penalty)
    error = weight * examples.residual - examples.noise
    by_weight = 2 * map_weights[examples.map_number] * error * examples.residual
    by_odds = np.clip(by_weight, -MAX_GRADIENT, MAX_GRADIENT) * weight * (1 - weight) / len(examples)
    gradient, gradients = by_odds.astype(np.float32)[:, None], []
    for (weights, _), inputs in zip(classifier.layers[::-1], below[::-1], strict=True):
        gradients = [inputs.T @ gradient, gradient.sum(axis=0), *gradients]
        gradient = (gradient @ weights.T) * (1 - inputs * inputs)
    return gradients


def report(maps: Sequence[Suspects], classifiers: Sequence[OutlierClassifier]) -> None:
    """Print the gain of held-out maps, by kind."""
    for kind in dict.fromkeys(suspects.kind for suspects in maps):
        gains = [_gain(each, each.probability(classifiers[fold_of(each.scene)])) for each in maps if each.kind == kind]
        print(f"{kind}: {np.mean(gains):.2f} dB, held out, at the worst {np.min(gains):.1f}", flush=True)


def _gain(suspects: Suspects, weight: Vector) -> float:
    before, after = (suspects.squared_error(each) + ERROR_FLOOR for each in (np.zeros(len(weight)), weight))
    return 10 * np.log10(before / after)


def fold_of(scene: str) -> int:
    """Return the number of the held-out classifier that was fitted without a scene."""
    return crc32(scene.encode()) % FOLDS


def fold_path(folder: Path, fold: int) -> Path:
    """Return the file of a held-out classifier."""
    return folder / f"fold{fold}.safetensors"


def save(path: Path, classifier: OutlierClassifier, about: Mapping[str, str]) -> None:
    """Write a classifier and its provenance."""
    arrays = {"mean": classifier.mean, "deviation": classifier.deviation}
    for i, (weights, biases) in enumerate(classifier.layers):
        arrays |= {f"weights{i}": np.ascontiguousarray(weights), f"offsets{i}": biases}
    save_fitted(path, arrays, about)


def main() -> None:
    parser = training_parser(__doc__)
    parser.add_argument("--folds", type=Path, default=Path("out/outlier_classifier"), help="for held-out classifiers")
    given = parse(parser, "outlier_classifier")
    data, files, chosen = (QUICK_DATA, [], quick_scenes()) if given.quick else (DATA, real_files(), scenes())
    about = provenance(__file__, WHAT, data, files, SEED)
    with ProcessPoolExecutor(2) as pool:
        maps = [suspects for some in pool.map(score_variants, enumerate(chosen)) for suspects in some]
    sets = [[suspects for suspects in maps if fold_of(suspects.scene) != fold] for fold in range(FOLDS)]
    with one_blas_thread, ThreadPoolExecutor(2) as threads:
        *held_out, classifier = threads.map(partial(fit, epochs=2 if given.quick else EPOCHS), [*sets, maps])
    report(maps, held_out)
    given.folds.mkdir(parents=True, exist_ok=True)
    for fold, each in enumerate(held_out):
        save(fold_path(given.folds, fold), each, {**about, "fold": f"{fold} of {FOLDS}: its scenes were held out"})
    save(given.output, classifier, about)


if __name__ == "__main__":
    main()

"""Fit the coefficients of `sparsedepth.restore.variance_measured` to maps with known truth; report held-out scenes.

The maps are crops of both views of all Middlebury scenes of 2005 and 2006 and of sensors' frames, simulated scans of
two kinds and foliage in front of a slope. They get 1, 5, 10 and 20 % of impulses, drawn several times, because errors
of kept pixels are rare. The coefficients maximise a Tweedie likelihood of the squared errors. It lies between a gamma
likelihood, which weighs relative errors, and a Poisson likelihood, which weighs absolute ones.

Each map is restored by a classifier that was fitted without its scene, from training/outlier_classifier.py. The report
is on scenes, and on whole kinds of maps, that the coefficients were fitted without. Needs SPARSEDEPTH_DATA; about ten
minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from command_line import parse, training_parser
from outlier_classifier import FOLDS as CLASSIFIER_FOLDS
from outlier_classifier import fold_of, fold_path
from provenance import provenance
from scenes import (
    QUICK_DATA,
    REAL_DATA,
    Scene,
    disparity_crops,
    finer_scans,
    foliage,
    motorcycle_crops,
    real_files,
    sensor_crops,
)
from sparsedepth.data.simulated_scans import simulated_scans
from sparsedepth.data.synthetic import corrupted, quantised
from sparsedepth.fitted import read_fitted, save_fitted
from sparsedepth.metrics import calibration, sparsification
from sparsedepth.parallel import one_blas_thread
from sparsedepth.restore.outliers import OutlierClassifier, shipped_classifier
from sparsedepth.restore.pipeline import Corrector, Survey, patch_coder
from sparsedepth.restore.settings import Settings
from sparsedepth.restore.variance_measured import (
    LOG_RANGE_KNOTS,
    LocalRange,
    MapNoise,
    MeasuredCoefficients,
    blend_error,
    features_of_clean,
    features_of_corrected,
    kept_suspect_error,
    log_residual,
    missed_outlier_error,
    pool_most_certain,
)
from sparsedepth.tiling import TiledMap
from sparsedepth.vocabulary import DepthMap, Floats, Vector

WHAT = "coefficients of the variance of measured and corrected pixels"
DATA = f"{REAL_DATA}; simulated scans of two kinds and foliage drawn from seeds"
SEED = 0
FRACTIONS = (0.01, 0.05, 0.1, 0.2)
DRAWS = 2
KIND_WEIGHTS = {"disparity": 2.0, "sensor": 0.5, "scan": 1.0, "finer scan": 1.0, "foliage": 0.1}
"""Weight of all maps of a kind together: larger for the kinds that are measured in docs/results."""
HELD_OUT_KINDS = ("scan", "finer scan"), ("foliage",), ("disparity",)
FOLDS = 3
RIDGE = 1e-3
TWEEDIE_POWERS = {"kept": 1.8, "corrected": 1.5}
"""Power of the mean to which the variance of a squared error is proportional."""
CURVATURE_PENALTY = 1e-2
"""Weight of the squared second differences of the log error along the knots of the range."""
TINY_ERROR, TINY_KEPT = 1e-10, 8
"""Of kept pixels whose squared error is below this, one in so many is used, with its weight."""
ROUNDING = 1e-9
"""Variance of rounding, which is added to errors and to predictions."""
SETTINGS = Settings()
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Kept:
    """The pixels of a map that were kept."""

    log_range: Vector
    """Within 5x5 pixels."""
    log_residual: Vector
    blend_error: Vector
    """Expected squared error of a suspect; 0 for other pixels."""
    squared: Vector
    """True squared error."""


@dataclass(frozen=True, eq=False)
class Corrected:
    """The pixels of a map that were corrected."""

    features: Floats
    clean_features: Floats
    moved: Vector
    """Squared error of a pixel if it was clean."""
    clean: Mask
    """Whether it was."""
    squared: Vector
    """True squared error."""


@dataclass(frozen=True, eq=False)
class RestoredMap:
    """A noisy map after restoration; in map standard deviations."""

    kind: str
    scene: str
    quantized: bool
    noise: MapNoise
    scale: float
    """Standard deviation of the noisy map, in those of the true one."""
    kept: Kept
    corrected: Corrected


def scenes() -> Iterator[Scene]:
    """Yield all training maps."""
    yield from disparity_crops(seed=100)
    yield from sensor_crops(frames=(1, 6), per_frame=2, motorcycle=2, seed=100)
    yield from (Scene("scan", f"scan {i}", depth) for i, depth in enumerate(simulated_scans(22)) if i >= 6)
    yield from (Scene("finer scan", f"finer scan {i}", depth) for i, depth in enumerate(islice(finer_scans(), 16)))
    for i in range(6):
        depth = foliage(np.random.default_rng([92, i]), (0.8, 2.3), roughness=0.5, nearest=1.5)
        yield Scene("foliage", f"foliage {i}", depth)


def quick_scenes() -> Iterator[Scene]:
    """Yield a few small maps, quantised and continuous ones of two kinds."""
    for kind in ("disparity", "foliage"):
        for scene in motorcycle_crops(kind, 3, 32):
            yield from (scene, replace(scene, depth=quantised(scene.depth, 32)))


def restore(scene: Scene, truth: DepthMap, noisy: DepthMap, classifier: OutlierClassifier) -> RestoredMap | None:
    """Restore a noisy map; None if it seems to have noise at every pixel."""
    coder = patch_coder(None, "balanced", SETTINGS)
    source = TiledMap.from_array(noisy, None, coder.dictionary.patch_shape, None, SETTINGS.tiling)
    with one_blas_thread:
        corrector = Corrector.fit(Survey.of(source.sample, coder, SETTINGS, 1), True, 1, classifier)
        if corrector.smoother is not None:
            return None
        result = corrector(source.sample, 1)
    squared = np.square(result.value - (truth - source.centre) / source.scale)
    kept = _kept(corrector, result.value, source.sample.valid & ~result.outlier, squared)
    corrected = _corrected(corrector, result.value, result.outlier, noisy == truth, squared)
    noise, quantized = corrector.variance.noise, corrector.survey.step > 0
    return RestoredMap(scene.kind, scene.name, quantized, noise, source.scale, kept, corrected)


def _kept(corrector: Corrector, value: Floats, where: Mask, squared: Floats) -> Kept:
    scores, posterior = corrector.judged
    ranges = LocalRange.of(value, corrector.variance.settings.range_floor)
    return Kept(
        ranges.wide[where], log_residual(scores.at(where)), blend_error(scores, posterior)[where], squared[where]
    )


def _corrected(corrector: Corrector, value: Floats, where: Mask, clean: Mask, squared: Floats) -> Corrected:
    scores, posterior = corrector.judged
    theirs, noise = scores.at(where), corrector.variance.noise
    ranges = LocalRange.of(value, corrector.variance.settings.range_floor).at(where)
    return Corrected(
        _matrix(features_of_corrected(noise.impulse, ranges, theirs)),
        _matrix(features_of_clean(noise.ambiguity, theirs, posterior.probability[where])),
        np.square(posterior.weight[where] * theirs.residual),
        clean[where],
        squared[where],
    )


def _matrix(features: Sequence[Floats | float]) -> Floats:
    return np.stack(np.broadcast_arrays(*features), axis=1)


def map_weights(maps: Sequence[RestoredMap]) -> Vector:
    """Return the weight of each map."""
    kinds = [each.kind for each in maps]
    return np.array([KIND_WEIGHTS[kind] / kinds.count(kind) for kind in kinds])


class Standardised:
    """Features whose columns, but the first, have mean 0 and standard deviation 1, so that a ridge treats all alike."""

    def __init__(self, features: Floats) -> None:
        self.mean, self.deviation = features.mean(axis=0), features.std(axis=0) + 1e-9
        self.mean[0], self.deviation[0] = 0, 1
        self.features = (features - self.mean) / self.deviation

    def undo(self, coefficients: Vector) -> Vector:
        """Return the coefficients of the features as they were."""
        plain = coefficients / self.deviation
        plain[0] -= (plain * self.mean)[1:].sum()
        return plain


def minimise_with_ridge(
    loss: Callable[[Vector], tuple[float, Vector]], start: Vector, intercepts: Sequence[int]
) -> Vector:
    """Minimise a loss plus a ridge on all coefficients but the intercepts."""
    ridge = np.full(len(start), RIDGE)
    ridge[list(intercepts)] = 0

    def regularised(coefficients: Vector) -> tuple[float, Vector]:
        value, gradient = loss(coefficients)
        return value + float(ridge @ np.square(coefficients)), gradient + 2 * ridge * coefficients

    return minimize(regularised, start, jac=True, method="L-BFGS-B", options={"maxiter": 150}).x


@dataclass(frozen=True, eq=False)
class TweedieLoss:
    """The negative log-likelihood of squared errors under predicted variances."""

    power: float
    squared: Vector
    weight: Vector

    @classmethod
    def of(cls, power: float, squared: Vector, weight: Vector) -> TweedieLoss:
        """Normalise the weights, so that the loss does not depend on the unit of the errors."""
        squared, weight = squared + ROUNDING, weight / weight.sum()
        return cls(power, squared, weight / (weight @ np.sqrt(squared)) ** (2 * (2 - power)))

    def __call__(self, predicted: Vector) -> tuple[float, Vector]:
        """Return the loss, and its derivative by each prediction."""
        predicted, power = predicted + ROUNDING, self.power
        loss = self.squared * predicted ** (1 - power) / (power - 1) + predicted ** (2 - power) / (2 - power)
        return float(self.weight @ loss), self.weight * (predicted ** (1 - power) - self.squared * predicted**-power)


def fit(maps: Sequence[RestoredMap]) -> MeasuredCoefficients:
    """Fit all coefficients to maps that are all quantised or all continuous."""
    return MeasuredCoefficients(*fit_kept(maps), *fit_corrected(maps))


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Kept pixels of many maps, one row a pixel."""

    features: Floats
    """Interpolation weights of the knots of the range; log residual; log fraction of outliers."""
    offset: Vector
    """Part of the log error that has no coefficient."""
    blend_error: Vector
    squared: Vector
    weight: Vector

    @classmethod
    def of(cls, each: RestoredMap, weight: float, rng: np.random.Generator) -> KeptRows:
        kept, tiny = each.kept, each.kept.squared < TINY_ERROR
        some = ~tiny | (rng.random(len(tiny)) < 1 / TINY_KEPT)
        fraction = np.log(max(each.noise.impulse.fraction, 1e-4))
        knots = np.eye(len(LOG_RANGE_KNOTS))
        hats = np.stack([np.interp(kept.log_range[some], LOG_RANGE_KNOTS, knot) for knot in knots], axis=1)
        features = np.column_stack([hats, kept.log_residual[some], np.full(len(hats), fraction)])
        offset = np.full(len(hats), fraction - np.log(each.noise.impulse.amplitude))
        return cls(
            features, offset, kept.blend_error[some], kept.squared[some], weight * np.where(tiny, TINY_KEPT, 1)[some]
        )

    @classmethod
    def join(cls, rows: Sequence[KeptRows]) -> KeptRows:
        return cls(*(np.concatenate([getattr(each, name) for each in rows]) for name in cls.__dataclass_fields__))


def fit_kept(maps: Sequence[RestoredMap]) -> tuple[Vector, Vector, Vector]:
    """Fit the error of missed outliers at each knot of the range, its slopes, and the error of kept suspects."""
    rng, n_knots = np.random.default_rng(SEED), len(LOG_RANGE_KNOTS)
    rows = KeptRows.join([KeptRows.of(each, weight, rng) for each, weight in zip(maps, map_weights(maps), strict=True)])
    centre = rows.features[:, n_knots:].mean(axis=0)
    rows.features[:, n_knots:] -= centre
    start = np.concatenate([np.linspace(-15, -2, n_knots), [0, 0, 0, 0.7]])
    found = minimize(_kept_loss(rows), start, jac=True, method="L-BFGS-B", options={"maxiter": 200}).x
    missed, slopes, kept = np.split(found, [n_knots, rows.features.shape[1]])
    return missed - slopes @ centre, slopes, kept


def _kept_loss(rows: KeptRows) -> Callable[[Vector], tuple[float, Vector]]:
    """Return the loss of kept pixels as a function of the coefficients."""
    left, n = rows.blend_error, rows.features.shape[1]
    log_left, tweedie = (
        np.log(np.maximum(left, 1e-12)),
        TweedieLoss.of(TWEEDIE_POWERS["kept"], rows.squared, rows.weight),
    )

    def loss(coefficients: Vector) -> tuple[float, Vector]:
        log_error = rows.features @ coefficients[:n] + rows.offset
        missed = np.exp(np.clip(log_error, -30, SETTINGS.variance.max_log_error))
        more = np.where(left > 0, np.exp(coefficients[n] + coefficients[n + 1] * log_left), 0)
        value, slope = tweedie(missed + left + more)
        bend, by_bend = _curvature(coefficients[: len(LOG_RANGE_KNOTS)], n)
        by_features, by_more = rows.features.T @ (slope * missed) + by_bend, slope * more
        return value + bend, np.concatenate([by_features, [by_more.sum(), by_more @ log_left]])

    return loss


def _curvature(missed: Vector, n: int) -> tuple[float, Vector]:
    """Return the penalty of second differences along the knots, and its gradient by n coefficients."""
    bends, gradient = np.diff(missed, 2), np.zeros(n)
    for at, factor in enumerate((1, -2, 1)):
        gradient[at : at + len(bends)] += 2 * CURVATURE_PENALTY * factor * bends
    return float(CURVATURE_PENALTY * bends @ bends), gradient


def fit_corrected(maps: Sequence[RestoredMap]) -> tuple[Vector, Vector]:
    """Fit the error of corrected outliers, and the probability that a corrected pixel was clean."""
    features = Standardised(np.concatenate([each.corrected.features for each in maps]))
    clean_features = Standardised(np.concatenate([each.corrected.clean_features for each in maps]))
    moved, squared, clean = (
        np.concatenate([getattr(each.corrected, name) for each in maps]) for name in ("moved", "squared", "clean")
    )
    weight = np.repeat(map_weights(maps), [len(each.corrected.clean) for each in maps])
    weight, tweedie = weight / weight.sum(), TweedieLoss.of(TWEEDIE_POWERS["corrected"], squared, weight)
    n = features.features.shape[1]

    def loss(coefficients: Vector) -> tuple[float, Vector]:
        wrong, p = expit(features.features @ coefficients[:n]), expit(clean_features.features @ coefficients[n:])
        value, slope = tweedie((1 - p) * wrong + p * moved)
        value -= weight @ np.log(np.where(clean, p, 1 - p) + 1e-12)
        by_wrong = slope * (1 - p) * wrong * (1 - wrong)
        by_p = slope * (moved - wrong) * p * (1 - p) - weight * (clean - p)
        return float(value), np.concatenate([features.features.T @ by_wrong, clean_features.features.T @ by_p])

    start = np.zeros(n + clean_features.features.shape[1])
    start[0], start[n] = np.log(weight @ squared), -4
    found = minimise_with_ridge(loss, start, intercepts=[0, n])
    return features.undo(found[:n]), clean_features.undo(found[n:])


def predict(each: RestoredMap, coefficients: MeasuredCoefficients) -> tuple[Vector, Vector]:
    """Predict the variances of the kept pixels and of the corrected ones."""
    kept, corrected, noise = each.kept, each.corrected, replace(each.noise, coefficients=coefficients)
    expected = missed_outlier_error(noise, kept.log_range, kept.log_residual, SETTINGS.variance)
    expected += kept_suspect_error(coefficients, kept.blend_error)
    limit, pooled = pool_most_certain(expected, SETTINGS.variance)
    clean = expit(corrected.clean_features @ coefficients.clean)
    wrong = expit(corrected.features @ coefficients.corrected)
    return np.where(expected <= limit, pooled, expected), clean * corrected.moved + (1 - clean) * wrong


Predictions = Sequence[tuple[Vector, Vector]]


def print_calibration(maps: Sequence[RestoredMap], predictions: Predictions) -> None:
    """Print, for each kind, error over variance by decile, and the area between sparsification curves (AUSE)."""
    for kind in dict.fromkeys(each.kind for each in maps):
        pairs = [pair for pair in zip(maps, predictions, strict=True) if pair[0].kind == kind]
        kept, corrected = (
            [(getattr(each, name).squared * each.scale**2, both[i] * each.scale**2) for each, both in pairs]
            for i, name in enumerate(("kept", "corrected"))
        )
        for name, chosen in (("measured", kept), ("corrected", corrected), ("all valid", kept + corrected)):
            squared, variance = (np.concatenate(values) for values in zip(*chosen, strict=True))
            error, variance = np.sqrt(squared), np.maximum(variance, 1e-14)
            ratios = " ".join(f"{ratio:.2f}" for ratio in calibration(error, variance).ratio)
            print(f"{kind}, {name}: {ratios}; AUSE {sparsification(error, variance).area:.3f}", flush=True)


def fit_both(maps: Sequence[RestoredMap]) -> dict[bool, MeasuredCoefficients]:
    """Fit the coefficients for quantised maps (True) and for continuous ones (False), as far as there are any."""
    return {kind: fit([each for each in maps if each.quantized == kind]) for kind in {each.quantized for each in maps}}


def report(maps: Sequence[RestoredMap]) -> None:
    """Print how coefficients do on scenes and on kinds of maps that they were fitted without."""
    scene_names = list(dict.fromkeys((each.kind, each.scene) for each in maps))
    fold = [scene_names.index((each.kind, each.scene)) % FOLDS for each in maps]
    fits = [fit_both([each for each, of in zip(maps, fold, strict=True) if of != held]) for held in range(FOLDS)]
    print("squared error / variance by decile of the variance, scenes held out:")
    print_calibration(maps, [predict(each, fits[of][each.quantized]) for each, of in zip(maps, fold, strict=True)])
    for kinds in HELD_OUT_KINDS:
        if held := [each for each in maps if each.kind in kinds]:
            print(f"{' and '.join(kinds)} held out as a whole:")
            coefficients = fit_both([each for each in maps if each.kind not in kinds])
            print_calibration(held, [predict(each, coefficients[each.quantized]) for each in held])


def restore_all(
    chosen: Iterator[Scene], classifiers: Sequence[OutlierClassifier], fractions: Sequence[float], draws: int
) -> Iterator[RestoredMap]:
    """Restore every map with every fraction of impulses, by the classifier that was fitted without its scene."""
    for number, scene in enumerate(chosen):
        for fraction in fractions:
            for draw in range(draws):
                rng = np.random.default_rng([number, round(100 * fraction), draw])
                noisy = corrupted(scene.truth, fraction, rng)
                if found := restore(scene, scene.truth, noisy, classifiers[fold_of(scene.name)]):
                    yield found
        print(f"{number + 1} maps", end="\r", flush=True)


def held_out_classifiers(folder: Path) -> list[OutlierClassifier]:
    """Read the classifiers that training/outlier_classifier.py has written."""
    paths = [fold_path(folder, fold) for fold in range(CLASSIFIER_FOLDS)]
    return [OutlierClassifier.from_arrays(read_fitted(path).arrays) for path in paths]


def main() -> None:
    parser = training_parser(__doc__)
    parser.add_argument("--folds", type=Path, default=Path("out/outlier_classifier"), help="of held-out classifiers")
    given = parse(parser, "variance_measured")
    if given.quick:
        about = provenance(__file__, WHAT, QUICK_DATA, [], SEED)
        maps = list(restore_all(quick_scenes(), [shipped_classifier()] * CLASSIFIER_FOLDS, (0.1,), 1))
    else:
        about = provenance(__file__, WHAT, DATA, real_files(), SEED)
        maps = list(restore_all(scenes(), held_out_classifiers(given.folds), FRACTIONS, DRAWS))
    report(maps)
    names = {True: "quantized", False: "continuous"}
    fitted = {
        f"{names[kind]}.{part}": values for kind, each in fit_both(maps).items() for part, values in vars(each).items()
    }
    save_fitted(given.output, fitted, about)


if __name__ == "__main__":
    main()

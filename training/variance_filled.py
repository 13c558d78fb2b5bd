"""Fit the coefficients of `sparsedepth.restore.variance_filled` to maps with known truth, and report held-out maps.

The maps are crops of Middlebury 2005 and 2006 and of sensors' frames, simulated scans, foliage and planes. Pixels are
missing at random, or in the shadows of a second camera or of a projector. The coefficients maximise a gamma likelihood
of the squared errors. The report is on scenes that they were fitted without; with --kinds, on the other half of the
kinds of maps. Needs SPARSEDEPTH_DATA; about eight minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from command_line import parse, training_parser
from provenance import provenance
from scenes import (
    QUICK_DATA,
    REAL_DATA,
    Scene,
    disparity_crops,
    finer_scans,
    foliage,
    motorcycle_crops,
    planes,
    real_files,
    sensor_crops,
)
from sparsedepth.data import synthetic
from sparsedepth.data.simulated_scans import simulated_scans
from sparsedepth.fitted import save_fitted
from sparsedepth.metrics import calibration
from sparsedepth.missing import holes_containing_patch
from sparsedepth.parallel import one_blas_thread
from sparsedepth.restore import pipeline
from sparsedepth.restore.inpainting import fill_held_out, fill_large_holes
from sparsedepth.restore.settings import Settings
from sparsedepth.restore.variance_filled import (
    ScatteredVariance,
    clustered_variance,
    features_of_filled,
    holes_are_clustered,
    mean_held_out_error,
)
from sparsedepth.tiling import TiledMap
from sparsedepth.vocabulary import DepthMap, Floats, Restoration, Vector

WHAT = "coefficients of the variance of filled pixels: scattered and clustered holes"
DATA = f"{REAL_DATA}; simulated scans of two kinds, foliage and planes drawn from seeds"
SEED = 0
KIND_WEIGHTS = {"disparity": 1.0, "sensor": 0.5, "scan": 1.0, "foliage": 0.3, "planes": 0.3}
"""Weight of all maps of a kind together: larger for the kinds that are measured in docs/results."""
HALVES = {"disparity": 0, "sensor": 0, "planes": 0, "scan": 1, "foliage": 1}
"""Folds of the kinds, if whole kinds are held out."""
FOLDS = 4
PIXELS_PER_MAP = 400
"""Filled pixels of each map that are used."""
RIDGE = 1e-4
ERROR_FLOOR = 1e-8
"""Squared error, in map variances, that is added to each."""
UNREPORTED = "5% missing"
"""Holes that docs/results does not pool."""
SETTINGS = Settings()
Laws = Mapping[str, Vector]
"""Coefficients for "scattered" and for "clustered" holes."""
Mask = NDArray[np.bool_]

MakeHoles = Callable[[DepthMap, int, np.random.Generator], DepthMap]
HOLES: dict[str, MakeHoles] = {
    "5% missing": lambda depth, near, rng: synthetic.with_missing(depth, 0.05, rng),
    "50% missing": lambda depth, near, rng: synthetic.with_missing(depth, 0.5, rng),
    "80% missing": lambda depth, near, rng: synthetic.with_missing(depth, 0.8, rng),
    "95% missing": lambda depth, near, rng: synthetic.with_missing(depth, 0.95, rng),
    "matching shadows": lambda depth, near, rng: synthetic.with_matching_shadows(depth, near),
    "Kinect shadows": synthetic.with_kinect_shadows,
}
QUICK_HOLES = ["50% missing", "Kinect shadows"]


@dataclass(frozen=True, eq=False)
class HeldOutPixels:
    """Filled parts of a map whose held-out pixels calibrate the variance of scattered ones."""

    filled: Floats
    missing: Mask
    held_out: Mask
    squared: Floats

    def calibrated(self, law: Vector) -> ScatteredVariance:
        """Calibrate a law on the held-out pixels."""
        return ScatteredVariance.fit(
            self.filled, self.missing, self.held_out, self.squared, SETTINGS.variance_filled, law
        )


@dataclass(frozen=True, eq=False)
class FilledMap:
    """A map whose holes were filled; in standard deviations of its valid pixels."""

    kind: str
    scene: str
    holes: str
    filled: Floats
    missing: Mask
    evaluated: Mask
    """Missing pixels whose truth is known."""
    squared: Vector
    """Squared errors of the evaluated ones."""
    shipped: Vector
    """Their variances by the shipped coefficients."""
    held_out: HeldOutPixels | None
    """None where holes are clustered."""

    def predict(self, laws: Laws) -> Vector:
        """Predict the variance of the evaluated pixels."""
        if self.held_out is None:
            variance = clustered_variance(self.filled, self.missing, SETTINGS.variance_filled, laws["clustered"])
        else:
            variance = self.held_out.calibrated(laws["scattered"])(self.filled, self.missing)
        return variance[self.evaluated]

    def examples(self) -> tuple[Floats, Vector]:
        """Return the features of some evaluated pixels, and their squared errors in the unit of the law.

        The missing fraction is no feature where holes are clustered: its meaning depends on the kind of map.
        """
        chosen, known = SETTINGS.variance_filled, self.held_out
        unit = 1.0 if known is None else mean_held_out_error(known.squared[known.held_out], chosen)
        floor = chosen.variance_floor if known is None else unit
        features = features_of_filled(self.filled, self.missing, floor, chosen, scattered=known is not None)
        if known is None:
            features[:, -1] = 0
        features = features[self.evaluated[self.missing]]
        some = np.random.default_rng(len(features)).permutation(len(features))[:PIXELS_PER_MAP]
        return features[some], (np.minimum(self.squared[some], chosen.max_variance) + ERROR_FLOOR) / unit


def scenes() -> Iterator[Scene]:
    """Yield all training maps."""
    yield from disparity_crops(seed=700)
    yield from sensor_crops(frames=(0, 3, 6), per_frame=1, motorcycle=3, seed=700)
    yield from (Scene("scan", f"scan {i}", depth) for i, depth in enumerate(simulated_scans(16)))
    yield from (Scene("scan", f"finer scan {i}", depth) for i, depth in enumerate(islice(finer_scans(), 16)))
    yield from (Scene("foliage", f"foliage {i}", foliage(np.random.default_rng([92, i]))) for i in range(6))
    yield from (Scene("planes", f"planes {i}", planes(np.random.default_rng([91, i])), near=1) for i in range(8))


def quick_scenes() -> Iterator[Scene]:
    """Yield a few small maps of two kinds."""
    yield from motorcycle_crops("disparity", 2, 32)
    yield Scene("foliage", "foliage 0", foliage(np.random.default_rng([92, 0]), size=32))


def fill(scene: Scene, holes: str, truth: DepthMap, shown: DepthMap) -> FilledMap | None:
    """Fill a map with holes; None where no missing pixel has a known truth."""
    coder = pipeline.patch_coder(None, "balanced", SETTINGS)
    source = TiledMap.from_array(shown, None, coder.dictionary.patch_shape, None, SETTINGS.tiling)
    with one_blas_thread:
        options = {"correct": False, "fill": True, "second_pass": False}
        fitted = pipeline.fit(source.sample, coder, SETTINGS, **options, threads=1)
        result = source.run(fitted, None, 1)
        fill_large_holes(result, SETTINGS)
        evaluated = np.isnan(shown) & np.isfinite(truth) & np.isfinite(result.variance)
        return _filled_map(scene, holes, truth, shown, result, evaluated, fitted) if evaluated.any() else None


def _filled_map(
    scene: Scene,
    holes: str,
    truth: DepthMap,
    shown: DepthMap,
    result: Restoration,
    evaluated: Mask,
    fitted: pipeline.FittedRestorer,
) -> FilledMap:
    scale, centre = float(np.nanstd(shown)), float(np.nanmedian(shown))
    filled = (result.depth.astype(np.float64) - centre) / scale
    squared = np.square((result.depth - truth)[evaluated] / scale)
    shipped = result.variance[evaluated] / scale**2
    held_out = _held_out(fitted)
    return FilledMap(scene.kind, scene.name, holes, filled, np.isnan(shown), evaluated, squared, shipped, held_out)


def _held_out(fitted: pipeline.FittedRestorer) -> HeldOutPixels | None:
    """Fill held-out pixels of the map as the restoration does; None where its holes are clustered."""
    survey, value = fitted.corrector.survey, fitted.corrected().value
    missing = np.isnan(value)
    large = holes_containing_patch(missing, survey.coder.dictionary.patch_shape)
    if holes_are_clustered(missing, large, SETTINGS.variance_filled):
        return None
    known = fill_held_out(value, survey.simulation, survey.coder, SETTINGS, 1)
    return HeldOutPixels(known.filled, known.missing, known.held_out, np.square(known.filled - known.truth))


def fit_law(maps: Sequence[FilledMap]) -> Vector:
    """Fit the coefficients of the log squared error by a gamma likelihood."""
    examples, kinds = [each.examples() for each in maps], [each.kind for each in maps]
    features, squared = (np.concatenate(values) for values in zip(*examples, strict=True))
    weight = _pixel_weights(kinds, [len(errors) for _, errors in examples])
    mean, deviation = features.mean(axis=0), features.std(axis=0) + 1e-9
    mean[0], deviation[0] = 0, 1
    scaled = (features - mean) / deviation

    def loss(coefficients: Vector) -> tuple[float, Vector]:
        log_error = scaled @ coefficients
        ratio = squared * np.exp(-np.clip(log_error, -25, 25))
        ridge = RIDGE * coefficients * (np.arange(len(coefficients)) > 0)
        value = float(weight @ (log_error + ratio) + ridge @ coefficients)
        return value, scaled.T @ (weight * (1 - ratio)) + 2 * ridge

    start = np.zeros(scaled.shape[1])
    start[0] = np.log(weight @ squared)
    law = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 300}).x / deviation
    law[0] -= (law * mean)[1:].sum()
    return law


def _pixel_weights(kinds: Sequence[str], counts: Sequence[int]) -> Vector:
    """Return the weight of each pixel of maps with that many pixels; the weights sum to 1."""
    total = {kind: sum(n for n, other in zip(counts, kinds, strict=True) if other == kind) for kind in set(kinds)}
    weight = np.concatenate([np.full(n, KIND_WEIGHTS[k] / total[k]) for n, k in zip(counts, kinds, strict=True)])
    return weight / weight.sum()


def fit_laws(maps: Sequence[FilledMap]) -> Laws:
    """Fit the coefficients for scattered and for clustered holes."""
    scattered = [each for each in maps if each.held_out is not None]
    clustered = [each for each in maps if each.held_out is None]
    return {"scattered": fit_law(scattered), "clustered": fit_law(clustered)}


def predict_held_out(maps: Sequence[FilledMap], folds: Sequence[int]) -> list[Vector]:
    """Predict the variances of each map by coefficients that were fitted to the other folds."""
    laws = {
        held: fit_laws([each for each, fold in zip(maps, folds, strict=True) if fold != held]) for held in set(folds)
    }
    return [each.predict(laws[fold]) for each, fold in zip(maps, folds, strict=True)]


def report(maps: Sequence[FilledMap], predictions: Sequence[Vector], by_holes: bool) -> None:
    """Print squared error over variance by decile of the variance, for each kind of map, and for each kind of holes."""
    for kind in KIND_WEIGHTS:
        mine = [i for i, each in enumerate(maps) if each.kind == kind]
        groups = {kind: [i for i in mine if maps[i].holes != UNREPORTED]}
        if by_holes:
            groups |= {f"  {kind}, {holes}": [i for i in mine if maps[i].holes == holes] for holes in HOLES}
        for name, chosen in groups.items():
            if chosen:
                squared, variance = (
                    np.concatenate([v[i] for i in chosen]) for v in ([m.squared for m in maps], predictions)
                )
                ratio = calibration(np.sqrt(squared), np.maximum(variance, 1e-14)).ratio
                print(f"{name:30}", " ".join(f"{r:6.2f}" for r in ratio), flush=True)


def fill_all(chosen: Iterator[Scene], kinds_of_holes: Sequence[str]) -> Iterator[FilledMap]:
    """Fill every map with every kind of holes."""
    for number, scene in enumerate(chosen):
        for h, holes in enumerate(kinds_of_holes):
            shown = HOLES[holes](scene.truth, scene.near, np.random.default_rng([number, h]))
            if found := fill(scene, holes, scene.truth, shown):
                yield found
        print(f"{number + 1} maps", end="\r", flush=True)


def main() -> None:
    parser = training_parser(__doc__)
    parser.add_argument("--kinds", action="store_true", help="hold out whole kinds of maps, not scenes")
    parser.add_argument("--holes", action="store_true", help="also report each kind of holes by itself")
    given = parse(parser, "variance_filled")
    data, files, chosen = (QUICK_DATA, [], quick_scenes()) if given.quick else (DATA, real_files(), scenes())
    about = provenance(__file__, WHAT, data, files, SEED)
    maps = list(fill_all(chosen, QUICK_HOLES if given.quick else list(HOLES)))
    scene_names = list(dict.fromkeys((each.kind, each.scene) for each in maps))
    folds = [HALVES[m.kind] if given.kinds else scene_names.index((m.kind, m.scene)) % FOLDS for m in maps]
    print("squared error / variance by decile of the variance, shipped coefficients:")
    report(maps, [each.shipped for each in maps], given.holes)
    print(f"held out, by {'kinds' if given.kinds else 'scenes'}:")
    report(maps, predict_held_out(maps, folds), given.holes)
    save_fitted(given.output, fit_laws(maps), about)


if __name__ == "__main__":
    main()

"""Fit the variance of `match` to the squared errors on Middlebury 2005 and 2006 in three sizes, by likelihood.

The model is log-linear in `sparsedepth.stereo.variance.FEATURES`; every scene counts alike, and a scene whose mean of
squared error over variance is not 1 is penalised. It writes ``models/stereo_variance.safetensors`` and prints how
scenes do that were held out. Needs SPARSEDEPTH_DATA; a few minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from provenance import provenance
from sparsedepth.data import data_set
from sparsedepth.data.middlebury import StereoScene, scene_names, stereo_pair
from sparsedepth.fitted import save_fitted, shipped_path
from sparsedepth.metrics import calibration, sparsification
from sparsedepth.stereo.match import match_evidence
from sparsedepth.stereo.variance import FEATURES, bounded, features
from sparsedepth.stereo.view_order import reduced
from sparsedepth.vocabulary import DepthMap, Floats, StereoPair, Vector

YEARS = (2005, 2006)
FACTORS = (1, 2, 3)
"""By which the scenes are made smaller: ranges from about 20 to 80 px."""
MIN_SQUARED_ERROR_PX2 = 0.01
"""Added to every squared error: truth is rounded to a third of a pixel."""
HONESTY = 2.0
"""Weight of the squared logarithm of a scene's mean squared error over variance; chosen by the scenes held out."""
RIDGE = 0.1
"""Penalty of squared coefficients of features in units of their standard deviation."""
PIXELS = 14_000
"""Of a scene that the fit looks at."""
FOLDS = 9
"""Times that a ninth of the scenes is held out."""
WHAT = (
    "weights of sparsedepth.stereo.variance.FEATURES, of matched and of filled pixels, in the logarithm of the "
    "variance of a disparity, in squared px"
)


@dataclass(frozen=True, eq=False)
class Scene:
    """The features and the errors of all pixels of known truth."""

    features: Floats
    """(pixels, features)"""
    filled: Floats
    """1 where the pixel was filled, else 0."""
    error: Vector
    """In pixels."""
    max_disparity: int

    def some(self, n: int, seed: int = 0) -> Scene:
        """Choose pixels at random."""
        chosen = np.random.default_rng(seed).permutation(len(self.error))[:n]
        return Scene(self.features[chosen], self.filled[chosen], self.error[chosen], self.max_disparity)


def measure(pair: StereoPair, truth: DepthMap) -> Scene:
    """Match a pair and compare it with the truth, NaN = unknown."""
    evidence = match_evidence(pair)
    known = np.isfinite(truth)
    columns = [np.broadcast_to(column, known.shape)[known] for column in features(evidence)]
    error = (evidence.disparity - truth)[known]
    return Scene(np.stack(columns, axis=1), evidence.unmatched[known].astype(float), error, pair.max_disparity)


def smaller(scene: StereoScene, factor: int) -> tuple[StereoPair, DepthMap]:
    """Make a scene smaller by a whole factor."""
    pair = scene.pair
    height, width = (side // factor * factor for side in pair.shape)
    views = (reduced(view, factor) for view in (pair.left, pair.right))
    middle = slice(factor // 2, None, factor)
    truth = scene.disparity[:height, :width][middle, middle] / factor
    return StereoPair(*views, max_disparity=-(-pair.max_disparity // factor)), truth


def design(scene: Scene, mean: Vector, scale: Vector) -> Floats:
    """Return the standardised features of matched pixels, and behind them those of filled ones; zeros elsewhere."""
    standard = (scene.features - mean) / scale
    filled = scene.filled[:, None]
    return np.concatenate([standard * (1 - filled), standard * filled], axis=1)


def fit(scenes: Sequence[Scene]) -> Floats:
    """Find the weights (2, features) that make the errors of the scenes likeliest, and every scene honest."""
    together = np.concatenate([scene.features for scene in scenes])
    mean, scale = together.mean(axis=0), together.std(axis=0)
    mean[0], scale[0] = 0, 1
    parts = [
        (design(scene, mean, scale), np.square(scene.error) + MIN_SQUARED_ERROR_PX2, scene.max_disparity)
        for scene in scenes
    ]

    def objective(weights: Vector) -> tuple[float, Vector]:
        value, slope = RIDGE * float(weights @ weights), 2 * RIDGE * weights
        for rows, squared, max_disparity in parts:
            raw = np.exp(np.clip(rows @ weights, -30, 30))
            variance = bounded(raw, max_disparity)
            free, ratio = variance / raw, squared / variance
            off = np.log(ratio.mean())
            value += float((np.log(variance) + ratio).mean() + HONESTY * off**2)
            pull = (1 - ratio) * free - 2 * HONESTY * off / ratio.mean() * ratio * free
            slope = slope + rows.T @ pull / len(rows)
        return value, slope

    found = minimize(objective, np.zeros(2 * len(FEATURES)), jac=True, method="L-BFGS-B", options={"maxiter": 400})
    weights = found.x.reshape(2, -1) / scale
    weights[:, 0] -= (weights[:, 1:] * mean[1:]).sum(axis=1)
    return weights


def variance_of(scene: Scene, weights: Floats) -> Vector:
    """Return the variances that a model promises."""
    exponents = scene.features @ weights.T
    return bounded(np.exp(np.where(scene.filled > 0, exponents[:, 1], exponents[:, 0])), scene.max_disparity)


def hold_out(scenes: Mapping[str, Sequence[Scene]]) -> None:
    """Print how the variance ranks the errors of scenes that were held out, and how large it is."""
    names, ratios, areas = sorted(scenes), [], []
    for fold in range(FOLDS):
        rest = [scene.some(PIXELS) for name in names if name not in names[fold::FOLDS] for scene in scenes[name]]
        weights = fit(rest)
        for name in names[fold::FOLDS]:
            for scene in scenes[name]:
                variance = variance_of(scene, weights)
                curve = sparsification(scene.error, variance)
                areas.append(float(np.trapezoid(curve.by_variance, curve.share)))
                ratios.append(calibration(scene.error, variance).overall)
                print(f"{name} to {scene.max_disparity} px: {areas[-1]:.3f}, {ratios[-1]:.2f}", flush=True)
    inside = np.mean([0.5 <= ratio <= 2 for ratio in ratios])
    deviation = np.std(np.log(ratios))
    print(
        f"held out: area {np.mean(areas):.3f}; squared error / variance: {inside:.0%} within 0.5 ... 2, geometric mean "
        f"{np.exp(np.mean(np.log(ratios))):.2f}, deviation of its logarithm {deviation:.2f}",
        flush=True,
    )


def files() -> list[Path]:
    """List all that is read."""
    kinds = ("view1.png", "view5.png", "disp1.png", "disp5.png")
    return [
        data_set(f"middlebury{year}", name) / kind for year in YEARS for name in scene_names(year) for kind in kinds
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=shipped_path("stereo_variance"))
    parser.add_argument("--no-hold-out", action="store_true", help="fit only")
    options = parser.parse_args()
    about = provenance(__file__, WHAT, "Middlebury 2005 and 2006, three sizes", files(), seed=0)
    scenes = {}
    for year in YEARS:
        for name in scene_names(year):
            scene = stereo_pair(year, name)
            scenes[name] = [measure(*smaller(scene, factor)) for factor in FACTORS]
    if not options.no_hold_out:
        hold_out(scenes)
    weights = np.round(fit([scene.some(PIXELS) for sizes in scenes.values() for scene in sizes]), 4)
    print(dict(zip(FEATURES, weights.T.tolist(), strict=True)))
    save_fitted(options.output, {"weights": weights}, about)


if __name__ == "__main__":
    main()

"""Fit the variance of `match` to the squared errors on Middlebury 2005 and 2006 in five sizes, by likelihood.

The model is log-linear in `sparsedepth.stereo.variance.FEATURES`; every scene counts alike, and a scene whose mean of
squared error over variance is not 1 is penalised. Scenes come as they are, and with the right view shifted so that the
farthest surface has disparity 1; one view in six comes with noise, too. It writes
``models/stereo_variance.safetensors`` and prints how scenes do that were held out, of ranges that were fitted to and of
ranges that were not. Needs SPARSEDEPTH_DATA; two minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
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
FACTORS = (1, 2, 3, 4, 6)
"""By which the scenes are made smaller: ranges from about 8 to 85 px."""
MIN_SQUARED_ERROR_PX2 = 0.01
"""Added to every squared error: truth is rounded to a third of a pixel."""
HONESTY = 2.0
"""Weight of the squared logarithm of a scene's mean squared error over variance; chosen by the scenes held out."""
RANGE_POWER = 0.5
"""The variance grows with this power of the range. Of 0.25, 0.5, 0.75 and 1 it does best where ranges are held out; a
power that is fitted to large ranges does not hold for small ones."""
RIDGE = 0.1
"""Penalty of squared coefficients of features in units of their standard deviation."""
PIXELS = 1500
"""Of a scene that the fit looks at."""
NOISE_EVERY, NOISES = 6, (2.0, 4.0, 7.0, 10.0)
"""One view in so many is looked at with noise, too, of one of these deviations, of brightness 0..255. Otherwise noise
would be taken for detail, of which there are fewer errors."""
FOLDS = 3
"""Times that a third of the scenes is held out."""
FREE = [at for at, name in enumerate(FEATURES) if name != "log_range"]
"""The features whose weights are fitted."""
WHAT = (
    "weights of sparsedepth.stereo.variance.FEATURES, of matched and of filled pixels, in the logarithm of the "
    "variance of a disparity, in squared px"
)


def _above(px: int) -> Callable[[Scene], bool]:
    return lambda scene: scene.max_disparity > px


def _up_to(px: int) -> Callable[[Scene], bool]:
    return lambda scene: scene.max_disparity <= px


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
    name: str = ""
    noise: float = 0.0
    """Standard deviation of what was added to the views."""

    def some(self, n: int, seed: int = 0) -> Scene:
        """Choose pixels at random."""
        chosen = np.random.default_rng(seed).permutation(len(self.error))[:n]
        return replace(self, features=self.features[chosen], filled=self.filled[chosen], error=self.error[chosen])


SPLITS: dict[str, tuple[Callable[[Scene], bool], Callable[[Scene], bool]]] = {
    "all ranges": (lambda scene: True, lambda scene: True),
    "ranges to 20 px, fitted on those above": (_above(20), _up_to(20)),
    "ranges to 20 px, fitted on those above 40 px": (_above(40), _up_to(20)),
    "ranges above 40 px, fitted on those to 30 px": (_up_to(30), _above(40)),
}
"""Which scenes are fitted to, and which of the others are tested."""


def measure(pair: StereoPair, truth: DepthMap, name: str = "", noise: float = 0.0) -> Scene:
    """Match a pair and compare it with the truth, NaN = unknown."""
    evidence = match_evidence(pair)
    known = np.isfinite(truth)
    columns = [np.broadcast_to(column, known.shape)[known] for column in features(evidence)]
    error = (evidence.disparity - truth)[known]
    filled = evidence.unmatched[known].astype(float)
    return Scene(np.stack(columns, axis=1), filled, error, pair.max_disparity, name, noise)


def views_of(scene: StereoScene) -> Iterator[tuple[StereoPair, DepthMap]]:
    """Make a scene smaller, and of each size shift the right view, too."""
    for factor in FACTORS:
        pair, truth = smaller(scene, factor)
        yield pair, truth
        least = int(np.nanmin(truth)) - 1
        if least > 0:
            yield shifted(pair, truth, least)


def with_noise(pair: StereoPair, noise: float, seed: int) -> StereoPair:
    """Add normal noise to both views."""
    rng = np.random.default_rng(seed)
    left, right = (np.clip(view + noise * rng.standard_normal(view.shape), 0, 255) for view in (pair.left, pair.right))
    return StereoPair(left, right, pair.max_disparity)


def shifted(pair: StereoPair, truth: DepthMap, by: int) -> tuple[StereoPair, DepthMap]:
    """Make all disparities smaller by a whole number: the range shrinks, the surfaces stay."""
    left, right = pair.left[:, by:], pair.right[:, :-by]
    return StereoPair(left, right, pair.max_disparity - by), truth[:, by:] - by


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
    free = [replace(scene, features=scene.features[:, FREE]) for scene in scenes]
    together = np.concatenate([scene.features for scene in free])
    mean, scale = together.mean(axis=0), together.std(axis=0)
    mean[0], scale[0] = 0, 1
    parts = [
        (design(scene, mean, scale), np.square(scene.error) + MIN_SQUARED_ERROR_PX2, scene.max_disparity)
        for scene in free
    ]

    def objective(weights: Vector) -> tuple[float, Vector]:
        value, slope = RIDGE * float(weights @ weights), 2 * RIDGE * weights
        for rows, squared, max_disparity in parts:
            raw = np.exp(np.clip(rows @ weights + RANGE_POWER * np.log(max_disparity), -30, 30))
            variance = bounded(raw, max_disparity)
            free, ratio = variance / raw, squared / variance
            off = np.log(ratio.mean())
            value += float((np.log(variance) + ratio).mean() + HONESTY * off**2)
            pull = (1 - ratio) * free - 2 * HONESTY * off / ratio.mean() * ratio * free
            slope = slope + rows.T @ pull / len(rows)
        return value, slope

    found = minimize(objective, np.zeros(2 * len(FREE)), jac=True, method="L-BFGS-B", options={"maxiter": 400})
    weights = found.x.reshape(2, -1) / scale
    weights[:, 0] -= (weights[:, 1:] * mean[1:]).sum(axis=1)
    every = np.full((2, len(FEATURES)), RANGE_POWER)
    every[:, FREE] = weights
    return every


def variance_of(scene: Scene, weights: Floats) -> Vector:
    """Return the variances that a model promises."""
    exponents = scene.features @ weights.T
    return bounded(np.exp(np.where(scene.filled > 0, exponents[:, 1], exponents[:, 0])), scene.max_disparity)


def hold_out(scenes: Sequence[Scene], split: str) -> None:
    """Print how the variance ranks the errors of scenes that were held out, and how large it is."""
    fitted, tested = SPLITS[split]
    names, clean, noisy = sorted({scene.name for scene in scenes}), [], []
    for fold in range(FOLDS):
        out = names[fold::FOLDS]
        weights = fit([scene.some(PIXELS) for scene in scenes if scene.name not in out and fitted(scene)])
        for scene in (scene for scene in scenes if scene.name in out and tested(scene)):
            variance = variance_of(scene, weights)
            curve = sparsification(scene.error, variance)
            area = float(np.trapezoid(curve.by_variance, curve.share))
            (noisy if scene.noise else clean).append((calibration(scene.error, variance).overall, area))
    print(f"{split}, held out: {_summary(clean)}\n  with noise: {_summary(noisy)}", flush=True)


def _summary(found: list[tuple[float, float]]) -> str:
    """Describe ratios of squared error and variance, and areas under sparsification curves."""
    ratios, areas = np.transpose(found)
    inside, off = np.mean((ratios >= 0.5) & (ratios <= 2)), np.log(ratios)
    return (
        f"area {np.mean(areas):.3f}; squared error / variance of {len(ratios)}: {inside:.0%} within 0.5 ... 2, "
        f"geometric mean {np.exp(off.mean()):.2f}, root mean square of its logarithm {np.sqrt(np.mean(off**2)):.2f}"
    )


def scenes_of_all_years() -> list[Scene]:
    """Match all views, and some of them with noise again."""
    pairs = [
        (pair, truth, name)
        for year in YEARS
        for name in scene_names(year)
        for pair, truth in views_of(stereo_pair(year, name))
    ]
    found = [measure(*given) for given in pairs]
    for seed, (pair, truth, name) in enumerate(pairs[::NOISE_EVERY]):
        noise = NOISES[seed % len(NOISES)]
        found.append(measure(with_noise(pair, noise, seed), truth, name, noise))
    return found


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
    what = "Middlebury 2005 and 2006, five sizes, as they are and shifted, some with noise"
    about = provenance(__file__, WHAT, what, files(), seed=0)
    scenes = scenes_of_all_years()
    for split in () if options.no_hold_out else SPLITS:
        hold_out(scenes, split)
    weights = np.round(fit([scene.some(PIXELS) for scene in scenes]), 4)
    print(dict(zip(FEATURES, weights.T.tolist(), strict=True)))
    save_fitted(options.output, {"weights": weights}, about)


if __name__ == "__main__":
    main()

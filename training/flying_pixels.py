"""Fit the log-odds that neighbours give for the side of a flying pixel, and report maps that were held out.

Pixels next to the depth edges of Middlebury 2006 and of Kinect frames become simulated mixtures. For each detected
mixture, every neighbour on a side gives log-odds that the true depth lies on the same side. They depend on the squared
distance to the neighbour only: 1, 2, 4, 5 or 8. A logistic regression fits them; the pixel's own depth enters with its
fixed weight. The report is on Middlebury 2005, with the shipped values for comparison. Needs SPARSEDEPTH_DATA; ten
seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from command_line import parse, training_parser
from provenance import provenance
from scenes import QUICK_DATA, motorcycle_crops
from sparsedepth.data import data_set, kinect
from sparsedepth.data.middlebury import disparities, disparity_files
from sparsedepth.data.synthetic import with_flying_pixels
from sparsedepth.fitted import load_fitted, save_fitted
from sparsedepth.ranks import Steps
from sparsedepth.restore.flying import SQUARED_DISTANCE, Candidates, FlyingPixels
from sparsedepth.restore.scores import quantization_step
from sparsedepth.restore.settings import FlyingSettings, ScoreSettings
from sparsedepth.tiling import centre_and_scale
from sparsedepth.vocabulary import DepthMap, Floats, Vector

WHAT = "log-odds that a neighbour at each of 24 offsets gives for its side of a step"
DATA = "Middlebury 2006 (third size), Kinect frames of TUM freiburg3_sitting_rpy"
SEED = 0
FRACTIONS = (0.2, 0.5, 0.8)
"""Fractions of the pixels next to edges that become mixtures."""
DISTANCES = np.unique(SQUARED_DISTANCE)
NEWTON_STEPS = 30
RIDGE = 1.0
"""Weight of the squared coefficients, in pixels."""
SETTINGS = FlyingSettings()


@dataclass(frozen=True, eq=False)
class Mixtures:
    """Detected mixtures of many maps, one row a pixel."""

    features: Floats
    """Neighbours on the high side minus those on the low one at each of `DISTANCES`."""
    offset: Vector
    """Log-odds that the pixel's own depth gives."""
    is_high: NDArray[np.bool_]
    """Whether the true depth lies on the high side."""

    @classmethod
    def of(cls, truth: DepthMap, mixed: DepthMap) -> Mixtures:
        """Detect the mixtures of a map of unit standard deviation whose truth is known."""
        steps = Steps.of(mixed)
        step = quantization_step(steps, ScoreSettings())
        found = FlyingPixels.scaled_to(steps.median, step, SETTINGS).candidates(mixed)
        true = truth.ravel()[found.number]
        between = (found.position > SETTINGS.min_mix) & (found.position < 1 - SETTINGS.min_mix)
        some = between & (true != mixed.ravel()[found.number])
        offset = SETTINGS.own_depth_weight * (found.position - 0.5)
        is_high = true > (found.low + found.high) / 2
        return cls(side_features(found)[some], offset[some], is_high[some])

    @classmethod
    def join(cls, mixtures: Sequence[Mixtures]) -> Mixtures:
        return cls(*(np.concatenate([getattr(each, name) for each in mixtures]) for name in cls.__dataclass_fields__))

    def high_probability(self, log_odds: Vector) -> Vector:
        """Return the probability of the high side under log-odds at each of `DISTANCES`."""
        return expit(self.features @ log_odds + self.offset)


def side_features(found: Candidates) -> Floats:
    """Count the neighbours on either side at each of `DISTANCES`, (pixels, distances)."""
    balance = found.on_high.astype(np.float64) - found.on_low
    counts = [balance[:, distance == SQUARED_DISTANCE].sum(axis=1) for distance in DISTANCES]
    return np.stack(counts, axis=1)


def simulate(maps: Iterable[DepthMap], seed: int) -> Mixtures:
    """Mix pixels next to the edges of maps, and detect them."""
    mixtures = []
    for number, depth in enumerate(maps):
        centre, scale = centre_and_scale(depth[np.isfinite(depth)].astype(np.float64))
        truth = ((depth - centre) / scale).astype(np.float32)
        for fraction in FRACTIONS:
            rng = np.random.default_rng([seed, number, round(100 * fraction)])
            mixtures.append(Mixtures.of(truth, with_flying_pixels(truth, fraction, rng)))
    return Mixtures.join(mixtures)


def fit(mixtures: Mixtures) -> Vector:
    """Fit the log-odds at each of `DISTANCES` by Newton's method."""
    log_odds, features = np.zeros(len(DISTANCES)), mixtures.features
    for _ in range(NEWTON_STEPS):
        p = mixtures.high_probability(log_odds)
        gradient = features.T @ (p - mixtures.is_high) + RIDGE * log_odds
        hessian = (features.T * (p * (1 - p))) @ features + RIDGE * np.eye(len(DISTANCES))
        log_odds = log_odds - np.linalg.solve(hessian, gradient)
    return log_odds


def spread(log_odds: Vector) -> Vector:
    """Return the log-odds at each of the 24 offsets from those at each of `DISTANCES`."""
    return log_odds[np.searchsorted(DISTANCES, SQUARED_DISTANCE)]


def gathered(side_log_odds: Vector) -> Vector:
    """Return the log-odds at each of `DISTANCES` from those at each of the 24 offsets."""
    return np.array([side_log_odds[distance == SQUARED_DISTANCE].mean() for distance in DISTANCES])


def report(name: str, mixtures: Mixtures, log_odds: Vector) -> None:
    """Print accuracy, log loss, the fraction that is moved to a side, and the accuracy of those."""
    p = mixtures.high_probability(log_odds)
    right, sure = (p > 0.5) == mixtures.is_high, np.maximum(p, 1 - p) > SETTINGS.snap_probability
    loss = -np.log(np.maximum(np.where(mixtures.is_high, p, 1 - p), 1e-12)).mean()
    print(
        f"{name} {np.round(log_odds, 2).tolist()}: accuracy {right.mean():.4f}, log loss {loss:.4f}, "
        f"{sure.mean():.3f} moved to a side, {right[sure].mean():.4f} of those rightly",
        flush=True,
    )


def main() -> None:
    given = parse(training_parser(__doc__), "flying_pixels")
    if given.quick:
        about = provenance(__file__, WHAT, QUICK_DATA, [], SEED)
        maps = [scene.depth for scene in motorcycle_crops("disparity", 2, 100)]
        training, held_out = simulate(maps[:1], SEED), simulate(maps[1:], SEED + 1)
    else:
        frames = data_set("kinect", "tum_freiburg3_sitting_rpy").glob("*.png")
        about = provenance(__file__, WHAT, DATA, [*disparity_files(2006), *frames], SEED)
        training = simulate([*disparities(2006), *kinect.frames()], SEED)
        held_out = simulate(disparities(2005), SEED + 1)
    log_odds = fit(training)
    print(
        f"{len(training.offset)} mixtures; held out {len(held_out.offset)}; log-odds by distance {DISTANCES.tolist()}"
    )
    report("fitted ", held_out, log_odds)
    report("shipped", held_out, gathered(load_fitted("flying_pixels").arrays["side_log_odds"]))
    save_fitted(given.output, {"side_log_odds": spread(log_odds)}, about)


if __name__ == "__main__":
    main()

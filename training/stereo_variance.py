"""Fit the variance of `match` to the squared errors on Middlebury 2005, by maximum likelihood.

The model is log-linear in `sparsedepth.stereo.variance.FEATURES`; every scene counts alike. It writes
``models/stereo_variance.safetensors`` and prints how held-out scenes do. Needs SPARSEDEPTH_DATA; about a minute.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from provenance import provenance
from sparsedepth.belief import believe
from sparsedepth.data import data_set
from sparsedepth.data.middlebury import scene_names, stereo_pair
from sparsedepth.fitted import save_fitted, shipped_path
from sparsedepth.matching import BELIEF_STRIDE_PX
from sparsedepth.metrics import calibration, sparsification
from sparsedepth.stereo.match import match_features
from sparsedepth.stereo.variance import FEATURES
from sparsedepth.vocabulary import Floats, Vector

YEAR = 2005
MIN_SQUARED_ERROR_PX2 = 1e-4
"""Added to every squared error: truth is rounded to a third of a pixel."""
WHAT = "weights of sparsedepth.stereo.variance.FEATURES in the logarithm of the variance of a disparity, in squared px"


@dataclass(frozen=True, eq=False)
class Scene:
    """The features and the errors of all pixels of known truth."""

    features: Floats
    """(pixels, features)"""
    error: Vector
    """In pixels."""


def measure(name: str) -> Scene:
    """Match a scene and compare it with the truth."""
    scene = stereo_pair(YEAR, name)
    disparity, features = match_features(scene.pair, lambda found: believe(found, stride=BELIEF_STRIDE_PX))
    known = scene.evaluated
    columns = [np.broadcast_to(column, known.shape)[known] for column in features]
    return Scene(np.stack(columns, axis=1).astype(np.float64), (disparity - scene.disparity)[known])


def fit(scenes: Sequence[Scene], columns: slice) -> Vector:
    """Find the weights that make the errors of the scenes likeliest, as normal with that variance."""
    features = [scene.features[:, columns] for scene in scenes]
    squared = [np.square(scene.error) + MIN_SQUARED_ERROR_PX2 for scene in scenes]

    def negative_log_likelihood(weights: Vector) -> tuple[float, Vector]:
        value, slope = 0.0, np.zeros(len(weights))
        for rows, errors in zip(features, squared, strict=True):
            logarithm = rows @ weights
            ratio = errors * np.exp(-logarithm)
            value += float((logarithm + ratio).mean())
            slope += rows.T @ (1 - ratio) / len(rows)
        return value, slope

    found = minimize(negative_log_likelihood, np.zeros(features[0].shape[1]), jac=True, method="BFGS")
    return found.x


def judge(scene: Scene, weights: Vector, columns: slice) -> str:
    """Describe how the variance ranks the errors of a scene that was held out, and how large it is."""
    variance = np.exp(scene.features[:, columns] @ weights)
    curve = sparsification(scene.error, variance)
    area = float(np.trapezoid(curve.by_variance, curve.share))
    return f"area {area:.3f}, squared error / variance {calibration(scene.error, variance).overall:.2f}"


def files() -> list[Path]:
    """List all that is read."""
    kinds = ("view1.png", "view5.png", "disp1.png", "disp5.png")
    return [data_set(f"middlebury{YEAR}", name) / kind for name in scene_names(YEAR) for kind in kinds]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=shipped_path("stereo_variance"))
    output = parser.parse_args().output
    about = provenance(__file__, WHAT, f"Middlebury {YEAR}", files())
    scenes = {name: measure(name) for name in scene_names(YEAR)}
    models = {"with_belief": slice(None), "without_belief": slice(len(FEATURES) - 1)}
    for model, columns in models.items():
        for name, scene in scenes.items():
            others = [other for other in scenes.values() if other is not scene]
            print(f"{model}, {name} held out: {judge(scene, fit(others, columns), columns)}", flush=True)
    weights: dict[str, NDArray[np.float64]] = {
        model: np.round(fit(list(scenes.values()), columns), 2) for model, columns in models.items()
    }
    print({model: values.tolist() for model, values in weights.items()})
    save_fitted(output, weights, about)


if __name__ == "__main__":
    main()

"""A non-decreasing curve through noisy observations, on a logarithmic axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsedepth.vocabulary import Floats, Vector


@dataclass(frozen=True)
class IsotonicCurve:
    """A non-decreasing function of a positive number, fitted to means in bins and interpolated between them."""

    log_at: Vector
    """Logarithms of the numbers where the function is known."""
    level: Vector

    @classmethod
    def fit(cls, predictor: Vector, target: Vector, min_per_bin: int, max_bins: int) -> IsotonicCurve:
        """Fit the mean of the target, with one more observation of its overall mean in each bin."""
        from scipy.optimize import isotonic_regression  # slow to import

        edges = _bin_edges(predictor, min_per_bin, max_bins)
        count, total = (np.histogram(predictor, edges, weights=w)[0] for w in (None, target))
        usual = target.mean() if len(target) else 0.0
        logs = np.histogram(predictor, edges, weights=_log(predictor))[0]
        centres = np.maximum.accumulate(logs / np.maximum(count, 1))
        return cls(centres, isotonic_regression((total + usual) / (count + 1), weights=count + 1).x)

    def __call__(self, predictor: Floats) -> Floats:
        return np.interp(_log(predictor), self.log_at, self.level)


def _bin_edges(predictor: Vector, min_per_bin: int, max_bins: int) -> Vector:
    bins = int(np.clip(len(predictor) // min_per_bin, 1, max_bins))
    inner = np.unique(np.quantile(predictor, np.linspace(0, 1, bins + 1)[1:-1])) if bins > 1 else np.empty(0)
    return np.concatenate([[-np.inf], inner, [np.inf]])


def _log(values: Floats) -> Floats:
    return np.log(np.maximum(values, np.finfo(np.float64).tiny))

"""Predict the squared error of measured and corrected pixels.

An outlier that was not detected has a value like its surroundings. So the local range of the restored map predicts most
of its error; the local residual and the map's noise predict the rest. A suspect that was kept errs by what its
probability leaves open. A corrected pixel errs by the whole correction if it was no outlier, and by the error of the
codes otherwise. For the most certain pixels errors are too rare to rank: they share one variance.

The coefficients were fitted on other maps (training/variance_measured.py), quantised and continuous ones separately.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from sparsedepth.fitted import load_fitted
from sparsedepth.neighbourhood import local_range
from sparsedepth.ranks import linear_curve
from sparsedepth.restore.noise_model import ImpulseNoise
from sparsedepth.restore.outliers import Posterior
from sparsedepth.restore.scores import PixelScores
from sparsedepth.restore.settings import VarianceSettings
from sparsedepth.vocabulary import Floats, Vector

LOG_RANGE_KNOTS = np.log(np.geomspace(0.01, 2.56, 9))
"""Log ranges, in map standard deviations, at which `MeasuredCoefficients.missed` is given. As in training."""


@dataclass(frozen=True, eq=False)
class MeasuredCoefficients:
    """Coefficients for measured and corrected pixels of maps of one kind."""

    missed: Vector
    """Log squared error of undetected outliers at each of `LOG_RANGE_KNOTS`, per fraction and amplitude."""
    missed_slopes: Vector
    """Its change with the logarithms of local residual and outlier fraction."""
    kept: Vector
    """A kept suspect errs by its blend error b, and by exp(first) * b ** second."""
    corrected: Vector
    """Of `features_of_corrected`."""
    clean: Vector
    """Of `features_of_clean`."""

    @classmethod
    def load(cls, quantized: bool) -> MeasuredCoefficients:
        """Return the shipped coefficients for quantised or for continuous maps."""
        return _shipped_coefficients("quantized" if quantized else "continuous")


@cache
def _shipped_coefficients(kind: str) -> MeasuredCoefficients:
    arrays = load_fitted("variance_measured").arrays
    return MeasuredCoefficients(*(arrays[f"{kind}.{part.name}"] for part in fields(MeasuredCoefficients)))


@dataclass(frozen=True, eq=False)
class LocalRange:
    """Log ranges of the restored values around each pixel, its own included."""

    close: Floats
    """Within 3x3 pixels."""
    wide: Floats
    """Within 5x5 pixels."""

    @classmethod
    def of(cls, restored: Floats, floor: float) -> LocalRange:
        return cls(*(_log_range(restored, radius, floor) for radius in (1, 2)))

    def at(self, where: NDArray[np.bool_ | np.intp]) -> LocalRange:
        """Select pixels by a mask or by flat indices."""
        numbers = np.flatnonzero(where) if where.dtype == bool else where
        return LocalRange(self.close.ravel()[numbers], self.wide.ravel()[numbers])


def _log_range(values: Floats, radius: int, floor: float) -> Floats:
    lowest, highest = local_range(np.asarray(values, np.float32), radius)
    return np.log(np.maximum(highest - lowest, 0) + np.float32(floor))


@dataclass(frozen=True, eq=False)
class MapNoise:
    """What the variance of a measured pixel depends on, beyond the pixel."""

    impulse: ImpulseNoise
    coefficients: MeasuredCoefficients
    ambiguity: float
    """Log of how ambiguous its suspects are, on average."""


@dataclass(frozen=True, eq=False)
class MeasuredVariance:
    """Predicts the variance of the valid pixels of any tile of a map."""

    noise: MapNoise
    limit: float
    """Expected error up to which kept pixels are among the most certain."""
    pooled: float
    """Variance of those."""
    settings: VarianceSettings

    @classmethod
    def fit(
        cls,
        noise: MapNoise,
        restored: Floats,
        scores: PixelScores,
        posterior: Posterior,
        corrected: NDArray[np.bool_],
        settings: VarianceSettings,
    ) -> MeasuredVariance:
        """Find the most certain pixels of a sample of the map."""
        few = np.flatnonzero(np.isfinite(restored) & ~corrected)
        few = few[:: -(-len(few) // settings.fit_pixels) or 1]
        posterior = posterior.at(few)
        ranges = LocalRange.of(restored, settings.range_floor).at(few)
        none = np.zeros(len(few), bool)
        expected = expected_error(noise, ranges, scores.at(few), posterior, none, settings)
        return cls(noise, *pool_most_certain(expected, settings), settings)

    def __call__(
        self, restored: Floats, scores: PixelScores, posterior: Posterior, corrected: NDArray[np.bool_]
    ) -> Floats:
        ranges = LocalRange.of(restored, self.settings.range_floor)
        expected = expected_error(self.noise, ranges, scores, posterior, corrected, self.settings)
        return np.where(~corrected & (expected <= self.limit), self.pooled, expected)


def ambiguity(probability: Floats, settings: VarianceSettings) -> float:
    """Return the log of the mean of p (1 - p) over the mean of p, with a prior for maps without suspects."""
    undecided = (probability * (1 - probability)).sum() + settings.ambiguity_prior[0]
    return float(np.log(undecided / (probability.sum() + settings.ambiguity_prior[1])))


def pool_most_certain(expected: Vector, settings: VarianceSettings) -> tuple[float, float]:
    """Return the expected error up to which pixels are among the most certain, and their mean error."""
    if not len(expected):
        return 0.0, 0.0
    limit = float(np.quantile(expected, settings.pooled_fraction, method="lower"))
    return limit, float(expected[expected <= limit].mean())


def expected_error(
    noise: MapNoise,
    ranges: LocalRange,
    scores: PixelScores,
    posterior: Posterior,
    corrected: NDArray[np.bool_],
    settings: VarianceSettings,
) -> Floats:
    """Return the expected squared error of each valid pixel, in map variances."""
    coefficients, judged = noise.coefficients, _undecided(scores, posterior)
    expected = missed_outlier_error(noise, ranges.wide, log_residual(scores), settings)
    left = blend_error(scores.at(judged), theirs := posterior.at(judged))
    kept = np.where(theirs.probability > 0, kept_suspect_error(coefficients, left), left)
    expected.ravel()[judged] += kept.astype(expected.dtype)
    if corrected.any():
        at = np.flatnonzero(corrected)
        scores, about, posterior = scores.at(at), ranges.at(at), posterior.at(at)
        wrong = expit(_linear(coefficients.corrected, features_of_corrected(noise.impulse, about, scores)))
        clean = expit(_linear(coefficients.clean, features_of_clean(noise.ambiguity, scores, posterior.probability)))
        moved = np.square(posterior.weight * scores.residual)
        expected.ravel()[at] = clean * moved + (1 - clean) * wrong
    return expected


def _undecided(scores: PixelScores, posterior: Posterior) -> NDArray[np.intp]:
    """List the pixels, by flat indices, whose blend of measured and coded value is not the measured one for sure."""
    either = (posterior.probability > 0) | (posterior.weight > 0)
    return np.flatnonzero(either & (scores.residual != 0))


def missed_outlier_error(noise: MapNoise, wide: Floats, residual: Floats, settings: VarianceSettings) -> Floats:
    """Return the expected squared error due to outliers that were not detected."""
    fraction, coefficients = _log_fraction(noise.impulse), noise.coefficients
    log_error = linear_curve(wide, LOG_RANGE_KNOTS, coefficients.missed)
    log_error += np.float32(coefficients.missed_slopes[0]) * residual.astype(np.float32)
    at_map = float(coefficients.missed_slopes[1] * fraction + fraction - np.log(noise.impulse.amplitude))
    return np.exp(np.minimum(log_error + np.float32(at_map), np.float32(settings.max_log_error)))


def kept_suspect_error(coefficients: MeasuredCoefficients, left: Floats) -> Floats:
    """Return the expected squared error of suspects that were kept; low probabilities are not certain."""
    return left + np.exp(coefficients.kept[0]) * left ** coefficients.kept[1]


def blend_error(scores: PixelScores, posterior: Posterior) -> Floats:
    """Return the expected squared error of a blend, if the coded value of an outlier is right."""
    p, weight = posterior.probability, posterior.weight
    return (p * np.square(1 - weight) + (1 - p) * np.square(weight)) * np.square(scores.residual)


def features_of_corrected(noise: ImpulseNoise, ranges: LocalRange, scores: PixelScores) -> list[Floats | float]:
    """Return the features that predict the error of an outlier that was corrected."""
    disagreement, border = _log(scores.patch_variance, 1e-6), scores.near_border.astype(np.float64)
    return [1.0, log_residual(scores), disagreement, _log_fraction(noise), border, ranges.close, ranges.wide]


def features_of_clean(ambiguity: float, scores: PixelScores, probability: Floats) -> list[Floats | float]:
    """Return the features that predict whether a corrected pixel was no outlier."""
    return [1.0, logit(np.clip(probability, 1e-6, 1 - 1e-6)), _log(scores.score, 1e-3), ambiguity]


def log_residual(scores: PixelScores) -> Floats:
    return _log(scores.local_residual, 1e-3)


def _linear(weights: Vector, features: list[Floats | float]) -> Floats:
    return np.asarray(sum(weight * feature for weight, feature in zip(weights, features, strict=True)))


def _log_fraction(noise: ImpulseNoise) -> Floats:
    return _log(noise.fraction, 1e-4)


def _log(values: Floats | float, least: float) -> Floats:
    return np.log(np.maximum(values, least))

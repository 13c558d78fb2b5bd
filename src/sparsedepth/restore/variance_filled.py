"""Predict the squared error of filled pixels.

The error grows with the distance to valid pixels, with the missing fraction around and with the local variance. If
missing pixels are scattered, held-out pixels of the same map calibrate this law: a factor and a power, whose
uncertainty adds to the variance. Filled values are smooth, so valid pixels alone measure how much the map varies. If
missing pixels are clustered, they mostly lie at depth edges, where held-out pixels do not: then the law stands alone.

The coefficients were fitted on maps with known truth (training/variance_filled.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsedepth.fitted import load_fitted
from sparsedepth.missing import distance_to_valid, variance_around
from sparsedepth.neighbourhood import box_sum
from sparsedepth.restore.settings import FilledVarianceSettings
from sparsedepth.vocabulary import Floats, Vector

MEAN_WINDOWS_PX = (3, 5, 7, 9, 13, 19, 27, 39)
"""Windows of which the smallest with enough valid pixels is used. As in training."""


def holes_are_clustered(
    missing: NDArray[np.bool_], excluded: NDArray[np.bool_], settings: FilledVarianceSettings
) -> bool:
    """Tell whether neighbours of missing pixels are missing far more often than others."""
    missing, within = missing & ~excluded, ~excluded
    fraction = np.count_nonzero(missing) / max(np.count_nonzero(within), 1)
    both = sum(np.count_nonzero(one & other) for one, other in _pairs(missing, missing))
    either = sum(np.count_nonzero(one & other) for one, other in _pairs(missing, within) + _pairs(within, missing))
    return bool(fraction < 1 and 2 * both > either * (fraction + settings.clustering * (1 - fraction)))


def _pairs(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    return [(one[1:], other[:-1]), (one[:, 1:], other[:, :-1])]


def features_of_filled(
    filled: Floats, missing: NDArray[np.bool_], floor: float, settings: FilledVarianceSettings, *, scattered: bool
) -> Floats:
    """Compute the features of each missing pixel of a filled map of unit standard deviation, (pixels, features).

    One; the log distance to valid pixels; the log variances in a close and a wide window, relative to a floor; the
    missing fraction. Where holes are scattered, differences between valid pixels replace the wide variance.
    """
    distance = np.log(np.maximum(distance_to_valid(missing)[missing], 1))
    (close, _), (wide, fraction) = (
        variance_around(filled, missing, side) for side in (settings.close_px, settings.wide_px)
    )
    wide = _valid_differences(filled, ~missing, settings)[missing] if scattered else wide
    above = [np.log1p(variance / floor) for variance in (close, wide)]
    return np.stack([np.ones(len(distance)), distance, *above, fraction], axis=1)


def shipped_law(holes: str) -> Vector:
    """Return the shipped coefficients of `features_of_filled` for "scattered" or for "clustered" holes."""
    return load_fitted("variance_filled").arrays[holes]


def clustered_variance(
    filled: Floats, missing: NDArray[np.bool_], settings: FilledVarianceSettings, law: Vector | None = None
) -> Floats:
    """Predict the squared error of missing pixels whose holes are clustered; 0 at valid ones.

    ``law`` replaces the shipped coefficients.
    """
    features = features_of_filled(filled, missing, settings.variance_floor, settings, scattered=False)
    return _placed(features @ (shipped_law("clustered") if law is None else law), missing, settings)


def extrapolate_variance(
    filled: Floats,
    missing: NDArray[np.bool_],
    known: Floats,
    settings: FilledVarianceSettings,
    law: Vector | None = None,
) -> Floats:
    """Extrapolate the variance into a large hole from the filled pixels around it, where it is positive.

    ``law`` replaces the shipped coefficients for clustered holes.
    """
    law, has = shipped_law("clustered") if law is None else law, known[missing] > 0
    if not has.any():
        return clustered_variance(filled, missing, settings, law)
    given = known[missing][has]
    features = features_of_filled(filled, missing, float(given.mean()), settings, scattered=False)
    theirs = features[has]
    prior = np.diag([0.0, *np.full(len(law) - 1, settings.prior_weight)])
    own = law + np.linalg.solve(theirs.T @ theirs + prior, theirs.T @ (np.log(given) - theirs @ law))
    return _placed(features @ own, missing, settings)


@dataclass(frozen=True, eq=False)
class ScatteredVariance:
    """Predicts the squared error of missing pixels that are scattered, calibrated on held-out pixels."""

    usual: float
    """Mean squared error of held-out pixels."""
    centre: float
    """Mean log error that the law predicts for them, in that unit."""
    line: Vector
    """Log error on this map, and how it grows with that of the law."""
    line_variance: Vector
    max_variance: float
    settings: FilledVarianceSettings
    law: Vector

    @classmethod
    def fit(
        cls,
        filled: Floats,
        missing: NDArray[np.bool_],
        held_out: NDArray[np.bool_],
        squared: Floats,
        settings: FilledVarianceSettings,
        law: Vector | None = None,
    ) -> ScatteredVariance:
        """Fit the squared errors of held-out pixels of filled maps, (parts, height, width).

        ``law`` replaces the shipped coefficients.
        """
        law = shipped_law("scattered") if law is None else law
        usual = mean_held_out_error(squared[held_out], settings)
        rows = [
            features_of_filled(part, holes, usual, settings, scattered=True)
            for part, holes in zip(filled, missing, strict=True)
        ]
        log_error = np.concatenate(rows)[held_out[missing]] @ law
        centre = float(log_error.mean()) if len(log_error) else 0.0
        line, line_variance = _fit_line(
            log_error - centre, squared[held_out] / usual, np.array([centre, 1.0]), settings
        )
        worst = float(squared[held_out].max()) if held_out.any() else settings.max_variance
        most = min(max(settings.max_over_worst * worst, usual), settings.max_variance)
        return cls(usual, centre, line, line_variance, most, settings, law)

    def __call__(self, filled: Floats, missing: NDArray[np.bool_]) -> Floats:
        features = features_of_filled(filled, missing, self.usual, self.settings, scattered=True)
        away = features @ self.law - self.centre
        uncertain = self.line_variance[0] + self.line_variance[1] * np.square(away)
        log_error = np.log(self.usual) + self.line[0] + self.line[1] * away + uncertain / 2
        return _placed(log_error, missing, self.settings, self.max_variance)


def mean_held_out_error(squared: Vector, settings: FilledVarianceSettings) -> float:
    """Return the mean squared error of held-out pixels and of one more pixel: the unit of the scattered law."""
    return float((squared.sum() + settings.prior_error) / (len(squared) + 1))


def _fit_line(away: Vector, squared: Vector, prior: Vector, settings: FilledVarianceSettings) -> tuple[Vector, Vector]:
    """Fit the log mean of gamma-distributed numbers by a line near a prior one; return it and its variances."""
    along, pixels = np.stack([np.ones(len(away)), away], axis=1), settings.pixels_per_sample
    precision = np.diag(np.array(settings.prior_std) ** -2.0)
    line = prior.copy()
    for _ in range(settings.newton_steps):
        ratio = squared * np.exp(-along @ line)
        slope = along.T @ (1 - ratio) / pixels + precision @ (line - prior)
        step = np.linalg.solve((along.T * ratio) @ along / pixels + precision, slope)
        line = line - step / max(1.0, float(np.abs(step).max()))
    return line, 1 / (np.square(along).sum(axis=0) / pixels + np.array(settings.prior_std) ** -2.0)


def _placed(
    log_error: Vector, missing: NDArray[np.bool_], settings: FilledVarianceSettings, most: float | None = None
) -> Floats:
    expected = np.zeros(missing.shape)
    error = np.exp(np.minimum(log_error, np.log(settings.max_variance)))
    expected[missing] = np.minimum(error, settings.max_variance if most is None else most)
    return expected


def _valid_differences(values: Floats, valid: NDArray[np.bool_], settings: FilledVarianceSettings) -> Floats:
    """Return the mean square difference of valid pixels around each pixel from the mean of their neighbours."""
    mean, count = _mean_of_valid(values, valid, settings.min_for_difference)
    step = (values - mean) * count / np.maximum(count - 1, 1)  # the pixel itself is one of those in the mean
    return _mean_of_valid(np.square(step), valid, settings.min_for_mean)[0]


def _mean_of_valid(values: Floats, valid: NDArray[np.bool_], enough: int) -> tuple[Floats, Floats]:
    """Average the valid pixels in the smallest window that holds enough of them, or in the largest; and count them."""
    mean, count = np.zeros(valid.shape), np.zeros(valid.shape)
    for side in (side for side in MEAN_WINDOWS_PX if side**2 >= enough):
        short = count < enough
        if not short.any():
            break
        total, held = (box_sum(each, side)[short] for each in (np.where(valid, values, 0.0), valid.astype(np.float64)))
        count[short] = np.rint(held)
        mean[short] = total / np.maximum(count[short], 1)
    return mean, count

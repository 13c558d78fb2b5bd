"""Covariances of what robust surfaces leave of noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparsedepth.sensors.laws import Correlation
from sparsedepth.sensors.settings import DEFAULT
from sparsedepth.sensors.windows import fitted_autocovariance, quadratic_basis, visible_fraction
from sparsedepth.vocabulary import Floats

SMALL = replace(DEFAULT, window_px=9, correlation_lags=5)


def residual_covariance(correlation: Correlation, side: int) -> Floats:
    """Compute R - HR - RH + HRH, pixel by pixel."""
    row, column = (part.ravel() for part in np.indices((side, side)))
    whole = correlation(np.abs(np.subtract.outer(row, row)), np.abs(np.subtract.outer(column, column)))
    basis = quadratic_basis(side)
    left = np.eye(side * side) - basis @ basis.T
    return left @ whole @ left


def mean_at(covariance: Floats, side: int, down: int, right: int) -> float:
    """Average the covariance of all pairs of pixels at a lag."""
    pairs = covariance.reshape(side, side, side, side)
    rows, columns = np.indices((side - down, side - right))
    return float(pairs[rows, columns, rows + down, columns + right].mean())


@pytest.mark.parametrize(
    "correlation", [Correlation(), Correlation(2.0, 3.0, 1.5, 0.1), Correlation(6.0, 1.0, 1.0, 0.4)]
)
def test_covariances_after_a_fit_are_those_of_the_slow_ones(correlation: Correlation):
    side, slow = SMALL.window_px, residual_covariance(correlation, SMALL.window_px)
    along_rows, along_columns, variance = fitted_autocovariance(correlation, SMALL)
    lags = range(1, SMALL.correlation_lags)
    assert_allclose(along_rows, [mean_at(slow, side, 0, lag) for lag in lags], atol=1e-12)
    assert_allclose(along_columns, [mean_at(slow, side, lag, 0) for lag in lags], atol=1e-12)
    assert_allclose(variance, mean_at(slow, side, 0, 0), atol=1e-12)
    assert_allclose(visible_fraction(correlation, SMALL), np.sqrt(variance))

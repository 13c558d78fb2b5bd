"""Ranks, quantiles, differences and curves, against sorted arrays."""

from __future__ import annotations

import numpy as np
import pytest

from sparsedepth.ranks import Steps, at_ranks, linear_curve, quantile, quantiles

FAMILIES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "many alike": lambda rng, n: rng.integers(-3, 4, n),
    "all alike": lambda rng, n: np.full(n, 2.5),
    "over all exponents": lambda rng, n: rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-44, 38, n),
    "with zeros of both signs": lambda rng, n: rng.choice([0.0, -0.0, 1e-45, -1e-45], n),
    "with infinities": lambda rng, n: rng.choice([np.inf, -np.inf, 1.0, -2.0], n),
}


@pytest.fixture(params=FAMILIES)
def values(request, rng):
    """Numbers of one family; every seventh is missing."""
    found = FAMILIES[request.param](rng, 300).astype(np.float32)
    found[::7] = np.nan
    return found


def test_ranks_are_those_of_sorted_numbers(values, rng):
    ordered = np.sort(values[~np.isnan(values)])
    ranks = [*rng.integers(0, len(ordered), 20), 0, len(ordered) - 1]
    np.testing.assert_array_equal(at_ranks(values, ranks), ordered[ranks])


@pytest.mark.parametrize("fraction", [0.0, 0.2, 0.5, 0.77, 1.0])
@pytest.mark.parametrize("n", [1, 2, 5, 100])
def test_quantiles_are_those_of_numpy(rng, fraction, n):
    values = rng.normal(size=n).astype(np.float32)
    shown = np.append(values, [np.nan] * 3)
    assert quantile(shown, fraction, n=n) == pytest.approx(np.quantile(values, fraction), rel=1e-6)
    above = np.sort(values)[n // 3 :]
    assert quantile(shown, fraction, n=n, first=n // 3) == pytest.approx(np.quantile(above, fraction), rel=1e-6)


@pytest.mark.parametrize("n", [1, 2, 9, 400])
def test_many_quantiles_are_those_of_numpy(rng, n):
    values, fractions = rng.normal(size=n), np.append(rng.random(50), [0, 0.5, 1])
    np.testing.assert_array_equal(quantiles(values, fractions), np.quantile(values, fractions))


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (6, 1), (9, 11)])
def test_steps_are_differences_along_rows_and_columns(rng, shape):
    depth = rng.normal(size=shape).astype(np.float32)
    depth[rng.random(shape) < 0.2] = np.nan
    sizes = np.abs(np.concatenate([np.diff(depth, axis=1).ravel(), np.diff(depth, axis=0).ravel()]))
    steps = Steps.of(depth)
    np.testing.assert_array_equal(steps.sizes, sizes)
    assert steps.count == np.isfinite(sizes).sum()
    assert steps.median == (pytest.approx(np.nanmedian(sizes)) if steps.count else 0)


@pytest.mark.parametrize("fraction", [0.1, 0.3, 0.9])
def test_the_step_of_a_quantised_map_is_a_percentile_of_the_differences_that_are_not_zero(rng, fraction):
    sizes = np.where(rng.random(400) < 0.3, 0, rng.integers(1, 9, 400) / 4).astype(np.float32)
    steps = Steps(sizes, 400)
    assert steps.quantum(1e-6, 0.1, 100 * fraction) == pytest.approx(np.quantile(sizes[sizes > 0], fraction))
    assert steps.quantum(1e-6, 0.6, 100 * fraction) == 0
    assert Steps(np.zeros(4, np.float32), 4).quantum(1e-6, 0.1, 20) == 0


def test_curves_are_linear_between_knots_and_level_beyond(rng):
    knots, heights = np.linspace(-2.0, 3.0, 9), rng.normal(size=9)
    values = np.append(rng.uniform(-4, 5, 500), knots)
    np.testing.assert_allclose(linear_curve(values, knots, heights), np.interp(values, knots, heights), atol=2e-6)

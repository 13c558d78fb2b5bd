"""Roof duality: its labels are those of every minimiser, and never wrong."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from flow_oracle import slow_cut
from sparsedepth.stereo import cuts
from sparsedepth.stereo.cuts import Network, Polynomial, overlay, roof_duality


@dataclass(frozen=True, eq=False)
class BinaryEnergy:
    """The sum over n variables and m pairs of them: ``unary[i, x_i]`` and ``pairs[e, 2 * x_first + x_second]``."""

    unary: Any
    first: Any
    second: Any
    pairs: Any

    def value(self, labels) -> float:
        x = np.asarray(labels, np.intp)
        both = 2 * x[self.first] + x[self.second]
        return float(self.unary[np.arange(len(x)), x].sum() + self.pairs[np.arange(len(both)), both].sum())

    def polynomial(self) -> Polynomial:
        """The same, up to a constant."""
        neither, second, first, both = self.pairs.T
        slope = self.unary[:, 1] - self.unary[:, 0]
        slope += np.bincount(self.first, first - neither, minlength=len(slope))
        slope += np.bincount(self.second, second - neither, minlength=len(slope))
        return Polynomial(slope, self.first, self.second, neither + both - first - second)


def random_energy(seed: int, *, submodular: bool, n: int = 7, integer: bool = False) -> BinaryEnergy:
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(n, 1)
    chosen = rng.random(len(first)) < 0.5
    first, second = first[chosen].astype(np.int32), second[chosen].astype(np.int32)
    unary, pairs = rng.normal(size=(n, 2)), rng.normal(size=(len(first), 4))
    if integer:  # ties between minimisers are then common
        unary, pairs = np.rint(2 * unary), np.rint(pairs)
    if submodular:
        excess = pairs[:, 0] + pairs[:, 3] - pairs[:, 1] - pairs[:, 2]
        pairs[:, 1] += np.maximum(excess, 0)
    return BinaryEnergy(unary, first, second, pairs)


def minimisers(energy: BinaryEnergy) -> tuple[float, list[np.ndarray]]:
    """The least energy and every labelling that has it, by trying all."""
    tried = [np.array(labels) for labels in product((0, 1), repeat=len(energy.unary))]
    values = [energy.value(labels) for labels in tried]
    least = min(values)
    return least, [labels for labels, value in zip(tried, values, strict=True) if value < least + 1e-9]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("submodular", [True, False])
def test_every_minimiser_has_the_labels_of_roof_duality(seed, submodular):
    energy = random_energy(seed, submodular=submodular, integer=True)
    labels = roof_duality(energy.polynomial())
    told = labels != cuts.UNLABELLED
    least, best = minimisers(energy)
    assert all((each[told] == labels[told]).all() for each in best)
    if submodular and len(best) == 1:
        assert told.all()
        assert energy.value(labels) == least


def fixed_by_relaxation(polynomial: Polynomial) -> np.ndarray:
    """The labels that all minimisers of the linear relaxation have (Hammer, Hansen & Simeone 1984); -1 = several."""
    n, m = len(polynomial.slope), len(polynomial.first)
    cost = np.concatenate([polynomial.slope, polynomial.coupling])
    rows = []
    for edge, (one, other) in enumerate(zip(polynomial.first, polynomial.second, strict=True)):
        both, first, second = (np.eye(n + m)[place] for place in (n + edge, one, other))
        rows += [(both - first, 0), (both - second, 0), (first + second - both, 1)]
    above, limit = np.array([row for row, _ in rows]), np.array([most for _, most in rows])
    least = linprog(cost, above, limit, bounds=(0, 1)).fun
    above, limit = np.vstack([above, cost]), np.append(limit, least + 1e-7)
    lowest = [linprog(np.eye(n + m)[node], above, limit, bounds=(0, 1)).fun for node in range(n)]
    highest = [-linprog(-np.eye(n + m)[node], above, limit, bounds=(0, 1)).fun for node in range(n)]
    return np.where(np.array(lowest) > 0.9, 1, np.where(np.array(highest) < 0.1, 0, cuts.UNLABELLED))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_labels_are_those_that_the_linear_relaxation_fixes(seed):
    polynomial = random_energy(seed, submodular=False, n=12, integer=True).polynomial()
    np.testing.assert_array_equal(roof_duality(polynomial), fixed_by_relaxation(polynomial))


@pytest.mark.parametrize("seed", range(5))
def test_a_polynomial_is_its_energy(seed):
    energy = random_energy(seed, submodular=False)
    for choice in product((0, 1), repeat=7):
        assert energy.polynomial().value(np.array(choice)) == pytest.approx(
            energy.value(choice) - energy.value(np.zeros(7))
        )


def slow_roof_duality(polynomial: Polynomial, held: np.ndarray) -> np.ndarray:
    """The cut of variables and their twins, written out pair by pair; held variables cost too much to change."""
    n = len(held)
    slope = polynomial.slope + np.where(held == cuts.UNLABELLED, 0, np.where(held == 1, -1e3, 1e3))
    edges = []
    for i, j, q in zip(polynomial.first, polynomial.second, polynomial.coupling, strict=True):
        slope[j] += min(q, 0)
        edges += [(i, j, -q), (n + j, n + i, -q)] if q < 0 else [(n + j, i, q), (n + i, j, q)]
    tail, head, capacity = np.array(edges, np.float64).reshape(-1, 3).T
    one, twin = slow_cut(Network.of(np.concatenate([slope, -slope]), tail, head, capacity, 0 * capacity))[0].reshape(
        2, n
    )
    return np.where(held != cuts.UNLABELLED, held, np.where(one == twin, cuts.UNLABELLED, one))


@pytest.mark.slow
@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("seed", range(15))
def test_roof_duality_is_the_cut_of_variables_and_twins(seed, integer):
    """All free, and with some held."""
    rng = np.random.default_rng(seed)
    polynomial = random_energy(seed, submodular=seed % 5 == 0, n=14, integer=integer).polynomial()
    for share in (0, 0.4):
        held = np.where(rng.random(14) < share, rng.integers(0, 2, 14), cuts.UNLABELLED).astype(np.int8)
        np.testing.assert_array_equal(roof_duality(polynomial, held), slow_roof_duality(polynomial, held))


def test_huge_costs_are_scaled_down():
    polynomial = random_energy(4, submodular=False, n=14).polynomial()
    huge = Polynomial(1e30 * polynomial.slope, polynomial.first, polynomial.second, 1e30 * polynomial.coupling)
    np.testing.assert_array_equal(roof_duality(huge), roof_duality(polynomial))


def test_nothing_is_told_of_no_variables_and_of_ties():
    nobody, none = np.empty(0, np.int32), np.empty(0)
    assert roof_duality(Polynomial(none, nobody, nobody, none)).tolist() == []
    assert roof_duality(Polynomial(np.array([0.0, -1.0, 2.0]), nobody, nobody, none)).tolist() == [-1, 1, 0]


@pytest.mark.parametrize("seed", range(20))
def test_laying_labels_over_a_start_never_costs_more(seed):
    """Whatever the start and whatever is held (the autarky of roof duality)."""
    rng = np.random.default_rng(seed)
    polynomial = random_energy(seed, submodular=False, n=12, integer=True).polynomial()
    start, free = rng.random(12) < 0.5, rng.random(12) < 0.7
    found = overlay(polynomial, start, free)
    assert polynomial.value(found) <= polynomial.value(start)
    np.testing.assert_array_equal(found[~free], start[~free])


def test_roof_duality_labels_something_and_not_everything():
    energies = (random_energy(seed, submodular=False, integer=True) for seed in range(30))
    shares = [(roof_duality(energy.polynomial()) != cuts.UNLABELLED).mean() for energy in energies]
    assert min(shares) < 1
    assert np.mean(shares) > 0.2

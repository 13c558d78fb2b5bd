"""Cuts: exact where energies are submodular, never wrong where they are not, alike in every library."""

from __future__ import annotations

import importlib.util
from itertools import product

import numpy as np
import pytest

from sparsedepth.stereo import cuts
from sparsedepth.stereo.cuts import BinaryEnergy, minimise, overlay, roof_duality
from sparsedepth.vocabulary import InputError

INSTALLED = [name for name in cuts.CUTTERS if importlib.util.find_spec(name) is not None]
pytestmark = pytest.mark.skipif(not INSTALLED, reason="no library of maximum flows is installed")


@pytest.fixture(params=cuts.CUTTERS)
def cut(request):
    pytest.importorskip(request.param)
    return cuts.CUTTERS[request.param]


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


@pytest.mark.parametrize("seed", range(15))
def test_submodular_energies_are_solved(seed, cut):
    energy = random_energy(seed, submodular=True, integer=seed % 3 == 0)
    least, _ = minimisers(energy)
    # Each of at most 28 terms is rounded by half a step.
    assert energy.value(minimise(energy, cut)) == pytest.approx(least, abs=28 / cuts.CAPACITY_SCALE)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("submodular", [True, False])
def test_every_minimiser_has_the_labels_of_roof_duality(seed, submodular, cut):
    energy = random_energy(seed, submodular=submodular, integer=True)
    labels = roof_duality(energy, cut)
    told = labels != cuts.UNLABELLED
    least, best = minimisers(energy)
    assert all((each[told] == labels[told]).all() for each in best)
    if submodular and len(best) == 1:
        assert told.all()
        assert energy.value(labels) == least


@pytest.mark.parametrize("seed", range(20))
def test_thinqpbo_agrees_where_both_label(seed):
    """It may label more, where minimisers are several, but never otherwise."""
    thinqpbo = pytest.importorskip("thinqpbo", reason="the peer comes with the extra [bench]")
    energy = random_energy(seed, submodular=False, n=30, integer=True)
    peer = thinqpbo.QPBOInt()
    peer.add_node(len(energy.unary))
    for node, costs in enumerate(energy.unary.astype(int).tolist()):
        peer.add_unary_term(node, *costs)
    for first, second, costs in zip(energy.first, energy.second, energy.pairs.astype(int).tolist(), strict=True):
        peer.add_pairwise_term(int(first), int(second), *costs)
    peer.solve()
    theirs = np.array([peer.get_label(node) for node in range(len(energy.unary))])
    labels = roof_duality(energy)
    both = (labels != cuts.UNLABELLED) & (theirs >= 0)
    np.testing.assert_array_equal(labels[both], theirs[both])


@pytest.mark.parametrize("seed", range(5))
def test_a_polynomial_is_its_energy_and_what_is_given_is_left_out(seed):
    rng = np.random.default_rng(seed)
    energy = random_energy(seed, submodular=False)
    whole = energy.polynomial()
    labels = rng.integers(-1, 2, 7).astype(np.int8)
    free = labels == cuts.UNLABELLED
    rest = whole.given(labels)
    base = np.where(free, 0, labels)
    for choice in product((0, 1), repeat=int(free.sum())):
        x = base.copy()
        x[free] = choice
        assert whole.value(x) == pytest.approx(energy.value(x) - energy.value(np.zeros(7)))
        assert rest.value(np.array(choice)) == pytest.approx(whole.value(x) - whole.value(base))


@pytest.mark.parametrize("seed", range(20))
def test_laying_labels_over_a_start_never_costs_more(seed, cut):
    """Whatever the start and whatever is held (the autarky of roof duality)."""
    rng = np.random.default_rng(seed)
    polynomial = random_energy(seed, submodular=False, n=12, integer=True).polynomial()
    start, free = rng.random(12) < 0.5, rng.random(12) < 0.7
    found = overlay(polynomial, start, free, cut)
    assert polynomial.value(found) <= polynomial.value(start)
    np.testing.assert_array_equal(found[~free], start[~free])


def test_roof_duality_labels_something_and_not_everything():
    shares = [(roof_duality(random_energy(s, submodular=False, integer=True)) >= 0).mean() for s in range(30)]
    assert min(shares) < 1
    assert np.mean(shares) > 0.2


@pytest.mark.skipif(len(INSTALLED) < 2, reason="there is only one library of maximum flows")
@pytest.mark.parametrize("seed", range(5))
def test_libraries_cut_alike(seed):
    rng = np.random.default_rng(seed)
    index = np.arange(40 * 30).reshape(40, 30)
    tail = np.concatenate([index[:, :-1].ravel(), index[:-1].ravel()])
    head = np.concatenate([index[:, 1:].ravel(), index[1:].ravel()])
    weights = np.rint(rng.uniform(0, 4, (2, len(tail))))
    net = cuts.network(np.rint(rng.normal(scale=6, size=index.size)), tail, head, *weights)
    sides = [cuts.CUTTERS[name](net) for name in INSTALLED]
    assert net.cost(sides[0]) == net.cost(sides[1])
    np.testing.assert_array_equal(sides[0], sides[1])


@pytest.mark.parametrize("slope", [[1.0, 2.0], [-1.0, -2.0], [0.0, 0.0]])
def test_nothing_flows_without_a_source_or_a_sink(slope, cut):
    energy = BinaryEnergy(np.array([[0.0, u] for u in slope]), np.array([0]), np.array([1]), np.zeros((1, 4)))
    assert minimise(energy, cut).tolist() == [u < 0 for u in slope]


def test_huge_costs_are_scaled_down(cut):
    huge = 1e30
    energy = BinaryEnergy(
        np.array([[0, 3], [2, 0]]) * huge, np.array([0]), np.array([1]), np.array([[0, 1, 1, 0]]) * huge
    )
    assert minimise(energy, cut).tolist() == [False, True]


def test_a_pair_that_prefers_to_differ_is_no_cut():
    energy = BinaryEnergy(np.zeros((2, 2)), np.array([0]), np.array([1]), np.array([[1.0, 0.0, 0.0, 1.0]]))
    with pytest.raises(InputError, match="roof_duality"):
        minimise(energy)


def test_without_a_library_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'sparsedepth\[stereo\]'"):
        cuts.cutter()

"""Maximum flow: the cut costs the flow, and is that of other programs, whatever the graph."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flow_oracle import cut_with_ortools, slow_cut
from sparsedepth.kernels.library import load
from sparsedepth.stereo.cuts import MAX_CAPACITY, Network, minimum_cut
from sparsedepth.vocabulary import InputError


def random_ends(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    """Any two nodes, also twice, also a node and itself."""
    return rng.integers(0, n, (2, m))


def grid_ends(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    width = max(int(np.sqrt(n)), 1)
    index = np.arange(n // width * width).reshape(-1, width)
    across, down = (index[:, :-1], index[:, 1:]), (index[:-1], index[1:])
    return np.concatenate([[end.ravel() for end in across], [end.ravel() for end in down]], axis=1)


def chain_ends(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    """The longest paths that there are."""
    order = rng.permutation(n)
    return np.stack([order[:-1], order[1:]])


def island_ends(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    """Parts without a link between them."""
    ends = rng.integers(0, n, (2, m))
    return ends[:, ends[0] % 3 == ends[1] % 3]


def layered_ends(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    """Each node leads to the next few: flow has many ways of equal length."""
    tail = rng.integers(0, n, m)
    return np.stack([tail, np.minimum(tail + rng.integers(1, 4, m), n - 1)])


ENDS = {each.__name__: each for each in (random_ends, grid_ends, chain_ends, island_ends, layered_ends)}
LARGEST = (1, 2, 7, 1000, MAX_CAPACITY)


def random_network(shape: str, seed: int, n: int, m: int, largest: int, zeros: float) -> Network:
    rng = np.random.default_rng(seed)
    tail, head = ENDS[shape](rng, n, m).astype(np.int32)
    excess = rng.integers(-largest, largest + 1, n)
    if seed % 2 and shape == "chain_ends":  # all that flows must go through the whole chain
        excess = np.where((np.arange(n) == tail[:1].sum()) | (np.arange(n) == head[-1:].sum()), excess, 0)
    capacities = rng.integers(0, largest + 1, (2, len(tail))) * (rng.random((2, len(tail))) >= zeros)
    return Network(excess.astype(np.int32), tail, head, *capacities.astype(np.int32))


def networks(most_nodes: int, most_edges: int) -> st.SearchStrategy[Network]:
    return st.builds(
        random_network,
        st.sampled_from(list(ENDS)),
        st.integers(0, 2**31),
        st.integers(1, most_nodes),
        st.integers(0, most_edges),
        st.sampled_from(LARGEST),
        st.sampled_from((0.0, 0.3, 0.7, 1.0)),
    )


@settings(max_examples=150, deadline=None)
@given(networks(12, 40))
def test_the_cut_is_that_of_the_oracle_and_costs_the_flow(network):
    found, (side, flow) = minimum_cut(network), slow_cut(network)
    assert found.flow == flow == network.cost(found.sink_side)
    np.testing.assert_array_equal(found.sink_side, side)


@settings(max_examples=100, deadline=None)
@given(network=networks(300, 2000))
def test_ortools_cuts_alike(network):
    found, theirs = minimum_cut(network), cut_with_ortools(network)
    assert found.flow == network.cost(found.sink_side) == network.cost(theirs)
    np.testing.assert_array_equal(found.sink_side, theirs)


@pytest.mark.parametrize("scale", [1, 6, 40])
def test_pictures_are_cut_alike(scale):
    """Potts links and weak to strong data, as in stereo."""
    rng = np.random.default_rng(scale)
    tail, head = grid_ends(rng, 120 * 120, 0)
    weights = 20 * rng.integers(1, 3, len(tail))
    network = Network.of(rng.normal(scale=scale * 10, size=120 * 120), tail, head, weights, weights)
    found = minimum_cut(network)
    assert found.flow == network.cost(found.sink_side)
    np.testing.assert_array_equal(found.sink_side, cut_with_ortools(network))


def test_equal_graphs_are_cut_alike_to_the_last_bit_on_every_processor():
    network = random_network("random_ends", 3, 200, 900, 1000, 0.3)
    found, again = minimum_cut(network), minimum_cut(network)
    assert found.flow == again.flow
    np.testing.assert_array_equal(found.sink_side, again.sink_side)
    for level in ("baseline", "avx2") if load().processor_has_avx2() else ("baseline",):
        assert flow_at_level(level, network) == found.flow


def flow_at_level(level: str, network: Network) -> int:
    n, m = len(network.excess), len(network.tail)
    arrays = [network.excess, network.tail, network.head, network.forward, network.backward]
    arrays += [np.empty(size, np.int32) for size in (n + 2, 6 * m, 6 * n)] + [np.empty(n, np.uint8)]
    kernel = load(level)["max_flow"]
    return int(kernel(*(ctypes.c_int64(k) for k in (n, m)), *(a.ctypes.data_as(POINTER) for a in arrays)))


POINTER = ctypes.c_void_p


@pytest.mark.parametrize("excess", [[], [3], [0, 0], [5, 2], [-5, -2]])
def test_nothing_flows_without_a_source_and_a_sink(excess):
    n = len(excess)
    none = np.empty(0, np.int32)
    found = minimum_cut(Network(np.array(excess, np.int32), none, none, none, none))
    assert found.flow == 0
    assert found.sink_side.tolist() == [node < 0 for node in excess]
    assert len(found.sink_side) == n


def test_huge_costs_are_scaled_down_and_huge_capacities_refused():
    huge = np.array([3e30, -2e30])
    assert minimum_cut(
        Network.of(huge, np.array([0]), np.array([1]), np.array([1e30]), np.array([1e30]))
    ).sink_side.tolist() == [0, 1]
    ends, wide = np.zeros(1, np.int32), np.array([MAX_CAPACITY + 1], np.int32)
    with pytest.raises(InputError, match="scale them down"):
        minimum_cut(Network(wide, ends, ends, ends, ends))
    with pytest.raises(InputError, match="negative"):
        minimum_cut(Network(ends, ends, ends, -wide, ends))

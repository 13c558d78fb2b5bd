"""Pairwise energies of binary variables: the exact minimum by a cut where they are submodular, else roof duality.

The maximum flow is OR-tools', or PyMaxflow's (faster on pictures) where the user has installed it. Both are asked for
the smallest set of nodes on the sink's side, which is the same for every maximum flow, so a result does not depend on
which library is there.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.vocabulary import Floats, InputError, Vector

CAPACITY_SCALE = 1024
"""Steps a unit of energy: capacities are integers, so costs are rounded to the nearest 1/1024."""
MAX_TOTAL_CAPACITY = float(2**53)
"""The sum of all capacities stays below it, with fewer steps a unit if it must: no library can then overflow."""
UNLABELLED = -1

Nodes = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class BinaryEnergy:
    """The sum over n variables and m pairs of them: ``unary[i, x_i]`` and ``pairs[e, 2 * x_first + x_second]``."""

    unary: Floats
    """(n, 2)"""
    first: Nodes
    """(m,)"""
    second: Nodes
    """(m,)"""
    pairs: Floats
    """(m, 4): the cost of 00, 01, 10 and 11."""

    def value(self, labels: NDArray[Any]) -> float:
        """Compute the energy of a labelling with 0 and 1."""
        x = np.asarray(labels, np.intp)
        unary = self.unary[np.arange(len(x)), x].sum(dtype=np.float64)
        both = 2 * x[self.first] + x[self.second]
        return float(unary + self.pairs[np.arange(len(both)), both].sum(dtype=np.float64))

    def polynomial(self) -> Polynomial:
        """Convert to a polynomial, up to a constant."""
        neither, second, first, both = self.pairs.astype(np.float64).T
        n = len(self.unary)
        slope = (self.unary[:, 1] - self.unary[:, 0]).astype(np.float64)
        slope += np.bincount(self.first, first - neither, minlength=n)
        slope += np.bincount(self.second, second - neither, minlength=n)
        return Polynomial(slope, self.first, self.second, neither + both - first - second)


@dataclass(frozen=True, eq=False)
class Polynomial:
    """The sum of ``slope[i] * x_i`` and of ``coupling[e] * x_first * x_second`` over binary variables x."""

    slope: Vector
    """(n,)"""
    first: Nodes
    """(m,)"""
    second: Nodes
    """(m,)"""
    coupling: Vector
    """(m,)"""

    def value(self, labels: NDArray[Any]) -> float:
        """Compute the sum at a labelling with 0 and 1."""
        x = np.asarray(labels, np.float64)
        return float(self.slope @ x + self.coupling @ (x[self.first] * x[self.second]))

    def given(self, labels: NDArray[np.int8]) -> Polynomial:
        """Set variables to 0 or 1, up to a constant; those labelled -1 stay, in order."""
        free = labels == UNLABELLED
        one = labels == 1
        slope = self.slope.copy()
        for mine, other in ((self.first, self.second), (self.second, self.first)):
            there = one[other]
            slope += np.bincount(mine[there], self.coupling[there], minlength=len(slope))
        among = free[self.first] & free[self.second]
        number = np.cumsum(free, dtype=np.int32) - 1
        return Polynomial(slope[free], number[self.first[among]], number[self.second[among]], self.coupling[among])


@dataclass(frozen=True, eq=False)
class Network:
    """The capacities of a cut: a node costs ``from_source`` on the sink's side, ``to_sink`` on the source's side."""

    from_source: NDArray[np.int64]
    to_sink: NDArray[np.int64]
    tail: Nodes
    head: Nodes
    forward: NDArray[np.int64]
    """What an edge costs when its tail is on the source's side and its head on the sink's."""
    backward: NDArray[np.int64]

    def cost(self, sink_side: NDArray[np.bool_]) -> int:
        """Add the capacities that a cut severs, in steps."""
        nodes = np.where(sink_side, self.from_source, self.to_sink).sum()
        tail, head = sink_side[self.tail], sink_side[self.head]
        return int(nodes + self.forward[~tail & head].sum() + self.backward[tail & ~head].sum())


Cutter = Callable[[Network], NDArray[np.bool_]]
"""A network -> whether each node is in the smallest sink's side of a minimum cut."""


def minimise(energy: BinaryEnergy, cut: Cutter | None = None) -> NDArray[np.bool_]:
    """Find the labels of least energy; every pair must be submodular: 00 and 11 together cost no more than 01 and 10.

    >>> pairs = np.array([[0.0, 3.0, 3.0, 0.0]])
    >>> energy = BinaryEnergy(np.array([[0.0, 5.0], [2.0, 0.0]]), np.array([0]), np.array([1]), pairs)
    >>> minimise(energy).tolist()
    [False, False]
    """
    polynomial = energy.polynomial()
    slope, coupling = polynomial.slope, polynomial.coupling
    if (coupling > 1e-6 * (1 + np.abs(energy.pairs).max(initial=0))).any():
        raise InputError("some pairs prefer to differ, so no cut has this energy; label what roof_duality can")
    # With x = 1 on the sink's side, q x y for q < 0 is q y, plus |q| where x = 0 and y = 1.
    slope = slope + np.bincount(energy.second, coupling, minlength=len(slope))
    none = np.zeros(len(coupling))
    return (cut or cutter())(network(slope, energy.first, energy.second, np.maximum(-coupling, 0), none))


def roof_duality(energy: BinaryEnergy | Polynomial, cut: Cutter | None = None) -> NDArray[np.int8]:
    """Find the labels 0 and 1 that every minimiser has (QPBO, strong persistency); -1 elsewhere.

    Each variable x gets a twin that stands for 1 - x; a pair that prefers to differ ties one to the other's twin.
    """
    polynomial = energy.polynomial() if isinstance(energy, BinaryEnergy) else energy
    slope, coupling = polynomial.slope, polynomial.coupling
    n = len(slope)
    agree, differ = np.maximum(-coupling, 0), np.maximum(coupling, 0)
    slope = slope - np.bincount(energy.second, agree, minlength=n)
    first, second = 2 * energy.first.astype(np.int32), 2 * energy.second.astype(np.int32)  # the twins follow them
    # An edge costs where its tail is 0 and its head 1: i -> j and j' -> i' if agreeing pays, else j' -> i and i' -> j.
    like, unlike = agree > 0, differ > 0
    tail = np.concatenate([first[like], second[like] + 1, second[unlike] + 1, first[unlike] + 1])
    head = np.concatenate([second[like], first[like] + 1, first[unlike], second[unlike]])
    capacity = np.concatenate([agree[like]] * 2 + [differ[unlike]] * 2)
    # What is near in the picture is to be near in memory, too: it takes a quarter off the time of a large cut.
    order = np.argsort(np.minimum(tail, head), kind="stable")
    tail, head, capacity = tail[order], head[order], capacity[order]
    doubled = network(np.stack([slope, -slope], axis=1).ravel(), tail, head, capacity, np.zeros(len(capacity)))
    one, twin_is_one = (cut or cutter())(doubled).reshape(n, 2).T
    return np.where(one == twin_is_one, UNLABELLED, one).astype(np.int8)


def overlay(
    polynomial: Polynomial, start: NDArray[np.bool_], free: NDArray[np.bool_], cut: Cutter | None = None
) -> NDArray[np.bool_]:
    """Find a labelling that costs no more than ``start`` and differs at ``free`` variables only (as QPBO-I does).

    The others are held; what roof duality then says of the free ones is laid over the start. That never costs more,
    whatever the start: it is the autarky of roof duality.
    """
    labels = np.where(free, np.int8(UNLABELLED), start.astype(np.int8))
    found = roof_duality(polynomial.given(labels), cut)
    result = start.copy()
    result[free] = np.where(found == UNLABELLED, start[free], found == 1)
    return result


def network(slope: Vector, tail: NDArray[Any], head: NDArray[Any], forward: Vector, backward: Vector) -> Network:
    """Compute integer capacities of a cut whose sink's side is x = 1: ``slope`` is what x = 1 costs more than x = 0."""
    total = float(np.abs(slope).sum() + forward.sum() + backward.sum())
    scale = CAPACITY_SCALE if total * CAPACITY_SCALE < MAX_TOTAL_CAPACITY else MAX_TOTAL_CAPACITY / (2 * total)
    steps = np.rint(np.asarray(slope, np.float64) * scale).astype(np.int64)
    return Network(
        np.maximum(steps, 0),
        np.maximum(-steps, 0),
        tail.astype(np.int32),
        head.astype(np.int32),
        np.rint(np.asarray(forward, np.float64) * scale).astype(np.int64),
        np.rint(np.asarray(backward, np.float64) * scale).astype(np.int64),
    )


def cutter() -> Cutter:
    """Choose the fastest library that is installed."""
    for package, cut in CUTTERS.items():
        if importlib.util.find_spec(package) is not None:
            return cut
    raise InputError("graph cuts need OR-tools; install it with: pip install 'sparsedepth[stereo]'")


def _cut_with_pymaxflow(network: Network) -> NDArray[np.bool_]:
    maxflow = importlib.import_module("maxflow")
    n = len(network.from_source)
    graph = maxflow.GraphInt(n, len(network.tail))
    nodes = graph.add_grid_nodes((n,))
    graph.add_grid_tedges(nodes, network.from_source, network.to_sink)
    if len(network.tail):
        graph.add_edges(network.tail, network.head, network.forward, network.backward)
    graph.maxflow()
    return np.asarray(graph.get_grid_segments(nodes), bool)


def _cut_with_ortools(network: Network) -> NDArray[np.bool_]:
    max_flow = importlib.import_module("ortools.graph.python.max_flow")
    n = len(network.from_source)
    source, sink = n, n + 1
    left, right = np.flatnonzero(network.from_source), np.flatnonzero(network.to_sink)
    there, back = network.forward > 0, network.backward > 0
    arcs = (  # the last, of no capacity, makes both ends known where nothing flows
        [network.tail[there], network.head[back], np.full(len(left), source), right, [source]],
        [network.head[there], network.tail[back], left, np.full(len(right), sink), [sink]],
    )
    capacities = [network.forward[there], network.backward[back], network.from_source[left], network.to_sink[right]]
    flow = max_flow.SimpleMaxFlow()
    tails, heads = (np.concatenate(ends).astype(np.int32) for ends in arcs)
    flow.add_arcs_with_capacity(tails, heads, np.concatenate([*capacities, [0]]).astype(np.int64))
    status = flow.solve(source, sink)
    if status != flow.OPTIMAL:
        raise RuntimeError(f"OR-tools found no maximum flow: {status}")
    side = np.zeros(n + 2, bool)
    side[flow.get_sink_side_min_cut()] = True
    return side[:n]


CUTTERS: Mapping[str, Cutter] = {"maxflow": _cut_with_pymaxflow, "ortools": _cut_with_ortools}
"""The package that it needs -> how it cuts, the fastest first."""

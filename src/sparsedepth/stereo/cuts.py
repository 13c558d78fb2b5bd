"""Minimum cuts, and what they tell of energies of binary variables that no cut minimises (roof duality).

The maximum flow is that of `kernels/max_flow.c`. Among minimum cuts the one with the smallest sink's side is found. All
maximum flows have it in common, so that any correct program finds the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.kernels import max_flow as kernels
from sparsedepth.vocabulary import InputError, Vector

CAPACITY_SCALE = 1024
"""Steps a unit of energy: capacities are integers, so costs are rounded to the nearest 1/1024."""
MAX_CAPACITY = 2**29
"""In steps; larger costs are rounded to fewer steps a unit."""
UNLABELLED = -1

Nodes = NDArray[np.int32]
Capacities = NDArray[np.int32]
Costs = NDArray[Any]


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


@dataclass(frozen=True, eq=False)
class Network:
    """The capacities of a cut, in steps, of at most `MAX_CAPACITY` each."""

    excess: Capacities
    """(n,): what a node costs on the sink's side, or, if negative, on the source's side."""
    tail: Nodes
    """(m,)"""
    head: Nodes
    """(m,)"""
    forward: Capacities
    """(m,): what an edge costs when its tail is on the source's side and its head on the sink's."""
    backward: Capacities
    """(m,)"""

    @classmethod
    def of(cls, slope: Costs, tail: NDArray[Any], head: NDArray[Any], forward: Costs, backward: Costs) -> Network:
        """Round real costs to steps; ``slope`` is what a node costs more on the sink's side than on the source's."""
        largest = max(float(np.abs(costs).max(initial=0)) for costs in (slope, forward, backward))
        scale = CAPACITY_SCALE if largest * CAPACITY_SCALE <= MAX_CAPACITY else MAX_CAPACITY / largest
        excess, there, back = (
            np.rint(np.asarray(costs, np.float64) * scale).astype(np.int32) for costs in (slope, forward, backward)
        )
        return cls(excess, np.asarray(tail, np.int32), np.asarray(head, np.int32), there, back)

    def cost(self, sink_side: NDArray[np.bool_]) -> int:
        """Add the capacities that a cut severs, in steps."""
        nodes = np.where(sink_side, np.maximum(self.excess, 0), np.maximum(-self.excess, 0)).sum(dtype=np.int64)
        tail, head = sink_side[self.tail], sink_side[self.head]
        edges = self.forward[~tail & head].sum(dtype=np.int64) + self.backward[tail & ~head].sum(dtype=np.int64)
        return int(nodes + edges)


@dataclass(frozen=True, eq=False)
class Cut:
    """A minimum cut."""

    sink_side: NDArray[np.bool_]
    """(n,): the smallest of all minimum cuts."""
    flow: int
    """The maximum flow, in steps: what the cut costs."""


def minimum_cut(network: Network) -> Cut:
    """Find the minimum cut with the smallest sink's side.

    Parameters
    ----------
    network
        Capacities in steps; n nodes and m edges.

    Returns
    -------
    Which nodes are on the sink's side (n,), and the maximum flow in steps.

    Examples
    --------
    >>> found = minimum_cut(Network.of(np.array([5.0, -2.0]), *np.array([[0], [1]]), *np.array([[3.0], [3.0]])))
    >>> found.sink_side.tolist(), found.flow / CAPACITY_SCALE
    ([False, False], 2.0)
    """
    capacities = network.excess, network.forward, network.backward
    if min(network.forward.min(initial=0), network.backward.min(initial=0)) < 0:
        raise InputError("some edges have negative capacities; make them zero or more")
    if max(int(np.abs(each.astype(np.int64)).max(initial=0)) for each in capacities) > MAX_CAPACITY:
        raise InputError(f"some capacities are above {MAX_CAPACITY} steps; scale them down, as Network.of does")
    n, m = len(network.excess), len(network.tail)
    sink_side = np.empty(n, np.uint8)
    rooms = (np.empty(size, np.int32) for size in (n + 2, 6 * m, 6 * n))
    ends = network.tail, network.head, network.forward, network.backward
    flow = kernels.max_flow(n, m, *map(np.ascontiguousarray, (network.excess, *ends)), *rooms, sink_side)
    return Cut(sink_side.astype(bool), flow)


def roof_duality(polynomial: Polynomial, held: NDArray[np.int8] | None = None) -> NDArray[np.int8]:
    """Find the labels 0 and 1 that every minimiser has (QPBO, strong persistency).

    Parameters
    ----------
    polynomial
        Sum over n binary variables.
    held
        (n,) labels that variables are set to beforehand; -1 = free. None = all are free.

    Returns
    -------
    Labels (n,); -1 where minimisers differ, or roof duality cannot tell.

    Examples
    --------
    >>> first, second = np.array([0], np.int32), np.array([1], np.int32)
    >>> roof_duality(Polynomial(np.array([-2.0, 1.0]), first, second, np.array([3.0]))).tolist()
    [1, 0]
    """
    n, m = len(polynomial.slope), len(polynomial.first)
    labels = np.full(n, UNLABELLED, np.int8) if held is None else held.astype(np.int8)
    rooms = (np.empty(size, np.int32) for size in (m, 3 * n + 4, 18 * m, 18 * n))
    kernels.roof_duality(
        n,
        m,
        np.ascontiguousarray(polynomial.slope),
        polynomial.first,
        polynomial.second,
        np.ascontiguousarray(polynomial.coupling),
        CAPACITY_SCALE,
        np.empty(n),
        *rooms,
        labels,
    )
    return labels


def overlay(polynomial: Polynomial, start: NDArray[np.bool_], free: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Find a labelling that costs no more than ``start`` and differs at ``free`` variables only (as QPBO-I does).

    The others are held; what roof duality then says of the free ones is laid over the start. That never costs more,
    whatever the start: it is the autarky of roof duality.
    """
    labels = roof_duality(polynomial, np.where(free, np.int8(UNLABELLED), start.astype(np.int8)))
    return np.where(labels == UNLABELLED, start, labels == 1)

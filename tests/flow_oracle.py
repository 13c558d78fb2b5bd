"""Maximum flows to check ours against: one that is slow and readable, and that of OR-tools."""

from __future__ import annotations

import importlib
from collections import deque

import numpy as np

from sparsedepth.stereo.cuts import Network


def slow_cut(network: Network) -> tuple[np.ndarray, int]:
    """Augment along shortest paths until there is none (Edmonds & Karp 1972): the smallest sink's side, the flow."""
    n = len(network.excess)
    source, sink = n, n + 1
    residual = np.zeros((n + 2, n + 2), np.int64)
    np.add.at(residual, (network.tail, network.head), network.forward)
    np.add.at(residual, (network.head, network.tail), network.backward)
    residual[source, :n], residual[:n, sink] = np.maximum(network.excess, 0), np.maximum(-network.excess, 0)
    flow = 0
    while path := _shortest_path(residual, source, sink):
        amount = min(residual[step] for step in path)
        for tail, head in path:
            residual[tail, head] -= amount
            residual[head, tail] += amount
        flow += int(amount)
    return _reaching(residual, sink)[:n], flow


def _shortest_path(residual: np.ndarray, source: int, sink: int) -> list[tuple[int, int]]:
    before, waiting = {source: source}, deque([source])
    while waiting and sink not in before:
        tail = waiting.popleft()
        for head in np.flatnonzero(residual[tail]):
            if int(head) not in before:
                before[int(head)] = tail
                waiting.append(int(head))
    path, at = [], sink
    while at in before and at != source:
        path.append((before[at], at))
        at = before[at]
    return path


def _reaching(residual: np.ndarray, sink: int) -> np.ndarray:
    reached = np.zeros(len(residual), bool)
    waiting = [sink]
    while waiting:
        head = waiting.pop()
        if not reached[head]:
            reached[head] = True
            waiting += np.flatnonzero(residual[:, head]).tolist()
    return reached


def cut_with_ortools(network: Network) -> np.ndarray:
    max_flow = importlib.import_module("ortools.graph.python.max_flow")
    n = len(network.excess)
    source, sink = n, n + 1
    left, right = np.flatnonzero(network.excess > 0), np.flatnonzero(network.excess < 0)
    arcs = (  # the last, of no capacity, makes both ends known where nothing flows
        [network.tail, network.head, np.full(len(left), source), right, [source]],
        [network.head, network.tail, left, np.full(len(right), sink), [sink]],
    )
    capacities = [network.forward, network.backward, network.excess[left], -network.excess[right], [0]]
    flow = max_flow.SimpleMaxFlow()
    tails, heads = (np.concatenate(ends).astype(np.int32) for ends in arcs)
    flow.add_arcs_with_capacity(tails, heads, np.concatenate(capacities).astype(np.int64))
    assert flow.solve(source, sink) == flow.OPTIMAL
    side = np.zeros(n + 2, bool)
    side[flow.get_sink_side_min_cut()] = True
    return side[:n]

"""Graph cuts with Potts smoothness (Boykov, Veksler, Zabih 2001): swap or expansion moves over whole-pixel labels.

A pair of neighbours whose labels differ costs K, and 2K where their intensities in the left view are alike, so that
depth edges lie at picture edges. The paper writes the weight of |L_i - R_j|; Boykov's is of |L_i - L_j|, used here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sparsedepth.stereo.costs import birchfield_tomasi, sample
from sparsedepth.stereo.cuts import Cutter, cutter, network
from sparsedepth.vocabulary import DepthMap, Floats, InputError, StereoPair, UnaryCost, Vector

POTTS_COST = 20.0
"""K, what a jump costs; the paper's."""
SIMILAR_INTENSITY = 5.0
"""Neighbours whose intensities differ by less are alike, and a jump between them costs 2K; the paper's, of 0..255."""
MAX_CYCLES = 20
"""At most; a cycle that changes nothing ends the search earlier."""

Labels = NDArray[np.int16]

data_cost = birchfield_tomasi


def solve(
    unary: UnaryCost,
    pair: StereoPair,
    start: DepthMap | None,
    rng: Generator,
    *,
    move: str = "swap",
    potts: float = POTTS_COST,
    alike: float = SIMILAR_INTENSITY,
    cycles: int = MAX_CYCLES,
) -> DepthMap:
    """Find whole-pixel disparities that no single move can improve, or those after ``cycles`` over all moves.

    ``move`` is "swap" (two labels trade pixels) or "expansion" (one label takes pixels from all others); ``rng`` orders
    the moves. Without a start every disparity is 0.
    """
    disparity = _rounded(start, pair).astype(np.float32)
    for cycle in improve(unary, pair, start, rng, move=move, potts=potts, alike=alike, cycles=cycles):
        disparity = cycle.disparity
    return disparity


@dataclass(frozen=True, eq=False)
class Cycle:
    """The map after every move was tried once."""

    disparity: DepthMap
    energy: float
    cuts: int
    """How many were made; a move is left out where nothing that it concerns has changed."""
    changed: int
    """Pixels with another label than before the cycle."""


def improve(
    unary: UnaryCost,
    pair: StereoPair,
    start: DepthMap | None,
    rng: Generator,
    *,
    move: str = "swap",
    potts: float = POTTS_COST,
    alike: float = SIMILAR_INTENSITY,
    cycles: int = MAX_CYCLES,
    cut: Cutter | None = None,
) -> Iterator[Cycle]:
    """Yield cycles of moves until nothing changes; the energy never rises. Arguments are those of `solve`.

    ``cut`` is the library of maximum flows, the fastest one that is installed if not given.
    """
    if move not in MOVES:
        raise InputError(f"the move is {move!r}; choose one of {', '.join(map(repr, MOVES))}")
    n_labels = pair.max_disparity + 1
    grid = Grid.of(sample(unary, pair, range(n_labels)), potts_weights(pair, potts, alike), _rounded(start, pair))
    cut = cut or cutter()
    concerned = list(combinations(range(n_labels), 2)) if move == "swap" else [(label,) for label in range(n_labels)]
    tried: dict[tuple[int, ...], Any] = {}
    for _ in range(cycles):
        before, n_cuts = grid.labels.copy(), 0
        for which in (concerned[index] for index in rng.permutation(len(concerned))):
            version = grid.version(which)
            if tried.get(which) != version:
                MOVES[move](grid, *which, cut)
                tried[which] = grid.version(which)
                n_cuts += 1
        changed = int((grid.labels != before).sum())
        yield Cycle(grid.disparity(pair.shape), grid.energy(), n_cuts, changed)
        if changed == 0:
            return


def energy(
    unary: UnaryCost,
    pair: StereoPair,
    disparity: DepthMap,
    *,
    potts: float = POTTS_COST,
    alike: float = SIMILAR_INTENSITY,
) -> float:
    """Compute the energy of a map: the unary of every pixel, and each pair of neighbours that differ."""
    right, down = (weight.reshape(pair.shape) for weight in potts_weights(pair, potts, alike))
    cost = unary(disparity).sum(dtype=np.float64)
    cost += right[:, :-1][disparity[:, 1:] != disparity[:, :-1]].sum(dtype=np.float64)
    return float(cost + down[:-1][disparity[1:] != disparity[:-1]].sum(dtype=np.float64))


def potts_weights(
    pair: StereoPair, potts: float = POTTS_COST, alike: float = SIMILAR_INTENSITY
) -> tuple[Vector, Vector]:
    """Compute what each pixel's difference from its right and its lower neighbour costs; 0 at the border."""
    grey = pair.left.mean(axis=2)
    weights = []
    for axis in (1, 0):
        step = np.abs(np.diff(grey, axis=axis))
        weight = np.where(step < alike, 2 * potts, potts)
        missing = [(0, 0), (0, 0)]
        missing[axis] = (0, 1)
        weights.append(np.pad(weight, missing).ravel())
    return weights[0], weights[1]


def _rounded(start: DepthMap | None, pair: StereoPair) -> Labels:
    if start is None:
        return np.zeros(pair.shape, np.int16)
    return np.clip(np.rint(start), 0, pair.max_disparity).astype(np.int16)


@dataclass(eq=False)
class Grid:
    """The labels of a picture's pixels, row by row, and their costs; moves change the labels in place."""

    costs: Floats
    """(labels, pixels)"""
    links: tuple[tuple[int, Vector], ...]
    """How far the neighbour is, right and down, and the weight of each pixel's link to it."""
    labels: Labels
    place: NDArray[np.int32]
    """Room for the node of each pixel, with a row to spare, so that every pixel has a neighbour below."""
    changes: NDArray[np.int64] = field(init=False)
    """How often the pixels of each label have changed."""

    def __post_init__(self) -> None:
        self.changes = np.zeros(len(self.costs), np.int64)

    @classmethod
    def of(cls, volume: Floats, weights: tuple[Vector, Vector], labels: Labels) -> Grid:
        """Build the grid of a cost volume (labels, height, width)."""
        n_labels, height, width = volume.shape
        links = ((1, weights[0]), (width, weights[1]))
        flat = volume.reshape(n_labels, -1)
        return cls(flat, links, labels.ravel().copy(), np.full((height + 1) * width + 1, -1, np.int32))

    def disparity(self, shape: tuple[int, int]) -> DepthMap:
        return self.labels.reshape(shape).astype(np.float32)

    def energy(self) -> float:
        total = np.take_along_axis(self.costs, self.labels[None].astype(np.intp), axis=0).sum(dtype=np.float64)
        for step, weight in self.links:
            total += weight[:-step][self.labels[step:] != self.labels[:-step]].sum(dtype=np.float64)
        return float(total)

    def version(self, labels: tuple[int, ...]) -> Any:
        """Identify what a move's outcome depends on: of a swap its two labels, of an expansion everything."""
        return tuple(self.changes[list(labels)]) if len(labels) == 2 else int(self.changes.sum())

    def edges(self, nodes: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp], Vector]:
        """List first and second node, by position among the nodes, and weight of each link between two of them."""
        self.place[nodes] = np.arange(len(nodes), dtype=np.int32)
        found = []
        for step, weight in self.links:
            other, weights = self.place[nodes + step], weight[nodes]
            linked = np.flatnonzero((other >= 0) & (weights > 0))
            found.append((linked, other[linked], weights[linked]))
        self.place[nodes] = -1
        first, second, weights = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return first, second, weights

    def relabel(self, nodes: NDArray[np.intp], labels: Labels) -> None:
        touched = np.union1d(labels, self.labels[nodes])
        self.labels[nodes] = labels
        self.changes[touched] += 1


def swap(grid: Grid, a: int, b: int, cut: Cutter) -> None:
    """Let the pixels of two labels choose anew between them; others do not matter, as all jumps cost the same."""
    nodes = np.flatnonzero((grid.labels == a) | (grid.labels == b))
    if not len(nodes):
        return
    first, second, weight = grid.edges(nodes)
    slope = (grid.costs[b, nodes] - grid.costs[a, nodes]).astype(np.float64)
    now_b = grid.labels[nodes] == b
    then_b = cut(network(slope, first, second, weight, weight))
    gain = slope[now_b].sum() - slope[then_b].sum()
    gain += weight[now_b[first] != now_b[second]].sum() - weight[then_b[first] != then_b[second]].sum()
    moved = now_b != then_b
    if gain > MIN_MOVE_GAIN and moved.any():
        grid.relabel(nodes[moved], np.where(then_b[moved], b, a).astype(np.int16))


def expansion(grid: Grid, a: int, cut: Cutter) -> None:
    """Let every pixel choose between its label and one other."""
    nodes = np.flatnonzero(grid.labels != a)
    if not len(nodes):
        return
    labels = grid.labels[nodes]
    first, second, weight = grid.edges(nodes)
    # A link within that is cut now costs nothing once both ends take the label, and as much if one does.
    cut_now = np.where(labels[first] != labels[second], weight, 0.0)
    slope = grid.costs[a, nodes] - grid.costs[labels, nodes].astype(np.float64) - _to_label(grid, nodes, a)
    uneven = slope - np.bincount(second, cut_now, minlength=len(nodes))
    taken = cut(network(uneven, first, second, weight, weight - cut_now))
    after = np.where(taken[first] != taken[second], weight, np.where(taken[first], 0.0, cut_now))
    gain = cut_now.sum() - after.sum() - slope[taken].sum()
    if gain > MIN_MOVE_GAIN and taken.any():
        grid.relabel(nodes[taken], np.full(int(taken.sum()), a, np.int16))


def _to_label(grid: Grid, nodes: NDArray[np.intp], a: int) -> Vector:
    """Add the weights of each node's links to pixels that have a label."""
    total = np.zeros(len(grid.labels))
    has = grid.labels == a
    for step, weight in grid.links:
        total[:-step] += weight[:-step] * has[step:]
        total[step:] += weight[:-step] * has[:-step]
    return total[nodes]


MIN_MOVE_GAIN = 1e-6
"""A gain that rounding could feign."""

MOVES: dict[str, Callable[..., None]] = {"swap": swap, "expansion": expansion}

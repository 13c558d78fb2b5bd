"""Graph cuts with Potts smoothness (Boykov, Veksler, Zabih 2001): swap or expansion moves over whole-pixel labels.

A pair of neighbours whose labels differ costs K, or 2K where their intensities in the left view are similar. So depth
edges lie at picture edges. The paper writes the weight of |L_i - R_j|; Boykov's is of |L_i - L_j|, used here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sparsedepth.kernels import grid_cut
from sparsedepth.stereo.costs import birchfield_tomasi
from sparsedepth.stereo.cuts import CAPACITY_SCALE, MAX_CAPACITY
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
) -> Iterator[Cycle]:
    """Yield cycles of moves until nothing changes; the energy never rises. Arguments are those of `solve`."""
    if move not in MOVES:
        raise InputError(f"the move is {move!r}; choose one of {', '.join(map(repr, MOVES))}")
    n_labels = pair.max_disparity + 1
    planes = (unary(np.full(pair.shape, label, np.float32)) for label in range(n_labels))
    grid = Grid.of(planes, n_labels, potts_weights(pair, potts, alike), _rounded(start, pair))
    concerned = list(combinations(range(n_labels), 2)) if move == "swap" else [(label,) for label in range(n_labels)]
    tried: dict[tuple[int, ...], Any] = {}
    for _ in range(cycles):
        before, n_cuts = grid.labels.copy(), 0
        for which in (concerned[index] for index in rng.permutation(len(concerned))):
            version = grid.version(which)
            if tried.get(which) != version:
                MOVES[move](grid, *which)
                tried[which] = grid.version(which)
                n_cuts += 1
        changed = int((grid.labels != before).sum())
        yield Cycle(grid.labels.astype(np.float32), grid.energy(), n_cuts, changed)
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
    """The labels of a picture's pixels and their costs; moves change the labels in place.

    Arrays have a margin (see `kernels/grid_cut.c`): pixel (row, column) is node ``(row + 1) * stride + column``.
    """

    shape: tuple[int, int]
    costs: Floats
    """(labels, nodes)"""
    right: Vector
    """(nodes,): weight of each node's link to the right."""
    down: Vector
    """(nodes,)"""
    nodes: Labels
    """(nodes,): their labels, -1 in the margin."""
    scale: float
    """Steps a unit of cost, of capacities."""
    rooms: tuple[NDArray[np.int32], ...]
    """Workspace of the kernel."""
    changes: NDArray[np.int64]
    """How often the pixels of each label have changed."""

    @classmethod
    def of(cls, planes: Iterable[Floats], n_labels: int, weights: tuple[Vector, Vector], labels: Labels) -> Grid:
        """Build the grid of the costs of each label, (height, width); they are stored once."""
        height, width = labels.shape
        n = (height + 2) * (width + 1) + 1
        costs = np.zeros((n_labels, n), np.float32)
        right, down, nodes = np.zeros(n), np.zeros(n), np.full(n, -1, np.int16)
        for inner, given in ((right, weights[0]), (down, weights[1]), (nodes, labels)):
            within(inner, labels.shape)[...] = given.reshape(labels.shape)
        for inner, plane in zip(costs, planes, strict=True):
            within(inner, labels.shape)[...] = plane
        largest = 2 * float(max(costs.max(), -costs.min())) + 4 * float(max(right.max(), down.max()))
        scale = min(CAPACITY_SCALE, MAX_CAPACITY / largest) if largest else CAPACITY_SCALE
        rooms = tuple(np.zeros(size, np.int32) for size in (4 * n, 6 * n, n + 1))
        return cls((height, width), costs, right, down, nodes, scale, rooms, np.zeros(n_labels, np.int64))

    @property
    def labels(self) -> Labels:
        """The labels of pixels (height, width), a view."""
        return within(self.nodes, self.shape)

    def energy(self) -> float:
        labels, costs = self.labels, within(self.costs, self.shape)
        total = np.take_along_axis(costs, labels[None].astype(np.intp), axis=0).sum(dtype=np.float64)
        right, down = within(self.right, self.shape), within(self.down, self.shape)
        total += right[:, :-1][labels[:, 1:] != labels[:, :-1]].sum() + down[:-1][labels[1:] != labels[:-1]].sum()
        return float(total)

    def version(self, labels: tuple[int, ...]) -> Any:
        """Identify what a move's outcome depends on: of a swap its two labels, of an expansion everything."""
        return tuple(self.changes[list(labels)]) if len(labels) == 2 else int(self.changes.sum())

    def move(self, a: int, b: int = -1) -> None:
        """Make the best swap of two labels, or the best expansion of one, unless nothing gains."""
        arrays = self.costs, self.right, self.down
        n, stride = len(self.nodes), self.shape[1] + 1
        changed = grid_cut.move(n, stride, *arrays, self.scale, a, b, MIN_MOVE_GAIN, self.nodes, *self.rooms)
        self.changes[[a] if b < 0 else [a, b]] += changed > 0


def within(nodes: NDArray[Any], shape: tuple[int, int]) -> NDArray[Any]:
    """Return the pixels (..., height, width) of an array with margin, a view."""
    height, width = shape
    inner = nodes[..., width + 1 : (height + 1) * (width + 1)]
    return inner.reshape(*nodes.shape[:-1], height, width + 1)[..., :width]


def swap(grid: Grid, a: int, b: int) -> None:
    """Let the pixels of two labels choose again between them; others do not matter, as all jumps cost the same."""
    grid.move(a, b)


def expansion(grid: Grid, a: int) -> None:
    """Let every pixel choose between its label and one other."""
    grid.move(a)


MIN_MOVE_GAIN = 1e-6
"""A gain that rounding could feign."""

MOVES: dict[str, Callable[..., None]] = {"swap": swap, "expansion": expansion}

"""Second-order stereo (Woodford et al. 2009): its energy, and the fusion of two maps into one that costs no more.

A map costs its pixels and its bends. A pixel costs its unary, and more if it is hidden: a nearer pixel lands within
half a pixel of it in the right view. Three pixels in a row or in a column cost their second difference of disparity, up
to a most; a plane costs nothing, however slanted.

A fusion chooses for each pixel between two maps. That is an energy of binary variables in triples and more. One further
variable for each triple, and for each pixel hidden by several, leaves pairs. Roof duality labels what it can of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, label

from sparsedepth.kernels import fusion as kernels
from sparsedepth.stereo.cuts import UNLABELLED, Polynomial, overlay, roof_duality
from sparsedepth.vocabulary import DepthMap, Floats

COST_STEPS = 16.0
"""Times finer than `cuts` are costs rounded: they are mostly below one."""
PROPOSAL_COST = 1 / 4096
"""Cost of taking a pixel of the proposal, which breaks ties."""
MIN_CHANGE_PX = 0.01
"""Disparities that differ by less, in pixels, are not worth a choice."""
MIN_ENERGY_GAIN = 1e-6
"""A gain that rounding could feign."""


@dataclass(frozen=True, eq=False)
class SecondOrderEnergy:
    """The energy of a map: the cost of every pixel, visible or hidden, and of every three neighbours."""

    costs: Callable[[DepthMap], tuple[Floats, Floats]]
    """A map -> what its pixels cost if seen, and if another one hides them, which is never less."""
    along_rows: Floats
    """(height, width - 2): the most that a bend around each inner pixel costs."""
    along_columns: Floats
    """(height - 2, width)"""
    bend: float
    """The second difference of disparity, in pixels, from which on a bend costs its most."""

    def value(self, disparity: DepthMap) -> float:
        """Compute the energy of a map."""
        return Choices.of(self, disparity, disparity).value(np.zeros(disparity.shape, bool))


@dataclass(frozen=True, eq=False)
class Choices:
    """Two maps, of which each pixel is to take one: disparities and costs, (2, height, width)."""

    maps: Floats
    seen: Floats
    hidden: Floats
    bends: tuple[Floats, Floats, float]
    """`SecondOrderEnergy.along_rows`, ``along_columns`` and ``bend``."""

    @classmethod
    def of(cls, energy: SecondOrderEnergy, current: DepthMap, proposal: DepthMap) -> Choices:
        costs = [energy.costs(each) for each in (current, proposal)]
        maps, seen, hidden = (
            np.stack(pair).astype(np.float32) for pair in ((current, proposal), *zip(*costs, strict=True))
        )
        rows, columns = (np.ascontiguousarray(most, np.float32) for most in (energy.along_rows, energy.along_columns))
        return cls(maps, seen, hidden, (rows, columns, energy.bend))

    def value(self, taken: NDArray[np.bool_]) -> float:
        """Compute the energy of a choice (height, width)."""
        return self._costs(taken)[1]

    def costs(self, taken: NDArray[np.bool_]) -> Floats:
        """Compute what each pixel of a choice costs, with the bends around it."""
        return self._costs(taken)[0]

    def _costs(self, taken: NDArray[np.bool_]) -> tuple[Floats, float]:
        height, width = taken.shape
        disparity, bins = np.empty(taken.shape, np.float32), np.empty(3 * width + 2, np.int32)
        costs, choice = np.empty(taken.shape), np.ascontiguousarray(taken, np.uint8)
        return costs, kernels.costs(height, width, *self._arrays(), choice, disparity, bins, costs)

    def _arrays(self) -> tuple[Any, ...]:
        return self.maps, self.seen, self.hidden, *self.bends

    def polynomial(self) -> Polynomial:
        """Build the energy of every choice (1 = the proposal), up to a constant: pixels, then auxiliary variables.

        The least over the auxiliary variables is the energy itself, times `COST_STEPS`.
        """
        n, room = self.maps[0].size, np.array([0, 12, 1]) * self.maps[0].size
        while True:
            sizes, slope, near, far = room.copy(), np.empty(5 * n), _pairs(room[1]), _pairs(room[2])
            self._fill(sizes, slope, near, far)
            if (sizes[1:] <= room[1:]).all():
                break
            room = sizes
        merged = _added_up(far, int(sizes[2]), n)
        pairs: Any = (np.concatenate([each[: sizes[1]], more]) for each, more in zip(near, merged, strict=True))
        first, second, coupling = pairs
        return Polynomial(COST_STEPS * slope[: sizes[0]], first, second, COST_STEPS * coupling)

    def _fill(self, sizes: NDArray[np.int64], slope: Floats, near: _Pairs, far: _Pairs) -> None:
        height, width = self.maps.shape[1:]
        rooms = np.empty(4 * width + 2, np.int32), np.zeros(width, np.int32), np.empty(4 * width, np.int64)
        near_sums = np.zeros(4 * height * width)
        kernels.terms(height, width, *self._arrays(), MIN_ENERGY_GAIN, sizes, slope, near_sums, *near, *far, *rooms)


_Pairs = tuple[NDArray[np.int32], NDArray[np.int32], Floats]
"""First and second variable, and coupling."""


def _pairs(count: int) -> _Pairs:
    return np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count)


def _added_up(pairs: _Pairs, count: int, n: int) -> _Pairs:
    """Merge equal ones of the first pairs, of n pixels: roof duality is weaker if an edge is split."""
    first, second, coupling = pairs
    key, which = np.unique(first[:count] * np.int64(n) + second[:count], return_inverse=True)
    total: Any = np.bincount(which, coupling[:count], minlength=len(key))
    return (key // n).astype(np.int32), (key % n).astype(np.int32), total.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Fused:
    """The better of two maps, pixel by pixel."""

    disparity: DepthMap
    energy: float
    labelled: float
    """The share of pixels that roof duality decided."""


def fuse(
    energy: SecondOrderEnergy,
    current: DepthMap,
    proposal: DepthMap,
    rng: Generator,
    *,
    before: float | None = None,
    improvements: int = 2,
) -> Fused:
    """Take each pixel from one of two maps, at no higher cost than either; the current one costs ``before``.

    What roof duality leaves open is decided region by region. It is then tried again ``improvements`` times, with a
    random half of it held. The true energy of the whole map decides.
    """
    proposal = np.where(np.abs(proposal - current) < MIN_CHANGE_PX, current, proposal)
    choices = Choices.of(energy, current, proposal)
    problem = choices.polynomial()
    # Where both maps are as good, the current one stays: roof duality would leave a tie open.
    problem.slope[: current.size] += COST_STEPS * PROPOSAL_COST
    labels = roof_duality(problem)
    labelled = labels[: current.size].reshape(current.shape)
    best = np.zeros(current.shape, bool)
    least = choices.value(best) if before is None else before
    for taken in _completions(choices, labelled):
        value = choices.value(taken)
        if value < least - MIN_ENERGY_GAIN:
            best, least = taken, value
    for _ in range(improvements if (labelled == UNLABELLED).any() else 0):
        taken = _improved(problem, labels, best, rng)
        value = choices.value(taken)
        if value < least - MIN_ENERGY_GAIN:
            best, least = taken, value
    return Fused(np.where(best, proposal, current), least, float((labelled != UNLABELLED).mean()))


def _completions(choices: Choices, labelled: NDArray[np.int8]) -> Iterator[NDArray[np.bool_]]:
    """Complete a labelling: open pixels keep the current map, or take the proposal; all at once, or by regions."""
    taken, unknown = labelled == 1, labelled == UNLABELLED
    yield taken
    if not unknown.any():
        return
    yield taken | unknown
    yield np.ones(labelled.shape, bool)
    # Regions three pixels apart share no bend; what they hide of each other is left to the whole map's energy.
    regions: Any
    regions, n = label(binary_dilation(unknown))  # type: ignore[misc]
    gain = choices.costs(taken) - choices.costs(taken | unknown)
    better = np.bincount(regions.ravel(), gain.ravel(), minlength=n + 1) > 0
    yield taken | (unknown & better[regions])


def _improved(
    problem: Polynomial, labels: NDArray[np.int8], taken: NDArray[np.bool_], rng: Generator
) -> NDArray[np.bool_]:
    """Improve a labelling: open pixels are free again, except a random half of them, in blocks."""
    n = taken.size
    unknown = labels[:n].reshape(taken.shape) == UNLABELLED
    side = int(rng.integers(2, 17))
    blocks = rng.random([-(-s // side) + 1 for s in taken.shape]) < 0.5
    down, right = rng.integers(0, side, 2)
    held = np.repeat(np.repeat(blocks, side, 0), side, 1)[down : down + taken.shape[0], right : right + taken.shape[1]]
    free = np.zeros(len(labels), bool)
    free[:n] = (unknown & ~held).ravel()
    if not free.any():
        return taken
    free[problem.second[free[problem.first] & (problem.second >= n)]] = True
    return overlay(problem, _with_help(problem, taken), free)[:n].reshape(taken.shape)


def _with_help(problem: Polynomial, taken: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Add the auxiliary variables that cost least to the labels of pixels."""
    n, pixels = taken.size, taken.ravel()
    helping = (problem.second >= n) & pixels[problem.first % n]
    slope = problem.slope + np.bincount(
        problem.second[helping], problem.coupling[helping], minlength=len(problem.slope)
    )
    return np.concatenate([pixels, slope[n:] < 0])

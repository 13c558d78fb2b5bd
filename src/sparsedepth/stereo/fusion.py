"""Second-order stereo (Woodford et al. 2009): its energy, and the fusion of two maps into one that costs no more.

A map costs its pixels and its bends. A pixel costs its unary, and more if another pixel, nearer to the cameras, lands
within half a pixel of it in the right view, which hides it. Three pixels in a row or in a column cost their second
difference of disparity, up to a most; a plane costs nothing, however slanted.

A fusion chooses for each pixel between two maps. That is an energy of binary variables in triples and more; a further
variable a triple, and a pixel hidden by several, make pairs of them, of which roof duality labels what it can.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, label

from sparsedepth.stereo.cuts import UNLABELLED, Polynomial, overlay, roof_duality
from sparsedepth.vocabulary import DepthMap, Floats, UnaryCost

SAME_LINE_PX = 0.5
"""Two pixels that land nearer in the right view, in pixels, are on one line of sight."""
COST_STEPS = 16.0
"""Times finer than `cuts` are costs rounded: they are mostly below one."""
PROPOSAL_COST = 1 / 4096
"""Cost of taking a pixel of the proposal, which breaks ties."""
MIN_CHANGE_PX = 0.01
"""Disparities that differ by less, in pixels, are not worth a choice."""
MIN_ENERGY_GAIN = 1e-6
"""A gain that rounding could feign."""

Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class SecondOrderEnergy:
    """The energy of a map: the cost of every pixel, visible or hidden, and of every three neighbours."""

    seen: UnaryCost
    hidden: UnaryCost
    """What a pixel costs that another one hides; never less than if it were seen."""
    along_rows: Floats
    """(height, width - 2): the most that a bend around each inner pixel costs."""
    along_columns: Floats
    """(height - 2, width)"""
    bend: float
    """The second difference of disparity, in pixels, from which on a bend costs its most."""

    def value(self, disparity: DepthMap) -> float:
        """Compute the energy of a map."""
        return float(sum(part.sum(dtype=np.float64) for part in self.parts(disparity)))

    def parts(self, disparity: DepthMap) -> tuple[Floats, Floats, Floats]:
        """Compute the costs of pixels, of bends along rows and of bends along columns."""
        pixels = np.where(hidden_pixels(disparity), self.hidden(disparity), self.seen(disparity))
        rows, columns = (self._bends(triple, most) for triple, most in self._triples(disparity))
        return pixels, rows, columns

    def _triples(self, values: NDArray[Any]) -> list[tuple[tuple[NDArray[Any], ...], Floats]]:
        rows = values[:, :-2], values[:, 1:-1], values[:, 2:]
        columns = values[:-2], values[1:-1], values[2:]
        return [(rows, self.along_rows), (columns, self.along_columns)]

    def _bends(self, triple: tuple[Floats, ...], most: Floats) -> Floats:
        before, centre, after = triple
        return most * np.minimum(np.abs(before - 2 * centre + after) / np.float32(self.bend), 1)


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

    What roof duality leaves open is decided region by region, then tried again ``improvements`` times with a random
    half of it held; the true energy of the whole map decides.
    """
    before = energy.value(current) if before is None else before
    proposal = np.where(np.abs(proposal - current) < MIN_CHANGE_PX, current, proposal)
    problem = reduced(energy, current, proposal)
    # Where both maps are as good, the current one stays: roof duality would leave a tie open.
    problem.slope[: current.size] += COST_STEPS * PROPOSAL_COST
    labels = roof_duality(problem)
    labelled = labels[: current.size].reshape(current.shape)
    best, least = np.zeros(current.shape, bool), before
    for taken in _completions(energy, current, proposal, labelled):
        value = energy.value(np.where(taken, proposal, current))
        if value < least - MIN_ENERGY_GAIN:
            best, least = taken, value
    for _ in range(improvements if (labelled == UNLABELLED).any() else 0):
        taken = _improved(problem, labels, best, rng)
        value = energy.value(np.where(taken, proposal, current))
        if value < least - MIN_ENERGY_GAIN:
            best, least = taken, value
    return Fused(np.where(best, proposal, current), least, float((labelled != UNLABELLED).mean()))


def _completions(
    energy: SecondOrderEnergy, current: DepthMap, proposal: DepthMap, labelled: NDArray[np.int8]
) -> Iterator[NDArray[np.bool_]]:
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
    kept, given = (energy.parts(np.where(each, proposal, current)) for each in (taken, taken | unknown))
    gain = np.zeros(current.shape)
    for where, was, would_be in zip((np.s_[:, :], np.s_[:, 1:-1], np.s_[1:-1, :]), kept, given, strict=True):
        gain[where] += was - would_be
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


def reduced(energy: SecondOrderEnergy, current: DepthMap, proposal: DepthMap) -> Polynomial:
    """Build the energy of every choice (1 = the proposal), up to a constant; pixels first, then auxiliary variables.

    The least over the variables of help is the energy itself.
    """
    maps = np.stack([current, proposal])
    terms = _Terms(current.size)
    seen = np.stack([energy.seen(each) for each in maps]).astype(np.float64).reshape(2, -1)
    extra = np.stack([energy.hidden(each) for each in maps]).astype(np.float64).reshape(2, -1) - seen
    certain = _hide(terms, maps, extra)
    seen = seen + np.where(certain, extra, 0)
    terms.slope(np.arange(current.size), seen[1] - seen[0])
    numbers = np.arange(current.size).reshape(current.shape)
    for (places, most), (low, _), (high, _) in zip(
        *(energy._triples(values) for values in (numbers, current, proposal)), strict=True
    ):
        table = np.empty((2, 2, 2, *most.shape))
        for a, b, c in np.ndindex(2, 2, 2):
            table[a, b, c] = energy._bends(((low, high)[a][0], (low, high)[b][1], (low, high)[c][2]), most)
        _bend(terms, [place.ravel() for place in places], table.reshape(2, 2, 2, -1))
    return terms.polynomial()


def _bend(terms: _Terms, places: list[Index], table: Floats) -> None:
    """Add the costs of triples, with one auxiliary variable for each that is no sum of pairs."""
    # Differences along each axis turn a table of costs into the coefficients of 1, x, y, z, xy, ..., xyz.
    for axis in range(3):
        none, one = np.split(table, 2, axis)
        table = np.concatenate([none, one - none], axis)
    cubic = table[1, 1, 1]
    pairs = {(0, 1): table[1, 1, 0], (0, 2): table[1, 0, 1], (1, 2): table[0, 1, 1]}
    for place, coefficient in zip(places, (table[1, 0, 0], table[0, 1, 0], table[0, 0, 1]), strict=True):
        terms.slope(place, coefficient)
    for (i, j), coefficient in pairs.items():
        # c xyz for c > 0 is c times the least over v of xy + xz + yz + v (1 - x - y - z);
        terms.pair(places[i], places[j], coefficient + np.maximum(cubic, 0))
    # for c < 0 it is c times the least over w of w (x + y + z - 2).
    needed = np.flatnonzero(np.abs(cubic) > MIN_ENERGY_GAIN)
    cubic = cubic[needed]
    help_ = terms.helpers(len(needed))
    terms.slope(help_, np.where(cubic > 0, cubic, -2 * cubic))
    for place in places:
        terms.helped(place[needed], help_, -np.abs(cubic))


def _hide(terms: _Terms, maps: Floats, extra: Floats) -> NDArray[np.bool_]:
    """Add what being hidden costs more where it depends on the choice; return where it does not, (2, pixels)."""
    n = maps[0].size
    hidden, hider = _lines_of_sight(maps)
    other, certain = hider % n, np.zeros(2 * n, bool)
    order = np.lexsort((other, hidden))
    hidden, hider, other = hidden[order], hider[order], other[order]
    both = (hidden[1:] == hidden[:-1]) & (other[1:] == other[:-1])  # whichever the other takes
    certain[hidden[1:][both]] = True
    open_ = ~certain[hidden]
    hidden, hider, other = hidden[open_], hider[open_], other[open_]
    price, takes, other_takes = extra.ravel()[hidden], hidden >= n, hider >= n
    once = np.bincount(hidden, minlength=2 * n)[hidden] == 1
    terms.product(hidden[once] % n, takes[once], other[once], other_takes[once], price[once])
    # Hidden by several: the price times the least over v of a (1 - v) + v (b + c + ...), which is a (b or c or ...).
    samples, which = np.unique(hidden[~once], return_inverse=True)
    help_, price_each, takes_each = terms.helpers(len(samples)), extra.ravel()[samples], samples >= n
    terms.slope(samples % n, np.where(takes_each, price_each, -price_each))
    terms.product(samples % n, takes_each, help_, np.ones(len(samples), bool), -price_each)
    terms.product(other[~once], other_takes[~once], help_[which], np.ones(len(which), bool), price[~once])
    return certain.reshape(2, n)


def hidden_pixels(disparity: DepthMap) -> NDArray[np.bool_]:
    """Find the pixels that another one, nearer to the cameras, hides from the right camera."""
    hidden = np.zeros(disparity.size, bool)
    hidden[_lines_of_sight(disparity[None])[0]] = True
    return hidden.reshape(disparity.shape)


def _lines_of_sight(maps: Floats) -> tuple[Index, Index]:
    """Find pairs of hidden and hiding samples, numbered map by map, then row by row; not two of one pixel.

    What lies outside the right view is not seen there anyway.
    """
    n_maps, height, width = maps.shape
    place = np.arange(width, dtype=np.float32) - maps
    numbers = np.arange(maps.size).reshape(maps.shape)
    by_row = [np.concatenate(list(array), axis=1) for array in (place, numbers, maps)]
    order = np.argsort(by_row[0], axis=1, kind="stable")
    place, numbers, disparity = (np.take_along_axis(array, order, axis=1) for array in by_row)
    found: list[tuple[Index, Index]] = []
    for step in range(1, n_maps * width):
        near = (place[:, step:] - place[:, :-step] < SAME_LINE_PX).nonzero()
        if not len(near[0]):
            break
        rows, first, second = near[0], near[1], near[1] + step
        pair = numbers[rows, first], numbers[rows, second]
        apart = disparity[rows, first] - disparity[rows, second]
        hidden, hider = (np.where(apart > 0, pair[k], pair[1 - k]) for k in (1, 0))
        farther = np.where(apart > 0, place[rows, second], place[rows, first])
        counts = (apart != 0) & (pair[0] % (height * width) != pair[1] % (height * width)) & (farther >= 0)
        found.append((hidden[counts], hider[counts]))
    if not found:
        return np.empty(0, np.intp), np.empty(0, np.intp)
    return np.concatenate([h for h, _ in found]), np.concatenate([h for _, h in found])


class _Terms:
    """A polynomial under construction, which merges pairs of pixels: roof duality is weaker if an edge is split."""

    def __init__(self, n_pixels: int) -> None:
        self.n_pixels = self.n = n_pixels
        self.slopes: list[tuple[Index, Floats]] = []
        self.pairs: list[tuple[Index, Index, Floats]] = []
        self.to_help: list[tuple[Index, Index, Floats]] = []

    def helpers(self, count: int) -> Index:
        self.n += count
        return np.arange(self.n - count, self.n)

    def slope(self, at: Index, coefficient: Floats) -> None:
        self.slopes.append((at, coefficient))

    def pair(self, first: Index, second: Index, coefficient: Floats) -> None:
        """Add the cost of two pixels."""
        self.pairs.append((first, second, coefficient))

    def helped(self, pixel: Index, helper: Index, coefficient: Floats) -> None:
        self.to_help.append((pixel, helper, coefficient))

    def product(
        self, first: Index, is_one: NDArray[np.bool_], second: Index, other_is_one: NDArray[np.bool_], price: Floats
    ) -> None:
        """Add a price where the first variable is 1, or 0 if so requested, and the second one is 1."""
        # x for "is 1" and 1 - x for "is 0"; the constant does not matter.
        sign, other_sign = np.where(is_one, 1.0, -1.0), np.where(other_is_one, 1.0, -1.0)
        self.slope(first, np.where(other_is_one, 0.0, sign * price))
        self.slope(second, np.where(is_one, 0.0, other_sign * price))
        both = self.helped if len(second) and second[0] >= self.n_pixels else self.pair
        both(first, second, sign * other_sign * price)

    def polynomial(self) -> Polynomial:
        slope = np.zeros(self.n)
        for at, coefficient in self.slopes:
            slope += np.bincount(at, coefficient, minlength=self.n)
        first, second, coupling = (np.concatenate(parts) for parts in zip(*self.pairs, strict=True))
        key = np.minimum(first, second) * np.intp(self.n_pixels) + np.maximum(first, second)
        key, which = np.unique(key, return_inverse=True)
        coupling = np.bincount(which, coupling, minlength=len(key))
        pixels, helpers, helping = (np.concatenate(parts) for parts in zip(*self.to_help, strict=True))
        return Polynomial(
            COST_STEPS * slope,
            np.concatenate([key // self.n_pixels, pixels]).astype(np.int32),
            np.concatenate([key % self.n_pixels, helpers]).astype(np.int32),
            COST_STEPS * np.concatenate([coupling, helping]),
        )

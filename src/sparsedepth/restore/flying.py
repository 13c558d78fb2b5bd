"""Flying pixels: mixtures of near and far beside steps of depth.

A beam that meets both sides of a step measures something between them. Such a pixel is alone amid two faces. So are
some pixels of thin things, of leaves and of other noise, but a map shows whether it has mixtures:

* The steps of a clean map are sharp: hardly any pixel is alone between two faces, though many are amid leaves.
* Impulses and leaves lie beyond two faces as well; mixtures only between them.
* Of the two pixels beside a step each is a mixture, or none, by itself. So where both are, they lie in disorder as
  often as in order; and steps with just one are at most twice as many as the geometric mean of those with none and
  those with two. A map that was blurred has ramps; one that was made smaller has one mixture at nearly every step.

Where all of this holds, pixels alone between two sides return to the one that their neighbours tell. Where neighbours
cannot tell they stay between, and their variance says so. How much is missed is rehearsed: pixels beside the steps of
the map are mixed, and sought again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from sparsedepth.restore.clusters import usual_step
from sparsedepth.restore.tiling import Part
from sparsedepth.vocabulary import DepthMap, Floats, Vector

LEAST_STEP, STEPS = 0.25, 6.0
"""The step between two sides, at least: in deviations of the map, and in usual steps between neighbours or levels."""
ALIKE, USUAL, QUANTA = 0.05, 3.0, 1.1
"""What neighbours on one side differ by, at most: in deviations of the map, in usual steps and in levels."""
COMPANY = 2
"""A pixel belongs to a side if so many of its eight neighbours are like it."""
KNOWN = 6
"""So many of the eight are known, at least, or a pixel may be alone because of holes."""
REACH = 2
"""How far away the two sides are looked for, in pixels."""
AROUND = np.array([(down, right) for down in range(-2, 3) for right in range(-2, 3) if (down, right) != (0, 0)])
SQUARES = np.square(AROUND).sum(axis=1)
BESIDE = AROUND[SQUARES <= 2]
TELLING = np.select([SQUARES == 1, SQUARES == 2, SQUARES == 4, SQUARES == 5], [0.75, 1.25, 0.45, 0.35], -0.2)
"""How much a neighbour tells of the side by being on it, in logarithms of odds."""
CLOSE = np.exp(-SQUARES / 2).astype(np.float32)
"""How much a neighbour counts for the depth of its side."""
ROUGH, OWN = 8.0, 1.0
"""How much less neighbours tell where sides are rough, and how much the pixel's own depth tells."""
SURE = 0.8
"""The chance of a side from which a pixel returns to it."""
MARGIN = 0.01
"""The share of a step by which a mixture lies within it, at least."""
CLEAR = 0.1
"""The share of a step by which a pixel lies within or beyond it, where it counts as evidence."""
FACE, THIN = 4, 0.2
"""The pixels of a face, at least, and what it may take of the step."""
TIMES = 4
"""Pixels that are alone between two faces by chance are at most so many times as many as those beyond."""
SMOOTH = 0.04
"""The share of pixels alone between two sides for which these are faces, at least: less is texture."""
RAMPS, HAIR, CHANCE = 5, 3, 2
"""Two mixtures of one crossing are so many times as often in order as in disorder, at most: more are ramps. And so many
times as often in disorder as in order, but for a few: more are thin things on either side."""
FEW, LEAST_SHARE = 14, 0.03
"""Mixtures between faces and those in disorder are so many, at least, and so many for each sharp crossing."""


@dataclass(frozen=True, eq=False)
class Amid:
    """Pixels that are alone amid two sides of a step."""

    number: NDArray[np.intp]
    """Of the pixel in the map, row by row."""
    low: Vector
    high: Vector
    """The depth of either side."""
    rough: Vector
    """The variance within the sides."""
    faces: NDArray[np.bool_]
    """Whether both sides are faces: flat, of some pixels, and nothing else there."""
    lies: Vector
    """Where the pixel lies on the way from the low side (0) to the high one (1)."""
    chance: Vector
    """Of the high side."""

    def settled(self, depth: DepthMap) -> tuple[DepthMap, NDArray[np.bool_], Floats]:
        """The map with those that lie between on the side that is told, or else between; which, and their variance."""
        told = np.select([self.chance > SURE, self.chance < 1 - SURE], [1.0, 0.0], self.chance)
        wrong = self.chance * np.square(1 - told) + (1 - self.chance) * np.square(told)
        step, flying = self.high - self.low, (self.lies > MARGIN) & (self.lies < 1 - MARGIN)
        settled, found, doubt = depth.copy(), np.zeros(depth.shape, bool), np.zeros(depth.shape)
        settled.ravel()[self.number[flying]] = (self.low + told * step)[flying]
        found.ravel()[self.number[flying]] = True
        doubt.ravel()[self.number[flying]] = (wrong * np.square(step) + self.rough)[flying]
        return settled, found, doubt


@dataclass(frozen=True)
class Flying:
    """What a map taught of its flying pixels: enough to find them in any part of it."""

    step: float = np.inf
    """Between two sides, at least."""
    alike: float = 0.0
    """What neighbours on one side differ by, at most."""
    missed: float = 0.0
    """The mean square of what pixels beside steps that are kept are off, in steps."""

    @classmethod
    def of(cls, depth: DepthMap, quantum: float) -> Flying:
        """Nothing is sought where the map shows no mixtures."""
        usual = usual_step(depth)
        sought = cls(max(LEAST_STEP, STEPS * usual, STEPS * quantum), max(ALIKE, USUAL * usual, QUANTA * quantum))
        sides = sought._sides(depth)
        amid = sought._amid(depth, sides)
        return sought._rehearsed(depth, amid) if sought._are_mixtures(depth, sides, amid) else cls()

    def _rehearsed(self, depth: DepthMap, amid: Amid) -> Flying:
        """As many pixels are mixed beside the steps of the settled map as were found: some of these are kept."""
        settled, found, _ = amid.settled(depth)
        lowest, highest = _range(settled, 1)
        beside = np.flatnonzero(np.isfinite(settled) & (highest - lowest > self.step))
        luck, lies = np.random.default_rng(0).random((2, len(beside)))
        chosen = luck * len(beside) < found.sum()
        mixing, lies = beside[chosen], lies[chosen]
        low, step = lowest.ravel()[mixing], (highest - lowest).ravel()[mixing]
        mixed = settled.copy()
        mixed.ravel()[mixing] = low + lies * step
        kept = ~self._amid(mixed, self._sides(mixed)).settled(mixed)[1].ravel()
        off = np.square(lies - (settled.ravel()[mixing] - low) / step)[kept[mixing]].sum()
        more = found.sum() / max((~kept[mixing]).sum(), 1)
        return replace(self, missed=float(more * off / max(kept[beside].sum(), 1)))

    def settled(self, part: Part) -> tuple[Part, NDArray[np.bool_], Floats]:
        """A part whose flying pixels are on a side, which pixels these are, and the variance for them and others."""
        if not np.isfinite(self.step):
            return part, np.zeros(part.depth.shape, bool), np.zeros(part.depth.shape)
        depth, found, doubt = self._amid(part.depth, self._sides(part.depth)).settled(part.depth)
        variance = None if part.variance is None else np.maximum(part.variance, doubt).astype(np.float32)
        lowest, highest = _range(depth, 1)
        beside = np.isfinite(depth) & ~found & (highest - lowest > self.step)
        doubt[beside] = self.missed * np.square(highest - lowest)[beside]
        return replace(part, depth=depth, variance=variance), found, doubt

    def _are_mixtures(self, depth: DepthMap, sides: DepthMap, amid: Amid) -> bool:
        within, beyond = (amid.lies > CLEAR) & (amid.lies < 1 - CLEAR), (amid.lies < -CLEAR) | (amid.lies > 1 + CLEAR)
        between = (amid.faces & within).sum()
        surplus = between - TIMES * (amid.faces & beyond).sum()
        if within.sum() < FEW or between < SMOOTH * within.sum() or surplus < 0:
            return False
        none, one, *two = self._crossings(depth, sides, amid.number[amid.faces & within])
        *_, order, disorder = self._crossings(depth, sides, amid.number[within])
        either_way = order <= RAMPS * (disorder + 1) and disorder <= HAIR * (order + CHANCE)
        by_themselves = one**2 <= 4 * (none + 1) * (sum(two) + 1) and either_way
        return bool(by_themselves and surplus + 2 * disorder >= max(FEW, LEAST_SHARE * none))

    def _crossings(self, depth: DepthMap, sides: DepthMap, mixtures: NDArray[np.intp]) -> NDArray[np.intp]:
        """How many steps along rows and columns have no mixture, one, two in order, and two in disorder."""
        mixed = np.zeros(depth.shape, bool)
        mixed.ravel()[mixtures] = True
        return self._crossings_down(depth, sides, mixed) + self._crossings_down(depth.T, sides.T, mixed.T)

    def _crossings_down(self, depth: DepthMap, sides: DepthMap, mixed: NDArray[np.bool_]) -> NDArray[np.intp]:
        none = np.abs(sides[1:] - sides[:-1]) > self.step
        one = mixed[1:-1] & (np.abs(sides[2:] - sides[:-2]) > self.step)
        step = sides[3:] - sides[:-3]
        two = mixed[1:-2] & mixed[2:-1] & (np.abs(step) > self.step)
        order = two & ((depth[2:-1] - depth[1:-2]) * step > 0)
        return np.array([none.sum(), one.sum(), order.sum(), (two & ~order).sum()])

    def _sides(self, depth: DepthMap) -> DepthMap:
        """The map without the pixels that belong to no side."""
        height, width = depth.shape
        company = np.zeros(depth.shape, np.int8)
        for down, right in ((0, 1), (1, -1), (1, 0), (1, 1)):
            here = np.s_[: height - down, max(0, -right) : width - max(0, right)]
            there = np.s_[down:, max(0, right) : width - max(0, -right)]
            alike = np.abs(depth[here] - depth[there]) <= self.alike
            company[here] += alike
            company[there] += alike
        return np.where(company >= COMPANY, depth, np.nan)

    def _amid(self, depth: DepthMap, sides: DepthMap) -> Amid:
        """The pixels of no side that have two of them around."""
        lowest, highest = _range(sides, REACH)
        rows, columns = np.nonzero(np.isfinite(depth) & np.isnan(sides) & (highest - lowest > self.step))
        enough = np.isfinite(_neighbours(depth, rows, columns, BESIDE)).sum(axis=1) >= KNOWN
        rows, columns = rows[enough], columns[enough]
        lowest, highest = lowest[rows, columns, None], highest[rows, columns, None]
        near = _neighbours(sides, rows, columns, AROUND)
        up = near > (lowest + highest) / 2
        down = np.isfinite(near) & ~up
        near = np.nan_to_num(near)
        low, high = _mean(near, down), _mean(near, up)
        rough = _mean(np.square(near - np.where(up, high[:, None], low[:, None])), up | down)
        thin = np.minimum(self.alike, THIN * (highest - lowest))
        flat = (near <= lowest + thin) | (near >= highest - thin) | ~(up | down)
        faces = flat.all(axis=1) & (up.sum(axis=1) >= FACE) & (down.sum(axis=1) >= FACE)
        lies = (depth[rows, columns] - low) / (high - low)
        odds = (up @ TELLING - down @ TELLING) / (1 + ROUGH * np.sqrt(rough) / (high - low)) + OWN * (lies - 0.5)
        return Amid(rows * depth.shape[1] + columns, low, high, rough, faces, lies, expit(odds))


def _range(values: DepthMap, reach: int) -> tuple[DepthMap, DepthMap]:
    """The least and the largest value known so near to each pixel; infinite where none is."""
    unknown = np.isnan(values)
    lowest, highest = np.where(unknown, np.inf, values), np.where(unknown, -np.inf, values)
    for axis in (0, 1):
        lowest, highest = (
            _of_all(lowest, reach, axis, np.minimum, np.inf),
            _of_all(highest, reach, axis, np.maximum, -np.inf),
        )
    return lowest, highest


def _of_all(values: DepthMap, reach: int, axis: int, of_two: np.ufunc, beyond: float) -> DepthMap:
    """What is left of all values so near along an axis."""
    framed = np.pad(values, [(reach, reach) if side == axis else (0, 0) for side in (0, 1)], constant_values=beyond)
    size = values.shape[axis]
    shifted = (
        framed[start : start + size] if axis == 0 else framed[:, start : start + size] for start in range(2 * reach + 1)
    )
    return reduce(of_two, shifted)


def _neighbours(
    values: DepthMap, rows: NDArray[np.intp], columns: NDArray[np.intp], places: NDArray[np.intp]
) -> DepthMap:
    """What lies at some places relative to each pixel; NaN beyond the border."""
    framed = np.pad(values, REACH, constant_values=np.nan)
    width = framed.shape[1]
    return framed.ravel()[((rows + REACH) * width + columns + REACH)[:, None] + places @ [width, 1]]


def _mean(near: DepthMap, side: NDArray[np.bool_]) -> Vector:
    return (near * side) @ CLOSE / (side @ CLOSE)

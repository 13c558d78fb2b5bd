"""Blots: outliers that keep together, a small disc of pixels that all err alike.

Within a blot every pixel has its like beside it, so none looks like noise. A blot is an island: a few pixels like each
other amid smooth land, with a step of about one size all around. So is a thing of a few pixels, or a glimpse of what
lies behind through a gap. But a map has those on one side: nearly all are farther than their surroundings, or nearly
all are nearer. Noise knows no sides. So the islands of a map are blots if it has them on both sides, about as many, and
not just a few; otherwise none is. Blots are then as good as unknown.

How much is missed is rehearsed: blots that were found are put elsewhere in the map, and sought again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation, label
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from sparsedepth.restore.tiling import Part
from sparsedepth.vocabulary import DepthMap, Floats, Vector

LEAST_STEP = 0.15
"""The step around an island, in deviations of the map, below which it does not matter."""
STEPS, QUANTA = 4.0, 1.5
"""The step around an island, at least: in usual steps between neighbours, and in levels of a quantised map."""
LARGER = (2, 4)
"""By how much larger steps are looked at, too."""
SIDE = 8
"""The pixels that an island is wide and high, at most."""
LAND = 0.5
"""The share of what lies around an island that has to be land: known, and no texture."""
RESOLUTION = 0.02
"""The deviation below which steps do not differ."""
CLEAR = 1.5
"""The score beyond which an island counts."""
TOO_HIGH = 6.0
"""Heights of the middle one of a map's blots beyond which an island is none: noise has no such outliers."""
FEW, LEAST_SHARE = 3, 1e-3
"""Noise has at least so many islands, and so large a share of the pixels, on either side."""
SURE = 2.5
"""Deviations of a count by which one side may have more islands than the other, if all are noise."""
MOST_MISSED = 0.9
"""The share of the squares of blots that is missed, at most: more cannot be told from what was found."""


@dataclass(frozen=True, eq=False)
class Islands:
    """Small sets of connected pixels that differ from all that surrounds them."""

    number: NDArray[np.intp]
    """Of the island that a pixel belongs to; -1 = none."""
    area: Vector
    height: Vector
    """The mean step from what surrounds the island up to it."""
    score: Vector
    """The height, measured by how much the steps around the island differ, and those within."""


@dataclass(frozen=True)
class Blots:
    """What a map taught of its blots: enough to find them in any part of it."""

    steps: tuple[float, ...] = ()
    """Islands with at least one of these steps around them are blots."""
    highest: float = np.inf
    """But not those that are higher."""
    missed: float = 0.0
    """The mean squared error of the blots that are not found."""

    @classmethod
    def of(cls, depth: DepthMap, quantum: float) -> Blots:
        """Larger steps, amid texture, are looked at where small ones showed blots."""
        least = max(LEAST_STEP, STEPS * usual_step(depth), QUANTA * quantum)
        if not _on_both_sides(depth, least):
            return cls()
        larger = (times * least for times in LARGER)
        blots = cls((least, *(step for step in larger if _on_both_sides(depth, step))))
        return replace(blots, highest=TOO_HIGH * blots._middle(depth))._rehearsed(depth)

    def _middle(self, depth: DepthMap) -> float:
        """The height of the middle one of the blots."""
        height = np.abs(self.heights(depth))
        _, first = np.unique(_connected(height > 0), return_index=True)
        return float(np.median(height.ravel()[first[1:]]))

    def _rehearsed(self, depth: DepthMap) -> Blots:
        """Blots that were found are put elsewhere, by turning the map: what is not found of those is missed.

        So is one more, in case all are found.
        """
        found = self.heights(depth)
        added = np.where(np.isfinite(depth), found[::-1, ::-1], 0)
        again = self.heights((depth + added).astype(depth.dtype)) != 0
        squares, count = np.square(added), _connected(added != 0).max()
        share = (squares[~again].sum() / max(squares.sum(), 1e-12) * count + 1) / (count + 1)
        share = min(share, MOST_MISSED)
        return replace(self, missed=float(np.square(found).sum() / np.isfinite(depth).sum() * share / (1 - share)))

    def heights(self, depth: DepthMap) -> Floats:
        """Of the blots above their surroundings; 0 where there is none."""
        height = np.zeros(depth.shape)
        for step in self.steps:
            found = islands(depth, step)
            blot = (found.score > CLEAR) & (np.abs(found.height) <= self.highest)
            height = np.where(height == 0, np.append(found.height * blot, 0)[found.number], height)
        return height

    def hidden(self, part: Part) -> tuple[Part, NDArray[np.bool_]]:
        """A part with its blots unknown, and where they were."""
        blot = self.heights(part.depth) != 0
        return part.without(blot), blot


def usual_step(depth: DepthMap) -> float:
    """The median step between neighbours; 0 where there are none."""
    between = np.abs(np.concatenate([np.diff(depth, axis=axis).ravel() for axis in (0, 1)]))
    between = between[np.isfinite(between)]
    return float(np.median(between)) if len(between) else 0.0


def _on_both_sides(depth: DepthMap, step: float) -> bool:
    """Whether a map has islands above and below their surroundings, about as many."""
    found = islands(depth, step)
    clear = found.score > CLEAR
    above, below = clear & (found.height > 0), clear & (found.height < 0)
    few, many = sorted([above.sum(), below.sum()])
    pixels = min(found.area[above].sum(), found.area[below].sum())
    enough = few >= FEW and pixels >= LEAST_SHARE * np.isfinite(depth).sum()
    return bool(enough and many - few <= SURE * np.sqrt(many + few))


def islands(depth: DepthMap, step: float) -> Islands:
    """The islands of a map with steps beyond ``step`` all around, none within.

    Each has an inside, a pixel whose four neighbours belong to it; lines and specks have none.
    """
    framed = np.pad(depth, 1, constant_values=np.nan)
    inside, land = _inside_and_land(framed, step)
    sea = np.flatnonzero(np.isfinite(framed) & ~land)
    width = framed.shape[1]
    beside = sea[:, None] + np.array([-width - 1, -width, -width + 1, -1, 1, width - 1, width, width + 1])
    rise = framed.ravel()[sea][:, None] - framed.ravel()[beside]
    number, area = _groups(sea, beside, np.abs(rise) <= step, framed.size)
    small = (area <= SIDE**2) & (np.bincount(number[sea], inside.ravel()[sea], len(area)) > 0)
    small &= _compact(number[sea], sea // width, small) & _compact(number[sea], sea % width, small)
    rank = np.where(small, np.cumsum(small) - 1, -1)[number]
    ours = rank[sea] >= 0
    mine, beside, rise = np.repeat(rank[sea[ours]], 8), beside[ours].ravel(), rise[ours].ravel().astype(np.float64)
    height, score = _measured(mine, mine != rank[beside], land.ravel()[beside], rise, int(small.sum()))
    return Islands(rank.reshape(framed.shape)[1:-1, 1:-1], area[small], height, score)


def _inside_and_land(framed: DepthMap, step: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The pixels that are like their four neighbours, and all pixels of such sets of them as are too large."""
    down, right = (np.abs(np.diff(framed, axis=axis)) <= step for axis in (0, 1))
    inside = np.zeros(framed.shape, bool)
    inside[1:-1, 1:-1] = down[1:, 1:-1] & down[:-1, 1:-1] & right[1:-1, 1:] & right[1:-1, :-1]
    number = _connected(inside)
    large = np.bincount(number.ravel()) > SIDE**2
    large[0] = False
    return inside, np.asarray(binary_dilation(large[number]), bool)


def _connected(mask: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The number of the set of connected pixels that each belongs to; 0 = none."""
    number: Any = label(mask, np.ones((3, 3)))
    return number[0]


def _groups(
    sea: NDArray[np.intp], beside: NDArray[np.intp], alike: NDArray[np.bool_], size: int
) -> tuple[NDArray[np.intp], Vector]:
    """The number of the group of connected pixels that each belongs to, and the pixels in each group.

    All land is one group, and so is what is not known; its size is infinite.
    """
    node = np.zeros(size, np.intp)
    node[sea] = np.arange(1, len(sea) + 1)
    first, which = np.nonzero(alike)
    links = (np.ones(len(first), bool), (first + 1, node[beside[first, which]]))
    count, group = connected_components(coo_matrix(links, shape=(len(sea) + 1, len(sea) + 1)), directed=False)
    area = np.bincount(group, minlength=count).astype(np.float64)
    area[group[0]] = np.inf
    return group[node], area


def _compact(group: NDArray[np.intp], place: NDArray[np.intp], small: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which of the small groups reach no further than an island does along one side of the map."""
    ours = small[group]
    first, last = np.full(len(small), np.iinfo(np.intp).max), np.zeros(len(small), np.intp)
    np.minimum.at(first, group[ours], place[ours])
    np.maximum.at(last, group[ours], place[ours])
    return small & (last - first < SIDE)


def _measured(
    mine: NDArray[np.intp], around: NDArray[np.bool_], land: NDArray[np.bool_], rise: Vector, count: int
) -> tuple[Vector, Vector]:
    """The height and the score of each island, from all steps of its pixels up from their neighbours.

    It is said of each step whether it leads to what lies around the island, and whether that is land.
    """

    def sums(where: NDArray[np.bool_], of: Vector | None = None) -> NDArray[Any]:
        return np.bincount(mine[where], None if of is None else of[where], count)

    known = np.isfinite(rise)
    ring, within = known & around, known & ~around
    steps = np.maximum(sums(ring), 1)
    height = sums(ring, rise) / steps
    spread = np.maximum(sums(ring, np.square(rise)) / steps - np.square(height), 0)
    spread += sums(within, np.square(rise)) / np.maximum(sums(within), 1)
    score = np.abs(height) / np.sqrt(spread + RESOLUTION**2)
    return height, np.where(sums(ring & land) >= LAND * sums(around), score, 0)

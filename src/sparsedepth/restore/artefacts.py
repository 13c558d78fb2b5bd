"""Corruptions that look like structure to a detector of single outliers: stuck pixels and clusters of outliers.

Each kind is fitted on a sample of a map, which may show none of it, and then removed from any tile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import label

from sparsedepth.chosen_pixels import gather, square_offsets
from sparsedepth.components import connected_components, interior_pixels
from sparsedepth.restore.settings import ClusterSettings, Settings, StuckSettings
from sparsedepth.tiling import Tile
from sparsedepth.vocabulary import DepthMap, Floats, Vector


@dataclass(frozen=True, eq=False)
class Removal:
    """A tile without a kind of corruption."""

    tile: Tile
    """Corrupted pixels are missing or have another value."""
    corrupted: NDArray[np.bool_]
    variance: Floats | float = 0.0
    """What the variance of each pixel gains by corruption that was not found or not undone."""

    @classmethod
    def nothing(cls, tile: Tile) -> Removal:
        """Return a tile as it is."""
        return cls(tile, np.zeros(tile.depth.shape, bool))

    def then(self, *artefacts: Artefact) -> Removal:
        """Remove further kinds of corruption, one after the other."""
        removal = self
        for artefact in artefacts:
            more = artefact.remove(removal.tile)
            corrupted, variance = removal.corrupted | more.corrupted, removal.variance + more.variance
            removal = Removal(more.tile, corrupted, variance)
        return removal


class Artefact(Protocol):
    """A kind of corruption of a map."""

    @classmethod
    def fit(cls, sample: Tile, step: float, settings: Settings) -> Self | None:
        """Fit the corruption of a sample of a map with a quantisation step; None: the map has none."""
        ...

    def remove(self, tile: Tile) -> Removal:
        """Remove the corruption from any tile of the map."""
        ...


@dataclass(frozen=True)
class StuckPixels:
    """Values at an end of the map's range at which many single pixels are stuck, far from their neighbours.

    Sensors write such values where they measure nothing, and failing bits make them (salt and pepper).
    """

    values: tuple[float, ...]

    @classmethod
    def fit(cls, sample: Tile, step: float, settings: Settings) -> StuckPixels | None:
        """Return the stuck values of a sample, or None."""
        depth, chosen = sample.depth, settings.stuck or StuckSettings()
        if not sample.valid.any():
            return None
        ends = dict.fromkeys((float(np.nanmin(depth)), float(np.nanmax(depth))))
        values = tuple(end for end in ends if _is_scattered(depth == end, sample.valid, chosen))
        return cls(values) if values else None

    def remove(self, tile: Tile) -> Removal:
        """Make the stuck pixels of a tile missing."""
        stuck = np.isin(tile.depth, np.array(self.values, tile.depth.dtype))
        return Removal(tile.masked(stuck), stuck)


def _is_scattered(stuck: NDArray[np.bool_], valid: NDArray[np.bool_], settings: StuckSettings) -> bool:
    """Tell whether there are enough such pixels, and hardly any two adjacent."""

    def adjacent(other: NDArray[np.bool_]) -> int:
        down = (stuck[1:] & other[:-1]).sum() + (stuck[:-1] & other[1:]).sum()
        return int(down + (stuck[:, 1:] & other[:, :-1]).sum() + (stuck[:, :-1] & other[:, 1:]).sum())

    enough = min(stuck.sum(), adjacent(valid)) >= settings.min_count
    return enough and adjacent(stuck) <= settings.max_adjacent_fraction * adjacent(valid)


@dataclass(frozen=True, eq=False)
class Components:
    """Small connected components that differ from all that surrounds them."""

    number: NDArray[np.int32]
    """Component of each pixel; -1 = none."""
    area: Vector
    offset: Vector
    """Mean step from the surroundings to the component."""
    score: Vector
    """The offset, relative to the variation of the steps around the component and within."""


@dataclass(frozen=True)
class OutlierClusters:
    """Small discs of pixels that all err alike, as wrong matches and reflections leave them.

    A small structure looks like such a cluster, too. But structures lie on one side: nearly all are nearer than their
    surroundings, or nearly all are farther. So small components are outliers where a map has about as many on both.
    """

    steps: tuple[float, ...]
    """Steps of depth that separate clusters from their surroundings."""
    settings: ClusterSettings
    max_offset: float = np.inf
    """Offset beyond which a component is a structure."""
    missed_variance: float = 0.0
    """Mean squared error of the clusters that are not found."""

    @classmethod
    def fit(cls, sample: Tile, step: float, settings: Settings) -> OutlierClusters | None:
        """Find the steps at which a sample has components on both sides, or None."""
        depth, chosen = sample.depth, settings.clusters or ClusterSettings()
        least = max(chosen.min_step, chosen.min_step_ratio * sample.steps.median, chosen.min_step_levels * step)
        if not _is_symmetric(depth, least, chosen):
            return None
        larger = (times * least for times in chosen.step_multiples)
        found = cls((least, *(step for step in larger if _is_symmetric(depth, step, chosen))), chosen)
        found = replace(found, max_offset=chosen.max_offset_ratio * found._median_offset(depth))
        return replace(found, missed_variance=found._estimate_missed(depth))

    def remove(self, tile: Tile) -> Removal:
        """Make the clusters of a tile missing."""
        cluster = self.offsets(tile.depth) != 0
        return Removal(tile.masked(cluster), cluster, self.missed_variance)

    def offsets(self, depth: DepthMap) -> Floats:
        """Return the offset of each pixel's cluster from its surroundings; 0 where there is none."""
        offset = np.zeros(depth.shape)
        for step in self.steps:
            found = small_components(depth, step, self.settings)
            outlier = (found.score > self.settings.min_score) & (np.abs(found.offset) <= self.max_offset)
            offset = np.where(offset == 0, np.append(found.offset * outlier, 0)[found.number], offset)
        return offset

    def _median_offset(self, depth: DepthMap) -> float:
        offset = np.abs(self.offsets(depth))
        _, first = np.unique(_label(offset > 0), return_index=True)
        return float(np.median(offset.ravel()[first[1:]]))

    def _estimate_missed(self, depth: DepthMap) -> float:
        """Move the clusters that were found, by turning the map, and detect them again; one more counts as missed."""
        found = self.offsets(depth)
        added = np.where(np.isfinite(depth), found[::-1, ::-1], 0)
        again = self.offsets((depth + added).astype(depth.dtype)) != 0
        squares, count = np.square(added), _label(added != 0).max()
        fraction = (squares[~again].sum() / max(squares.sum(), 1e-12) * count + 1) / (count + 1)
        fraction = min(fraction, self.settings.max_missed_fraction)
        return float(np.square(found).sum() / np.isfinite(depth).sum() * fraction / (1 - fraction))


def _is_symmetric(depth: DepthMap, step: float, settings: ClusterSettings) -> bool:
    """Tell whether a map has enough small components above their surroundings, and about as many below."""
    found = small_components(depth, step, settings)
    clear = found.score > settings.min_score
    above, below = clear & (found.offset > 0), clear & (found.offset < 0)
    few, many = sorted([above.sum(), below.sum()])
    pixels = min(found.area[above].sum(), found.area[below].sum())
    enough = few >= settings.min_count and pixels >= settings.min_fraction * np.isfinite(depth).sum()
    return bool(enough and many - few <= settings.max_asymmetry_z * np.sqrt(many + few))


def small_components(depth: DepthMap, step: float, settings: ClusterSettings) -> Components:
    """Find small components with differences above ``step`` all around and none within.

    Each has an interior, a pixel whose four neighbours belong to it; lines and specks have none.
    """
    interior, smooth = interior_pixels(depth, step, settings.max_side_px**2)
    candidate = np.isfinite(depth) & ~smooth
    group = connected_components(depth, step, connectivity=8, within=candidate)
    members = np.flatnonzero(group > 0)
    mine, (row, column) = group.ravel()[members], np.divmod(members, depth.shape[1])
    area = np.bincount(mine, minlength=1)
    small = (area <= settings.max_side_px**2) & (np.bincount(mine, interior.ravel()[members], len(area)) > 0)
    small[0] = False
    small &= _is_compact(mine, row, small, settings) & _is_compact(mine, column, small, settings)
    kept, renumbered = small[mine], np.where(small, np.cumsum(small) - 1, -1)
    number = np.full(depth.shape, -1, np.int32)
    number.ravel()[members] = renumbered[mine]
    ours = (row[kept], column[kept])
    offsets = square_offsets(1)
    rise = (depth[ours][:, None] - gather(depth, ours, offsets)).astype(np.float64).ravel()
    mine = np.repeat(number[ours], len(offsets))
    outside = mine != gather(number, ours, offsets, -1).ravel()
    into_smooth = gather(smooth, ours, offsets, False).ravel()
    offset, score = _measure(mine, outside, into_smooth, rise, int(small.sum()), settings)
    return Components(number, area[small].astype(np.float64), offset, score)


def _label(mask: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Number the connected components of a mask; 0 = none."""
    numbers: Any = label(mask, np.ones((3, 3)))
    return numbers[0]


def _is_compact(
    group: NDArray[np.integer], place: NDArray[np.intp], small: NDArray[np.bool_], settings: ClusterSettings
) -> NDArray[np.bool_]:
    """Mark the small groups that extend no further than a cluster may along one axis."""
    ours = small[group]
    first, last = np.full(len(small), np.iinfo(np.intp).max), np.zeros(len(small), np.intp)
    np.minimum.at(first, group[ours], place[ours])
    np.maximum.at(last, group[ours], place[ours])
    return small & (last - first < settings.max_side_px)


def _measure(
    mine: NDArray[np.integer],
    outside: NDArray[np.bool_],
    smooth: NDArray[np.bool_],
    rise: Vector,
    count: int,
    settings: ClusterSettings,
) -> tuple[Vector, Vector]:
    """Compute offset and score of each component from the differences of its pixels to their neighbours.

    Each difference leads to a pixel outside the component or within, in a smooth area or not.
    """

    def sums(where: NDArray[np.bool_], of: Vector | None = None) -> NDArray[Any]:
        return np.bincount(mine[where], None if of is None else of[where], count)

    valid = np.isfinite(rise)
    ring, within = valid & outside, valid & ~outside
    steps = np.maximum(sums(ring), 1)
    offset = sums(ring, rise) / steps
    spread = np.maximum(sums(ring, np.square(rise)) / steps - np.square(offset), 0)
    spread += sums(within, np.square(rise)) / np.maximum(sums(within), 1)
    score = np.abs(offset) / np.sqrt(spread + settings.step_floor**2)
    return offset, np.where(sums(ring & smooth) >= settings.min_smooth_fraction * sums(outside), score, 0)

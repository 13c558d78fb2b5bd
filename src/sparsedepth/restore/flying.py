"""Flying pixels: mixtures of near and far next to depth steps.

A beam that meets both sides of a step measures something between them. Such a pixel is alone between two faces. So are
some pixels of thin structures, of foliage and of other noise. Four tests on the whole map tell whether it has mixtures:

* The steps of a clean map are sharp: hardly any pixel is alone between two faces, though many are in foliage.
* Impulses and foliage lie beyond two faces as well; mixtures only between them.
* Each of the two pixels next to a step is a mixture, or not, by itself. So where both are, they are out of order as
  often as in order. Steps with one mixture are at most twice as frequent as the geometric mean of those with none and
  with two. A blurred map has ramps; a resized one has one mixture at nearly every step.

Such pixels are snapped to the side that their neighbours indicate. If these do not decide, the pixel stays between the
sides, with a variance that says so. Simulated mixtures show what is missed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from sparsedepth.chosen_pixels import gather, square_offsets
from sparsedepth.fitted import load_fitted
from sparsedepth.neighbourhood import local_range, similar_neighbours
from sparsedepth.ranks import Steps
from sparsedepth.restore.artefacts import Removal
from sparsedepth.restore.settings import FlyingSettings, Settings
from sparsedepth.tiling import Tile
from sparsedepth.vocabulary import DepthMap, Floats, Vector

OFFSETS = square_offsets(2)
SQUARED_DISTANCE = np.square(OFFSETS).sum(axis=1)
ADJACENT = OFFSETS[SQUARED_DISTANCE <= 2]
NEARNESS = np.exp(-SQUARED_DISTANCE / 2).astype(np.float32)
"""Weight of a neighbour in the depth of its side."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pixels that are alone between two sides of a step."""

    number: NDArray[np.intp]
    """Flat indices into the map."""
    low: Vector
    high: Vector
    """Depth of either side."""
    side_variance: Vector
    """Variance within the sides."""
    between_faces: NDArray[np.bool_]
    """Whether both sides are flat, of several pixels, and all that is there."""
    position: Vector
    """Where the pixel lies on the way from the low side (0) to the high one (1)."""
    on_low: NDArray[np.bool_]
    on_high: NDArray[np.bool_]
    """Which neighbours, (pixels, offsets), belong to either side."""

    def high_probability(self, settings: FlyingSettings, side_log_odds: Vector | None = None) -> Vector:
        """Return the probability of the high side, by shipped or other log-odds of a neighbour at each offset."""
        given = load_fitted("flying_pixels").arrays["side_log_odds"] if side_log_odds is None else side_log_odds
        odds = self.on_high @ given - self.on_low @ given
        return expit(odds + settings.own_depth_weight * (self.position - 0.5))

    def snap(self, depth: DepthMap, settings: FlyingSettings) -> tuple[DepthMap, NDArray[np.bool_], Floats]:
        """Move candidates to the side that their neighbours indicate, or to the mean; return which, and variances."""
        p, sure = self.high_probability(settings), settings.snap_probability
        target = np.select([p > sure, p < 1 - sure], [1.0, 0.0], p)
        wrong = p * np.square(1 - target) + (1 - p) * np.square(target)
        step = self.high - self.low
        flying = (self.position > settings.min_mix) & (self.position < 1 - settings.min_mix)
        snapped, found, variance = depth.copy(), np.zeros(depth.shape, bool), np.zeros(depth.shape)
        snapped.ravel()[self.number[flying]] = (self.low + target * step)[flying]
        found.ravel()[self.number[flying]] = True
        variance.ravel()[self.number[flying]] = (wrong * np.square(step) + self.side_variance)[flying]
        return snapped, found, variance


@dataclass(frozen=True)
class FlyingPixels:
    """The mixtures of a map."""

    step: float
    """Least step between two sides."""
    similar: float
    """Largest difference of neighbours on one side."""
    settings: FlyingSettings
    missed: float = 0.0
    """Mean squared error of the pixels next to steps that are kept, in squared steps."""

    @classmethod
    def fit(cls, sample: Tile, step: float, settings: Settings) -> FlyingPixels | None:
        """Test a sample for mixtures; None where it shows none."""
        depth, found = sample.depth, cls.scaled_to(sample.steps.median, step, settings.flying or FlyingSettings())
        sides = found._surfaces_only(depth)
        candidates = found._candidates(depth, sides)
        if not found._is_present(depth, sides, candidates):
            return None
        return replace(found, missed=found._estimate_missed(depth, candidates))

    @classmethod
    def scaled_to(cls, usual: float, step: float, settings: FlyingSettings) -> FlyingPixels:
        """Choose least step and similarity by the median difference of a map whose values are multiples of ``step``."""
        return cls(
            max(settings.min_step, settings.min_step_ratio * usual, settings.min_step_ratio * step),
            max(settings.similar, settings.similar_ratio * usual, settings.similar_levels * step),
            settings,
        )

    def remove(self, tile: Tile) -> Removal:
        """Snap the mixtures of a tile to a side; pixels next to steps gain the variance of missed mixtures."""
        depth, found, extra = self.candidates(tile.depth).snap(tile.depth, self.settings)
        variance = None if tile.variance is None else np.maximum(tile.variance, extra).astype(np.float32)
        lowest, highest = local_range(depth, 1)
        at_step = np.isfinite(depth) & ~found & (highest - lowest > self.step)
        extra[at_step] = self.missed * np.square(highest - lowest)[at_step]
        return Removal(replace(tile, depth=depth, variance=variance), found, extra)

    def _estimate_missed(self, depth: DepthMap, candidates: Candidates) -> float:
        """Mix as many pixels next to the steps of the snapped map as were found, and detect them again."""
        snapped, found, _ = candidates.snap(depth, self.settings)
        lowest, highest = local_range(snapped, 1)
        at_step = np.flatnonzero(np.isfinite(snapped) & (highest - lowest > self.step))
        draw, position = np.random.default_rng(0).random((2, len(at_step)))
        chosen = draw * len(at_step) < found.sum()
        mixing, position = at_step[chosen], position[chosen]
        low, step = lowest.ravel()[mixing], (highest - lowest).ravel()[mixing]
        mixed = snapped.copy()
        mixed.ravel()[mixing] = low + position * step
        again = self.candidates(mixed).snap(mixed, self.settings)[1]
        kept = ~again.ravel()
        error = np.square(position - (snapped.ravel()[mixing] - low) / step)[kept[mixing]].sum()
        ratio = found.sum() / max((~kept[mixing]).sum(), 1)
        return float(ratio * error / max(kept[at_step].sum(), 1))

    def _is_present(self, depth: DepthMap, sides: DepthMap, candidates: Candidates) -> bool:
        """Apply the four tests of the module's text."""
        chosen, mix = self.settings, self.settings.evidence_mix
        position, faces = candidates.position, candidates.between_faces
        within, beyond = (position > mix) & (position < 1 - mix), (position < -mix) | (position > 1 + mix)
        between = (faces & within).sum()
        surplus = between - chosen.chance_factor * (faces & beyond).sum()
        if within.sum() < chosen.min_count or between < chosen.min_face_fraction * within.sum() or surplus < 0:
            return False
        none, one, *two = self._count_transitions(depth, sides, candidates.number[faces & within])
        *_, ordered, disordered = self._count_transitions(depth, sides, candidates.number[within])
        not_ramps = ordered <= chosen.max_ordered_ratio * (disordered + 1)
        not_thin = disordered <= chosen.max_disordered_ratio * (ordered + chosen.pseudocount)
        independent = one**2 <= 4 * (none + 1) * (sum(two) + 1) and not_ramps and not_thin
        enough = surplus + 2 * disordered >= max(chosen.min_count, chosen.min_fraction_of_edges * none)
        return bool(independent and enough)

    def _count_transitions(self, depth: DepthMap, sides: DepthMap, mixtures: NDArray[np.intp]) -> NDArray[np.intp]:
        """Count steps along rows and columns with no mixture, one, two in order, and two out of order."""
        mixed = np.zeros(depth.shape, bool)
        mixed.ravel()[mixtures] = True
        none = np.count_nonzero(Steps.of(sides).sizes > self.step)
        counts = self._count_down(depth, sides, mixed) + self._count_down(depth.T, sides.T, mixed.T)
        return np.array([none, *counts])

    def _count_down(self, depth: DepthMap, sides: DepthMap, mixed: NDArray[np.bool_]) -> NDArray[np.intp]:
        one = mixed[1:-1] & (np.abs(sides[2:] - sides[:-2]) > self.step)
        step = sides[3:] - sides[:-3]
        two = mixed[1:-2] & mixed[2:-1] & (np.abs(step) > self.step)
        ordered = two & ((depth[2:-1] - depth[1:-2]) * step > 0)
        return np.array([np.count_nonzero(each) for each in (one, ordered, two & ~ordered)])

    def _surfaces_only(self, depth: DepthMap) -> DepthMap:
        """Return the map without pixels that have too few similar neighbours."""
        count = similar_neighbours(depth, self.similar)
        return np.where(count >= self.settings.min_similar_neighbours, depth, np.nan)

    def candidates(self, depth: DepthMap) -> Candidates:
        """Find the pixels without similar neighbours that lie between two sides."""
        return self._candidates(depth, self._surfaces_only(depth))

    def _candidates(self, depth: DepthMap, sides: DepthMap) -> Candidates:
        chosen = self.settings
        lowest, highest = local_range(sides, 2)
        rows, columns = np.nonzero(np.isfinite(depth) & np.isnan(sides) & (highest - lowest > self.step))
        valid = np.isfinite(gather(depth, (rows, columns), ADJACENT)).sum(axis=1)
        enough = valid >= chosen.min_valid_neighbours
        rows, columns = rows[enough], columns[enough]
        lowest, highest = lowest[rows, columns, None], highest[rows, columns, None]
        near = gather(sides, (rows, columns), OFFSETS)
        up = near > (lowest + highest) / 2
        down = np.isfinite(near) & ~up
        near = np.nan_to_num(near)
        low, high = _weighted_mean(near, down), _weighted_mean(near, up)
        side_variance = _weighted_mean(np.square(near - np.where(up, high[:, None], low[:, None])), up | down)
        thin = np.minimum(self.similar, chosen.max_face_spread * (highest - lowest))
        flat = (near <= lowest + thin) | (near >= highest - thin) | ~(up | down)
        large = (up.sum(axis=1) >= chosen.min_face_px) & (down.sum(axis=1) >= chosen.min_face_px)
        position = (depth[rows, columns] - low) / (high - low)
        index = rows * depth.shape[1] + columns
        return Candidates(index, low, high, side_variance, flat.all(axis=1) & large, position, down, up)


def _weighted_mean(near: DepthMap, side: NDArray[np.bool_]) -> Vector:
    return (near * side) @ NEARNESS / (side @ NEARNESS)

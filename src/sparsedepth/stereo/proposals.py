"""Proposals for second-order stereo: constant maps, planes in segments of the picture, smoothed maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, uniform_filter

from sparsedepth.kernels import planes as kernels
from sparsedepth.kernels.segments import segments_of
from sparsedepth.stereo.costs import sample
from sparsedepth.stereo.occlusion import fill_background, lr_difference
from sparsedepth.stereo.solvers import semi_global
from sparsedepth.stereo.solvers.winner_takes_all import winner
from sparsedepth.stereo.view_order import both_ways
from sparsedepth.vocabulary import DepthMap, Floats, StereoPair, UnaryCost, Vector

Segments = NDArray[np.int32]

COARSENESS = (1, 2, 3, 5, 8, 12, 24)
"""Of the segments that planes are fitted to: each joins more of the picture than the one before."""
N_HYPOTHESES = 40
"""Planes through three random pixels that each segment tries."""
PLANE_TOLERANCE_PX = 1.0
"""Pixels of a segment that are nearer to its plane, in pixels of disparity, speak for it."""
MAX_PLANE_SLOPE = 0.9
"""Disparity a pixel: from 1 on a plane would be seen from the side by one of the cameras."""


def level(pair: StereoPair, rng: Generator) -> DepthMap:
    """Propose one random disparity everywhere (SameUni)."""
    return np.full(pair.shape, rng.uniform(0, pair.max_disparity), np.float32)


def random_map(pair: StereoPair, rng: Generator) -> DepthMap:
    """Propose a random disparity for each pixel."""
    return rng.uniform(0, pair.max_disparity, pair.shape).astype(np.float32)


def smoothed(disparity: DepthMap, *, vertical: bool) -> DepthMap:
    """Propose the mean of the neighbours above and below, or left and right, of each pixel; the border stays."""
    values = disparity.T if vertical else disparity
    result = values.copy()
    result[:, 1:-1] = (values[:, :-2] + values[:, 2:]) / 2
    return np.ascontiguousarray(result.T if vertical else result)


def matched_windows(unary: UnaryCost, pair: StereoPair, *, side: int = 5) -> DepthMap:
    """Find the cheapest disparity of the window around each pixel, by itself."""
    volume = sample(unary, pair, range(pair.max_disparity + 1))
    return winner(np.stack([uniform_filter(plane, side, mode="nearest") for plane in volume]))


def matched_by_cost(unary: UnaryCost, pair: StereoPair) -> DepthMap:
    """Match semi-globally with a cost of the scale of `costs.photo_consistency`."""
    return semi_global.solve(unary, pair, None, np.random.default_rng(0), step_penalty=0.3, jump_penalty=1.2, jump=12.0)


def matched_both_ways(pair: StereoPair) -> tuple[DepthMap, NDArray[np.bool_]]:
    """Match semi-globally with its own cost, filled where the views disagree; return also where they agree."""
    left, right = both_ways(pair)
    agree = lr_difference(left, right) <= 1
    return fill_background(left, ~agree), agree


def segmentation(picture: Floats, coarseness: int, *, blurred: bool) -> Segments:
    """Segment a picture by minimum spanning trees (Felzenszwalb & Huttenlocher 2004), from fine to coarse."""
    scale = (30 if blurred else 100) * coarseness
    smooth: Any = gaussian_filter(picture, (0.8, 0.8, 0)) if blurred else picture
    height, width, channels = picture.shape
    labels = np.empty((height, width), np.int32)
    rooms = [np.empty(size, kind) for size, kind in ((8 * labels.size, np.uint64), (2**16 + 1, np.int64))]
    rooms += [np.empty(labels.size, kind) for kind in (np.int32, np.float32)]
    smooth = np.ascontiguousarray(smooth, np.float32)
    segments_of(height, width, channels, smooth, scale, 10 * coarseness, *rooms, labels)
    return labels


def planes(
    disparity: DepthMap,
    trusted: NDArray[np.bool_],
    segments: Segments,
    max_disparity: float,
    rng: Generator,
) -> DepthMap:
    """Fit a plane in each segment to its trusted pixels (SegPln): the best of random ones, then least squares.

    A segment with fewer than three trusted pixels, or with too steep a plane, becomes level: at its median, or at that
    of the map. A map without trusted pixels becomes 0.
    """
    if not trusted.any():
        return np.zeros(disparity.shape, np.float32)
    fits = _Segmented.of(disparity, trusted, segments)
    best = fits.level()
    highest = fits.scores(best)
    for _ in range(N_HYPOTHESES):
        tried = fits.through_three(rng)
        scores = fits.scores(tried)
        better = (scores > highest) & _moderate(tried)
        best[better], highest[better] = tried[better], scores[better]
    for _ in range(2):
        refined = fits.least_squares(best)
        good = _moderate(refined)
        best[good] = refined[good]
    return np.clip(fits.drawn(best), 0, max_disparity).astype(np.float32)


def _moderate(planes_: Floats) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(planes_[:, 2]) & (np.abs(planes_[:, :2]).max(axis=1) < MAX_PLANE_SLOPE))


@dataclass(frozen=True, eq=False)
class _Segmented:
    """The trusted pixels of a map in order of their segments; planes are rows (per column, per row, at the centre)."""

    segments: Segments
    centre: Floats
    """(segments, 2): column and row that is the origin of a segment's planes."""
    segment: NDArray[np.intp]
    """Of each trusted pixel."""
    start: NDArray[np.int64]
    """Where the pixels of each segment begin, and where those of the last one end."""
    place: Floats
    """(trusted pixels, 2): column and row from the segment's centre."""
    value: Vector

    @classmethod
    def of(cls, disparity: DepthMap, trusted: NDArray[np.bool_], segments: Segments) -> _Segmented:
        n = int(segments.max()) + 1
        height, width = segments.shape
        size = np.bincount(segments.ravel(), minlength=n)
        rows, columns = np.mgrid[:height, :width]
        sums = [np.bincount(segments.ravel(), axis.ravel(), minlength=n) for axis in (columns, rows)]
        centre = np.stack(sums, axis=1) / np.maximum(size, 1)[:, None]
        at = np.flatnonzero(trusted)
        at = at[np.argsort(segments.ravel()[at], kind="stable")]
        segment = segments.ravel()[at].astype(np.intp)
        place = np.stack([at % width, at // width], axis=1) - centre[segment]
        start = np.searchsorted(segment, np.arange(n + 1)).astype(np.int64)
        return cls(segments, centre, segment, start, place, disparity.ravel()[at].astype(np.float64))

    def level(self) -> Floats:
        """Compute the median of each segment; of those without trusted pixels, the median of all."""
        n = len(self.centre)
        order = np.lexsort((self.value, self.segment))
        count = np.diff(self.start)
        middle = np.minimum(self.start[:-1] + count // 2, len(order) - 1)
        planes_ = np.zeros((n, 3))
        planes_[:, 2] = np.where(count > 0, self.value[order[middle]], np.median(self.value))
        return planes_

    def through_three(self, rng: Generator) -> Floats:
        """Fit the plane through three random pixels of each segment; NaN where they are collinear."""
        n, count = len(self.centre), np.diff(self.start)
        chosen = self.start[:-1, None] + (rng.random((n, 3)) * count[:, None]).astype(np.intp)
        chosen = np.minimum(chosen, len(self.value) - 1)
        a, b, c = (np.column_stack([self.place[chosen[:, k]], self.value[chosen[:, k]]]) for k in range(3))
        normal = np.cross(b - a, c - a)
        upright = (count >= 3) & (np.abs(normal[:, 2]) > 1e-9)
        across = np.where(upright, normal[:, 2], np.nan)
        slopes = -normal[:, :2] / across[:, None]
        return np.column_stack([slopes, a[:, 2] - (slopes * a[:, :2]).sum(axis=1)])

    def scores(self, planes_: Floats) -> Vector:
        """Score how well pixels agree with the plane of their segment: 1 each on it, 0 from the tolerance on."""
        scores = np.empty(len(planes_))
        kernels.score(len(planes_), self.start, self.place, self.value, planes_, PLANE_TOLERANCE_PX, scores)
        return scores

    def least_squares(self, planes_: Floats) -> Floats:
        """Fit the plane of least squares through the pixels near to one; NaN where these are collinear."""
        n = len(planes_)
        normal, right = np.empty((n, 3, 3)), np.empty((n, 3))
        kernels.normal_equations(n, self.start, self.place, self.value, planes_, PLANE_TOLERANCE_PX, normal, right)
        solvable = np.linalg.cond(normal) < 1e8
        planes_ = np.full((n, 3), np.nan)
        planes_[solvable] = np.linalg.solve(normal[solvable], right[solvable][..., None])[..., 0]
        return planes_

    def drawn(self, planes_: Floats) -> DepthMap:
        height, width = self.segments.shape
        drawn = np.empty((height, width))
        kernels.draw(height, width, self.segments, planes_, self.centre, drawn)
        return drawn

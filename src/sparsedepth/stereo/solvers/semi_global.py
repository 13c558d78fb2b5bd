"""Semi-global matching (Hirschmüller 2008): the cheapest paths to each pixel from eight sides, summed.

Penalties shrink where the colours jump in the left view or at the match in the right one (Mei et al. 2011). Costs are
whole numbers, which kernels add up. Large pictures are solved in bands of rows that overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.kernels import stereo_paths
from sparsedepth.kernels.library import address
from sparsedepth.stereo.ad_census import AdCensus, RowCosts, Volume, padded
from sparsedepth.stereo.costs import ad_census, sample
from sparsedepth.stereo.prior import Feedback
from sparsedepth.stereo.rows import Bytes, byte_rows, reversed_rows
from sparsedepth.stereo.team import at_once
from sparsedepth.vocabulary import DepthMap, StereoPair, UnaryCost

data_cost = ad_census
feedback = Feedback(prior=1.0, least_weight=1.0)
hidden_feedback = Feedback(prior=1.0, least_deviation=1.0)
any_size = True

PENALTY_FACTORS = (1.0, 0.25, 0.1)
"""What is left of a penalty where none, one or both of the views have a jump of colour."""
MAX_PATH = 8191
"""Largest cost plus penalty, in whole numbers: eight paths add up to 16 bits."""
DOWN, UP = 1, -1
THREADS_PER_VIEW = 2
"""One for the paths from the top, one for those from the bottom."""


@dataclass(frozen=True)
class Bands:
    """How large pictures are divided into bands of rows."""

    max_bytes: int = 1 << 30
    """Of the costs and sums of a band; a picture that needs less is solved as a whole."""
    overlap_rows: int = 48
    """Rows above and below a band that its paths come through."""
    rows_at_once: int = 16
    """Rows whose costs are computed just before their paths: both find them in the cache of the processor."""

    def of(self, height: int, bytes_per_row: int) -> list[tuple[slice, slice]]:
        """List the bands of rows, and the rows around that each is solved with."""
        most = max(self.max_bytes // bytes_per_row, 4 * self.overlap_rows)
        if height <= most:
            return [(slice(0, height), slice(0, height))]
        edges = np.linspace(0, height, -(-height // (most - 2 * self.overlap_rows)) + 1).astype(int).tolist()
        return [
            (slice(begin, end), slice(max(begin - self.overlap_rows, 0), min(end + self.overlap_rows, height)))
            for begin, end in pairwise(edges)
        ]

    def groups(self, height: int) -> list[slice]:
        """List the rows of a band whose costs are computed together."""
        return [slice(first, min(first + self.rows_at_once, height)) for first in range(0, height, self.rows_at_once)]


class Memory:
    """Volumes of costs and sums that are used again: to clear fresh pages takes as long as to compute the costs."""

    def __init__(self) -> None:
        self._numbers = np.empty(0, np.int16)

    def volumes(self, shape: tuple[int, int, int]) -> tuple[Volume, NDArray[np.uint16]]:
        """Return one volume for costs and one for sums, of any content."""
        if self._numbers.size < 2 * prod(shape):
            self._numbers = np.empty(0, np.int16)
            self._numbers = np.empty(2 * prod(shape), np.int16)
        costs, sums = self._numbers[: 2 * prod(shape)].reshape(2, *shape)
        return costs, sums.view(np.uint16)


def solve(
    unary: UnaryCost,
    pair: StereoPair,
    start: DepthMap | None,
    rng: np.random.Generator,
    *,
    step_penalty: float = 1.0,
    jump_penalty: float = 4.0,
    jump: float = 12.0,
    bands: Bands = Bands(),
    threads: int = 1,
    memory: Memory | None = None,
) -> DepthMap:
    """Find the least of the summed path costs, refined by a parabola; ``start`` and ``rng`` are not used.

    ``step_penalty`` is for neighbours one pixel of disparity apart, ``jump_penalty`` for more. ``jump`` is the
    difference of colours, 0..255, from which on an edge is expected. Two threads share the work; more do not help.
    """
    del start, rng
    costs, scale = _whole_costs(unary, pair, max(step_penalty, jump_penalty))
    penalties = np.rint(scale * np.outer([step_penalty, jump_penalty], PENALTY_FACTORS)).astype(np.int16)
    left, right = _views(unary, pair)
    n, disparity = pair.max_disparity + 1, np.empty(pair.shape, np.float32)
    limit, used = int(np.clip(jump, 0, 255)), memory or Memory()
    for band, around in bands.of(pair.shape[0], 4 * pair.shape[1] * padded(n)):
        views = left[around], reversed_rows(right[around], padded(n) - 1)
        groups = bands.groups(around.stop - around.start)
        rows = _from_row(costs, around.start)
        found = _aggregate(rows, groups, n, *views, penalties, limit, used, threads)
        disparity[band] = found[band.start - around.start :][: band.stop - band.start]
    return disparity


def solve_both(cost: AdCensus, pair: StereoPair, threads: int = 1) -> tuple[DepthMap, DepthMap]:
    """Solve for the left view and the right one: one after the other in the same memory, at once with four threads."""
    several = threads // THREADS_PER_VIEW > 1
    memory = None if several else Memory()

    def solved(of_view: AdCensus) -> DepthMap:  # of the pair, which is not mirrored, only the size counts
        each = min(threads, THREADS_PER_VIEW)
        return solve(of_view, pair, None, np.random.default_rng(0), threads=each, memory=memory)

    left, right = at_once([lambda: solved(cost), lambda: solved(cost.mirrored(threads))], 2 if several else 1)
    return left, np.ascontiguousarray(right[:, ::-1])


def _views(unary: UnaryCost, pair: StereoPair) -> tuple[Bytes, Bytes]:
    """Return the views as the kernels take them."""
    return (unary.left, unary.right) if isinstance(unary, AdCensus) else (byte_rows(pair.left), byte_rows(pair.right))


def _from_row(costs: RowCosts, first: int) -> RowCosts:
    """Count rows from the first one of a band."""
    return lambda rows, into: costs(slice(first + rows.start, first + rows.stop), into)


def _whole_costs(unary: UnaryCost, pair: StereoPair, penalty: float) -> tuple[RowCosts, float]:
    """Return what computes costs in whole numbers, and how many of them are 1."""
    n = pair.max_disparity + 1
    if isinstance(unary, AdCensus):
        scale = _scale(unary.max_cost + penalty)
        return unary.in_whole_numbers(n, scale, MAX_PATH), scale
    volume = sample(unary, pair, range(n))
    scale = _scale(max(float(volume.max()) + penalty, 1e-9))

    def rounded(rows: slice, costs: Volume) -> None:
        costs[..., :n] = np.rint(scale * volume[:, rows]).transpose(1, 2, 0)
        costs[..., n:] = MAX_PATH

    return rounded, scale


def _scale(most: float) -> float:
    """Return the largest power of two by which a number fits into a path."""
    return float(2 ** np.floor(np.log2(MAX_PATH / most)))


def _aggregate(
    costs: RowCosts,
    groups: list[slice],
    n: int,
    left: Bytes,
    right: Bytes,
    penalties: Volume,
    jump: int,
    memory: Memory,
    threads: int = 1,
) -> DepthMap:
    """Add up the paths of a band, from the top and from the bottom to the middle and on, and find the least sums.

    Sums are of whole numbers, so it is the same which of both comes first to a row.
    """
    height, n_channels, width = left.shape
    stride, middle = padded(n), len(groups) // 2
    volume, total = memory.volumes((height, width, stride))
    disparity = np.empty((height, width), np.float32)
    sizes, rooms = (height, width, n_channels, n, stride, jump), {order: _room(width, stride) for order in (DOWN, UP)}
    given = {
        order: (*sizes, *map(address, (penalties, left, right, volume, *room, total, disparity), stereo_paths.ARRAYS))
        for order, room in rooms.items()
    }

    def begin(order: int) -> None:
        for rows in groups[:middle] if order == DOWN else reversed(groups[middle:]):
            costs(rows, volume[rows])
            stereo_paths.semi_global(rows.start, rows.stop, order, 0, *given[order])

    def go_on(order: int) -> None:
        for rows in groups[middle:] if order == DOWN else reversed(groups[:middle]):
            stereo_paths.semi_global(rows.start, rows.stop, order, 1, *given[order])

    for part in (begin, go_on):
        at_once([partial(part, order) for order in (DOWN, UP)], threads)
    return disparity


def _room(width: int, stride: int) -> tuple[NDArray[Any], ...]:
    """Allocate what the kernel works in; it stays the same from band to band."""
    paths, edges = np.empty(7 * (width + 2) * (stride + 3), np.int16), np.empty(4 * (width + stride), np.uint8)
    return paths, edges, np.empty(16 * (width + stride), np.int16), np.empty(5 * stride, np.uint16)

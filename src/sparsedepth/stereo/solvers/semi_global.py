"""Semi-global matching (Hirschmüller 2008): the cheapest paths to each pixel from eight sides, summed.

Penalties shrink where the colours jump in the left view or at the match in the right one (Mei et al. 2011). Costs are
whole numbers, which kernels add up. Large pictures are solved in bands of rows that overlap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sparsedepth.kernels import stereo_paths
from sparsedepth.stereo.ad_census import AdCensus
from sparsedepth.stereo.costs import ad_census, sample
from sparsedepth.stereo.prior import Feedback
from sparsedepth.stereo.rows import Bytes, byte_rows, reversed_rows
from sparsedepth.vocabulary import DepthMap, StereoPair, UnaryCost

data_cost = ad_census
feedback = Feedback(prior=1.0, least_weight=1.0)
hidden_feedback = Feedback(prior=1.0, least_deviation=1.0)
any_size = True

PENALTY_FACTORS = (1.0, 0.25, 0.1)
"""What is left of a penalty where none, one or both of the views have a jump of colour."""
MAX_PATH = 8191
"""Largest cost plus penalty, in whole numbers: eight paths add up to 16 bits."""
LABELS_AT_ONCE = 16
"""Labels are padded to a multiple of this number: one register of the processor."""


@dataclass(frozen=True)
class Bands:
    """How large pictures are divided into bands of rows."""

    max_bytes: int = 1 << 30
    """Of the costs and sums of a band; a picture that needs less is solved as a whole."""
    overlap_rows: int = 48
    """Rows above and below a band that its paths come through."""

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


Volume = NDArray[np.int16]
Costs = Callable[[slice], Volume]
"""The costs of some rows, (rows, width, labels), in whole numbers."""


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
) -> DepthMap:
    """Find the least of the summed path costs, refined by a parabola; ``start`` and ``rng`` are not used.

    ``step_penalty`` is for neighbours one pixel of disparity apart, ``jump_penalty`` for more; ``jump`` is the
    difference of colours, 0..255, from which on an edge is expected.
    """
    del start, rng
    costs, scale = _whole_costs(unary, pair, max(step_penalty, jump_penalty))
    penalties = np.rint(scale * np.outer([step_penalty, jump_penalty], PENALTY_FACTORS)).astype(np.int16)
    left, right = byte_rows(pair.left), byte_rows(pair.right)
    disparity = np.empty(pair.shape, np.float32)
    for band, around in bands.of(pair.shape[0], 4 * pair.shape[1] * _stride(pair)):
        views = left[around], reversed_rows(right[around], _stride(pair) - 1)
        found = _aggregate(costs(around), pair, *views, penalties, int(np.clip(jump, 0, 255)))
        disparity[band] = found[band.start - around.start :][: band.stop - band.start]
    return disparity


def _stride(pair: StereoPair) -> int:
    """Return the number of labels, padded."""
    return -(-(pair.max_disparity + 1) // LABELS_AT_ONCE) * LABELS_AT_ONCE


def _whole_costs(unary: UnaryCost, pair: StereoPair, penalty: float) -> tuple[Costs, float]:
    """Return the costs of rows in whole numbers, and how many of them are 1."""
    n, stride = pair.max_disparity + 1, _stride(pair)
    if isinstance(unary, AdCensus):
        scale = _scale(unary.max_cost + penalty)
        return lambda rows: unary.volume(rows, n, stride, scale, MAX_PATH), scale
    volume = sample(unary, pair, range(n))
    scale = _scale(max(float(volume.max()) + penalty, 1e-9))

    def rounded(rows: slice) -> Volume:
        part = np.full((*volume[0, rows].shape, stride), MAX_PATH, np.int16)
        part[..., :n] = np.rint(scale * volume[:, rows]).transpose(1, 2, 0)
        return part

    return rounded, scale


def _scale(most: float) -> float:
    """Return the largest power of two by which a number fits into a path."""
    return float(2 ** np.floor(np.log2(MAX_PATH / most)))


def _aggregate(costs: Volume, pair: StereoPair, left: Bytes, right: Bytes, penalties: Volume, jump: int) -> DepthMap:
    """Add up the paths of a band, and find the label of the least sum."""
    height, width, stride = costs.shape
    n, n_channels = pair.max_disparity + 1, left.shape[1]
    room = np.empty(7 * (width + 2) * (stride + 3), np.int16)
    edges, by_label = np.empty(width + stride, np.uint8), np.empty(4 * (width + stride), np.int16)
    total = np.zeros(costs.shape, np.uint16)
    disparity = np.empty((height, width), np.float32)
    sizes = height, width, n_channels, n, stride, jump
    stereo_paths.semi_global(*sizes, penalties, left, right, costs, room, edges, by_label, total, disparity)
    return disparity

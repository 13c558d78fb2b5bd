"""Semi-global matching (Hirschmüller 2008): the cheapest paths to each pixel from eight sides, summed.

Penalties shrink where the colours jump in the left view or at the match in the right one (Mei et al. 2011). Rows and
columns are swept with all their pixels and disparities at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from sparsedepth.stereo.costs import ad_census, sample
from sparsedepth.stereo.prior import Feedback
from sparsedepth.stereo.solvers.winner_takes_all import winner
from sparsedepth.vocabulary import DepthMap, Floats, StereoPair, UnaryCost

data_cost = ad_census
feedback = Feedback(prior=1.0, least_weight=1.0)

DIRECTIONS = ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1))
"""Steps (dy, dx) along which paths come."""

PENALTY_FACTORS = (1.0, 0.25, 0.1)
"""What is left of a penalty where none, one or both of the views have a jump of colour."""


def solve(
    unary: UnaryCost,
    pair: StereoPair,
    start: DepthMap | None,
    rng: np.random.Generator,
    *,
    step_penalty: float = 1.0,
    jump_penalty: float = 4.0,
    jump: float = 12.0,
) -> DepthMap:
    """Find the least of the summed path costs, refined by a parabola; ``start`` and ``rng`` are not used.

    ``step_penalty`` is for neighbours one pixel of disparity apart, ``jump_penalty`` for more; ``jump`` is the
    difference of colours, 0..255, from which on an edge is expected.
    """
    del start, rng
    volume = sample(unary, pair, range(pair.max_disparity + 1))
    return winner(aggregate(volume, pair, step_penalty, jump_penalty, jump))


def aggregate(
    volume: Floats,
    pair: StereoPair,
    step_penalty: float,
    jump_penalty: float,
    jump: float,
    directions: Iterable[tuple[int, int]] = DIRECTIONS,
) -> Floats:
    """Add over directions the cost of the cheapest path that ends at each pixel with each label.

    Paths are (labels, height, width); each is less the cheapest of its predecessor, so that sums stay small.
    """
    total = np.zeros_like(volume)
    aside = np.ascontiguousarray(volume.swapaxes(1, 2))
    aside_total = np.zeros_like(aside)
    for dy, dx in directions:
        left, right = (_jumps(view, dy, dx) > jump for view in (pair.left, pair.right))
        if dy:
            relief = _relief_along_rows(left, right, len(volume))
            _sweep(volume, total, relief, step_penalty, jump_penalty, backwards=dy < 0, tilt=dx)
        else:
            relief = _relief_along_columns(left, right, len(volume))
            _sweep(aside, aside_total, relief, step_penalty, jump_penalty, backwards=dx < 0, tilt=0)
    total += aside_total.swapaxes(1, 2)
    return total


def _jumps(view: Floats, dy: int, dx: int) -> Floats:
    """Compute the largest colour difference, over channels, between each pixel and the previous one of a path."""
    height, width = view.shape[:2]
    padded = np.pad(view, ((1, 1), (1, 1), (0, 0)), mode="edge")
    return np.abs(view - padded[1 - dy : 1 - dy + height, 1 - dx : 1 - dx + width]).max(axis=2)


def _reliefs(edges: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Compute the factors of a penalty, by the right view's jumps, where the left one has none and where it has one."""
    none, one, both = (np.float32(share) for share in PENALTY_FACTORS)
    return np.where(edges, one, none), np.where(edges, both, one)


def _relief_along_rows(left: NDArray[np.bool_], right: NDArray[np.bool_], n_labels: int) -> Callable[[int], Floats]:
    """Build a function from a row to the factors (labels, width); the right view's edge is repeated."""
    width = left.shape[1]
    smooth, sharp = (np.pad(relief, ((0, 0), (n_labels - 1, 0)), mode="edge") for relief in _reliefs(right))

    def relief(row: int) -> Floats:
        by_label = (sliding_window_view(share[row], width)[::-1] for share in (sharp, smooth))
        return np.where(left[row], *by_label)

    return relief


def _relief_along_columns(left: NDArray[np.bool_], right: NDArray[np.bool_], n_labels: int) -> Callable[[int], Floats]:
    """Build a function from a column to the factors (labels, height); the right view's edge is repeated."""
    smooth, sharp = (np.pad(relief.T, ((n_labels - 1, 0), (0, 0)), mode="edge") for relief in _reliefs(right))
    edges = np.ascontiguousarray(left.T)

    def relief(column: int) -> Floats:
        by_label = (share[column : column + n_labels][::-1] for share in (sharp, smooth))
        return np.where(edges[column], *by_label)

    return relief


def _sweep(
    volume: Floats,
    total: Floats,
    relief: Callable[[int], Floats],
    step_penalty: float,
    jump_penalty: float,
    *,
    backwards: bool,
    tilt: int,
) -> None:
    """Add the path costs along the second axis to the total; ``tilt`` moves a path along the third with each step."""
    n_labels, n_steps, side = volume.shape
    before, path, scratch = (np.zeros((n_labels, side), np.float32) for _ in range(3))
    for step in range(n_steps)[:: -1 if backwards else 1]:
        penalty = relief(step)
        penalty *= np.float32(step_penalty)
        least = before.min(axis=0)
        np.copyto(path, before)
        np.minimum(path[1:], np.add(before[:-1], penalty[1:], out=scratch[1:]), out=path[1:])
        np.minimum(path[:-1], np.add(before[1:], penalty[:-1], out=scratch[1:]), out=path[:-1])
        np.multiply(penalty, np.float32(jump_penalty / step_penalty if step_penalty else 0), out=scratch)
        np.minimum(path, np.add(scratch, least, out=scratch), out=path)
        path -= least
        path += volume[:, step]
        total[:, step] += path
        _tilt(path, before, tilt)


def _tilt(path: Floats, before: Floats, tilt: int) -> None:
    """Shift the path costs by one along the side; where a path begins, its cost is zero."""
    if tilt > 0:
        before[:, 1:], before[:, 0] = path[:, :-1], 0
    elif tilt < 0:
        before[:, :-1], before[:, -1] = path[:, 1:], 0
    else:
        before[:] = path

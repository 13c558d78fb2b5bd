"""What the codes and the neighbours say of each pixel, and how much it looks like noise.

Noise pulls the codes aside, so suspects are looked at twice: the second time, the map is coded as it is believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter

from sparsedepth.restore.aggregate import Coding, vote
from sparsedepth.restore.tiling import Part
from sparsedepth.vocabulary import DepthMap, Floats

RESOLUTION = 0.01
"""The deviation below which a difference between pixels means nothing."""
DOUBT = 8.0
"""How much the disagreement of the patches counts in the score."""
REACH = 2
"""How far away neighbours are looked for, in pixels."""
SURROUNDINGS = (-3, -1, 1, 3)
"""The rows and columns about a pixel in which texture is measured: more are slower and tell no more."""
RIM = 0.7
"""The share of the square of nine about a pixel that is known, below which the pixel is on a rim."""
SUSPECT = 1.0
"""The score beyond which a pixel is looked at again."""
AGAIN, ROUNDS_AGAIN, CORE = 1.1, 16, 0.4
"""How suspects are coded again: what a unit of code costs in noise floors, iterations, and the core of a patch."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the codes and the neighbours say of each pixel."""

    value: Floats
    """The average of the patches."""
    spread: Floats
    """Their variance."""
    residual: Floats
    """Measured less value; 0 where unknown."""
    score: Floats
    """How much the pixel looks like noise; 0 where unknown."""
    texture: Floats
    """How large residuals usually are about the pixel."""
    count: Floats
    """The votes; 0 = no patch knows anything."""
    rim: NDArray[np.bool_]
    """Whether a third or more of the square about the pixel is a hole, or beyond the border of the map."""

    def at(self, where: NDArray[np.bool_ | np.intp]) -> Evidence:
        """What is said of some pixels: those of a mask, or of numbers."""
        numbers = np.flatnonzero(where) if where.dtype == bool else where
        return Evidence(*(getattr(self, part.name).ravel()[numbers] for part in fields(self)))


def gather(part: Part, coding: Coding, quantum: float, threads: int) -> Evidence:
    """Code a map, or what a window shows of it, or a stack of maps, and score its pixels."""
    votes = vote(part.depth, coding, part.variance, window=part.window, threads=threads)
    residual = np.nan_to_num(part.depth - votes.mean)
    texture = middle_of_surroundings(np.abs(residual).astype(np.float32))
    score = _score(part, quantum, residual, votes.spread)
    about = uniform_filter(np.isfinite(part.depth).astype(np.float32), 3, mode="constant", axes=(-2, -1))
    return Evidence(votes.mean, votes.spread, residual, score, texture, votes.count, about < RIM)


def middle_of_surroundings(sizes: Floats) -> Floats:
    """The median of the sixteen `SURROUNDINGS` of each pixel, the higher one; maps are mirrored at their borders.

    Whole maps are sorted, by exchanges of two at a time: six times as fast as a filter that sorts at each pixel.
    """
    reach = max(SURROUNDINGS)
    rows, columns = sizes.shape[-2:]
    framed = np.pad(sizes, [(0, 0)] * (sizes.ndim - 2) + [(reach, reach)] * 2, mode="symmetric")
    four = _exchanged([framed[..., reach + at : reach + at + rows, :] for at in SURROUNDINGS], _exchanges(4, 1))
    sixteen = [each[..., reach + at : reach + at + columns] for at in SURROUNDINGS for each in four]
    return _exchanged(sixteen, _exchanges(16, 4))[8]


def _exchanged(maps: list[Floats], pairs: Iterable[tuple[int, int]]) -> list[Floats]:
    for low, high in pairs:
        maps[low], maps[high] = np.minimum(maps[low], maps[high]), np.maximum(maps[low], maps[high])
    return maps


def _exchanges(n: int, begin: int) -> Iterator[tuple[int, int]]:
    """Batcher's odd-even merges that sort n numbers whose runs of ``begin`` are sorted; both are powers of two."""
    run = begin
    while run < n:
        apart = run
        while apart:
            for low in range(apart % run, n - apart):
                if (low - apart % run) // apart % 2 == 0 and low // (2 * run) == (low + apart) // (2 * run):
                    yield low, low + apart
            apart //= 2
        run *= 2


def look_again(
    part: Part, evidence: Evidence, believed: Floats, coding: Coding, quantum: float, threads: int
) -> Evidence:
    """What the codes of the map as it is ``believed`` say of the suspects."""
    suspect = np.isfinite(part.depth) & (evidence.score > SUSPECT)
    if not coding.overlapping or not suspect.any():
        return evidence
    again = replace(coding, sparsity=AGAIN, max_rounds=ROUNDS_AGAIN, core=CORE)
    shown = believed.astype(np.float32)
    votes = vote(shown, again, part.variance, only=suspect, window=part.window, threads=threads)
    enough = suspect & (2 * votes.count > evidence.count)
    value, spread = np.where(enough, votes.mean, evidence.value), np.where(enough, votes.spread, evidence.spread)
    residual = np.nan_to_num(part.depth - value)
    score = _score(part, quantum, residual, spread)
    return replace(evidence, value=value, spread=spread, residual=residual, score=score)


def _score(part: Part, quantum: float, residual: Floats, spread: Floats) -> Floats:
    least = np.square(resolution(part, quantum))
    return np.abs(residual) / np.sqrt(least + DOUBT * spread) * loneliness(part.depth) / np.sqrt(least)


def resolution(part: Part, quantum: float) -> Floats:
    """The deviation of each pixel below which a difference means nothing."""
    given = 0 if part.variance is None else np.where(np.isfinite(part.depth), part.variance, 1)
    return np.sqrt(RESOLUTION**2 + (0.3 * quantum) ** 2 + given)


def loneliness(depth: DepthMap) -> Floats:
    """The mean distance of each pixel to the two nearest, in depth, of its neighbours; 0 where unknown."""
    rows, columns = depth.shape[-2:]
    framed = np.full((*depth.shape[:-2], rows + 2 * REACH, columns + 2 * REACH), np.inf, depth.dtype)
    framed[..., REACH:-REACH, REACH:-REACH] = depth
    framed[np.isnan(framed)] = np.inf
    first, second = np.full_like(depth, np.inf), np.full_like(depth, np.inf)
    apart, larger = np.empty_like(depth), np.empty_like(depth)
    for down in range(2 * REACH + 1):
        for right in range(2 * REACH + 1):
            if (down, right) != (REACH, REACH):
                np.subtract(framed[..., down : down + rows, right : right + columns], depth, out=apart)
                np.abs(apart, out=apart)
                np.maximum(first, apart, out=larger)
                np.minimum(second, larger, out=second)
                np.minimum(first, apart, out=first)
    second = np.where(np.isfinite(second), second, first)
    return np.where(np.isfinite(first), (first + second) / 2, 0)


def quantum_of(depth: DepthMap) -> float:
    """The step between the levels of a quantised map: a low percentile of its differences; 0 = it is not quantised."""
    steps = np.abs(np.concatenate([np.diff(depth, axis=axis).ravel() for axis in (0, 1)]))
    steps = steps[np.isfinite(steps)]
    level = steps <= 1e-6
    if not len(steps) or level.mean() < 0.2 or level.all():
        return 0.0
    return float(np.percentile(steps[~level], 20))

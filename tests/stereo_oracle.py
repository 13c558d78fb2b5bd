"""Slow and readable references of the stereo kernels."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

DIRECTIONS = [step for step in product((-1, 0, 1), repeat=2) if step != (0, 0)]


def census_words(grey: NDArray[Any]) -> NDArray[np.uint64]:
    """A bit for each of the pixels in 7 x 9 around, set if it is darker; the edge is repeated."""
    height, width = grey.shape
    padded = np.pad(grey, ((3, 3), (4, 4)), mode="edge")
    words = np.zeros(grey.shape, np.uint64)
    for dy, dx in product(range(7), range(9)):
        words = (words << np.uint64(1)) | (padded[dy : dy + height, dx : dx + width] < grey)
    return words


def ad_census(left: Any, right: Any, disparity: int) -> Any:
    """1 - exp(-mean colour difference / 30) + 1 - exp(-different bits / 15), of views in whole numbers."""
    columns = np.maximum(np.arange(left.shape[1]) - disparity, 0)
    colour = np.abs(left.astype(float) - right[:, columns]).mean(axis=2)
    ours, theirs = (census_words(view.sum(axis=2, dtype=np.int64)) for view in (left, right))
    return 2 - np.exp(-colour / 30) - np.exp(np.bitwise_count(ours ^ theirs[:, columns]) / -15.0)


def aggregate(
    costs: Any, left: Any, right: Any, penalties: Any, jump: int, n: int, directions: Any = DIRECTIONS
) -> Any:
    """Add the cheapest paths from eight sides, pixel by pixel, in whole numbers (height, width, n)."""
    total = np.zeros(costs.shape, np.int64)
    for dy, dx in directions:
        paths = np.zeros(costs.shape, np.int64)
        rows, columns = (
            range(size)[:: -1 if step < 0 else 1] for size, step in zip(costs.shape, (dy, dx), strict=False)
        )
        for y, x in product(rows, columns):
            before = y - dy, x - dx
            outside = not (0 <= before[0] < costs.shape[0] and 0 <= before[1] < costs.shape[1])
            paths[y, x] = costs[y, x]
            if not outside:
                paths[y, x] += _moved(paths[before], _edges(left, right, (y, x), (dy, dx), jump, n), penalties)
        total += paths
    return total


def _edges(left: Any, right: Any, at: tuple[int, int], step: tuple[int, int], jump: int, n: int) -> NDArray[Any]:
    """How many of the two views have a jump of colour between the pixel before and this one, for each label."""
    (y, x), (dy, dx) = at, step
    ours = np.abs(left[y, x].astype(int) - left[y - dy, x - dx]).max() > jump
    found = []
    for d in range(n):
        here = max(x - d, 0)
        there = min(max(here - dx, 0), left.shape[1] - 1)
        found.append(int(ours) + int(np.abs(right[y, here].astype(int) - right[y - dy, there]).max() > jump))
    return np.array(found)


def _moved(before: Any, edges: Any, penalties: Any) -> Any:
    """The cheapest way from the labels before to each label, less the cheapest of them all."""
    beside = np.pad(before, 1, constant_values=1 << 40)
    step, jump = penalties[0][edges], penalties[1][edges]
    ways = [before, beside[:-2] + step, beside[2:] + step, before.min() + jump]
    return np.min(ways, axis=0) - before.min()


def plane_at(disparity: Any, bad: Any, guide: Any, y: int, x: int) -> tuple[float, float]:
    """Level and slope across of the ridge regression at a pixel; guide: (height, width, channels)."""
    squares, sides = np.diag([1e-3, 250.0, 250.0]), np.zeros(3)
    for dy, dx in product(range(-12, 13, 2), repeat=2):
        row, column = y + dy, x + dx
        if not (0 <= row < len(bad) and 0 <= column < bad.shape[1]) or bad[row, column]:
            continue
        away = float(disparity[row, column]) - float(disparity[y, x])
        unlike = np.sum((guide[row, column].astype(float) - guide[y, x]) ** 2) / (2 * 20**2)
        unlike += (away / (0.7 * (1 + 0.1 * np.hypot(dy, dx)))) ** 2 / 2
        terms = np.array([1.0, dx, dy])
        squares += np.exp(-unlike) * np.outer(terms, terms)
        sides += np.exp(-unlike) * away * terms
    level, across, _ = np.linalg.solve(squares, sides)
    return float(disparity[y, x] + level), float(np.clip(across, -0.35, 0.35))

"""Motion of a camera that is taken to stand still: innovations that follow the slopes of the scene."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsedepth.streams.belief import Belief
from sparsedepth.streams.cells import average_cells
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.vocabulary import Floats

MIN_CELLS = 100
"""Fewest cells that a fit of eight numbers may have (set by hand)."""
MIRRORED = ((1, -1), (-1, 1), (-1, -1))
"""Steps through rows and columns that mirror a picture."""


def shows_motion(
    belief: Belief, value: Floats, noise: Floats, shape: tuple[int, int], settings: StreamSettings
) -> bool:
    """Tell whether a motion of the picture explains more of the innovations than chance does.

    A picture that moves by (u, v) changes a pixel by its slopes times u and v. The motion is a shift, a turn and a
    zoom. A plane, and an error in proportion to the value, are no motion: they are fitted before. Slopes of the
    mirrored picture show what correlated noise lets expect by chance.

    Parameters
    ----------
    belief
        State of all pixels before the frame.
    value, noise
        Measurements on the axis and their variances, flat; NaN = missing.
    shape
        Height and width.
    settings
        Cells, and the fraction of the innovations that is no chance.
    """
    if min(shape) < 3 * settings.cell_px:
        return False
    cells = _cells(belief, value, noise, shape, settings)
    by_chance = max(_explained(cells, *_mirrored(cells.slopes, down, across)) for down, across in MIRRORED)
    limit = min(settings.motion_ratio * by_chance, settings.largest_chance) + settings.motion_share
    return _explained(cells, *cells.slopes) > limit


Slopes = tuple[Floats, Floats, NDArray[np.bool_]]


class _Cells(NamedTuple):
    """Cells without the outermost ones, (rows, columns)."""

    gap: Floats
    """Innovations."""
    std: Floats
    middle: Floats
    slopes: Slopes
    """Differences a pixel along rows and columns, and where they are those of a smooth surface."""
    agrees: NDArray[np.bool_]


def _cells(belief: Belief, value: Floats, noise: Floats, shape: tuple[int, int], settings: StreamSettings) -> _Cells:
    shown, level = average_cells(value, noise, shape, settings)
    mean, spread = average_cells(belief.mean, belief.variance, shape, settings)
    inner = slice(1, -1, settings.motion_stride), slice(1, -1, settings.motion_stride)
    middle, side = (shown + mean) / 2, np.float32(2 * settings.cell_px)
    across, down = np.zeros_like(middle), np.zeros_like(middle)
    across[:, 1:-1], down[1:-1] = (middle[:, 2:] - middle[:, :-2]) / side, (middle[2:] - middle[:-2]) / side
    with np.errstate(invalid="ignore"):
        smooth = np.square(across) + np.square(down) < 9 * level
        std = np.sqrt(level + spread)
        agrees = np.abs(shown - mean) < np.float32(settings.align_sigmas) * std
    slopes = across[inner], down[inner], smooth[inner]
    return _Cells((shown - mean)[inner], std[inner], middle[inner], slopes, agrees[inner])


def _mirrored(slopes: Slopes, down: int, across: int) -> Slopes:
    first, second, smooth = slopes
    return first[::down, ::across], second[::down, ::across], smooth[::down, ::across]


def _explained(cells: _Cells, across: Floats, down: Floats, smooth: NDArray[np.bool_]) -> float:
    """Compute the fraction of the squared innovations that slopes explain; 0 if too little can be compared."""
    rows, columns = here = np.nonzero(cells.agrees & smooth)
    if rows.size < MIN_CELLS:
        return 0.0
    scale = 1 / cells.std[here].astype(float)
    x, y = ((at - size / 2) / max(smooth.shape) for at, size in zip((columns, rows), smooth.shape[::-1], strict=True))
    gap, across, down = (each[here] * scale for each in (cells.gap, across, down))
    still = np.stack([scale, x * scale, y * scale, cells.middle[here] * scale], 1)
    moving = np.stack([across, down, across * x + down * y, across * y - down * x], 1)
    before, after = _squares_left(still, gap), _squares_left(np.concatenate([still, moving], 1), gap)
    return (before - after) / before if before > 0 else 0.0


def _squares_left(terms: Floats, gap: Floats) -> float:
    """Compute the sum of squares that least squares leave; sums do not depend on the number of threads."""
    terms = terms / np.maximum(np.sqrt(np.einsum("ki,ki->i", terms, terms)), 1e-30)
    normal, aim = np.einsum("ki,kj->ij", terms, terms), np.einsum("ki,k->i", terms, gap)
    found = np.linalg.solve(normal + 1e-9 * np.eye(len(normal)), aim)
    return float(np.sum(np.square(gap - np.einsum("ki,i->k", terms, found))))

"""Means of small square cells of a view, in which the noise of single pixels averages out."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels import stream_warp as kernels
from sparsedepth.streams.belief import FLOAT
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.vocabulary import Floats


def average_cells(
    mean: Floats, variance: Floats, shape: tuple[int, int], settings: StreamSettings
) -> tuple[Floats, Floats]:
    """Average the pixels of each cell that belong together.

    Parameters
    ----------
    mean, variance
        Of all pixels, flat; NaN = unknown.
    shape
        Height and width.
    settings
        Side of a cell, and which of its pixels belong together.

    Returns
    -------
    Means of both, (rows, columns) of cells; NaN and infinite where too few pixels belong together.
    """
    side = settings.cell_px
    grid = shape[0] // side, shape[1] // side
    found = np.empty(grid, FLOAT), np.empty(grid, FLOAT)
    kernels.average_cells(*shape, side, mean, variance, settings.cell_sigmas, settings.cell_share, *found)
    return found

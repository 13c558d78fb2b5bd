"""Frames whose valid pixels form a lattice, as a registration to another camera leaves them: work on cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.sensors.settings import SensorSettings
from sparsedepth.vocabulary import Floats


def cell_side(valid: NDArray[np.bool_], settings: SensorSettings) -> int:
    """Choose the side of cells that hold at least one valid pixel where valid pixels are densest; 1 = a dense frame.

    Parameters
    ----------
    valid
        (height, width).
    settings
        Blocks that measure the density, and the density below which valid pixels form a lattice.

    Returns
    -------
    Side of a cell in pixels.
    """
    side = settings.block_px
    height, width = (size // side * side for size in valid.shape)
    if height == 0 or width == 0:
        return 1
    blocks = valid[:height, :width].reshape(height // side, side, width // side, side).mean(axis=(1, 3))
    seen = blocks[blocks > 0]
    density = float(np.quantile(seen, settings.block_quantile)) if seen.size else 1.0
    return 1 if density >= settings.lattice_density else int(np.ceil(1 / np.sqrt(density)))


def first_of_cells(values: Floats, side: int) -> Floats:
    """Return the first valid value of each cell; NaN where there is none."""
    cells = _stacked(values, side)
    first = np.argmax(np.isfinite(cells), axis=-1)
    return np.take_along_axis(cells, first[..., None], axis=-1)[..., 0]


def mean_of_cells(values: Floats, side: int) -> Floats:
    """Return the mean of the valid values of each cell; NaN where there is none."""
    cells = _stacked(values, side)
    count = np.isfinite(cells).sum(-1)
    return np.where(count > 0, np.nansum(cells, -1) / np.maximum(count, 1), np.nan)


def spread_cells(cells: NDArray[Any], side: int, shape: tuple[int, ...]) -> NDArray[Any]:
    """Give each pixel the value of its cell."""
    return np.repeat(np.repeat(cells, side, axis=0), side, axis=1)[: shape[0], : shape[1]]


def _stacked(values: Floats, side: int) -> Floats:
    """Arrange the pixels of each cell in the last axis."""
    height, width = values.shape
    padded = np.pad(values, ((0, -height % side), (0, -width % side)), constant_values=np.nan)
    rows, columns = (size // side for size in padded.shape)
    return padded.reshape(rows, side, columns, side).swapaxes(1, 2).reshape(rows, columns, side * side)

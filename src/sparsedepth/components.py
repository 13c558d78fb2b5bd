"""Connected components of pixels with nearly equal values."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csgraph

from sparsedepth.chosen_pixels import Neighbours

FORWARD_OFFSETS = {4: ((0, 1), (1, 0)), 8: ((0, 1), (1, -1), (1, 0), (1, 1))}
"""Rows and columns from a pixel to the neighbours that follow it, by connectivity."""


def connected_components(
    values: NDArray[Any],
    max_step: float,
    *,
    connectivity: Literal[4, 8] = 4,
    within: NDArray[np.bool_] | None = None,
) -> NDArray[np.int32]:
    """Label sets of pixels that are connected by neighbours of nearly equal value.

    Parameters
    ----------
    values : ndarray, shape (height, width) or (height, width, channels)
        NaN is connected to nothing.
    max_step : float
        By how much connected neighbours differ at most, in every channel.
    connectivity : {4, 8}
        Whether pixels have neighbours along rows and columns only, or along diagonals too.
    within : ndarray of bool, shape (height, width), optional
        The pixels to label; all by default. All others are one background. So are pixels connected to it.

    Returns
    -------
    ndarray of int32, shape (height, width)
        Numbers from 1 on, in the order of each component's first pixel, row by row; 0 for the background.

    Examples
    --------
    >>> connected_components(np.array([[1.0, 1.5, 4.0], [9.0, 8.0, 4.0]]), 1.0).tolist()
    [[1, 1, 2], [3, 3, 2]]
    """
    height, width = values.shape[:2]
    forward = np.array(FORWARD_OFFSETS[connectivity])
    if within is None:
        within, offsets = np.ones((height, width), bool), forward
    else:
        offsets = np.concatenate([forward, -forward])
    neighbours = Neighbours.at((height, width), within, offsets)
    node = np.zeros((height, width), np.intp)
    node[within] = np.arange(1, len(neighbours.centre) + 1)
    first, which = np.nonzero(_are_alike(values, neighbours, max_step))
    second = neighbours.pad(node, 0)[neighbours.centre[first] + neighbours.shift[which]]
    n_nodes = len(neighbours.centre) + 1
    graph = coo_array((np.ones(len(first), np.int8), (first + 1, second)), shape=(n_nodes, n_nodes))
    return csgraph.connected_components(graph, directed=False)[1][node]


def _are_alike(values: NDArray[Any], neighbours: Neighbours, max_step: float) -> NDArray[np.bool_]:
    """Tell which neighbours differ by at most a step in every channel; none beyond the border does."""
    channels = values.astype(np.result_type(values, np.float32), copy=False).reshape(*values.shape[:2], -1)
    alike = np.ones((len(neighbours.centre), len(neighbours.shift)), bool)
    for channel in np.moveaxis(channels, -1, 0):
        padded = neighbours.pad(channel)
        for k, shift in enumerate(neighbours.shift):
            alike[:, k] &= np.abs(padded[neighbours.centre] - padded[neighbours.centre + shift]) <= max_step
    return alike

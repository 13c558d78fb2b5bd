"""How far filled pixels err.

They err more the deeper they lie in a hole, the more the map varies around them, and the more what is missing keeps
together: a hole in a map that is dense otherwise is mostly there because of an edge. How these go together was learned
on maps of many kinds and holes of many kinds. The map's own hidden pixels then say how far this map differs; where
holes are few they have a small say, because pixels in shadows err more than any that can be hidden.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_cdt, uniform_filter

from sparsedepth.vocabulary import Floats, Vector

NEAR, MIDDLE, WIDE = 3, 5, 15
"""The sides of squares around a pixel, in pixels."""
LEAST = 0.03
"""The deviation in such a square, in deviations of the map, below which it means nothing."""
USUAL, DEEPER, RISING_NEAR, RISING_WIDE, TOGETHER = 2.23, 1.06, 0.74, 0.46, 5.36
"""The logarithm of the squared error, and how it grows with the logarithms of the depth in a hole and of the variances
in a near and a wide square, and with the share that is missing nearby beyond the share that is missing widely."""
MOST = 4.0
"""No pixel errs by more, in variances of the map."""
SAY = {True: 0.3, False: 1.0}
"""The power of what hidden pixels err by, over what is expected of them, that counts where holes are few or many."""
UNSEEN = 20
"""Pixels that count as if they had been hidden and had erred as expected."""


def expected_error(answer: Floats, unknown: NDArray[np.bool_]) -> Floats:
    """The squared error of the unknown pixels of a map of unit deviation that was filled; 0 where a pixel is known."""
    near, wide = (np.log(_varying(answer, side)[unknown] + LEAST**2) for side in (NEAR, WIDE))
    share = unknown.astype(np.float32)
    missing, widely = (uniform_filter(share, side, mode="nearest")[unknown] for side in (MIDDLE, WIDE))
    together, deep = np.maximum(missing - widely, 0), np.log(np.maximum(depth_in_holes(unknown)[unknown], 1))
    logarithm = USUAL + DEEPER * deep + RISING_NEAR * near + RISING_WIDE * wide + TOGETHER * together
    expected = np.zeros(answer.shape)
    expected[unknown] = np.exp(np.minimum(logarithm, np.log(MOST)))
    return expected


def own_factor(expected: Vector, error: Vector, few: bool) -> float:
    """By how much the filled pixels of a map err more than expected, told by squared errors of hidden ones."""
    if not len(expected):
        return 1.0
    unseen = UNSEEN * expected.mean()
    return float(((error.sum() + unseen) / (expected.sum() + unseen)) ** SAY[few])


def depth_in_holes(unknown: NDArray[np.bool_]) -> Any:
    """The pixels from each unknown one to the nearest known one; 0 where something is known."""
    framed = np.pad(unknown, 1, constant_values=True)
    distance: Any = distance_transform_cdt(framed, "chessboard")
    return distance[1:-1, 1:-1]


def _varying(values: Floats, side: int) -> Floats:
    """The variance in squares of a side."""
    mean, square = (uniform_filter(each, side, mode="nearest") for each in (values, np.square(values)))
    return np.maximum(square - np.square(mean), 0)

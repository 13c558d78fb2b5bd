"""Two rectified views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsedepth.vocabulary.arrays import Floats, InputError, as_array

MOST_CHANNELS = 4
"""Of a picture; more are rows or columns of one whose channels come first."""


@dataclass(frozen=True, eq=False)
class StereoPair:
    """Two rectified views: the left one shows at column x what the right one shows at x - disparity.

    Parameters
    ----------
    left, right
        Views of equal size, grey or colour, (height, width) or (height, width, channels). Costs expect brightness from
        0 to 255. The numbers are kept, as float32; `StereoPair.from_images` scales pictures of any bit depth.
    max_disparity
        Disparities are searched from 0 to this number of pixels, inclusive.

    Examples
    --------
    >>> StereoPair(np.zeros((4, 9)), np.zeros((4, 9)), 3).shape
    (4, 9)
    """

    left: Floats
    right: Floats
    max_disparity: int

    def __post_init__(self) -> None:
        left, right = _as_views(self.left, self.right)
        object.__setattr__(self, "left", left.astype(np.float32, copy=False))
        object.__setattr__(self, "right", right.astype(np.float32, copy=False))
        object.__setattr__(self, "max_disparity", _as_range(self.max_disparity, left.shape[1]))

    @classmethod
    def from_images(cls, left: ArrayLike, right: ArrayLike, max_disparity: int) -> StereoPair:
        """Make a pair of pictures of any bit depth: brightness is scaled to 0..255.

        Bytes are kept. Floats within 0..1 fill the range. Other numbers are read as the least of 8, 10, 12, 14 or 16
        bits that holds both views.

        >>> white, black = np.full((2, 8), 4095, np.uint16), np.zeros((2, 8), np.uint16)
        >>> StereoPair.from_images(white, black, 3).left[0, 0]
        array([255.], dtype=float32)
        """
        left, right = _as_views(left, right)
        if left.shape[2] > MOST_CHANNELS:
            raise InputError(f"the views have {left.shape[2]} channels; put the axis of channels last")
        factor = np.float64(255 / _white((left, right)))
        left, right = (view if factor == 1 else view * factor for view in (left, right))
        return cls(left, right, max_disparity)

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of a view."""
        return self.left.shape[0], self.left.shape[1]

    def mirrored(self) -> StereoPair:
        """Return the pair seen in a mirror: the views change places, and disparities stay positive."""
        left, right = (np.ascontiguousarray(view[:, ::-1]) for view in (self.right, self.left))
        return replace(self, left=left, right=right)

    def grey(self) -> StereoPair:
        """Return the pair in one channel, the mean of all."""
        left, right = (view.mean(axis=2, keepdims=True) for view in (self.left, self.right))
        return replace(self, left=left, right=right)


def _as_views(left: Any, right: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return two views of equal shape (height, width, channels)."""
    views = _as_picture("left", left), _as_picture("right", right)
    if views[0].shape != views[1].shape:
        came = " and ".join(" x ".join(map(str, view.shape)) for view in views)
        raise InputError(
            f"the views are {came} (height x width x channels); give two of equal size, both grey or both in "
            "colour, rectified"
        )
    return views


def _as_picture(name: str, picture: Any) -> NDArray[Any]:
    """Return a view as (height, width, channels), of finite numbers that are not negative."""
    array = np.asarray(as_array(f"the {name} view", picture))
    if array.ndim not in (2, 3) or array.size == 0:
        raise InputError(
            f"the {name} view is {array.dtype} of shape {array.shape}; give numbers of (height, width) or "
            "(height, width, channels)"
        )
    lowest, highest = float(array.min()), float(array.max())
    if not np.isfinite([lowest, highest]).all():
        raise InputError(f"the {name} view holds NaN or infinities; every pixel must have a colour")
    if lowest < 0 or highest > 65535:
        raise InputError(f"the {name} view holds numbers from {lowest:g} to {highest:g}; give 8 or 16 bits, or 0..1")
    return array.reshape(*array.shape[:2], -1)


def _white(views: Sequence[NDArray[Any]]) -> float:
    """Guess the number that stands for white."""
    if all(view.dtype == np.uint8 for view in views):
        return 255.0
    largest = max(float(view.max()) for view in views)
    if largest <= 1 and all(view.dtype.kind == "f" for view in views):
        return 1.0
    return float(next(2**bits - 1 for bits in (8, 10, 12, 14, 16) if largest <= 2**bits - 1))


def _as_range(max_disparity: Any, width: int) -> int:
    if isinstance(max_disparity, bool) or not isinstance(max_disparity, (int, np.integer)):
        raise InputError(f"max_disparity is {max_disparity!r}; give a whole number of pixels")
    if not 1 <= max_disparity < width:
        raise InputError(
            f"max_disparity is {max_disparity} and the views are {width} pixels wide; give 1 to {width - 1}, "
            "the largest shift between the views"
        )
    return int(max_disparity)

"""One frame of a stream, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsedepth.checks import as_guide
from sparsedepth.streams.camera import pose_from
from sparsedepth.vocabulary import DepthImage, Floats, InputError, Unit, as_array

SMALLEST, LARGEST = 1e-6, 1e9
"""Range of depths and variances, in the unit of the map: squares of their inverses fit into float32."""
CODE_16_BIT = 65535
"""Missing in maps of 16 bits; as a depth it is beyond all cameras."""


@dataclass(frozen=True, eq=False)
class Frame:
    """A frame and what came with it.

    Parameters
    ----------
    values
        (height, width), float32; NaN = missing.
    pose
        Camera to world, (4, 4), in metres.
    variance
        (height, width), float32, in squared units of the map.
    guide
        Picture of the view.
    image
        What the numbers mean, if the map came with it.
    """

    values: Floats
    pose: Floats | None
    variance: Floats | None
    guide: Floats | None
    image: DepthImage | None

    @property
    def unit(self) -> Unit:
        """Unit of the map; "" = unknown."""
        return "" if self.image is None else self.image.unit

    def repeats(self, other: Frame) -> bool:
        """Tell whether the frame is the same to the bit."""
        same = self.values.view(np.uint32) == other.values.view(np.uint32)
        return self.variance is None and bool(same.all())


def frame_from(depth: Any, pose: Any, variance: Any, guide: Any) -> Frame:
    """Check a frame; parameters are those of `Stream.push`."""
    image = depth if isinstance(depth, DepthImage) else None
    if image is not None and image.kind != "depth":
        raise InputError(f"the map holds {image.kind}, but a stream takes depths; convert the map")
    values = _values("the frame", depth if image is None else image.values)
    given = None if variance is None else _values("the variance", variance, SMALLEST**2)
    if given is not None and given.shape != values.shape:
        raise InputError(f"the variance has shape {given.shape}, the frame {values.shape}; give one of each pixel")
    picture = None if guide is None else as_guide(guide, values.shape)
    return Frame(values, None if pose is None else pose_from(pose), given, picture, image)


def _values(what: str, given: Any, smallest: float = SMALLEST) -> Floats:
    """Return a map of float32; NaN where it is not positive or not finite."""
    array = np.asarray(np.ma.filled(np.ma.masked_array(as_array(what, given)), 0))
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"{what} has shape {array.shape}; give one map of (height, width)")
    if array.dtype.kind not in "iuf":
        raise InputError(f"{what} holds {array.dtype}; give numbers")
    known = np.isfinite(array) & (array > 0)
    if array.dtype == np.uint16:
        known &= array != CODE_16_BIT
    seen = array[known]
    if seen.size and not (float(seen.min()) >= smallest and float(seen.max()) <= LARGEST):
        raise InputError(f"{what} holds {seen.min():g} to {seen.max():g}; give {smallest:g} to {LARGEST:g}, in m or mm")
    return np.where(known, array, np.nan).astype(np.float32)

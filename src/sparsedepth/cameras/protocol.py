"""What a camera is to the rest of the package."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sparsedepth.geometry import Intrinsics
from sparsedepth.vocabulary import DepthImage

PATIENCE_SECONDS = 5.0
"""A camera that gives no frame for so long is taken to be gone."""


@dataclass(frozen=True, eq=False)
class CameraFrame:
    """A frame as a camera delivers it.

    Parameters
    ----------
    depth
        (height, width) with its unit; NaN = missing.
    stamp_ns
        Time of the camera's own clock, in nanoseconds.
    colour
        Picture in the view of the depth, (height, width, 3) of 8 bits; None = the camera gives none.

    Examples
    --------
    >>> CameraFrame(DepthImage([[1.0, 2.0]], "m"), stamp_ns=33_000_000).depth
    DepthImage(1 x 2 depth in m, 100.0% known)
    """

    depth: DepthImage
    stamp_ns: int
    colour: NDArray[np.uint8] | None = None


class Camera(Protocol):
    """A depth camera: it streams from ``__enter__`` to ``__exit__``, and is iterated in between.

    Examples
    --------
    >>> from sparsedepth.cameras import SimulatedCamera
    >>> with SimulatedCamera(frames=1, paced=False) as camera:
    ...     [frame.depth.unit for frame in camera]
    ['mm']
    """

    @property
    def intrinsics(self) -> Intrinsics | None:
        """Intrinsics of the depth images; None = the camera does not tell. Known once the camera streams."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def __iter__(self) -> Iterator[CameraFrame]: ...

"""Stuck pixels: many single ones have exactly the least or the greatest value of a map, far from all about them.

Sensors write such values where they know nothing, and bits that fail make them. Several within reach of each other look
like a thing to whatever asks for neighbours of the same depth, so they are taken for holes beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import minimum_filter

from sparsedepth.restore.scores import quantum_of
from sparsedepth.restore.tiling import Part
from sparsedepth.vocabulary import DepthMap

FEW = 10
"""Pixels with the same extreme value that are too few to tell anything."""
SCATTERED = 0.25
"""The share of the known neighbours of stuck pixels that may be stuck as well: by chance as many as of all pixels, on a
clipped surface nearly all."""
FAR, LEVELS = 0.25, 3
"""Deviations of the map, and levels of a quantised one, between most stuck pixels and the nearest, in depth, of those
about them."""


@dataclass(frozen=True)
class Stuck:
    """The values at which pixels of a map are stuck."""

    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, depth: DepthMap) -> Stuck:
        known = np.isfinite(depth)
        if not known.any():
            return cls()
        ends = dict.fromkeys((float(np.nanmin(depth)), float(np.nanmax(depth))))
        found = cls(tuple(end for end in ends if _scattered(depth == end, known)))
        if not found.values:
            return found
        far = max(FAR, LEVELS * quantum_of(np.where(found.where(depth), np.nan, depth)))
        return cls(tuple(end for end in found.values if _apart(depth, end) > far))

    def where(self, depth: DepthMap) -> NDArray[np.bool_]:
        return np.isin(depth, np.array(self.values, depth.dtype))

    def hidden(self, part: Part) -> tuple[Part, NDArray[np.bool_]]:
        """The part without its stuck pixels, and where they are."""
        there = self.where(part.depth)
        return part.without(there), there


def _scattered(there: NDArray[np.bool_], known: NDArray[np.bool_]) -> bool:
    """Whether there are some, and hardly any beside each other."""

    def beside(other: NDArray[np.bool_]) -> int:
        down = (there[1:] & other[:-1]).sum() + (there[:-1] & other[1:]).sum()
        return int(down + (there[:, 1:] & other[:, :-1]).sum() + (there[:, :-1] & other[:, 1:]).sum())

    return min(there.sum(), beside(known)) >= FEW and beside(there) <= SCATTERED * beside(known)


def _apart(depth: DepthMap, end: float) -> float:
    """How far pixels of such a value mostly are from the nearest, in depth, of their neighbours."""
    there = depth == end
    apart = np.where(there | np.isnan(depth), np.inf, np.abs(depth - end))
    nearest = minimum_filter(apart, 3, mode="constant", cval=np.inf)[there]
    nearest = nearest[np.isfinite(nearest)]
    return float(np.median(nearest)) if len(nearest) else 0.0

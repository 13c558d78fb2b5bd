"""Filling what was refused, for those who would rather have a guess than a hole.

The folded surface goes on into the hole. The further in, the less it is worth; how much less, and how much at all, is
told by what was filled around the hole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import find_objects, label

from sparsedepth.restore.surfaces import surfaces
from sparsedepth.restore.variance_filled import beyond
from sparsedepth.vocabulary import Origin, Restoration

MARGIN = 24
"""Pixels around a hole that its surface is drawn through."""
ENOUGH = 2**20
"""Pixels that tell the median and the deviation of a map."""


def fill(result: Restoration) -> None:
    """Fill every refused pixel of a map of which something is known, in place."""
    refused = np.asarray(result.origin == Origin.REFUSED)
    if not refused.any() or refused.all():
        return
    reference, spread = _unit(result.depth)
    holes: Any = label(refused, np.ones((3, 3)))[0]  # pyright: ignore[reportIndexIssue]
    for number, place in enumerate(find_objects(holes), start=1):
        wider = tuple(slice(max(side.start - MARGIN, 0), side.stop + MARGIN) for side in place)
        mine, origin = holes[wider] == number, result.origin[wider]
        filled = origin == Origin.FILLED
        unknown = filled | (origin == Origin.REFUSED)
        surface = surfaces((result.depth[wider].astype(np.float64) - reference) / spread).folded
        result.depth[wider][mine] = surface[mine] * spread + reference
        variance = result.variance[wider]
        variance[mine] = (beyond(surface, unknown, np.where(filled, variance, 0) / spread**2) * spread**2)[mine]
        origin[mine] = Origin.FILLED


def _unit(depth: NDArray[Any]) -> tuple[float, float]:
    """The median and the deviation of a map."""
    thinning = max(1, depth.size // ENOUGH)
    known = depth[np.isfinite(depth)][::thinning].astype(np.float64)
    reference = float(np.median(known))
    return reference, float(np.std(known)) or 1.0

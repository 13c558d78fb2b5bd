"""Filling what was refused, for those who would rather have a guess than a hole.

The surface that bends least goes on into the hole. Its slope there is anyone's guess, so its deviation grows with the
distance from what is known, a step of the map's own size for each pixel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_cdt, find_objects, label

from sparsedepth.restore.surfaces import surfaces
from sparsedepth.vocabulary import Floats, Origin, Restoration

MARGIN = 24
"""Pixels around a hole that its surface is drawn through."""
ENOUGH = 2**20
"""Differences between neighbours that tell the size of a step."""


def fill(result: Restoration) -> None:
    """Fill every refused pixel of a map of which something is known, in place."""
    refused = np.asarray(result.origin == Origin.REFUSED)
    if not refused.any() or refused.all():
        return
    step = _squared_step(result.depth)
    holes: Any = label(refused, np.ones((3, 3)))[0]  # pyright: ignore[reportIndexIssue]
    for number, place in enumerate(find_objects(holes), start=1):
        wider = tuple(slice(max(side.start - MARGIN, 0), side.stop + MARGIN) for side in place)
        mine = holes[wider] == number
        result.depth[wider][mine] = _surface(result.depth[wider])[mine]
        distances: Any = distance_transform_cdt(mine, "chessboard", return_indices=True)
        far, source = distances
        variance = result.variance[wider]
        start = variance[tuple(source)]
        variance[mine] = (np.where(np.isfinite(start), start, step) + step * np.square(far))[mine]
        result.origin[wider][mine] = Origin.FILLED


def _surface(depth: NDArray[Any]) -> Floats:
    known = np.isfinite(depth)
    reference = float(np.median(depth[known])) if known.any() else 0.0
    spread = (float(np.std(depth[known])) if known.any() else 0.0) or 1.0
    return surfaces(((depth - reference) / spread).astype(np.float64)).folded * spread + reference


def _squared_step(depth: NDArray[Any]) -> float:
    """The mean square of the differences between neighbours."""
    total, count = 0.0, 0
    thinning = max(1, depth.shape[0] * depth.shape[1] // ENOUGH)
    for axis in (0, 1):
        steps = np.diff(depth[::thinning], axis=1) if axis else np.diff(depth[:, ::thinning], axis=0)
        known = steps[np.isfinite(steps)].astype(np.float64)
        total, count = total + float(np.square(known).sum()), count + len(known)
    return total / max(count, 1)

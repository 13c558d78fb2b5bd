"""Square crops of a map, drawn by seed where little is missing, so that anyone measures on the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.vocabulary import DepthMap, Floats, InputError


@dataclass(frozen=True)
class Crop:
    """A part of a map, and its position."""

    top: int
    left: int
    depth: DepthMap

    def of(self, picture: NDArray[Any]) -> NDArray[Any]:
        """Cut the same part from an array of the map's size."""
        height, width = self.depth.shape
        return picture[self.top : self.top + height, self.left : self.left + width].copy()


def crops(
    depth: DepthMap,
    n: int,
    size: int = 100,
    *,
    seed: int,
    most_missing: float = 0.03,
    least_spread: float = 0.2,
    apart_from: Sequence[Crop] = (),
) -> list[Crop]:
    """Draw ``n`` crops that do not overlap, uniformly among the places where enough is known and it is not flat.

    ``most_missing`` is the largest share of NaN; ``least_spread`` the smallest standard deviation, over the map's.
    None overlaps a crop of ``apart_from``, which are of the same map and size.
    """
    depth = np.asarray(depth)
    if depth.ndim != 2 or size < 1 or min(depth.shape) < size:
        raise InputError(f"a map of shape {depth.shape} has no room for a crop of {size} x {size}; take smaller crops")
    free = _fit(depth, size, most_missing, least_spread)
    for other in apart_from:
        _close(free, other.top, other.left, size)
    rng = np.random.default_rng(seed)
    found: list[Crop] = []
    while len(found) < n:
        places = np.argwhere(free)
        if not len(places):
            raise InputError(
                f"only {len(found)} of {n} crops of {size} x {size} have at most {most_missing:.3g} missing, a spread "
                f"of {least_spread:.3g} and no overlap; take fewer or smaller ones, or loosen the bounds"
            )
        top, left = (int(i) for i in places[rng.integers(len(places))])
        _close(free, top, left, size)
        found.append(Crop(top, left, depth[top : top + size, left : left + size].copy()))
    return found


def _close(free: np.ndarray, top: int, left: int, size: int) -> None:
    """Take away the places whose crops would overlap one."""
    free[max(top - size + 1, 0) : top + size, max(left - size + 1, 0) : left + size] = False


def _fit(depth: DepthMap, size: int, most_missing: float, least_spread: float) -> np.ndarray:
    """Test whether the crop that begins at each pixel is complete and varied enough."""
    known = np.isfinite(depth)
    if not known.any():
        return np.zeros((depth.shape[0] - size + 1, depth.shape[1] - size + 1), bool)
    values = np.where(known, depth, 0).astype(np.float64)
    spread = values[known].std()
    values = np.where(known, values - values[known].mean(), 0)
    count = _window_sums(known.astype(np.float64), size)
    held = np.maximum(count, 1)
    variance = _window_sums(values**2, size) / held - (_window_sums(values, size) / held) ** 2
    enough = count >= (1 - most_missing) * size**2 - 1e-9 * size**2
    # A hair below the bound, because sums of a million rounded numbers decide ties by chance.
    return enough & (count > 0) & (variance >= (least_spread * spread) ** 2 * (1 - 1e-9))


def _window_sums(values: Floats, size: int) -> Floats:
    """Add the values of every size x size window."""
    total = np.pad(values.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    return total[size:, size:] - total[:-size, size:] - total[size:, :-size] + total[:-size, :-size]

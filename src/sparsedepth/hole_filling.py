"""Fill the holes of a restored map in place, tile by tile, from the side that a user or the sensor asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.holes import fill
from sparsedepth.vocabulary import Floats, InputError, Kind, Origin, Restoration

SIDES = ("auto", "background", "nearest", "surface", "none")
"""Ways to fill holes."""
HOLES = ("auto", "all")
"""Which holes are filled: those that can be known, or all."""
REACH_PX = 80
"""Distance within which valid pixels decide about a missing one, and the margin of tiles."""
TILE_PX = 1024
"""Side of a tile, without its margin."""

Slices = tuple[slice, slice]


@dataclass(frozen=True)
class Filling:
    """How the holes of a map are filled."""

    side: str = "auto"
    everything: bool = False
    """Whether pixels that nothing near tells are filled, too."""

    @classmethod
    def chosen(cls, side: str | bool, holes: str) -> Filling:
        """Check a user's choice; True is "auto", and False is "none".

        >>> Filling.chosen(False, "all").side
        'none'
        """
        side = {True: "auto", False: "none"}[side] if isinstance(side, bool) else side
        if side not in SIDES or holes not in HOLES:
            raise InputError(
                f"fill is {side!r} and holes is {holes!r}; choose one of {', '.join(SIDES)}, and {' or '.join(HOLES)}"
            )
        return cls(side, holes == "all")

    def resolved(self, shadows: bool) -> Filling:
        """Replace "auto": by "background" where holes are shadows of a second view, by "surface" elsewhere."""
        return replace(self, side="background" if shadows else "surface") if self.side == "auto" else self

    def fill(self, result: Restoration, kind: Kind = "depth", guide: Floats | None = None) -> None:
        """Fill the refused pixels of a restored map in place.

        Parameters
        ----------
        result
            The map; it may lie in a file.
        kind
            Whether larger values are farther (depth) or nearer.
        guide
            A picture of the same view.
        """
        if self.side == "none":
            return
        for inner, outer, inside in _tiles(result.depth.shape):
            missing = np.isin(result.origin[outer], (Origin.FILLED, Origin.REFUSED))
            if missing[inside].any() and not missing.all():
                self._fill_tile(result, inner, outer, inside, missing, kind, None if guide is None else guide[outer])

    def _fill_tile(
        self,
        result: Restoration,
        inner: Slices,
        outer: Slices,
        inside: Slices,
        missing: NDArray[np.bool_],
        kind: Kind,
        guide: Floats | None,
    ) -> None:
        depth = np.where(missing, np.nan, result.depth[outer].astype(np.float64))
        farther = kind == "depth"
        side: Any = self.side
        inverse = farther and float(np.nanmin(depth)) > 0
        options: dict[str, Any] = {"disparity": inverse, "larger_is_farther": farther, "reach_px": REACH_PX}
        found = fill(depth, result.variance[outer].astype(np.float64), side, guide=guide, **options)
        refused = found.refused & (not self.everything)
        here = (missing & ~refused)[inside]
        result.depth[inner] = np.where(here, found.value[inside], result.depth[inner])
        result.variance[inner] = np.where(here, found.variance[inside], result.variance[inner])
        result.origin[inner] = np.where(here, Origin.FILLED, result.origin[inner])


def _tiles(shape: tuple[int, ...]) -> Iterator[tuple[Slices, Slices, Slices]]:
    """Yield tiles: without and with their margin, and the place of the first in the second."""
    height, width = shape
    for top in range(0, height, TILE_PX):
        for left in range(0, width, TILE_PX):
            starts = max(top - REACH_PX, 0), max(left - REACH_PX, 0)
            ends = min(top + TILE_PX, height), min(left + TILE_PX, width)
            inner = slice(top, ends[0]), slice(left, ends[1])
            outer = (
                slice(starts[0], min(ends[0] + REACH_PX, height)),
                slice(starts[1], min(ends[1] + REACH_PX, width)),
            )
            inside = (
                slice(top - starts[0], ends[0] - starts[0]),
                slice(left - starts[1], ends[1] - starts[1]),
            )
            yield inner, outer, inside

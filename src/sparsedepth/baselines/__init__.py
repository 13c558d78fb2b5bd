"""Baselines: common methods for noisy and incomplete depth maps.

Every one is a pure function from a float map to a float map. NaN is missing: it takes no part, and stays NaN, except
in `biharmonic` and `linear`, which fill. Strengths and thresholds are in units of the map; the weight of
`tv_l1` has no unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sparsedepth.baselines.filling import biharmonic, linear
from sparsedepth.baselines.variation import tv_l1, tv_l2
from sparsedepth.baselines.wavelets import tight_wavelet_frame, wavelet_frame
from sparsedepth.baselines.windows import bilateral, median, nl_means, nl_means_median, switching_median
from sparsedepth.vocabulary import DepthMap

METHOD_VERSION = 1
"""Version of the results of the baselines. Raise it by one with every change of results: cached outcomes are then made
again."""


@dataclass(frozen=True)
class Competitor:
    """A method with its most important parameter, and the values worth trying.

    Parameters
    ----------
    restore
        (map, parameter) -> map.
    grid
        Parameters worth trying.
    in_units
        Whether the grid is in standard deviations of the map; otherwise its numbers are the parameters.

    Examples
    --------
    >>> DENOISERS["median"].parameters(np.ones((4, 4)))
    [1.0, 3.0, 5.0, 7.0]
    """

    restore: Callable[[DepthMap, float], DepthMap]
    grid: tuple[float, ...]
    in_units: bool = True

    def parameters(self, depth: DepthMap) -> list[float]:
        """Scale the grid to the units of a map."""
        known = np.asarray(depth, np.float64)[~np.isnan(depth)]
        spread = float(known.std()) if self.in_units and known.size else 1.0
        return [value * (spread or 1.0) for value in self.grid]


def _steps(first: float, last: float, n: int) -> tuple[float, ...]:
    return tuple(float(value) for value in np.geomspace(first, last, n))


DENOISERS = {
    "median": Competitor(lambda depth, size: median(depth, int(size)), (1, 3, 5, 7), in_units=False),
    "switching median": Competitor(switching_median, (0.0, *_steps(0.005, 1.5, 23), math.inf)),
    "TV-L2": Competitor(tv_l2, (0.0, *_steps(0.002, 2.0, 25))),
    "TV-L1": Competitor(tv_l1, (*_steps(0.25, 3.6, 23), 4.0), in_units=False),
    "NL-means": Competitor(nl_means, (0.0, *_steps(0.003, 1.0, 21))),
    "NL-means, median": Competitor(nl_means_median, (0.0, *_steps(0.003, 1.0, 21))),
    "bilateral": Competitor(bilateral, (0.0, *_steps(0.01, 3.0, 21))),
}
"""Each grid reaches from doing nothing to doing far too much, in steps of about a third or less."""


INPAINTERS: dict[str, Callable[[DepthMap], DepthMap]] = {"biharmonic": biharmonic, "linear": linear}

__all__ = [
    "DENOISERS",
    "INPAINTERS",
    "METHOD_VERSION",
    "Competitor",
    "biharmonic",
    "bilateral",
    "linear",
    "median",
    "nl_means",
    "nl_means_median",
    "switching_median",
    "tight_wavelet_frame",
    "tv_l1",
    "tv_l2",
    "wavelet_frame",
]

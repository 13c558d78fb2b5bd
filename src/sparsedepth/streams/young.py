"""Edge-aware smoothing of young pixels: means of opposite pixels that continue the same tilted surface."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsedepth.kernels import stream_smooth as kernels
from sparsedepth.sensors import Correlation
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.vocabulary import Floats

DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))
"""One of each two opposite directions (rows, columns)."""
FAR = np.float32(1e9)
"""Stands for missing pixels on the axis: so far away that they have no weight."""


@dataclass(frozen=True, eq=False)
class PairSmoother:
    """Averages a pixel with the means of opposite pixels, which lie on its surface however it is tilted.

    Parameters
    ----------
    offsets
        (rows, columns) of one pixel of each pair.
    of_centre, of_pairs
        Mean correlation of a pair with the centre, and of the pairs with each other.
    """

    offsets: tuple[tuple[int, int], ...]
    of_centre: float
    of_pairs: float
    settings: StreamSettings

    @property
    def left(self) -> float:
        """Fraction of the variance that the mean of all pairs leaves."""
        pairs = len(self.offsets)
        return (1 + 2 * pairs * self.of_centre + pairs**2 * self.of_pairs) / (1 + pairs) ** 2

    @classmethod
    def of(cls, correlation: Correlation, settings: StreamSettings) -> PairSmoother:
        """Prepare the smoothing of noise with a spatial correlation."""
        offsets = tuple((far * down, far * across) for far in settings.smooth_px for down, across in DIRECTIONS)
        places = np.array(offsets, float)
        apart, joined = (places[:, None] + sign * places[None, :] for sign in (-1, 1))
        of_pairs = (correlation(apart[..., 0], apart[..., 1]) + correlation(joined[..., 0], joined[..., 1])) / 2
        of_centre = correlation(places[:, 0], places[:, 1])
        return cls(offsets, float(of_centre.mean()), float(of_pairs.mean()), settings)

    def smooth(self, value: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Smooth all pixels.

        Parameters
        ----------
        value, variance
            (height, width); NaN = missing.

        Returns
        -------
        Values, and the ratio of variances after to before; any numbers where the value is missing.
        """
        (height, width), margin = value.shape, max(self.settings.smooth_px)
        padded = np.full((height + 2 * margin, width + 2 * margin), FAR)
        np.copyto(padded[margin:-margin, margin:-margin], value, where=value == value)
        smoothed, ratio = np.empty_like(value), np.empty_like(value)
        reach = np.interp(self.left, (0.0, 1.0), self.settings.smooth_sigmas) ** 2
        kernels.smooth(
            *(height, width, margin, padded, variance, np.array(self.offsets, np.int64), len(self.offsets)),
            *(np.empty((3, width), np.float32), smoothed, ratio),
            *(reach, self.of_centre, self.of_pairs, self.settings.smooth_inflation),
        )
        return smoothed, ratio

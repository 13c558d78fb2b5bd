"""Edge-aware smoothing of young pixels: means of opposite pixels that continue the same tilted surface."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
        margin, rows = max(self.settings.smooth_px), self.settings.band_rows
        padded = np.pad(np.where(value == value, value, FAR), margin, constant_values=FAR)
        smoothed, ratio = np.empty_like(value), np.empty_like(value)
        for top in range(0, len(value), rows):
            band = slice(top, min(top + rows, len(value)))
            around = padded[band.start : band.stop + 2 * margin]
            smoothed[band], ratio[band] = self._smooth_band(around, margin, variance[band])
        return smoothed, ratio

    def _smooth_band(self, around: Floats, margin: int, variance: Floats) -> tuple[Floats, Floats]:
        height, width = variance.shape
        centre = around[margin : margin + height, margin : margin + width]
        wide = np.interp(self.left, (0.0, 1.0), self.settings.smooth_sigmas)
        narrow = 1 / (np.float32(wide**2) * variance)
        total, moved = np.zeros_like(variance), np.zeros_like(variance)
        for down, across in self.offsets:
            ahead, behind = (
                around[margin + sign * down :, margin + sign * across :][:height, :width] for sign in (1, -1)
            )
            away = ahead + behind
            away *= np.float32(0.5)
            away -= centre
            weight = np.square(away)
            weight *= narrow
            np.subtract(1, weight, out=weight)
            np.maximum(weight, 0, out=weight)
            np.square(weight, out=weight)
            total += weight
            away *= weight
            moved += away
        moved /= 1 + total
        moved += centre
        return moved, self._ratio(total)

    def _ratio(self, total: Floats) -> Floats:
        """Compute the variance of a mean of the centre and pairs of a total weight, over that of the centre."""
        a, b, more = np.float32(2 * self.of_centre), np.float32(self.of_pairs), self.settings.smooth_inflation
        ratio = (1 + a * total + b * np.square(total)) / np.square(1 + total)
        return np.minimum(np.float32(more) * ratio, 1)

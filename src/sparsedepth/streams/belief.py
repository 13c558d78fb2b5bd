"""The belief of a stream: mean, variance and age of each pixel, and its update by a frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsedepth.kernels import stream_update as kernels
from sparsedepth.sensors import Correlation
from sparsedepth.streams.drifts import Drifts
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.vocabulary import Floats

FLOAT = np.float32
UNKNOWN = (np.nan, np.inf, 1, 0, 0, np.nan, 0, 0)
"""State of a pixel of which nothing is known, in the order of the fields of `Belief`."""


@dataclass(frozen=True, eq=False)
class Belief:
    """State of all pixels on the axis of the stream, in flat arrays of float32 that are changed in place.

    Parameters
    ----------
    mean, variance
        Of the depth of each pixel; NaN = unknown.
    scale
        Local noise level: variance of successive differences over the one that the sensor predicts.
    run
        Mean of the last innovations, in standard deviations; slow change moves it.
    residual
        Last measurement minus the mean.
    candidate
        Last measurement beyond the gate, minus the mean; NaN = none.
    count
        Number of measurements in the mean; 0 = unknown.
    missed
        Frames since the last measurement.
    """

    mean: Floats
    variance: Floats
    scale: Floats
    run: Floats
    residual: Floats
    candidate: Floats
    count: Floats
    missed: Floats

    @classmethod
    def empty(cls, pixels: int) -> Belief:
        """Return a belief that knows nothing."""
        blank = cls(*(np.empty(pixels, FLOAT) for _ in range(8)))
        blank.forget(slice(None))
        return blank

    def arrays(self) -> tuple[Floats, ...]:
        """Return all arrays in the order of the fields."""
        return (
            self.mean,
            self.variance,
            self.scale,
            self.run,
            self.residual,
            self.candidate,
            self.count,
            self.missed,
        )

    def forget(self, where: slice | np.ndarray) -> None:
        """Make pixels unknown."""
        for each, value in zip(self.arrays(), UNKNOWN, strict=True):
            each[where] = value

    def renew(self, where: np.ndarray, value: Floats, variance: Floats) -> None:
        """Restart pixels with one measurement."""
        for each, first in zip(self.arrays(), (value, variance, 1, 0, 0, np.nan, 1, 0), strict=True):
            each[where] = first


@dataclass(frozen=True, eq=False)
class Change:
    """What an update found: flat arrays of all pixels, and maps of blocks."""

    jumped: np.ndarray
    """Measured beyond the gate for the first time: the mean has not followed."""
    innovation: Floats
    """Measurement minus the mean before the update; NaN where there is none."""
    noise: Floats
    """Variance of the measurement, the local noise level included."""
    drift: Floats
    """Evidence of slow change in each block, -1 to 1."""
    lag: Floats
    """Squared error of the means of each block that slow change may leave, in variances of the measurement."""


class Updater:
    """Updates a belief by frames of a sensor.

    Parameters
    ----------
    shape
        Height and width.
    temporal, correlation
        Correlations of the noise of the sensor, from frame to frame and from pixel to pixel.
    settings
        Thresholds and rates.
    """

    def __init__(
        self, shape: tuple[int, int], temporal: float, correlation: Correlation, settings: StreamSettings
    ) -> None:
        memory = settings.run_memory
        self._shape, self._temporal, self._settings = shape, temporal, settings
        self.run_std = np.sqrt(
            (1 - memory) / (1 + memory) * (1 + temporal * memory) / (1 - temporal * memory)
        )  # of an autoregression of first order
        self._drifts = Drifts(shape, correlation, self.run_std, settings)

    def update(self, belief: Belief, value: Floats, noise: Floats) -> Change:
        """Update a belief in place.

        Parameters
        ----------
        belief
            State of all pixels.
        value, noise
            Measurements on the axis, NaN = missing, and the variance of one measurement at every pixel, flat.

        Returns
        -------
        What jumped, the innovations, and the slow change of regions.
        """
        settings, side = self._settings, self._settings.drift_block_px
        innovation, level = np.empty_like(value), np.empty_like(value)
        sums, jumped = np.zeros((3, *self._drifts.grid), FLOAT), np.empty(len(value), np.uint8)
        kernels.compare(
            *(*self._shape, side, value, noise, belief.mean, belief.variance, belief.residual, belief.count),
            *(belief.scale, belief.run, innovation, level, sums, self._temporal, settings.scale_rate),
            *(settings.largest_scale, settings.gate_sigmas, settings.run_memory, settings.run_clip),
        )
        drift, lag = self._drifts.found(sums)
        kernels.fuse(
            *(*self._shape, side, value, noise, innovation, level, drift, *belief.arrays(), jumped),
            *(settings.gate_sigmas, settings.least_gain, settings.huber_sigmas, self.run_std, settings.run_sigmas),
            *(settings.run_relief, settings.drift_prior, settings.candidate_sigmas),
            *(settings.memory_growth, settings.memory_frames),
        )
        return Change(jumped.view(bool), innovation, level, drift, lag)

    def reported(self, belief: Belief, change: Change) -> tuple[Floats, Floats]:
        """Compute the variance of the means under correlated frames, and the squared error that slow change leaves."""
        rho, bound = FLOAT(self._temporal), FLOAT(self.run_std**2)
        steady = self._drifts.spread(1 - np.abs(change.drift))
        with np.errstate(invalid="ignore"):
            ratio = np.minimum(belief.variance / change.noise, 1)
            variance = belief.variance * ((1 + rho) / (1 - rho + 2 * rho * ratio))
            lag = np.maximum(np.square(belief.run) - bound * steady, 0) * (belief.variance + change.noise)
            np.maximum(lag, self._drifts.spread(change.lag) * change.noise, out=lag)
        return variance, lag

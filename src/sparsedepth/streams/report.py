"""The result of a frame: belief, smoothed where it is young, with its variance and origin, in the unit of the map."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sparsedepth.hole_filling import Filling
from sparsedepth.sensors import PowerLaw, Sensor, TableLaw
from sparsedepth.sensors.smooth import smooth
from sparsedepth.streams.axis import Axis
from sparsedepth.streams.belief import FLOAT, Belief, Change, Updater
from sparsedepth.streams.frames import Frame
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.streams.young import PairSmoother
from sparsedepth.vocabulary import Floats, Origin, Restoration


class Reporter:
    """Turns a belief into the result of a frame; with a filling, as `denoise` does it."""

    def __init__(
        self, sensor: Sensor, axis: Axis, updater: Updater, filling: Filling | None, settings: StreamSettings
    ) -> None:
        self._sensor, self._axis, self._updater = sensor, axis, updater
        self._filling, self._settings = filling, settings
        self._smoother = PairSmoother.of(sensor.correlation, settings)

    def report(self, frame: Frame, belief: Belief, value: Floats, change: Change, alone: np.ndarray) -> Restoration:
        """Return depth, variance and origin of all pixels.

        Parameters
        ----------
        frame
            The frame as it came.
        belief
            State after the frame.
        value
            Its measurements on the axis, flat.
        change
            Result of the update.
        alone
            Numbers of the pixels that jumped alone.
        """
        mean, (variance, more) = belief.mean.copy(), self._updater.reported(belief, change)
        more[alone] += FLOAT(self._settings.outlier_risk) * np.square(belief.candidate[alone])
        self._smooth_young(frame, mean, variance, belief, change)
        places = self._axis.places(mean)
        variance += more
        variance += self._axis.pattern[places]
        np.maximum(variance, self._axis.floor[places], out=variance)
        with np.errstate(invalid="ignore", divide="ignore"):
            depth = self._axis.depth(mean)
            variance /= np.square(self._axis.slope(depth))
        variance[depth != depth] = np.inf
        origin = self._origin(value, mean, belief.count, alone)
        return self._finished(frame, depth, variance, origin)

    def _smooth_young(self, frame: Frame, mean: Floats, variance: Floats, belief: Belief, change: Change) -> None:
        """Smooth young pixels in place."""
        with np.errstate(invalid="ignore"):
            young = (variance > FLOAT(self._settings.young_ratio * self._smoother.left) * change.noise) & (
                belief.count > 0
            )
        if not young.any():
            return
        if self._filling is not None:
            self._smooth_as_denoise(frame.values.shape, mean, variance, change.noise, np.flatnonzero(young))
            return
        shape = frame.values.shape
        seen = np.where(belief.count > 0, mean, FLOAT(np.nan))
        values, ratio = self._smoother.smooth(seen.reshape(shape), variance.reshape(shape))
        np.copyto(mean, values.ravel(), where=young)
        np.multiply(variance, ratio.ravel(), out=variance, where=young)

    def _smooth_as_denoise(
        self, shape: tuple[int, ...], mean: Floats, variance: Floats, noise: Floats, young: np.ndarray
    ) -> None:
        """Smooth the whole view as `denoise` does, under the noise that is left, where a pixel is young."""
        level = float(np.sqrt(np.median(variance[young] / noise[young])))
        young = young[variance[young] > level**2 / 2 * noise[young]]  # others are more certain than the filter assumes
        with np.errstate(invalid="ignore", divide="ignore"):
            depth = self._axis.depth(mean).reshape(shape).astype(float)
            left_over = self._after_frames(depth, level)
            value, left = smooth(depth, left_over)
            ratio = (left / np.square(left_over.std(np.where(np.isfinite(depth), depth, 1.0)))).ravel()[young]
        mean[young] = self._axis.count(value.ravel()[young]).astype(FLOAT)
        variance[young] = np.minimum(variance[young], ratio * level**2 * noise[young])

    def _after_frames(self, depth: Floats, level: float) -> Sensor:
        """Return the sensor with a fraction of its standard deviation: what the mean of frames leaves."""
        knots = np.geomspace(0.5 * np.nanmin(depth), 2 * np.nanmax(depth), 64)
        law = TableLaw(tuple(knots), tuple(level * self._sensor.std(knots)))
        return replace(self._sensor, noise=law, step=PowerLaw())

    def _origin(self, value: Floats, mean: Floats, count: Floats, alone: np.ndarray) -> np.ndarray:
        origin = np.full(len(value), Origin.SMOOTHED, np.uint8)
        origin[value == mean] = Origin.MEASURED
        origin[alone] = Origin.CORRECTED
        missing = value != value
        origin[missing] = np.where(count[missing] > 0, Origin.REMEMBERED, Origin.FILLED)
        origin[missing & (mean != mean)] = Origin.REFUSED
        return origin

    def _finished(self, frame: Frame, depth: Floats, variance: Floats, origin: np.ndarray) -> Restoration:
        shape = frame.values.shape
        parts: list[Any] = [each.reshape(shape) for each in (depth, variance, origin)]
        result = Restoration(*parts)
        if self._filling is not None:
            self._filling.resolved(self._sensor.domain == "1/z").fill(result, "depth", frame.guide)
        return result if frame.image is None else result.described_by(frame.image)

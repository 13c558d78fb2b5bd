"""The belief of a stream: mean, variance and age of each pixel, and its update by a frame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sparsedepth.streams.settings import StreamSettings
from sparsedepth.vocabulary import Floats

FLOAT = np.float32
NOTHING = FLOAT(np.nan)


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

    def part(self, where: slice) -> Belief:
        """Return a view of some pixels."""
        return Belief(*(each[where] for each in self.arrays()))

    def forget(self, where: slice | np.ndarray) -> None:
        """Make pixels unknown."""
        for each, value in zip(self.arrays(), (np.nan, np.inf, 1, 0, 0, np.nan, 0, 0), strict=True):
            each[where] = value

    def renew(self, where: np.ndarray, value: Floats, variance: Floats) -> None:
        """Start pixels anew with one measurement."""
        for each, first in zip(self.arrays(), (value, variance, 1, 0, 0, np.nan, 1, 0), strict=True):
            each[where] = first


@dataclass(frozen=True, eq=False)
class Change:
    """What an update found, in flat arrays of all pixels."""

    jumped: np.ndarray
    """Measured beyond the gate for the first time: the mean has not followed."""
    innovation: Floats
    """Measurement minus the mean before the update; NaN where there is none."""
    noise: Floats
    """Variance of the measurement, the local noise level included."""


class Updater:
    """Updates a belief by frames of a sensor with a temporal correlation."""

    def __init__(self, settings: StreamSettings, temporal: float) -> None:
        memory = settings.run_memory
        self._settings = settings
        self._temporal = temporal
        self.run_std = np.sqrt(
            (1 - memory) / (1 + memory) * (1 + temporal * memory) / (1 - temporal * memory)
        )  # of an autoregression of first order

    def update(self, belief: Belief, value: Floats, noise: Floats, drift: Floats) -> Change:
        """Update a belief in place.

        Parameters
        ----------
        belief
            State of all pixels.
        value, noise
            Measurements on the axis, NaN = missing, and the variance of one measurement at every pixel, flat.

        drift
            Evidence of slow change around each pixel, flat; -1 to 1, 0 = none.

        Returns
        -------
        What jumped, and the innovations.
        """
        change = Change(np.empty(len(value), bool), np.empty_like(value), np.empty_like(value))
        with np.errstate(invalid="ignore", divide="ignore"):  # NaN = missing
            for part in _chunks(len(value), self._settings.chunk_px):
                found = self._update_part(belief.part(part), value[part], noise[part], drift[part])
                change.jumped[part], change.innovation[part], change.noise[part] = found
        return change

    def _update_part(
        self, belief: Belief, value: Floats, noise: Floats, drift: Floats
    ) -> tuple[Floats, Floats, Floats]:
        innovation = value - belief.mean
        level = self._follow_scale(belief, innovation, noise)
        spread = np.sqrt(belief.variance + level)
        score = innovation / spread
        inside = np.abs(score) <= self._settings.gate_sigmas
        self._fuse(belief, innovation, score, level, drift, inside)
        seen = value == value
        outside = np.flatnonzero(seen & ~inside & (belief.count > 0))
        jumped = self._follow_jumps(belief, innovation, level, outside, len(value))
        self._start_and_miss(belief, value, noise, seen)
        return jumped, innovation, level

    def _follow_scale(self, belief: Belief, innovation: Floats, noise: Floats) -> Floats:
        """Update the local noise level by the difference of two frames; return the variance of the measurement."""
        largest = FLOAT(self._settings.largest_scale)
        ratio = np.square(innovation - belief.residual)
        ratio /= FLOAT(2 * (1 - self._temporal)) * noise
        np.minimum(ratio, largest, out=ratio)
        rate = np.maximum(1 / (belief.count + FLOAT(3)), FLOAT(self._settings.scale_rate))
        ratio -= belief.scale
        ratio *= rate
        np.add(belief.scale, ratio, out=belief.scale, where=ratio == ratio)
        return noise * np.maximum(belief.scale, FLOAT(1))

    def _fuse(
        self, belief: Belief, innovation: Floats, score: Floats, level: Floats, around: Floats, inside: np.ndarray
    ) -> None:
        """Fuse measurements within the gate: by precision, faster where the mean innovation shows slow change."""
        settings = self._settings
        run = np.clip(score, -settings.run_clip, settings.run_clip)
        run *= FLOAT(1 - settings.run_memory)
        run += FLOAT(settings.run_memory) * belief.run
        drift = np.abs(run) * FLOAT(1 / self.run_std) - FLOAT(settings.run_sigmas)
        np.clip(drift, 0, 1, out=drift)
        ahead = np.maximum(np.copysign(FLOAT(1), np.where(np.abs(around) > drift, around, run)) * innovation, 0)
        np.maximum(drift, np.abs(around), out=drift)
        prior = belief.variance + drift * np.square(ahead)
        np.maximum(prior, FLOAT(settings.drift_prior) * drift * level, out=prior)
        gain = np.maximum(prior / (prior + level), FLOAT(settings.least_gain))
        weight = np.minimum(FLOAT(settings.huber_sigmas) / np.maximum(np.abs(score), FLOAT(1e-6)), 1)
        moving = drift > 0
        weight[moving] = 1
        run -= FLOAT(settings.run_relief) * gain * run * moving
        mean = belief.mean + gain * weight * innovation
        variance = np.square(1 - gain) * prior + np.square(gain) * level
        np.copyto(belief.residual, innovation + belief.mean - mean, where=inside)
        for each, new in ((belief.mean, mean), (belief.variance, variance), (belief.run, run)):
            np.copyto(each, new, where=inside)
        np.copyto(belief.candidate, NOTHING, where=inside)
        np.add(belief.count, inside, out=belief.count)

    def _follow_jumps(
        self, belief: Belief, innovation: Floats, level: Floats, outside: np.ndarray, pixels: int
    ) -> np.ndarray:
        """Replace the mean where two successive measurements beyond the gate agree; keep the others as candidates."""
        jump, before, spread = innovation[outside], belief.candidate[outside], level[outside]
        again = np.abs(jump - before) <= FLOAT(self._settings.candidate_sigmas) * np.sqrt(2 * spread)
        there = outside[again]
        middle = belief.mean[there] + (jump + before)[again] / 2
        belief.renew(there, middle, spread[again] / 2)
        belief.count[there] = 2
        belief.residual[there] = (jump - before)[again] / 2
        jumped = np.zeros(pixels, bool)
        jumped[outside[~again]] = True
        belief.candidate[outside[~again]] = jump[~again]
        return jumped

    def _start_and_miss(self, belief: Belief, value: Floats, noise: Floats, seen: np.ndarray) -> None:
        """Start unknown pixels that were measured; let the memory of missing ones fade."""
        missing = np.flatnonzero(~seen)
        belief.variance[missing] += FLOAT(self._settings.memory_growth) * noise[missing]
        new = np.flatnonzero(seen & (belief.count == 0))
        belief.renew(new, value[new], noise[new])
        np.add(belief.missed, 1, out=belief.missed)
        belief.missed[seen] = 0
        belief.forget(missing[belief.missed[missing] > self._settings.memory_frames])

    def reported(self, belief: Belief, level: Floats, drift: Floats) -> tuple[Floats, Floats]:
        """Compute the variance of the means under correlated frames, and the squared error that slow change leaves."""
        rho, bound = FLOAT(self._temporal), FLOAT(self.run_std**2)
        with np.errstate(invalid="ignore"):
            ratio = np.minimum(belief.variance / level, 1)
            variance = belief.variance * ((1 + rho) / (1 - rho + 2 * rho * ratio))
            lag = np.maximum(np.square(belief.run) - bound * (1 - np.abs(drift)), 0) * (belief.variance + level)
        return variance, lag


def _chunks(pixels: int, size: int) -> Iterator[slice]:
    for start in range(0, pixels, size):
        yield slice(start, min(start + size, pixels))

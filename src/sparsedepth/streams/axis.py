"""The axis of a stream: depth in the domain where the noise of its sensor is stationary, with tables of variance."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sparsedepth.sensors import Sensor
from sparsedepth.sensors.record import Domain
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.vocabulary import Floats

ROUNDING_VARIANCE = 1 / 12
"""Variance of rounding over the squared step (textbook)."""


@dataclass(frozen=True, eq=False)
class Axis:
    """Depth on the axis of a stream, float32; one unit is about the depth of the scene.

    Parameters
    ----------
    domain
        Transform of depth.
    unit
        Depth that is one (1/z, z) or zero (log z).
    start, spacing
        First knot of the tables, and knots a unit.
    noise
        Variance of one measurement at the knots, without the fixed pattern.
    pattern
        Variance of the fixed pattern, and of the part of rounding that frames share.
    floor
        Least variance: the fixed pattern and rounding.
    """

    domain: Domain
    unit: float
    start: float
    spacing: float
    noise: Floats
    pattern: Floats
    floor: Floats

    @classmethod
    def of(cls, sensor: Sensor, depth: Floats, settings: StreamSettings) -> Axis:
        """Build the axis for the depths of a frame, NaN = missing, in the unit of the sensor."""
        known = depth[depth > 0]
        nearest, farthest, unit = (
            (float(known.min()), float(known.max()), float(np.median(known))) if known.size else (0.5, 2.0, 1.0)
        )
        reach, blank = settings.table_reach, np.zeros(settings.table_knots, np.float32)
        axis = cls(sensor.domain, unit, 0.0, 1.0, blank, blank, blank)
        ends = sorted(float(axis.count(np.array(end))) for end in (nearest / reach, farthest * reach))
        spacing = (settings.table_knots - 1) / (ends[1] - ends[0])
        return replace(axis, start=ends[0], spacing=spacing).under(sensor, settings)

    def under(self, sensor: Sensor, settings: StreamSettings) -> Axis:
        """Return the axis with the tables of a sensor."""
        z = self.depth(self.start + np.arange(len(self.noise)) / self.spacing)
        density, noise = np.square(self.slope(z)), np.square(sensor.noise(z))
        rounding = ROUNDING_VARIANCE * np.square(sensor.step(z))
        measured = np.maximum(noise + rounding, np.square(settings.least_std * z))
        fixed = sensor.pattern**2 * noise
        tables = ((density * each).astype(np.float32) for each in (measured, fixed + rounding / 4, fixed + rounding))
        return replace(self, **dict(zip(("noise", "pattern", "floor"), tables, strict=True)))

    def count(self, depth: Floats) -> Floats:
        """Convert depths to values of the axis; NaN stays NaN."""
        if self.domain == "1/z":
            return self.unit / depth
        return depth / self.unit if self.domain == "z" else np.log(depth / self.unit)

    def depth(self, value: Floats) -> Floats:
        """Convert values of the axis to depths."""
        if self.domain == "1/z":
            return self.unit / value
        return value * self.unit if self.domain == "z" else np.exp(value) * self.unit

    def slope(self, depth: Floats) -> Floats:
        """Compute the magnitude of the derivative of the axis by depth."""
        if self.domain == "1/z":
            return self.unit / np.square(depth)
        return np.full_like(depth, 1 / self.unit) if self.domain == "z" else 1 / depth

    def places(self, value: Floats) -> np.ndarray:
        """Return the numbers of the knots that are nearest to values; any number at NaN."""
        place = (value - np.float32(self.start)) * np.float32(self.spacing)
        np.nan_to_num(place, copy=False)
        return np.clip(place, 0, len(self.noise) - 1, out=place).astype(np.int32)

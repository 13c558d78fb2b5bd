"""Restore a map under the noise of its sensor, tile by tile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.sensors.floor import NoiseFloor
from sparsedepth.sensors.record import Sensor
from sparsedepth.sensors.settings import DEFAULT, SensorSettings
from sparsedepth.sensors.smooth import Smoothed, Smoother
from sparsedepth.tiling import RestoreTile, Tile, TiledMap, classify_origin
from sparsedepth.vocabulary import Floats, Origin

MARGIN_PX = 64
"""Margin of tiles, in pixels: farther ones change a smoothed pixel by less than 0.01 of its standard deviation."""

WIDER = 16.0
"""Ratio by which depths of a map may lie outside those of a sample of it."""


@dataclass(frozen=True, eq=False)
class SensorRestorer:
    """Smooths any tile of the map that it was fitted on; holes stay."""

    source: TiledMap
    smoother: Smoother
    correct: bool

    @classmethod
    def fit(
        cls, source: TiledMap, sensor: Sensor, *, correct: bool = True, settings: SensorSettings = DEFAULT
    ) -> SensorRestorer:
        """Fit the smoothing on a sample of a map.

        Parameters
        ----------
        source
            The map, in the unit of the sensor.
        sensor
            Noise, correlation and quantisation.
        correct
            Whether measured pixels are smoothed; else they keep their values, with the variance of one measurement.
        settings
            Scales of the filter.

        Returns
        -------
        A function of a tile and a number of threads; the result is in units of the tile.
        """
        sample = source.in_unit_of_map(source.sample)
        wider = WIDER if source.is_tiled else 1.0
        return cls(source, Smoother.fit(sample, sensor, settings, wider=wider), correct)

    def __call__(self, tile: Tile, threads: int) -> tuple[Floats, Floats, NDArray[np.integer[Any]]]:
        """Return depth, variance and origin of a tile; its holes are refused."""
        depth = self.source.in_unit_of_map(tile)
        found = self.smoother.of_sample if tile is self.source.sample else self.smoother(depth)
        if not self.correct:
            found = self._unchanged(depth, found)
        value = (found.value - self.source.centre) / self.source.scale
        moved = tile.valid & (found.value != depth)
        origin = classify_origin(tile.valid, found.outlier, ~tile.valid, moved)
        return value, found.variance / self.source.scale**2, origin

    def _unchanged(self, depth: Floats, found: Smoothed) -> Smoothed:
        """Return a frame as measured; where it is far from the smoothed one, that distance is part of the variance."""
        sensor, known = self.smoother.sensor, np.isfinite(depth)
        noise = sensor.std(np.where(known, depth, 1.0)) ** 2
        away = np.where(found.outlier, (depth - found.value) ** 2, 0)
        return Smoothed(depth, np.where(known, noise + away, np.inf), np.zeros_like(known))


@dataclass(frozen=True, eq=False)
class Floored:
    """Restores tiles of a map of unknown origin: no pixel gets less than its least standard deviation."""

    restore: RestoreTile
    source: TiledMap
    floor: NoiseFloor

    def __call__(self, tile: Tile, threads: int) -> tuple[Floats, Floats, NDArray[np.integer[Any]]]:
        """Return depth, variance and origin of a tile."""
        value, variance, origin = self.restore(tile, threads)
        kept = (origin == Origin.MEASURED) | (origin == Origin.CORRECTED)
        raised = self.floor.raised(variance, value, tile.valid, kept, self.source.scale, self.source.centre)
        return value, raised, origin

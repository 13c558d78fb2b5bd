"""The sensor of a map, as a user names it: a record, a preset, a file, or one of two words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sparsedepth.sensors.blind import diagnose
from sparsedepth.sensors.floor import NoiseFloor
from sparsedepth.sensors.presets import names
from sparsedepth.sensors.record import Sensor
from sparsedepth.sensors.settings import DEFAULT, SensorSettings
from sparsedepth.tiling import TiledMap, as_float_map
from sparsedepth.vocabulary import InputError, Kind, Unit, check_unit

AUTO, CLEAN = "auto", "clean"
"""Words for a sensor that the map shows, and for a map without dense noise."""

SensorChoice = Sensor | str | None
"""A record; the name of a preset; a JSON file; "auto" or None = estimated from the map; "clean" = no dense noise."""


def sensor_from(choice: SensorChoice) -> Sensor | str:
    """Return the record that a user means, or one of the words "auto" and "clean".

    Parameters
    ----------
    choice
        A `Sensor` or its JSON text, the name of a preset, a file that `Sensor.save` wrote, "auto", "clean" or None =
        "auto".

    Returns
    -------
    A record, "auto" or "clean".

    Raises
    ------
    InputError
        If there is no such preset or file.

    Examples
    --------
    >>> sensor_from(None), sensor_from("kinect_v1").unit
    ('auto', 'mm')
    """
    if choice is None or choice in (AUTO, CLEAN):
        return AUTO if choice is None else choice
    if isinstance(choice, Sensor):
        return choice
    if not isinstance(choice, str):
        raise InputError(f"the sensor is a {type(choice).__name__}; give a Sensor, the name of a preset, or a file")
    if choice in names():
        return Sensor.preset(choice)
    if choice.lstrip().startswith("{"):
        return Sensor.from_json(choice)
    if choice.endswith(".json") or Path(choice).exists():
        return Sensor.load(choice)
    raise InputError(
        f"there is no sensor {choice!r}; choose one of {', '.join(names())}, a file of `sparsedepth calibrate` "
        "(.json), 'auto', or 'clean'"
    )


def in_unit_of_map(sensor: Sensor, unit: Unit, kind: Kind = "depth") -> Sensor:
    """Convert a record to the unit of a map.

    Parameters
    ----------
    sensor
        A record; one without a unit is returned as it is.
    unit
        Unit of the map; "" = unknown.
    kind
        Kind of the map; a sensor describes depths.

    Returns
    -------
    The record, with lengths in the unit of the map.

    Raises
    ------
    InputError
        If the map has no unit but the sensor does, or if the map holds no depths.

    Examples
    --------
    >>> float(in_unit_of_map(Sensor.preset("kinect_v1"), "m").farthest)
    4.0
    """
    if kind != "depth":
        raise InputError(f"the map holds {kind}, but a sensor describes depths; convert the map, or drop the sensor")
    if sensor.unit == "":
        return sensor
    if unit == "":
        raise InputError(
            f"the sensor is in {sensor.unit} but the map has no unit; give unit='m' or unit='mm', or a DepthImage"
        )
    return sensor.to(unit)


@dataclass(frozen=True, eq=False)
class FoundNoise:
    """The noise of a map: a sensor to smooth under, or the least standard deviation of its pixels, or neither."""

    sensor: Sensor | None = None
    floor: NoiseFloor | None = None


@dataclass(frozen=True)
class NoiseChoice:
    """The sensor that a user names, and the meaning of the numbers of a map."""

    sensor: Sensor | str
    unit: Unit = ""
    kind: Kind = "depth"
    numbers_per_unit: float = 1.0
    """Of maps that hold stored numbers."""

    def __post_init__(self) -> None:
        check_unit(self.unit)

    def for_numbers(self, unit: Unit, kind: Kind, numbers_per_unit: float = 1.0) -> NoiseChoice:
        """Return the choice for a map whose numbers have a meaning; "" = the unit of all."""
        if self.unit and unit and self.unit != unit:
            raise InputError(f"the map is in {unit}, but unit={self.unit!r} was given; drop unit=")
        return replace(self, unit=unit or self.unit, kind=kind, numbers_per_unit=numbers_per_unit)

    def as_texts(self) -> dict[str, str]:
        """Return the choice as texts that another process reads."""
        return {"sensor": self.sensor.to_json() if isinstance(self.sensor, Sensor) else self.sensor, "unit": self.unit}

    @classmethod
    def from_texts(cls, sensor: str, unit: Unit) -> NoiseChoice:
        """Read the texts of `as_texts`."""
        return cls(sensor if sensor in (AUTO, CLEAN) else Sensor.from_json(sensor), unit)

    def with_variance(self, source: TiledMap) -> TiledMap:
        """Return a map with the variance of its sensor for each pixel, unless it has one."""
        found = self.found_in(source, np.inf)
        if found.sensor is None:
            return source
        depth = as_float_map(source.source, source.invalid)
        known = np.isfinite(depth)
        variance = np.where(known, found.sensor.std(np.where(known, depth, 1.0)) ** 2, np.inf)
        return TiledMap.from_array(depth, variance, source.patch_shape, (), source.settings)

    def found_in(self, source: TiledMap, white_limit: float, settings: SensorSettings = DEFAULT) -> FoundNoise:
        """Find the noise of a map.

        Parameters
        ----------
        source
            The map. One with a variance for each pixel needs nothing else.
        white_limit
            Standard deviation of white noise, in those of the map, from which sparse codes smooth it.
        settings
            Thresholds.

        Returns
        -------
        The sensor in units of the map, if it is to be smoothed under one.
        """
        if isinstance(self.sensor, Sensor):
            if source.sensor_variance is not None:
                raise InputError("a sensor and a variance for each pixel say the same twice; give one of them")
            sensor = in_unit_of_map(self.sensor, self.unit, self.kind)
            return FoundNoise(sensor.scaled(self.numbers_per_unit))
        if self.sensor == CLEAN or source.sensor_variance is not None:
            return FoundNoise()
        sample = source.in_unit_of_map(source.sample)
        found = diagnose(sample, settings) if self.kind == "depth" else None
        if found is None or not found.noisy:
            if found is None or not found.visible:
                return FoundNoise(floor=NoiseFloor.fit(sample, settings))
            return FoundNoise(floor=NoiseFloor.fit(sample, settings, found.law, found.sharpness))
        white = found.white >= settings.white_ratio
        strong = found.white * float(found.sensor.std(source.centre)) >= white_limit * source.scale
        return FoundNoise(floor=NoiseFloor.fit(sample, settings)) if white and strong else FoundNoise(found.sensor)

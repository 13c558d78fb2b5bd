"""The sensor of a map, as a user names it: a record, a preset, a file, or one of two words."""

from __future__ import annotations

from pathlib import Path

from sparsedepth.sensors.presets import names
from sparsedepth.sensors.record import Sensor
from sparsedepth.vocabulary import InputError, Kind, Unit

AUTO, CLEAN = "auto", "clean"
"""Words for a sensor that the map shows, and for a map without dense noise."""

SensorChoice = Sensor | str | None
"""A record; the name of a preset; a JSON file; "auto" or None = estimated from the map; "clean" = no dense noise."""


def sensor_from(choice: SensorChoice) -> Sensor | str:
    """Return the record that a user means, or one of the words "auto" and "clean".

    Parameters
    ----------
    choice
        A `Sensor`, the name of a preset, a file that `Sensor.save` wrote, "auto", "clean" or None = "auto".

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

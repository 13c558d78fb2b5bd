"""Depth sensors: a record of their noise, its estimate from one or more frames, and smoothing under it.

``blind.estimate(depth)`` returns the `Sensor` of one frame, or None for a map without dense noise.
``smooth.smooth(depth, sensor)`` returns values and variances, both in the unit of the map.
``simulate.simulate(depth, sensor, rng)`` draws frames as a sensor delivers them.
"""

from sparsedepth.sensors.record import Correlation, PowerLaw, Sensor, TableLaw
from sparsedepth.sensors.settings import SensorSettings

__all__ = ["Correlation", "PowerLaw", "Sensor", "SensorSettings", "TableLaw"]

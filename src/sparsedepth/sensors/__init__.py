"""Depth sensors: a record of their noise, its estimate from one or more frames, and smoothing under it.

The functions that other rooms call:

* ``blind.estimate(depth) -> Sensor | None``: the sensor of one frame; None = a map without dense noise, which must come
  back unchanged. ``blind.diagnose(depth)`` returns the evidence as well.
* ``floor.least_std(depth) -> array``: the least standard deviation a map of unknown origin may have, for those maps.
* ``smooth.smooth(depth, sensor, outlier_mask=None) -> (value, variance)``: the frame, smoothed as far as the noise of
  the sensor allows. Both are in the unit of the map; they are NaN and inf where the frame is NaN. Outliers that it
  finds follow their surroundings; ``outliers.find_outliers`` finds them alone.
* ``estimate.estimate(frames, unit=..., poses=..., intrinsics=...) -> Sensor``: calibration from at least five frames.
* ``calibrate(frames, ...) -> Calibration``: that record with its evidence: its errors, and what was not measured.
* ``simulate.simulate(depth, sensor, rng, frames) -> array``: frames as a sensor delivers them.
* ``Sensor.preset(name)``, ``Sensor.load(path)``, ``sensor.save(path)``, ``sensor.to(unit)``, ``sensor.std(depth)``.

A sensor has the unit of the map: convert one of them first (``sensor.to("m")``). Depths are positive; NaN = missing.
"""

from sparsedepth.sensors.evidence import Calibration, calibrate
from sparsedepth.sensors.laws import Correlation, PowerLaw, TableLaw
from sparsedepth.sensors.record import Sensor
from sparsedepth.sensors.settings import SensorSettings

__all__ = ["Calibration", "Correlation", "PowerLaw", "Sensor", "SensorSettings", "TableLaw", "calibrate"]

"""The record of a depth sensor: noise against depth, quantisation, correlation, outliers and range."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from sparsedepth.vocabulary import DepthMap, Floats, InputError, Unit

Domain = Literal["z", "log z", "1/z"]
"""Transform of depth in which the noise of a sensor is stationary."""

OutlierKind = Literal["none", "impulse", "flying", "mixed"]
"""Outliers anywhere in the range (impulse), between two surfaces (flying), or both."""


@dataclass(frozen=True)
class PowerLaw:
    """A length against depth: ``constant + factor * depth ** exponent``.

    Examples
    --------
    >>> float(PowerLaw(constant=0.5, factor=1.5e-6, exponent=2.0)(1000.0))
    2.0
    """

    constant: float = 0.0
    factor: float = 0.0
    exponent: float = 2.0

    def __post_init__(self) -> None:
        values = (self.constant, self.factor, self.exponent)
        if not np.isfinite(values).all() or min(self.constant, self.factor) < 0:
            raise InputError(f"the law has the numbers {values}; give finite ones, constant and factor not negative")

    def __call__(self, depth: Floats | float) -> Floats:
        """Evaluate the law."""
        return self.constant + self.factor * np.power(np.abs(depth), self.exponent)

    def scaled(self, ratio: float) -> PowerLaw:
        """Convert the law to a unit that is ``ratio`` times smaller."""
        return PowerLaw(self.constant * ratio, self.factor * ratio ** (1 - self.exponent), self.exponent)


@dataclass(frozen=True)
class TableLaw:
    """A length against depth as a table: linear in the logarithms between knots, constant beyond them.

    Examples
    --------
    >>> round(float(TableLaw(depths=(100.0, 400.0), lengths=(1.0, 4.0))(200.0)), 9)
    2.0
    """

    depths: tuple[float, ...]
    lengths: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "depths", tuple(float(depth) for depth in self.depths))
        object.__setattr__(self, "lengths", tuple(float(length) for length in self.lengths))
        if len(self.depths) != len(self.lengths) or not self.depths:
            raise InputError(f"the table has {len(self.depths)} depths and {len(self.lengths)} lengths; give as many")
        if not (np.isfinite(self.depths).all() and np.isfinite(self.lengths).all()):
            raise InputError("the table holds NaN or infinities; give finite numbers")
        if min(self.depths) <= 0 or min(self.lengths) <= 0 or (np.diff(self.depths) <= 0).any():
            raise InputError("the table must have rising positive depths and positive lengths; sort and clean it")

    def __call__(self, depth: Floats | float) -> Floats:
        """Evaluate the table."""
        smallest = self.depths[0] * 1e-6
        logarithm = np.log(np.maximum(np.abs(depth), smallest))
        return np.exp(np.interp(logarithm, np.log(self.depths), np.log(self.lengths)))

    def scaled(self, ratio: float) -> TableLaw:
        """Convert the table to a unit that is ``ratio`` times smaller."""
        return TableLaw(tuple(depth * ratio for depth in self.depths), tuple(length * ratio for length in self.lengths))


Law = PowerLaw | TableLaw
"""A length against depth, in the unit of the depths."""


@dataclass(frozen=True)
class Correlation:
    """Spatial correlation: ``(1 - white) * exp(-r ** exponent)``, r the distance in correlation lengths.

    Parameters
    ----------
    along_rows, along_columns
        Correlation lengths in pixels, in the directions of x and y; 0 = white noise.
    exponent
        1 = exponential, 2 = Gaussian.
    white
        Fraction of the variance without any correlation.
    """

    along_rows: float = 0.0
    along_columns: float = 0.0
    exponent: float = 1.0
    white: float = 0.0

    def __post_init__(self) -> None:
        lengths = (self.along_rows, self.along_columns)
        if not np.isfinite(lengths).all() or min(lengths) < 0:
            raise InputError(f"the correlation lengths are {lengths}; give finite pixels, 0 = white noise")
        if not 0 < self.exponent <= 2 or not 0 <= self.white <= 1:
            raise InputError(
                f"the correlation has exponent {self.exponent} and white fraction {self.white}; "
                "give an exponent in (0, 2] and a fraction in [0, 1]"
            )

    def __call__(self, rows: Floats | float, columns: Floats | float) -> Floats:
        """Evaluate the correlation of two pixels so many rows and columns apart."""
        distance = np.hypot(
            np.asarray(rows, float) / max(self.along_columns, 1e-6),
            np.asarray(columns, float) / max(self.along_rows, 1e-6),
        )
        return np.where(distance == 0, 1.0, (1 - self.white) * np.exp(-np.minimum(distance**self.exponent, 700.0)))

    def scaled(self, ratio: float) -> Correlation:
        """Convert the lengths to pixels that are ``ratio`` times smaller."""
        return Correlation(self.along_rows * ratio, self.along_columns * ratio, self.exponent, self.white)


@dataclass(frozen=True)
class Sensor:
    """A depth sensor: what is known of its noise, with the source of each number.

    Parameters
    ----------
    unit
        Unit of depths and laws; "" = that of the map.
    noise
        Standard deviation of the temporal noise against depth, without quantisation outliers.
    step
        Distance between adjacent codes against depth; zero = continuous.
    correlation
        Spatial correlation of the noise.
    temporal
        Correlation of the noise of consecutive frames.
    pattern
        Standard deviation of the fixed pattern, in standard deviations of the noise; averaging frames keeps it.
    outliers, outlier_kind
        Fraction of the pixels that the law does not describe, and where they lie.
    domain
        Transform of depth in which the noise is stationary.
    inflation
        Variance after smoothing over the predicted one, as measured on frames of the sensor.
    nearest, farthest
        Range limits.
    sources
        Source of each number by field.

    Examples
    --------
    >>> sensor = Sensor(unit="mm", noise=PowerLaw(factor=2e-6))
    >>> float(sensor.std(1000.0)), float(sensor.to("m").std(1.0))
    (2.0, 0.002)
    """

    name: str = ""
    unit: Unit = ""
    noise: Law = PowerLaw()
    step: Law = PowerLaw()
    correlation: Correlation = Correlation()
    temporal: float = 0.0
    pattern: float = 0.0
    outliers: float = 0.0
    outlier_kind: OutlierKind = "none"
    domain: Domain = "z"
    inflation: float = 1.0
    nearest: float = 0.0
    farthest: float = float("inf")
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.domain not in get_args(Domain) or self.outlier_kind not in get_args(OutlierKind):
            raise InputError(
                f"the domain is {self.domain!r} and the outliers are {self.outlier_kind!r}; use one of "
                f"{get_args(Domain)} and of {get_args(OutlierKind)}"
            )
        if self.unit not in get_args(Unit):
            raise InputError(f"the unit is {self.unit!r}; use one of {get_args(Unit)}")
        if not (0 <= self.outliers <= 1 and -1 < self.temporal < 1 and 0 <= self.pattern < np.inf):
            raise InputError(
                f"outliers {self.outliers}, temporal correlation {self.temporal} and pattern {self.pattern} must lie "
                "in [0, 1], (-1, 1) and [0, inf)"
            )
        if not 0 < self.inflation < np.inf:
            raise InputError(f"the inflation of the variance is {self.inflation}; give a positive ratio, 1 = none")
        if not 0 <= self.nearest < self.farthest:
            raise InputError(f"the range is {self.nearest} to {self.farthest}; give rising depths, not negative")

    def std(self, depth: Floats | float) -> Floats:
        """Compute the standard deviation of one measurement, quantisation and fixed pattern included.

        Parameters
        ----------
        depth
            Depths in the unit of the sensor; any shape; NaN stays NaN.

        Returns
        -------
        Standard deviations in the same unit, of the same shape.
        """
        return np.hypot(self.noise(depth) * np.hypot(1.0, self.pattern), self.step(depth) / np.sqrt(12.0))

    def to(self, unit: Unit) -> Sensor:
        """Convert to metres or millimetres.

        Parameters
        ----------
        unit
            "m" or "mm".

        Returns
        -------
        The sensor with all lengths converted.
        """
        if unit == self.unit:
            return self
        ratios = {("m", "mm"): 1000.0, ("mm", "m"): 0.001}
        if (self.unit, unit) not in ratios:
            raise InputError(f"a sensor in {self.unit or 'no unit'!r} cannot become {unit!r}; only m and mm convert")
        return replace(self.scaled(ratios[self.unit, unit]), unit=unit)

    def scaled(self, ratio: float) -> Sensor:
        """Multiply all lengths by ``ratio``; the unit is left as it is."""
        return replace(
            self,
            noise=self.noise.scaled(ratio),
            step=self.step.scaled(ratio),
            nearest=self.nearest * ratio,
            farthest=self.farthest * ratio,
        )

    def to_json(self) -> str:
        """Write the record as JSON."""
        record = asdict(self) | {"noise": _law_to_json(self.noise), "step": _law_to_json(self.step)}
        record["sources"] = dict(self.sources)
        record["farthest"] = None if np.isinf(self.farthest) else self.farthest
        return json.dumps({"format": "sparsedepth sensor", "version": 1} | record, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Sensor:
        """Read a record from JSON.

        Examples
        --------
        >>> Sensor.from_json(Sensor.preset("kinect_v1").to_json()) == Sensor.preset("kinect_v1")
        True
        """
        try:
            record = json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError(f"the sensor is not JSON ({error}); write one with Sensor.save") from None
        if not isinstance(record, dict) or record.pop("format", None) != "sparsedepth sensor":
            raise InputError("the JSON is no sensor; write one with Sensor.save")
        if record.pop("version", None) != 1:
            raise InputError("the sensor has another version than 1; write it anew with Sensor.save")
        return _from_fields(record)

    def save(self, path: str | Path) -> None:
        """Write the record to a JSON file."""
        Path(path).write_text(self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Sensor:
        """Read a record from a JSON file."""
        try:
            text = Path(path).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the sensor {path} cannot be read ({error}); give a file of Sensor.save") from None
        return cls.from_json(text)

    @classmethod
    def estimate(cls, frames: Sequence[DepthMap] | Floats, **options: Any) -> Sensor:
        """Estimate a record from at least five frames; `sparsedepth.sensors.estimate.estimate` lists the options."""
        from sparsedepth.sensors.estimate import estimate

        return estimate(frames, **options)

    @classmethod
    def preset(cls, name: str) -> Sensor:
        """Return a known sensor; its ``sources`` say where each number comes from.

        Parameters
        ----------
        name
            One of `presets.names()`, for example "kinect_v1".

        Examples
        --------
        >>> Sensor.preset("realsense_d435").domain
        '1/z'
        """
        from sparsedepth.sensors.presets import PRESETS

        if name not in PRESETS:
            raise InputError(f"there is no sensor {name!r}; choose one of {', '.join(sorted(PRESETS))}")
        return PRESETS[name]


def _law_to_json(law: Law) -> dict[str, Any]:
    return {"law": "power" if isinstance(law, PowerLaw) else "table"} | asdict(law)


def _law_from_json(record: dict[str, Any]) -> Law:
    kinds: dict[str, type[Law]] = {"power": PowerLaw, "table": TableLaw}
    numbers = dict(record)
    return kinds[numbers.pop("law")](**numbers)


def _from_fields(record: dict[str, Any]) -> Sensor:
    try:
        fields: dict[str, Any] = record | {name: _law_from_json(record[name]) for name in ("noise", "step")}
        fields["correlation"] = Correlation(**record["correlation"])
        fields["farthest"] = np.inf if record["farthest"] is None else record["farthest"]
        return Sensor(**fields)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the sensor lacks or misspells a field ({error}); write one with Sensor.save") from None

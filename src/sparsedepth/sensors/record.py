"""The record of a depth sensor: noise against depth, quantisation, correlation, outliers and range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from sparsedepth.atomic_files import write_atomically
from sparsedepth.sensors.json_text import fields_of_text, text_of_fields
from sparsedepth.sensors.laws import Correlation, Law, PowerLaw
from sparsedepth.vocabulary import DepthMap, Floats, InputError, Shown, Unit

Domain = Literal["z", "log z", "1/z"]
"""Transform of depth in which the noise of a sensor is stationary."""

OutlierKind = Literal["none", "impulse", "flying", "mixed"]
"""Outliers anywhere in the range (impulse), between two surfaces (flying), or both."""


@dataclass(frozen=True)
class Sensor(Shown):
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
    noise: Law = field(default_factory=PowerLaw)
    step: Law = field(default_factory=PowerLaw)
    correlation: Correlation = field(default_factory=Correlation)
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

    def __repr__(self) -> str:
        at = {"m": 1.0, "mm": 1000.0}.get(self.unit)
        sure = "" if at is None else f", std {float(self.std(at)):.3g} {self.unit} at {at:g} {self.unit}"
        return f"Sensor({self.name or 'unnamed'}{sure})"

    def std(self, depth: Floats | float) -> Floats:
        """Compute the standard deviation of one measurement, quantisation and fixed pattern included.

        Parameters
        ----------
        depth
            Depths in the unit of the sensor; any shape; NaN stays NaN.

        Returns
        -------
        Standard deviations in the same unit, of the same shape.

        Examples
        --------
        >>> float(Sensor(noise=PowerLaw(constant=3.0), pattern=np.sqrt(15.0)).std(500.0))
        12.0
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

        Raises
        ------
        InputError
            If either unit is neither "m" nor "mm".

        Examples
        --------
        >>> Sensor.preset("kinect_v1").to("m").farthest
        4.0
        """
        if unit == self.unit:
            return self
        ratios = {("m", "mm"): 1000.0, ("mm", "m"): 0.001}
        if (self.unit, unit) not in ratios:
            raise InputError(f"a sensor in {self.unit or 'no unit'!r} cannot become {unit!r}; only m and mm convert")
        return replace(self.scaled(ratios[self.unit, unit]), unit=unit)

    def scaled(self, ratio: float) -> Sensor:
        """Multiply all lengths by a ratio.

        Parameters
        ----------
        ratio
            New lengths over old ones, positive.

        Returns
        -------
        The sensor for depths multiplied by the ratio; the name of its unit is left as it is.

        Examples
        --------
        >>> float(Sensor(noise=PowerLaw(factor=2e-6)).scaled(2.0).std(2000.0))
        4.0
        """
        return replace(
            self,
            noise=self.noise.scaled(ratio),
            step=self.step.scaled(ratio),
            nearest=self.nearest * ratio,
            farthest=self.farthest * ratio,
        )

    def to_json(self) -> str:
        """Write the record as JSON.

        Returns
        -------
        Text that `from_json` reads.

        Examples
        --------
        >>> '"unit": "mm"' in Sensor(unit="mm").to_json()
        True
        """
        return text_of_fields({each.name: getattr(self, each.name) for each in fields(self)})

    @classmethod
    def from_json(cls, text: str) -> Sensor:
        """Read a record from JSON.

        Parameters
        ----------
        text
            As `to_json` writes it.

        Returns
        -------
        The record.

        Raises
        ------
        InputError
            If the text is no record of a sensor.

        Examples
        --------
        >>> Sensor.from_json(Sensor.preset("kinect_v1").to_json()) == Sensor.preset("kinect_v1")
        True
        """
        try:
            return cls(**fields_of_text(text))
        except TypeError as error:
            raise InputError(f"the sensor misspells a field ({error}); write one with Sensor.save") from None

    def save(self, path: str | Path) -> None:
        """Write the record to a JSON file.

        Parameters
        ----------
        path
            File to write; an existing one is replaced. It appears whole or not at all.

        Examples
        --------
        >>> Sensor.preset("azure_kinect").save("azure.json")  # doctest: +SKIP
        """
        write_atomically(path, (self.to_json() + "\n").encode())

    @classmethod
    def load(cls, path: str | Path) -> Sensor:
        """Read a record from a JSON file.

        Parameters
        ----------
        path
            File that `save` wrote.

        Returns
        -------
        The record.

        Raises
        ------
        InputError
            If the file cannot be read or holds no record of a sensor.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     Sensor(name="mine").save(f"{folder}/mine.json")
        ...     Sensor.load(f"{folder}/mine.json").name
        'mine'
        """
        if not Path(path).exists():
            raise InputError(f"there is no file {path}; give a file of Sensor.save, or of `sparsedepth calibrate`")
        try:
            text = Path(path).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the sensor {path} cannot be read ({error}); give a file of Sensor.save") from None
        return cls.from_json(text)

    @classmethod
    def estimate(cls, frames: Sequence[DepthMap] | Floats, **options: Any) -> Sensor:
        """Estimate a record from at least five frames of one scene.

        Parameters
        ----------
        frames
            Maps (height, width), positive, in one unit; NaN = missing.
        **options
            ``unit``, ``name``, ``poses`` and ``intrinsics``, as `sparsedepth.sensors.estimate.estimate` takes them.

        Returns
        -------
        The record, in the unit of the maps.

        Raises
        ------
        InputError
            If there are fewer than five distinct frames, or if they cannot show one static scene.

        Examples
        --------
        >>> wall = 1000.0 + np.random.default_rng(0).normal(0.0, 5.0, (6, 64, 96))
        >>> round(float(Sensor.estimate(wall, unit="mm").std(1000.0)))
        5
        """
        from sparsedepth.sensors.estimate import estimate

        return estimate(frames, **options)

    @classmethod
    def preset(cls, name: str) -> Sensor:
        """Return a known sensor; its ``sources`` say where each number comes from.

        Parameters
        ----------
        name
            One of `sparsedepth.sensors.presets.names()`, for example "kinect_v1".

        Returns
        -------
        The record, in mm.

        Raises
        ------
        InputError
            If there is no preset of this name.

        Examples
        --------
        >>> Sensor.preset("realsense_d435").domain
        '1/z'
        """
        from sparsedepth.sensors.presets import PRESETS

        if name not in PRESETS:
            raise InputError(f"there is no sensor {name!r}; choose one of {', '.join(sorted(PRESETS))}")
        return PRESETS[name]

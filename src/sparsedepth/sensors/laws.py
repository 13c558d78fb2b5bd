"""Laws of a sensor: lengths against depth, and correlation against distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsedepth.vocabulary import Floats, InputError


@dataclass(frozen=True)
class PowerLaw:
    """A length against depth: ``constant + factor * depth ** exponent``.

    Parameters
    ----------
    constant, factor, exponent
        Numbers of the law; the constant is a length in the unit of the depths.

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

    Parameters
    ----------
    depths, lengths
        Knots: rising positive depths, and a positive length at each, in one unit.

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

    @property
    def smallest(self) -> float:
        """Depth that smaller ones count as."""
        return self.depths[0] * 1e-6

    def __call__(self, depth: Floats | float) -> Floats:
        """Evaluate the table."""
        logarithm = np.log(np.maximum(np.abs(depth), self.smallest))
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

    Examples
    --------
    >>> Correlation(along_rows=2.0, along_columns=2.0)(0, [0, 2]).round(3)
    array([1.   , 0.368])
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
        """Evaluate the correlation of two pixels by their distance in rows and columns."""
        distance = np.hypot(
            np.asarray(rows, float) / max(self.along_columns, 1e-6),
            np.asarray(columns, float) / max(self.along_rows, 1e-6),
        )
        return np.where(distance == 0, 1.0, (1 - self.white) * np.exp(-np.minimum(distance**self.exponent, 700.0)))

    def scaled(self, ratio: float) -> Correlation:
        """Convert the lengths to pixels that are ``ratio`` times smaller."""
        return Correlation(self.along_rows * ratio, self.along_columns * ratio, self.exponent, self.white)

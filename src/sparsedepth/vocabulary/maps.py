"""A map and its meaning: unit, kind, and how a file holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sparsedepth.vocabulary.arrays import DepthMap, InputError, as_array
from sparsedepth.vocabulary.shown import Shown

Unit = Literal["m", "mm", "px", "1/m", ""]
"""What the numbers of a map count; "" = nobody said."""

Kind = Literal["depth", "disparity", "inverse depth", "height"]
"""Depth grows away from a camera; the others are larger for what is nearer. Heights may be negative, and 0 is one."""

UNIT_FACTORS = {("m", "mm"): 1000.0, ("mm", "m"): 0.001}
"""(From, to) -> what depths are multiplied by; variances are multiplied by its square."""


def unit_factor(unit: Unit, kind: Kind, wanted: Unit) -> float:
    """Return what numbers in one unit are multiplied by to be in another one; only lengths in m or mm convert."""
    if unit == wanted:
        return 1.0
    if kind not in ("depth", "height") or (unit, wanted) not in UNIT_FACTORS:
        came = f"{kind} in {unit or 'an unknown unit'}"
        raise InputError(f"{came} cannot become {wanted!r}; only depth in m or mm can; say its unit when reading")
    return UNIT_FACTORS[unit, wanted]


@dataclass(frozen=True)
class Profile:
    """How a file holds numbers: stored = ``scale`` * value, in a unit, with codes for unknown pixels.

    Parameters
    ----------
    name
        What users call it; "" = it has no name.
    unit, kind
        What the values mean.
    scale
        Stored number per unit; None = the user must give it.
    invalid
        Stored numbers that mean unknown, besides NaN and the infinities; a writer of integers uses the first.
    dtype
        What integer files hold; "float32" = they need a scale.
    floats
        Profile of float files, where it differs.

    Examples
    --------
    >>> Profile("tum", "m", scale=5000.0, invalid=(0,), dtype="uint16").kind
    'depth'
    """

    name: str
    unit: Unit
    kind: Kind = "depth"
    scale: float | None = 1.0
    invalid: tuple[float, ...] = ()
    dtype: Literal["uint8", "uint16", "float32"] = "float32"
    floats: Profile | None = None

    def __post_init__(self) -> None:
        _check_unit_and_kind(self.unit, self.kind)
        if self.scale is not None and not (np.isfinite(self.scale) and self.scale > 0):
            raise InputError(f"the scale is {self.scale!r}; it must be a positive number")
        if self.dtype not in ("uint8", "uint16", "float32"):
            raise InputError(f"the profile stores {self.dtype!r}; use 'uint8', 'uint16' or 'float32'")


@dataclass(frozen=True, eq=False)
class Metadata:
    """What a file says besides its numbers, such as a place on the ground; a file of the same format carries it on.

    ``code`` is the stored number that the file declares for unknown pixels. ``dtype`` is the type of its numbers, where
    a file of the same format keeps it. ``exact`` are its numbers where float32 does not hold them: a pixel that is not
    changed is written as it was.
    """

    format: str
    entries: tuple[Any, ...]
    code: float | None = None
    dtype: str = "float32"
    exact: NDArray[Any] | None = None


@dataclass(frozen=True, eq=False)
class DepthImage(Shown):
    """A map with what its numbers mean.

    Parameters
    ----------
    values
        (height, width), any real array; held as float32, NaN = unknown. Masked pixels and infinities become NaN.
    unit
        "m", "mm", "px", "1/m", or "" = nobody said.
    kind
        "depth", "disparity", "inverse depth" or "height".
    profile
        How the file held it, so that it can be written the same way.
    assumed
        The sentence on what was taken for granted when it was read, "" = nothing.
    metadata
        What the file said besides, such as a place on the ground.

    Examples
    --------
    >>> DepthImage([[1, 2], [3, np.inf]], unit="mm").to("m").values
    array([[0.001, 0.002],
           [0.003,   nan]], dtype=float32)
    """

    values: DepthMap
    unit: Unit = ""
    kind: Kind = "depth"
    profile: Profile | None = None
    assumed: str = ""
    metadata: Metadata | None = None

    def __post_init__(self) -> None:
        _check_unit_and_kind(self.unit, self.kind)
        object.__setattr__(self, "values", _as_map(self.values))

    def __repr__(self) -> str:
        height, width = self.values.shape
        known = float(np.isfinite(self.values).mean())
        what = f"{height} x {width} {self.kind} in {self.unit or 'an unknown unit'}"
        return f"DepthImage({what}, {known:.1%} known)"

    def to(self, unit: Unit) -> DepthImage:
        """Return the same depths in metres or millimetres."""
        if unit == self.unit:
            return self
        factor = np.float64(unit_factor(self.unit, self.kind, unit))
        values = (self.values * factor).astype(np.float32)
        return DepthImage(values, unit, self.kind, assumed=self.assumed, metadata=self.metadata)


def check_unit(unit: str) -> None:
    """Refuse what is no unit of a map."""
    if unit not in get_args(Unit):
        raise InputError(f"the unit is {unit!r}; use one of {', '.join(map(repr, get_args(Unit)))}")


def _check_unit_and_kind(unit: str, kind: str) -> None:
    check_unit(unit)
    if kind not in get_args(Kind):
        raise InputError(f"the kind is {kind!r}; use one of {', '.join(map(repr, get_args(Kind)))}")


def _as_map(values: Any) -> DepthMap:
    """Convert a real two-dimensional array to float32 in native order, with NaN where it is masked or not finite."""
    array = np.asarray(np.ma.getdata(as_array("the map", values)))
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"a map is {array.dtype} of shape {array.shape}; it must have one real number a pixel, in 2-D")
    known = np.isfinite(array) & ~np.ma.getmaskarray(values)
    with np.errstate(over="ignore"):
        depth = np.asarray(array, np.float32)
    if (np.isinf(depth) & known).any():
        raise InputError("the map holds values beyond the range of float32; give them in a larger unit")
    return depth if known.all() else np.where(known, depth, np.float32(np.nan))

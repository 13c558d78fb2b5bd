"""Nouns that every room shares: array aliases, a map and its meaning, a stereo pair, and the one error a user meets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
"""A float array of any shape."""

DepthMap = NDArray[np.floating[Any]]
"""(height, width); NaN = unknown."""

Patches = NDArray[np.floating[Any]]
"""(n, pixels), one patch a row; NaN = missing."""

Codes = NDArray[np.floating[Any]]
"""(n, atoms), one code a row: a patch is about ``codes @ atoms``."""

Vector = NDArray[np.floating[Any]]
"""(n,), one number a patch."""

UnaryCost = Callable[[DepthMap], Floats]
"""What a disparity map costs at each pixel, (height, width) -> (height, width); any real, finite disparities."""


class InputError(ValueError):
    """What came in cannot be used; the message says what came, what was wanted and what to do."""


class TooLargeError(InputError):
    """What came in asks for more than its budget."""


def as_array(what: str, values: Any) -> Any:
    """Anything as an array of real numbers, a masked one as it is; what is none is refused."""
    try:
        array = values if np.ma.isMaskedArray(values) else np.asarray(values)
    except ValueError:
        raise InputError(f"{what} has rows of different lengths; give all of them the same number of pixels") from None
    if array.dtype.kind not in "fiu":
        raise InputError(f"{what} is an array of {array.dtype}; give real numbers, NaN = unknown")
    return array


Unit = Literal["m", "mm", "px", "1/m", ""]
"""What the numbers of a map count; "" = nobody said."""

Kind = Literal["depth", "disparity", "inverse depth"]

UNIT_FACTORS = {("m", "mm"): 1000.0, ("mm", "m"): 0.001}
"""(From, to) -> what depths are multiplied by; variances are multiplied by its square."""


def unit_factor(unit: Unit, kind: Kind, wanted: Unit) -> float:
    """Return what numbers in one unit are multiplied by to be in another one; only depth in m or mm converts."""
    if unit == wanted:
        return 1.0
    if kind != "depth" or (unit, wanted) not in UNIT_FACTORS:
        came = f"{kind} in {unit or 'an unknown unit'}"
        raise InputError(f"{came} cannot become {wanted!r}; only depth in m or mm can; say its unit when reading")
    return UNIT_FACTORS[unit, wanted]


@dataclass(frozen=True)
class Profile:
    """How a file holds numbers: stored = ``scale`` * value, in a unit, with codes for unknown pixels.

    ``scale`` None must be given by the user. ``invalid`` lists the stored numbers that mean unknown, besides NaN and
    the infinities; a writer of integers uses the first. ``dtype`` is what integer files hold; "float32" = they need a
    scale. ``floats`` is the profile of float files where it differs.
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
class DepthImage:
    """A map with what its numbers mean: float32, NaN = unknown.

    Any real array is taken: masked pixels and infinities become NaN. ``profile`` says how the file held it, so that it
    can be written the same way; ``assumed`` is the sentence on what was taken for granted, "" = nothing.

    >>> DepthImage([[1, 2], [3, np.inf]], unit="mm").to("m").values
    array([[0.001, 0.002],
           [0.003,   nan]], dtype=float32)
    """

    values: DepthMap
    unit: Unit = ""
    kind: Kind = "depth"
    profile: Profile | None = None
    assumed: str = ""

    def __post_init__(self) -> None:
        _check_unit_and_kind(self.unit, self.kind)
        object.__setattr__(self, "values", _as_map(self.values))

    def to(self, unit: Unit) -> DepthImage:
        """Return the same depths in metres or millimetres."""
        if unit == self.unit:
            return self
        factor = np.float64(unit_factor(self.unit, self.kind, unit))
        return DepthImage((self.values * factor).astype(np.float32), unit, self.kind, assumed=self.assumed)


def _check_unit_and_kind(unit: str, kind: str) -> None:
    if unit not in get_args(Unit):
        raise InputError(f"the unit is {unit!r}; use one of {', '.join(map(repr, get_args(Unit)))}")
    if kind not in get_args(Kind):
        raise InputError(f"the kind is {kind!r}; use one of {', '.join(map(repr, get_args(Kind)))}")


def _as_map(values: Any) -> DepthMap:
    """Any real two-dimensional array as float32 in native order, NaN where it is masked or not finite."""
    array = np.asarray(np.ma.getdata(as_array("the map", values)))
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"a map is {array.dtype} of shape {array.shape}; it must have one real number a pixel, in 2-D")
    known = np.isfinite(array) & ~np.ma.getmaskarray(values)
    with np.errstate(over="ignore"):
        depth = np.asarray(array, np.float32)
    if (np.isinf(depth) & known).any():
        raise InputError("the map holds values beyond the range of float32; give them in a larger unit")
    return depth if known.all() else np.where(known, depth, np.float32(np.nan))


@dataclass(frozen=True, eq=False)
class Belief:
    """What is believed about each pixel: the one message between the layers of the model."""

    mean: DepthMap
    """NaN where nothing can be said."""
    variance: DepthMap
    """In squared units of the map; inf where nothing can be said."""


class Origin(IntEnum):
    """Where a restored pixel comes from."""

    MEASURED = 0
    CORRECTED = 1
    """Measured, but found noisy: the value follows its surroundings."""
    FILLED = 2
    REFUSED = 3
    """Unknown, and too far from anything known: it stays NaN."""
    SMOOTHED = 4
    """Measured, and moved within the noise of its sensor."""
    REMEMBERED = 5
    """Missing in this frame of a stream: the value was seen before."""


@dataclass(frozen=True, eq=False)
class Restoration:
    """A restored map: depth, variance in squared units of the map (inf = refused), and the `Origin` of each pixel.

    ``unit``, ``kind`` and ``profile`` are those of the `DepthImage` that was restored: `sparsedepth.files.write` writes
    the result as that map came. The result of an array has none.
    """

    depth: DepthMap
    variance: DepthMap
    origin: NDArray[np.uint8]
    unit: Unit = ""
    kind: Kind = "depth"
    profile: Profile | None = None
    warnings: tuple[str, ...] = ()
    """Sentences on what is suspicious about the map, such as codes taken for depths."""

    @property
    def image(self) -> DepthImage:
        """The restored map with what its numbers mean, as float32."""
        return DepthImage(self.depth, self.unit, self.kind, self.profile)

    def described_by(self, image: DepthImage) -> Restoration:
        """Return the result with the unit, the kind and the profile of an image."""
        return replace(self, unit=image.unit, kind=image.kind, profile=image.profile)


@dataclass(frozen=True, eq=False)
class StereoPair:
    """Two rectified views: the left one shows at column x what the right one shows at x - disparity.

    Parameters
    ----------
    left, right
        Views of equal size, grey or colour, (height, width) or (height, width, channels). Costs expect brightness from
        0 to 255. The numbers are kept, as float32; `StereoPair.from_images` scales pictures of any bit depth.
    max_disparity
        Disparities are searched from 0 to this number of pixels, inclusive.
    """

    left: Floats
    right: Floats
    max_disparity: int

    def __post_init__(self) -> None:
        left, right = _as_views(self.left, self.right)
        object.__setattr__(self, "left", left.astype(np.float32, copy=False))
        object.__setattr__(self, "right", right.astype(np.float32, copy=False))
        object.__setattr__(self, "max_disparity", _as_range(self.max_disparity, left.shape[1]))

    @classmethod
    def from_images(cls, left: Any, right: Any, max_disparity: int) -> StereoPair:
        """Make a pair of pictures of any bit depth: brightness is scaled to 0..255.

        Bytes are kept. Floats within 0..1 fill the range. Other numbers are read as the least of 8, 10, 12, 14 or 16
        bits that holds both views.

        >>> white, black = np.full((2, 8), 4095, np.uint16), np.zeros((2, 8), np.uint16)
        >>> StereoPair.from_images(white, black, 3).left[0, 0]
        array([255.], dtype=float32)
        """
        left, right = _as_views(left, right)
        factor = np.float64(255 / _white((left, right)))
        return cls((left * factor).astype(np.float32), (right * factor).astype(np.float32), max_disparity)

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of a view."""
        return self.left.shape[0], self.left.shape[1]

    def mirrored(self) -> StereoPair:
        """Return the pair seen in a mirror: the views change places, and disparities stay positive."""
        left, right = (np.ascontiguousarray(view[:, ::-1]) for view in (self.right, self.left))
        return replace(self, left=left, right=right)

    def grey(self) -> StereoPair:
        """Return the pair in one channel, the mean of all."""
        left, right = (view.mean(axis=2, keepdims=True) for view in (self.left, self.right))
        return replace(self, left=left, right=right)


def _as_views(left: Any, right: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return two views of equal shape (height, width, channels)."""
    views = _as_picture("left", left), _as_picture("right", right)
    if views[0].shape != views[1].shape:
        came = " and ".join(" x ".join(map(str, view.shape)) for view in views)
        raise InputError(
            f"the views are {came} (height x width x channels); give two of equal size, both grey or both in "
            "colour, rectified"
        )
    return views


def _as_picture(name: str, picture: Any) -> NDArray[Any]:
    """Return a view as (height, width, channels), of finite numbers that are not negative."""
    array = np.asarray(as_array(f"the {name} view", picture))
    if array.ndim not in (2, 3) or array.size == 0:
        raise InputError(
            f"the {name} view is {array.dtype} of shape {array.shape}; give numbers of (height, width) or "
            "(height, width, channels)"
        )
    if not np.isfinite(array).all():
        raise InputError(f"the {name} view holds NaN or infinities; every pixel must have a colour")
    if float(array.min()) < 0 or float(array.max()) > 65535:
        raise InputError(
            f"the {name} view holds numbers from {array.min():g} to {array.max():g}; give 8 or 16 bits, or 0..1"
        )
    return array.reshape(*array.shape[:2], -1)


def _white(views: Sequence[NDArray[Any]]) -> float:
    """Guess the number that stands for white."""
    if all(view.dtype == np.uint8 for view in views):
        return 255.0
    largest = max(float(view.max()) for view in views)
    if largest <= 1 and all(view.dtype.kind == "f" for view in views):
        return 1.0
    return float(next(2**bits - 1 for bits in (8, 10, 12, 14, 16) if largest <= 2**bits - 1))


def _as_range(max_disparity: Any, width: int) -> int:
    if isinstance(max_disparity, bool) or not isinstance(max_disparity, (int, np.integer)):
        raise InputError(f"max_disparity is {max_disparity!r}; give a whole number of pixels")
    if not 1 <= max_disparity < width:
        raise InputError(
            f"max_disparity is {max_disparity} and the views are {width} pixels wide; give 1 to {width - 1}, "
            "the largest shift between the views"
        )
    return int(max_disparity)


@dataclass(frozen=True, eq=False)
class Match:
    """What a stereo pair says of the left view: disparity in pixels, its variance, and the `Origin` of each pixel.

    Filled are the pixels that the right view does not show, or shows elsewhere.
    """

    disparity: DepthMap
    variance: DepthMap
    origin: NDArray[np.uint8]

    @property
    def image(self) -> DepthImage:
        """The disparities with what they mean."""
        return DepthImage(self.disparity, "px", "disparity")

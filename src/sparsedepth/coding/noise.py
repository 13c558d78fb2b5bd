"""Noise models of pixels: Jeffreys (ns-SC), Stationary (SC), Exponential, and Known (given by a sensor).

A noise model has a **floor**: the smallest variance it allows at a pixel. If the squared residual is q floors, the
best variance is ``growth(q)`` floors. ``price(q)`` is what the pixel then adds to the energy of Eq. 6 beyond
log(floor). By the envelope theorem, price'(q) = 1 / (2 growth(q)). Both are dimensionless, so units do not matter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sparsedepth.kernels.admm import GROWTH_NONE, GROWTH_OWN, GROWTH_ROOT, GROWTH_SQUARE
from sparsedepth.vocabulary import Floats, InputError, Patches, Vector, as_array

Rows = slice | NDArray[Any]
"""Some of the patches: a slice, their numbers, or a mark for each."""


class NoiseModel(ABC):
    """A noise model as inference needs it; this one keeps every variance at its floor. NaN in patches is missing.

    Examples
    --------
    >>> Jeffreys(floor=0.01).floor_variance(np.array([[1.0, np.nan]]))
    array([[0.01,  inf]])
    """

    inferred: bool = False
    """Whether a variance may exceed its floor."""

    def __init_subclass__(cls) -> None:
        """Let inference call the function of a model that has a `growth` of its own and names no kernel for it."""
        if "growth" in vars(cls) and "growth_law" not in vars(cls):
            cls.growth_law = property(lambda _: GROWTH_OWN)  # type: ignore[method-assign, assignment]

    @property
    def growth_law(self) -> int:
        """How `growth` is computed by the kernels of ADMM."""
        return GROWTH_NONE

    @abstractmethod
    def floor_variance(self, patches: Patches) -> Floats:
        """Compute the smallest variance of each pixel, inf where it is missing."""

    @abstractmethod
    def plus(self, variance: Floats) -> NoiseModel:
        """Add a variance that a sensor reports at each pixel."""

    def initial_variance(self, patches: Patches) -> Floats:
        """Compute the variance from which the alternation starts, inf where a pixel is missing."""
        return self.floor_variance(patches)

    def growth(self, q: Floats) -> Floats:
        """Compute the best variance over the floor, for a squared residual over the floor."""
        return np.ones_like(q)

    def price(self, q: Floats) -> Floats:
        """Compute the energy of a pixel at its best variance, beyond log(floor)."""
        return q / 2

    def take(self, rows: Rows) -> Self:
        """Restrict the model to some of the patches."""
        return self

    def best_variance(self, residual: Patches) -> Floats:
        """Compute the variance that minimises Eq. 6 for these residuals: inf where NaN, at most the largest float."""
        residual = np.asarray(residual)
        floor = self.floor_variance(residual).astype(np.float64)
        known = np.isfinite(floor)
        wide = np.where(known, residual, 0).astype(np.float64)
        held = np.where(known, floor, 1.0)
        variance = np.minimum(held * self.growth(wide * wide / held), np.finfo(residual.dtype).max)
        return np.where(known, variance, np.inf).astype(residual.dtype)

    def cost(self, variance: Floats) -> Vector:
        """Compute the prior's term of Eq. 6: the sum of log variances over all pixels with a finite variance."""
        finite = np.isfinite(variance)
        return np.log(np.where(finite, variance, 1.0), dtype=np.float64).sum(axis=-1)


@dataclass(frozen=True)
class Stationary(NoiseModel):
    """One fixed variance for every pixel: plain sparse coding.

    Parameters
    ----------
    variance
        In squared units of the patches, positive.

    Examples
    --------
    >>> Stationary(0.04)
    Stationary(variance=0.04)
    """

    variance: float = 0.01

    def __post_init__(self) -> None:
        _require_positive("the variance", self.variance)

    def floor_variance(self, patches: Patches) -> Floats:
        return _where_known(patches, self.variance)

    def plus(self, variance: Floats) -> Known:
        return Known(self.variance + np.asarray(variance))


@dataclass(frozen=True)
class Jeffreys(NoiseModel):
    """A variance inferred at every pixel under Jeffreys' prior (ns-SC).

    The energy is not convex, so where the variances start is part of the model.

    Parameters
    ----------
    floor
        Least variance, in squared units of the patches: the square of the paper's sigma_0.
    initial
        Variance that the alternation starts from: the paper's 1, meant for patches scaled to unit variance.

    Examples
    --------
    >>> Jeffreys(floor=0.01)
    Jeffreys(floor=0.01, initial=1.0)
    """

    floor: float = 0.01
    initial: float = 1.0
    inferred = True

    def __post_init__(self) -> None:
        _require_positive("the noise floor", self.floor)
        _require_positive("the initial variance", self.initial)

    def floor_variance(self, patches: Patches) -> Floats:
        return _where_known(patches, self.floor)

    def initial_variance(self, patches: Patches) -> Floats:
        return _where_known(patches, max(self.initial, self.floor))

    @property
    def growth_law(self) -> int:
        return GROWTH_SQUARE

    def growth(self, q: Floats) -> Floats:
        return _jeffreys_growth(q)

    def price(self, q: Floats) -> Floats:
        return _jeffreys_price(q)

    def plus(self, variance: Floats) -> Known:
        return Known(self.floor + np.asarray(variance), inferred=True, initial=self.initial)


@dataclass(frozen=True, eq=False)
class Exponential(NoiseModel):
    """A variance inferred at every pixel under an exponential prior: an outlier costs its size, not its logarithm.

    The prior's variance / (2 floor) replaces the logarithm of Eq. 6. The energy is then Huber's loss of the residuals,
    which is convex. There is no initial variance. What is noise depends on the shapes in a patch alone.

    Parameters
    ----------
    floor
        Least variance, in squared units of the patches: one number, or one for each pixel, (n, pixels); inf = not
        measured.

    Examples
    --------
    >>> Exponential(0.04)
    Exponential(floor=0.04)
    """

    floor: float | Floats = 0.01
    inferred = True

    def __post_init__(self) -> None:
        if not (np.asarray(self.floor) > 0).all():
            raise InputError("the noise floor must be positive at every pixel; use inf where nothing is known")

    def floor_variance(self, patches: Patches) -> Floats:
        return _where_known(patches, self.floor)

    @property
    def growth_law(self) -> int:
        return GROWTH_ROOT

    def growth(self, q: Floats) -> Floats:
        root = np.sqrt(q)
        return np.maximum(root, 1, out=root)

    def price(self, q: Floats) -> Floats:
        root = np.sqrt(q)
        return np.where(root <= 1, q / 2, root - q.dtype.type(0.5))

    def cost(self, variance: Floats) -> Vector:
        """Compute the prior's term: the sum of variance / (2 floor) over all pixels with a finite variance."""
        finite = np.isfinite(variance)
        floor = np.where(finite, self.floor, np.inf)
        return (np.where(finite, variance, 0) / (2 * floor)).sum(axis=-1, dtype=np.float64)

    def take(self, rows: Rows) -> Exponential:
        return self if np.ndim(self.floor) < 2 else replace(self, floor=np.asarray(self.floor)[rows])

    def plus(self, variance: Floats) -> Exponential:
        return Exponential(np.asarray(self.floor + np.asarray(variance)))


@dataclass(frozen=True, eq=False)
class Known(NoiseModel):
    """A variance that a sensor or a matcher gives for each pixel.

    Parameters
    ----------
    variance
        (n, pixels) or (pixels,), in squared units of the patches; inf = not measured.
    inferred
        Whether it is only the floor: the model may then find a pixel noisier than the sensor says, never better.
    initial
        Variance that the alternation then starts from, if it is above the floor.

    Examples
    --------
    >>> Known(np.array([0.01, np.inf])).variance
    array([0.01,  inf])
    """

    variance: Floats
    inferred: bool = False
    initial: float = 1.0

    def __post_init__(self) -> None:
        variance = as_array("the known variance", self.variance)
        if np.ma.isMaskedArray(variance):
            variance = np.ma.filled(variance.astype(np.float64), np.inf)
        variance = variance.astype(np.result_type(variance.dtype, np.float32), copy=False)
        if not (variance > 0).all():
            raise InputError("a known variance must be positive at every pixel; use inf where nothing is known")
        _require_positive("the initial variance", self.initial)
        object.__setattr__(self, "variance", variance)

    @property
    def growth_law(self) -> int:
        return GROWTH_SQUARE if self.inferred else GROWTH_NONE

    def require(self, shape: tuple[int, ...]) -> None:
        """Refuse patches of another shape."""
        if self.variance.shape not in ((), shape[-1:], shape):
            raise InputError(
                f"the known variance has shape {self.variance.shape} but the patches {shape}; "
                "give one value for each pixel"
            )

    def floor_variance(self, patches: Patches) -> Floats:
        patches = np.asarray(patches)
        self.require(patches.shape)
        return _where_known(patches, self.variance)

    def initial_variance(self, patches: Patches) -> Floats:
        floor = self.floor_variance(patches)
        return np.maximum(floor, floor.dtype.type(self.initial)) if self.inferred else floor

    def growth(self, q: Floats) -> Floats:
        return _jeffreys_growth(q) if self.inferred else super().growth(q)

    def price(self, q: Floats) -> Floats:
        return _jeffreys_price(q) if self.inferred else super().price(q)

    def take(self, rows: Rows) -> Known:
        return self if self.variance.ndim < 2 else replace(self, variance=self.variance[rows])

    def plus(self, variance: Floats) -> Known:
        return replace(self, variance=self.variance + np.asarray(variance))


def _jeffreys_growth(q: Floats) -> Floats:
    """Compute half the squared residual, at least the floor: the closed form below Eq. 6."""
    half = q * q.dtype.type(0.5)
    return np.maximum(half, 1, out=half)


def _jeffreys_price(q: Floats) -> Floats:
    half = q * q.dtype.type(0.5)
    return np.minimum(half, 1) + np.log(np.maximum(half, 1))


def _where_known(patches: Patches, variance: float | Floats) -> Floats:
    patches = np.asarray(patches)
    return np.where(np.isnan(patches), patches.dtype.type(np.inf), np.asarray(variance, patches.dtype))


def _require_positive(what: str, value: float) -> None:
    if not (np.isfinite(value) and value > 0):
        raise InputError(f"{what} is {value!r}; it must be a positive number, in squared units of the patches")

"""What is compared: maps and their truth, as numbers of the pixels that count."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsedepth.checks import LARGEST, as_floats
from sparsedepth.vocabulary import Floats, InputError, Vector

Missing = Literal["raise", "ignore"]
MissingPixel = Literal["raise", "ignore", "bad"]


def real(values: ArrayLike) -> Floats:
    """Convert to float64, NaN where masked; infinities pass, because a variance may be infinite."""
    return as_floats("what is compared", values).astype(np.float64)


def depths(values: ArrayLike) -> Floats:
    """Convert to float64, NaN = unknown; infinities are refused."""
    array = real(values)
    if (np.abs(array) > LARGEST).any():
        raise InputError(f"what is compared is infinite or beyond {LARGEST:g} somewhere; mark unknown pixels with NaN")
    return array


def known_values(truth: ArrayLike) -> Vector:
    """Return the depths of all pixels that are known; one at least."""
    values = depths(truth)
    known = values[~np.isnan(values)]
    if not known.size:
        raise InputError("the truth is unknown at every pixel; there is nothing to compare with")
    return known


def errors_of(estimate: ArrayLike, truth: ArrayLike, missing: MissingPixel) -> Vector:
    """Subtract the truth where it is known; infinite where missing pixels are bad."""
    estimate, truth = depths(estimate), depths(truth)
    if estimate.shape != truth.shape:
        raise InputError(f"the estimate has shape {estimate.shape} but the truth {truth.shape}; give both of one shape")
    if missing not in ("raise", "ignore", "bad"):
        raise InputError(f"missing={missing!r}; choose 'raise', 'ignore' or, where pixels are counted, 'bad'")
    known_values(truth)
    known = ~np.isnan(truth)
    error = estimate[known] - truth[known]
    absent = np.isnan(error)
    if not absent.any():
        return error
    if missing == "bad":
        return np.where(absent, np.inf, error)
    if missing == "raise" or absent.all():
        raise InputError(
            f"{int(absent.sum())} of {error.size} pixels whose truth is known are NaN in the estimate; "
            "fill them, or pass missing='ignore' to leave them out"
        )
    return error[~absent]


def is_bad(error: Vector, threshold: float) -> NDArray[np.bool_]:
    """Tell which errors are beyond the threshold."""
    if not threshold >= 0:
        raise InputError(f"the threshold is {threshold!r}; it must be zero or more, in units of the map")
    return np.abs(error) > threshold

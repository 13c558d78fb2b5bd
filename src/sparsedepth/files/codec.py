"""Decode stored numbers to values, and encode values as stored numbers."""

from __future__ import annotations

import numpy as np

from sparsedepth.files.stored import Pixels
from sparsedepth.vocabulary import DepthMap, InputError, Profile

FLOAT32 = np.dtype(np.float32)


def decode(pixels: Pixels, profile: Profile) -> DepthMap:
    """Return values in the profile's unit as float32, NaN where a pixel holds an invalid code, NaN or an infinity."""
    known = np.isfinite(pixels)
    for code in profile.invalid:
        known &= pixels != _as_stored(code, pixels.dtype)
    exact = pixels.dtype.itemsize <= 2 or pixels.dtype == np.float32
    with np.errstate(over="ignore"):
        values = (pixels.astype(np.float32 if exact else np.float64) / _scale(profile)).astype(np.float32)
    if (known & np.isinf(values)).any():
        raise InputError("it holds values beyond the range of float32; give a larger scale")
    values[~known] = np.nan
    return values


def _scale(profile: Profile) -> float:
    return 1.0 if profile.scale is None else profile.scale  # None has been refused before


def _as_stored(code: float, dtype: np.dtype) -> float | np.generic:
    """Return a code as a float file holds it: 1e10 is float32's nearest number."""
    with np.errstate(over="ignore"):
        return dtype.type(code) if dtype.kind == "f" else code


def encode_integers(values: DepthMap, profile: Profile, dtype: np.dtype) -> Pixels:
    """Round values to the nearest code; nothing is clipped, and no value becomes the code of unknown pixels.

    A value that would round to such a code gets the nearest other one, so that it stays known. It then moves by at most
    one step, instead of half a step.
    """
    low, top = np.iinfo(dtype).min, np.iinfo(dtype).max
    stored = values.astype(np.float64) * _scale(profile)
    known = np.isfinite(values)
    unit = profile.unit or "(unit unknown)"
    if low == 0 and (stored[known] < 0).any():
        raise InputError(f"the smallest value {values[known].min():g} {unit} is negative; use .tiff, or clip the map")
    slack = 1 + np.finfo(np.float32).eps  # top / scale * scale, in float32, may be above top
    if (stored[known] > top * slack).any() or (stored[known] < low * slack).any():
        largest, reach = np.abs(values[known]).max(), top / _scale(profile)
        raise InputError(
            f"the largest value {largest:g} {unit} does not fit {dtype} at scale {profile.scale:g}, which ends at "
            f"{reach:g}; use .tiff, or a smaller scale"
        )
    codes = np.clip(np.rint(stored), low, top)
    for code in profile.invalid:
        clash = known & (codes == code)
        codes[clash] = _nearest_other(stored[clash], code, set(profile.invalid), low, top)
    codes[~known] = _unknown_code(profile, dtype, int(np.count_nonzero(~known)))
    return codes.astype(dtype)


def _unknown_code(profile: Profile, dtype: np.dtype, n_unknown: int) -> float:
    if n_unknown == 0:
        return 0
    if not profile.invalid:
        raise InputError(f"{n_unknown} pixels are unknown and no code stands for them; give 0 as invalid, or use .tiff")
    code = profile.invalid[0]
    if not (float(code).is_integer() and np.iinfo(dtype).min <= code <= np.iinfo(dtype).max):
        raise InputError(f"the code {code:g} for unknown pixels does not fit {dtype}; give another one as invalid")
    return code


def _nearest_other(stored: Pixels, code: float, taken: set[float], low: int, top: int) -> Pixels:
    below, above = code - 1, code + 1
    while below in taken:
        below -= 1
    while above in taken:
        above += 1
    if below < low:
        return np.full_like(stored, above)
    if above > top:
        return np.full_like(stored, below)
    return np.where(stored - below <= above - stored, below, above)


def encode_floats(values: DepthMap, profile: Profile, unknown: float, dtype: np.dtype = FLOAT32) -> Pixels:
    """Return values times the scale as floats; ``unknown`` stands for NaN, and no value may equal a code."""
    known = np.isfinite(values)
    with np.errstate(over="ignore"):
        stored = (values.astype(np.float64) * _scale(profile)).astype(dtype)
    if np.isinf(stored[known]).any():
        raise InputError(f"the largest value does not fit {dtype} at scale {profile.scale:g}; use a smaller scale")
    for code in {*profile.invalid, unknown}:
        if (stored[known] == dtype.type(code)).any():
            raise InputError(f"a known pixel holds {code:g}, the code for unknown ones; give another one as invalid")
    stored[~known] = unknown
    return stored

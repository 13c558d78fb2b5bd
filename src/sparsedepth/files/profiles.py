"""Profiles: how cameras and data sets encode depth, by name, and what is assumed of a file without one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from sparsedepth.files.stored import Stored
from sparsedepth.vocabulary import InputError, Profile

PROFILES = {
    profile.name: profile
    for profile in (
        Profile("mm", "mm", "depth", 1.0, (0,), "uint16"),
        Profile("tum", "m", "depth", 5000.0, (0,), "uint16"),
        Profile("kitti", "m", "depth", 256.0, (0,), "uint16"),
        Profile("kitti-disparity", "px", "disparity", 256.0, (0,), "uint16"),
        Profile("7-scenes", "mm", "depth", 1.0, (65535, 0), "uint16"),
        Profile("middlebury", "px", "disparity", None, (0,), "uint8"),
        Profile("ros", "mm", "depth", 1.0, (0,), "uint16", floats=Profile("ros", "m")),
        Profile("m", "m"),
        Profile("px", "px", "disparity"),
        Profile("1/m", "1/m", "inverse depth"),
        Profile("height", "m", "height"),
    )
}
"""RealSense, Kinect, ScanNet: ``mm``. TUM RGB-D: ``tum``. 7-Scenes: ``7-scenes``. Middlebury before 2014:
``middlebury`` and the scene's scale. ROS: ``ros``, millimetres in integer files and metres in float files. Float files:
``m``, ``px``, ``1/m``. Elevation models: ``height``."""

InvalidCodes = float | Sequence[float] | None
"""Stored numbers that mean unknown; None = those of the profile."""


def profile_named(profile: str | Profile) -> Profile:
    """Return the profile of that name, or the profile itself."""
    if isinstance(profile, Profile):
        return profile
    if profile not in PROFILES:
        raise InputError(f"there is no profile {profile!r}; use one of {', '.join(PROFILES)}")
    return PROFILES[profile]


def with_options(profile: Profile, scale: float | None, invalid: InvalidCodes) -> Profile:
    """Return the profile with the scale and the codes that the user gave, if any."""
    if scale is not None:
        profile = replace(profile, scale=float(scale))
    if invalid is not None:
        profile = replace(profile, invalid=_numbers(invalid))
    if profile.scale is None:
        raise InputError(
            f"the profile {profile.name} needs the scale of the scene; give scale, the stored number per {profile.unit}"
        )
    return profile


def _numbers(codes: InvalidCodes) -> tuple[float, ...]:
    try:
        return tuple(np.asarray(codes, dtype=np.float64).ravel().tolist())
    except (TypeError, ValueError):
        raise InputError(f"invalid is {codes!r}; give a number or several, as they stand in the file") from None


def resolve_profile(
    stored: Stored, path: Path, profile: str | Profile, scale: float | None, invalid: InvalidCodes
) -> tuple[Profile, str]:
    """Return how the numbers of a file are read, and the sentence on what was assumed, "" = nothing."""
    assumed = ""
    if profile == "auto":
        chosen, assumed = _assumption(stored, path.suffix.lower(), scaled=scale is not None)
    else:
        chosen = _for_file(profile_named(profile), stored)
    return with_options(chosen, scale, invalid), f"{path.name}: {assumed}" if assumed else ""


def for_dtype(profile: Profile, dtype: np.dtype) -> Profile:
    """Return the profile's variant for float files, or the profile itself."""
    return profile.floats if profile.floats is not None and dtype.kind == "f" else profile


def _for_file(profile: Profile, stored: Stored) -> Profile:
    """Return the profile that the user named, with the codes that the file declares besides its own."""
    profile = for_dtype(profile, stored.pixels.dtype)
    if profile.kind == "height" and stored.likely is not None and profile.scale == 1.0:
        profile = replace(profile, scale=stored.likely.scale)
    declared = stored.declared.invalid if stored.declared is not None else stored.invalid or ()
    return replace(profile, invalid=declared + tuple(code for code in profile.invalid if code not in declared))


def _assumption(stored: Stored, suffix: str, scaled: bool) -> tuple[Profile, str]:
    """Return what ``auto`` takes a file to hold, and the sentence that says so; "" where the file declares it."""
    if stored.declared is not None:
        return stored.declared, ""
    profile = _guess(stored, suffix, scaled)
    if stored.invalid is not None:
        profile = replace(profile, invalid=stored.invalid)
    unit = f"in {profile.unit}" if profile.unit else "in an unknown unit"
    codes = " or ".join("NaN" if np.isnan(code) else f"{code:g}" for code in profile.invalid) or "NaN"
    scale = "" if scaled or profile.scale in (None, 1.0) else f", {profile.scale:g} stored for each"
    took = f"took its {stored.pixels.dtype.name} numbers as {profile.kind} {unit}{scale}, {codes} = unknown"
    return profile, f"{took}; if that is wrong, give the profile ({', '.join(PROFILES)}), scale or invalid"


def _guess(stored: Stored, suffix: str, scaled: bool) -> Profile:
    dtype = stored.pixels.dtype
    zero = () if dtype.kind == "f" else (0.0,)
    if stored.likely is not None:
        return stored.likely
    if suffix == ".exr":
        return Profile("", "", invalid=(1e10,))  # what renderers write where a ray hits nothing
    if suffix == ".bin":
        return Profile("", "", invalid=(0.0,))
    if suffix == ".pfm" or stored.name in ("disparity", "disp"):
        return replace(PROFILES["px"], invalid=zero)
    if stored.name == "inverse_depth":
        return replace(PROFILES["1/m"], unit="", invalid=zero)
    if stored.name.endswith("_mm"):
        return replace(PROFILES["mm"], invalid=zero)
    if stored.name.endswith("_m"):
        return replace(PROFILES["m"], invalid=zero)
    if dtype.name == "uint8":
        return Profile("px", "px", "disparity", 1.0, (0,), "uint8")
    if dtype.name == "uint16":
        return replace(PROFILES["mm"], name="", unit="") if scaled else PROFILES["mm"]
    return Profile("", "", invalid=zero)


def as_text(profile: Profile) -> str:
    """Return the profile as a text, for formats that can carry one."""
    meaning = {"unit": profile.unit, "kind": profile.kind, "scale": profile.scale, "invalid": profile.invalid}
    return json.dumps({"sparsedepth": meaning | {"name": profile.name, "dtype": profile.dtype}})


def from_text(text: object) -> Profile | None:
    """Return the profile that a text of a file holds, or None where it holds none."""
    if not isinstance(text, str) or len(text) > 1000 or not text.startswith('{"sparsedepth"'):
        return None
    try:
        meaning = json.loads(text)["sparsedepth"]
        codes = tuple(float(code) for code in meaning.pop("invalid"))
        scale = float(meaning.pop("scale"))
        return Profile(scale=scale, invalid=codes, **meaning)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None

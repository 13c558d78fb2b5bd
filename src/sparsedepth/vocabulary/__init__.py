"""Nouns that every room shares: array aliases, a map and its meaning, a stereo pair, and the one error a user meets."""

from sparsedepth.vocabulary.arrays import (
    Codes,
    DepthMap,
    Floats,
    InputError,
    Patches,
    TooLargeError,
    UnaryCost,
    Vector,
    as_array,
)
from sparsedepth.vocabulary.maps import UNIT_FACTORS, DepthImage, Kind, Metadata, Profile, Unit, check_unit, unit_factor
from sparsedepth.vocabulary.results import Belief, Match, Origin, Restoration
from sparsedepth.vocabulary.shown import Shown
from sparsedepth.vocabulary.stereo_pair import StereoPair

__all__ = [
    "UNIT_FACTORS",
    "Belief",
    "Codes",
    "DepthImage",
    "DepthMap",
    "Floats",
    "InputError",
    "Kind",
    "Match",
    "Metadata",
    "Origin",
    "Patches",
    "Profile",
    "Restoration",
    "Shown",
    "StereoPair",
    "TooLargeError",
    "UnaryCost",
    "Unit",
    "Vector",
    "as_array",
    "check_unit",
    "unit_factor",
]

"""Sparse representations of depth: restored maps with a variance and an origin for every pixel; codes; dictionaries.

A public name is imported when it is first used, so that the package itself imports at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsedepth.belief import believe
    from sparsedepth.coding.infer import SparseCode, energy, infer, weighted_lasso
    from sparsedepth.coding.learn import LearningStep, learn
    from sparsedepth.coding.noise import Exponential, Jeffreys, Known, Stationary
    from sparsedepth.dictionary import Dictionary
    from sparsedepth.geometry import Intrinsics, PointCloud, point_cloud
    from sparsedepth.input_warnings import InputWarning
    from sparsedepth.matching import match
    from sparsedepth.restore import Restorer, denoise, inpaint
    from sparsedepth.sensors import Sensor
    from sparsedepth.stereo.calibration import StereoCalibration
    from sparsedepth.streams import Stream
    from sparsedepth.vocabulary import Belief, DepthImage, InputError, Match, Origin, Restoration, StereoPair

__all__ = [
    "Belief",
    "DepthImage",
    "Dictionary",
    "Exponential",
    "InputError",
    "InputWarning",
    "Intrinsics",
    "Jeffreys",
    "Known",
    "LearningStep",
    "Match",
    "Origin",
    "PointCloud",
    "Restoration",
    "Restorer",
    "Sensor",
    "SparseCode",
    "Stationary",
    "StereoCalibration",
    "StereoPair",
    "Stream",
    "believe",
    "denoise",
    "energy",
    "infer",
    "inpaint",
    "learn",
    "match",
    "point_cloud",
    "weighted_lasso",
]
__version__ = "0.2.0"

_NAMES_OF = {
    "": "coding files geometry metrics patches restore sensors stereo streams",
    "belief": "believe",
    "coding.infer": "SparseCode energy infer weighted_lasso",
    "coding.learn": "LearningStep learn",
    "coding.noise": "Exponential Jeffreys Known Stationary",
    "dictionary": "Dictionary",
    "geometry": "Intrinsics PointCloud point_cloud",
    "input_warnings": "InputWarning",
    "matching": "match",
    "restore": "Restorer denoise inpaint",
    "sensors": "Sensor",
    "stereo.calibration": "StereoCalibration",
    "streams": "Stream",
    "vocabulary": "Belief DepthImage InputError Match Origin Restoration StereoPair",
}
_HOMES = {name: home for home, names in _NAMES_OF.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import a public name from its module, or a module that is used as an attribute."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES[name]
    value = getattr(import_module(f"{__name__}.{home}"), name) if home else import_module(f"{__name__}.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})

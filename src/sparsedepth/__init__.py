"""Sparse representations of depth: restored maps with a variance and an origin for every pixel; codes; dictionaries."""

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
__version__ = "0.1.0"

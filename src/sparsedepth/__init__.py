"""Sparse representations of depth: codes, per-pixel noise variance, dictionaries."""

from sparsedepth.coding.infer import SparseCode, energy, infer, weighted_lasso
from sparsedepth.coding.learn import LearningStep, learn
from sparsedepth.coding.noise import Jeffreys, Known, Stationary
from sparsedepth.dictionary import Dictionary
from sparsedepth.vocabulary import InputError

__all__ = [
    "Dictionary",
    "InputError",
    "Jeffreys",
    "Known",
    "LearningStep",
    "SparseCode",
    "Stationary",
    "energy",
    "infer",
    "learn",
    "weighted_lasso",
]
__version__ = "0.1.0"

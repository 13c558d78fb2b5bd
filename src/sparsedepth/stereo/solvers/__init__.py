"""Solvers of the middle layer; a file is a solver, and its name is the name on the command line.

A solver's file has ``solve(unary, pair, start, rng) -> disparity``: a map within 0 and ``pair.max_disparity`` whose
cost, with the file's own idea of smoothness, is low. ``start`` is where it may begin; ``rng`` is its only chance. What
is particular to it are keyword arguments with defaults. ``data_cost`` is the cost of `stereo.costs` whose scale its
defaults fit.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from sparsedepth.stereo.costs import Cost
from sparsedepth.vocabulary import DepthMap, InputError, StereoPair, UnaryCost


class Solver(Protocol):
    """What a solver's file offers."""

    data_cost: Cost

    def solve(self, unary: UnaryCost, pair: StereoPair, start: DepthMap | None, rng: np.random.Generator) -> DepthMap:
        """A disparity map of low cost."""
        ...


def names() -> list[str]:
    """Every solver there is."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load(name: str) -> Solver:
    """The solver of that name."""
    if name not in names():
        raise InputError(f"there is no solver {name!r}; choose one of {', '.join(names())}")
    solver: Any = import_module(f"{__name__}.{name}")
    return solver

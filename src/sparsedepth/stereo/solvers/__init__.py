"""Solvers of the matcher; a file is a solver, and its name is the name on the command line.

A solver's file has ``solve(unary, pair, start, rng) -> disparity``: a map within 0 and ``pair.max_disparity`` whose
cost, with the file's own idea of smoothness, is low. ``start`` is where it may begin; ``rng`` is its only chance. What
is particular to it are keyword arguments with defaults. ``data_cost`` is the cost of `stereo.costs` whose scale its
defaults fit. ``feedback`` is the strength of a belief, and ``hidden_feedback`` that of the filled disparity of a hidden
pixel. Without them a file has the scale of graph cuts. ``any_size = True`` says that its memory is bounded, whatever
the size of the pictures. A solver that takes its time also has ``fusions``, with the arguments of ``solve``: its steps,
the last with the result. One that divides its work between threads has ``solve_both(cost, pair, threads)``: the maps of
both views from their AD-census cost.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

import numpy as np

from sparsedepth.stereo.ad_census import AdCensus
from sparsedepth.stereo.costs import Cost, birchfield_tomasi
from sparsedepth.stereo.prior import Feedback
from sparsedepth.vocabulary import DepthMap, InputError, StereoPair, UnaryCost

HIDDEN_FEEDBACK = Feedback(least_deviation=1.0)
"""Of hidden pixels, of a solver with the scale of graph cuts."""


class Step(Protocol):
    """The state of a solver after a step."""

    @property
    def disparity(self) -> DepthMap: ...
    @property
    def energy(self) -> float: ...
    @property
    def done(self) -> int: ...
    @property
    def total(self) -> int:
        """The largest number of steps."""
        ...


@dataclass(frozen=True)
class Solver:
    """The functions that a solver's file offers."""

    solve: Callable[[UnaryCost, StereoPair, DepthMap | None, np.random.Generator], DepthMap]
    """A disparity map of low cost."""
    data_cost: Cost
    """The cost whose scale the solver's defaults fit."""
    feedback: Feedback
    """How strongly a belief acts on that cost."""
    hidden_feedback: Feedback
    """How strongly the filled disparity of a hidden pixel acts, which has no data."""
    any_size: bool = False
    """Whether pictures of any size are solved from its data cost, in bounded memory."""
    steps: Callable[[UnaryCost, StereoPair, DepthMap | None, np.random.Generator], Iterator[Step]] | None = None
    """The same as `solve`, step by step, of those that take their time."""
    solve_both: Callable[[AdCensus, StereoPair, int], tuple[DepthMap, DepthMap]] | None = None
    """The maps of both views from their AD-census cost, in a number of threads, of those that divide their work."""


def names() -> list[str]:
    """List all solvers."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load(name: str) -> Solver:
    """Load the solver of that name."""
    if name not in names():
        raise InputError(f"there is no solver {name!r}; choose one of {', '.join(names())}")
    module = import_module(f"{__name__}.{name}")
    data_cost = getattr(module, "data_cost", birchfield_tomasi)
    feedback = getattr(module, "feedback", Feedback())
    hidden = getattr(module, "hidden_feedback", HIDDEN_FEEDBACK)
    any_size = getattr(module, "any_size", False)
    further = getattr(module, "fusions", None), getattr(module, "solve_both", None)
    return Solver(module.solve, data_cost, feedback, hidden, any_size, *further)

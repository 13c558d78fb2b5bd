"""The two layers in alternation: disparities from the views and a belief, then a belief from the disparities."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from sparsedepth.stereo.occlusion import Mask, fill_along_colours, hidden_pixels
from sparsedepth.stereo.prior import Feedback, with_belief
from sparsedepth.stereo.rows import byte_rows
from sparsedepth.vocabulary import Belief, DepthMap, InputError, StereoPair, UnaryCost

Solve = Callable[[UnaryCost, StereoPair, DepthMap, Generator], DepthMap]
"""(cost, pair, start, chance) -> disparity; see `stereo.solvers`."""
Believe = Callable[[DepthMap], Belief]
Energy = Callable[[UnaryCost, StereoPair, DepthMap], float]


def believe_nothing(disparity: DepthMap) -> Belief:
    """Believe nothing about any pixel: the loop without a top layer.

    >>> believe_nothing(np.zeros((1, 2))).variance.tolist()
    [[inf, inf]]
    """
    return Belief(np.full(disparity.shape, np.nan), np.full(disparity.shape, np.inf))


@dataclass(frozen=True, eq=False)
class Estimate:
    """A disparity map, and the belief about the previous map with which it was found."""

    disparity: DepthMap
    belief: Belief | None
    """None of the plain matcher's map."""
    energy: float
    """Of the map under the cost that it was found with."""
    changed: int
    """Pixels that differ from the estimate before by more than half a pixel; in the first one, 0."""
    hidden: Mask | None = None
    """Pixels of the previous map that were taken for hidden; None where occlusions are not modelled."""


@dataclass(frozen=True)
class Settings:
    """The dictionary, the rounds and the smoothness of a published result."""

    dictionary: str
    rounds: int
    potts: float
    move: str


PAPER = Settings(dictionary="phi1_32", rounds=3, potts=20.0, move="swap")
"""Graph cuts below 1024 atoms of 32x32 pixels, three times (Sec. V-C)."""


def unary_energy(cost: UnaryCost, pair: StereoPair, disparity: DepthMap) -> float:
    """Add the costs of all pixels, without any smoothness."""
    return float(cost(disparity).sum(dtype=np.float64))


def two_layer(
    pair: StereoPair,
    cost: UnaryCost,
    solve: Solve,
    believe: Believe,
    rng: Generator,
    *,
    rounds: int = PAPER.rounds,
    feedback: Feedback = Feedback(),
    hidden_feedback: Feedback | None = None,
    start: DepthMap | None = None,
    first: DepthMap | None = None,
    energy: Energy = unary_energy,
) -> Iterator[Estimate]:
    """Yield the plain matcher's map, then one map a round, each found with the belief about the one before.

    Any solver and any ``believe`` will do. ``start`` is where the matcher begins, zeros if not given; each round goes
    on from the map before. ``first`` is the plain matcher's map where it is known already.

    With ``hidden_feedback`` a round models occlusions, which the paper does not. Pixels that the map before shows to be
    hidden are filled from the background. They have no data, and are held to the filled disparity with that strength.
    The belief is then inferred from the filled map.
    """
    if rounds < 0:
        raise InputError(f"rounds is {rounds}; it must be zero or more")
    begin = np.zeros(pair.shape, np.float32) if start is None else start
    disparity = solve(cost, pair, begin, rng) if first is None else first
    yield Estimate(disparity, None, energy(cost, pair, disparity), 0)
    guide = byte_rows(pair.left)
    for _ in range(rounds):
        before, filled, hidden = disparity, disparity, None
        if hidden_feedback is not None:
            hidden = hidden_pixels(before)
            filled = fill_along_colours(before, hidden, guide)
        belief = believe(filled)
        unary = with_belief(cost, belief, feedback)
        if hidden is not None and hidden_feedback is not None:
            unary = unary.where_hidden(hidden, filled, hidden_feedback)
        disparity = solve(unary, pair, before, rng)
        changed = int((np.abs(disparity - before) > 0.5).sum())
        yield Estimate(disparity, belief, energy(unary, pair, disparity), changed, hidden)

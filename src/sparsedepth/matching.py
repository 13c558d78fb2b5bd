"""Stereo matching for users: any solver, occlusions filled, and a variance in which the sparse belief has a say."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.parallel import cores, map_in_threads
from sparsedepth.restore import believe as sparse_belief
from sparsedepth.stereo import occlusion, solvers
from sparsedepth.stereo.costs import ad_census
from sparsedepth.stereo.order import looks_swapped
from sparsedepth.stereo.prior import with_belief
from sparsedepth.stereo.variance import disparity_variance
from sparsedepth.vocabulary import Belief, DepthMap, Floats, InputError, Match, Origin, StereoPair, UnaryCost

MOST_COSTS = 1 << 28
"""Pixels times disparities; a solver holds a few such volumes of float32."""
TOLERANCE = 0.5
"""Views that disagree by more, in pixels, have not matched; like the other numbers here chosen on Middlebury 2005 and
2006 in two sizes."""
SMALLEST = 20
"""Pixels of a piece of surface; smaller ones are taken for errors."""
COLOUR = 10.0
"""Colours that differ by so much, of 0..255, are hardly alike to the medians that fill and that draw edges."""
STRIDE = 3
"""Of the patches that the belief is inferred from."""

Believe = Callable[[DepthMap], Belief]


@dataclass(frozen=True)
class Stage:
    """What is being done, and in the last one the result."""

    doing: str
    result: Match | None = None
    within: bool = False
    """Whether it is but a step of the stage before."""


def match(
    left: Any,
    right: Any,
    *,
    max_disparity: int,
    solver: str = "semi_global",
    prior: bool = True,
    rounds: int = 0,
    threads: int | None = None,
    seed: int = 0,
) -> Match:
    """The disparity of every pixel of the left view, with its variance in squared pixels and its `Origin`.

    The views are rectified pictures of equal size, grey or colour, of any depth (see `StereoPair`); disparities from 0
    to ``max_disparity`` are searched. Pixels that do not match both ways are filled from what lies behind them.
    ``prior`` lets the sparse belief about the map speak in the variance; ``rounds`` solves again that often with the
    belief in the cost, as the paper does: with the default solver that made Middlebury 2005 worse by 0.2 % of pixels.

    >>> rng = np.random.default_rng(0)
    >>> scene = rng.integers(0, 255, (24, 48), np.uint8)
    >>> found = match(scene[:, 4:40], scene[:, 7:43], max_disparity=8, prior=False)
    >>> float(np.median(found.disparity).round())
    3.0
    """
    pair = StereoPair(left, right, max_disparity)
    steps = stages(pair, solver=solver, prior=prior, rounds=rounds, threads=threads, seed=seed)
    return next(stage.result for stage in steps if stage.result is not None)


def stages(
    pair: StereoPair,
    *,
    solver: str = "semi_global",
    prior: bool = True,
    rounds: int = 0,
    threads: int | None = None,
    seed: int = 0,
) -> Iterator[Stage]:
    """`match` step by step, each said before it is done; the last one, "done", has the result."""
    chosen = solvers.load(solver)
    _require_matchable(pair, rounds, threads)
    yield Stage("looking at the order of the views")
    if looks_swapped(pair):
        raise InputError("the matches point the other way, as if the views were swapped; exchange left and right")
    yield Stage("matching both views")
    if chosen.steps is None:
        solve = partial(_solved, chosen, seed=seed)
        disparity, mirrored = map_in_threads(solve, (pair, pair.mirrored()), min(2, threads or cores()))
    else:
        disparity = yield from _followed(chosen, pair, "left", seed)
        mirrored = yield from _followed(chosen, pair.mirrored(), "right", seed)
    seen = _Seen(pair, disparity, np.ascontiguousarray(mirrored[:, ::-1]))
    believe = partial(sparse_belief, stride=STRIDE, threads=threads)
    yield Stage("filling what is hidden")
    found = seen.filled()
    for number in range(rounds):
        yield Stage(f"solving again with a belief, {number + 1} of {rounds}")
        found = _solved_again(chosen, seen, found, believe, seed)
    belief = None
    if prior:
        yield Stage("asking the top layer")
        belief = believe(found)
    unlike = ad_census(pair)(found)
    spread = disparity_variance(found, seen.apart, unlike, seen.hidden, belief)
    origin = np.where(seen.hidden, Origin.FILLED, Origin.MEASURED).astype(np.uint8)
    yield Stage("done", Match(found, spread, origin))


def n_stages(prior: bool, rounds: int) -> int:
    """How many stages there will be."""
    return 4 + rounds + prior


@dataclass(frozen=True, eq=False)
class _Seen:
    """The maps of both views, as the matcher gave them, and what is to be made of them."""

    pair: StereoPair
    left: DepthMap
    right: DepthMap

    @cached_property
    def apart(self) -> Floats:
        return occlusion.disagreement(self.left, self.right)

    @cached_property
    def hidden(self) -> NDArray[np.bool_]:
        """Pixels that did not match both ways, or that hang together with too few others."""
        return (self.apart > TOLERANCE) | occlusion.small_pieces(self.left, SMALLEST)

    def filled(self) -> DepthMap:
        """The left map, filled from behind where it is hidden, along the colours; its edges drawn anew by them."""
        guide = self.pair.left
        behind = occlusion.fill_background(self.left, self.hidden, guide)
        whole = occlusion.weighted_median(behind, guide, self.hidden, radius=15, every=2, colour=COLOUR)
        drawn = occlusion.weighted_median(whole, guide, occlusion.near_edges(whole, 2), radius=2, colour=COLOUR)
        return occlusion.smooth(drawn, 3)


def _solved(chosen: solvers.Solver, pair: StereoPair, *, seed: int) -> DepthMap:
    cost = chosen.data_cost(pair)
    return chosen.solve(cost, pair, np.zeros(pair.shape, np.float32), np.random.default_rng(seed))


def _followed(chosen: solvers.Solver, pair: StereoPair, view: str, seed: int) -> Generator[Stage, None, DepthMap]:
    """The same as `_solved`, told step by step."""
    disparity = np.zeros(pair.shape, np.float32)
    assert chosen.steps is not None
    for step in chosen.steps(chosen.data_cost(pair), pair, disparity, np.random.default_rng(seed)):
        disparity = step.disparity
        yield Stage(f"{view} view, {step.done} of {step.total}: energy {step.energy:.0f}", within=True)
    return disparity


def _solved_again(chosen: solvers.Solver, seen: _Seen, found: DepthMap, believe: Believe, seed: int) -> DepthMap:
    """One round of the two layers: hidden pixels have no data and are believed to be as they were filled."""
    belief, hidden = believe(found), seen.hidden
    told = Belief(np.where(hidden, found, belief.mean), np.where(hidden, 1.0, belief.variance))
    data = chosen.data_cost(seen.pair)

    def cost(disparity: DepthMap) -> Floats:
        return np.where(hidden, np.float32(0), data(disparity))

    unary: UnaryCost = with_belief(cost, told, chosen.feedback)
    return occlusion.smooth(chosen.solve(unary, seen.pair, found, np.random.default_rng(seed)))


def _require_matchable(pair: StereoPair, rounds: int, threads: int | None) -> None:
    if rounds < 0:
        raise InputError(f"rounds is {rounds}; it must be zero or more")
    if threads is not None and threads < 1:
        raise InputError(f"threads is {threads}; it must be at least 1")
    for name in ("left", "right"):
        if np.ptp(getattr(pair, name)) == 0:
            raise InputError(f"the {name} view has one colour everywhere; there is nothing to match")
    costs = pair.shape[0] * pair.shape[1] * (pair.max_disparity + 1)
    if costs > MOST_COSTS:
        raise InputError(
            f"{pair.shape[1]} x {pair.shape[0]} pixels at {pair.max_disparity + 1} disparities need {costs * 4e-9:.1f} "
            "GB for each volume of costs; make the pictures smaller, or the range"
        )

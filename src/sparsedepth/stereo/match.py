"""Stereo matching from the views to disparities and variances: any solver, occlusions filled, a belief passed in."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.parallel import cores
from sparsedepth.stereo import occlusion, solvers
from sparsedepth.stereo.ad_census import AdCensus
from sparsedepth.stereo.costs import ad_census
from sparsedepth.stereo.prior import with_belief
from sparsedepth.stereo.team import at_once, team
from sparsedepth.stereo.twolayer import Believe
from sparsedepth.stereo.variance import Evidence, disparity_variance
from sparsedepth.stereo.view_order import looks_swapped
from sparsedepth.stereo.view_warnings import pair_warnings
from sparsedepth.vocabulary import Belief, DepthMap, Floats, InputError, Match, Origin, StereoPair, UnaryCost

DEFAULT_SOLVER = "semi_global"
MAX_COSTS = 1 << 28
"""Pixels times disparities, for solvers that hold a few such volumes of float32."""
MAX_LR_DIFFERENCE_PX = 0.5
"""Views that disagree by more have not matched; like the other numbers here chosen on Middlebury 2005 and 2006 in two
sizes."""
MIN_SPECKLE_PX = 20
"""The pixels of a connected surface, at least; smaller ones are taken for errors."""
EDGE_RADIUS_PX = 2
"""The window of the median that sharpens edges, and what counts as near to one."""


@dataclass(frozen=True)
class Stage:
    """A step of the matcher: what is being done, its position, and in the last one the result."""

    description: str
    done: int
    """The stages that are complete."""
    total: int
    """The stages there will be."""
    result: Match | None = None


def match_stages(
    pair: StereoPair,
    believe: Believe,
    *,
    solver: str = DEFAULT_SOLVER,
    rounds: int = 0,
    threads: int | None = None,
    seed: int = 0,
) -> Iterator[Stage]:
    """Match a pair stage by stage, each announced before it is done.

    Parameters
    ----------
    pair : StereoPair
        The views and the largest disparity.
    believe : callable
        Infers a `Belief` from a disparity map, for the rounds.
    solver : str
        One of `sparsedepth.stereo.solvers`.
    rounds : int
        How often to solve again with the belief in the cost.
    threads : int, optional
        All cores by default.
    seed : int
        For solvers that choose at random.

    Yields
    ------
    Stage
        A slow solver announces its steps too, within the stage they belong to. The last stage has the result.
    """
    chosen = solvers.load(solver)
    _require_matchable(pair, rounds, threads)
    if rounds or not chosen.any_size:
        _require_small(pair)
    stages = _planned(rounds)
    yield next(stages)
    if looks_swapped(pair, threads or cores()):
        raise InputError("the matches point the other way, as if the views were swapped; exchange left and right")
    stage = next(stages)
    yield stage
    views = yield from _match_both_ways(chosen, pair, stage, threads, seed)
    yield next(stages)
    disparity = views.filled()
    for _ in range(rounds):
        yield next(stages)
        disparity = _solve_with_belief(chosen, views, disparity, believe(disparity), seed)
    yield replace(next(stages), result=_result(views, disparity))


def _planned(rounds: int) -> Iterator[Stage]:
    """List all stages, the end among them."""
    plan = [
        "checking the order of the views",
        "matching both views",
        "filling occluded pixels",
        *(f"solving again with the belief, {number + 1} of {rounds}" for number in range(rounds)),
    ]
    return (Stage(description, done, len(plan)) for done, description in enumerate([*plan, "done"]))


@dataclass(frozen=True, eq=False)
class _Views:
    """The disparities of both views, as the solver gave them."""

    pair: StereoPair
    left: DepthMap
    right: DepthMap
    threads: int
    cost: AdCensus

    @cached_property
    def lr_difference(self) -> Floats:
        return occlusion.lr_difference(self.left, self.right, self.threads)

    @cached_property
    def unmatched(self) -> NDArray[np.bool_]:
        """Pixels of the left view that do not match both ways, or that are speckles."""
        one_way, small = at_once(
            [
                lambda: self.lr_difference > MAX_LR_DIFFERENCE_PX,
                lambda: occlusion.speckles(self.left, MIN_SPECKLE_PX),
            ],
            self.threads,
        )
        return one_way | small

    def filled(self) -> DepthMap:
        """Fill the left map from the background along the colours, and sharpen its edges by them."""
        guide, threads = self.cost.left, self.threads
        window = {"radius": EDGE_RADIUS_PX, "colour": occlusion.COLOUR_STD}
        with team(threads):
            whole = occlusion.fill_along_colours(self.left, self.unmatched, guide, threads)
            edges = occlusion.near_edges(whole, EDGE_RADIUS_PX, threads=threads)
            return occlusion.smooth(occlusion.weighted_median(whole, guide, edges, threads=threads, **window), threads)

    def evidence(self, disparity: DepthMap) -> Evidence:
        """Collect the features of the variance of a map."""
        pair = self.pair
        costs = self.cost(disparity, self.threads)
        return Evidence(pair.left, pair.max_disparity, disparity, self.left, costs, self.unmatched)


def _match_both_ways(
    chosen: solvers.Solver, pair: StereoPair, stage: Stage, threads: int | None, seed: int
) -> Generator[Stage, None, _Views]:
    """Solve for the left view and, mirrored, for the right one; a slow solver announces its steps."""
    if chosen.steps is None:
        return _matched(chosen, pair, threads or cores(), seed)
    left = yield from _solve_by_steps(chosen, pair, "left", stage, seed)
    mirrored = yield from _solve_by_steps(chosen, pair.mirrored(), "right", stage, seed)
    return _Views(pair, left, np.ascontiguousarray(mirrored[:, ::-1]), threads or cores(), AdCensus.of(pair))


def _matched(chosen: solvers.Solver, pair: StereoPair, threads: int, seed: int) -> _Views:
    """Solve for both views, each in a thread if there are two, unless the solver divides the work by itself."""
    if chosen.solve_both is not None:
        with team(threads):
            cost = AdCensus.of(pair, threads=threads)
            return _Views(pair, *chosen.solve_both(cost, pair, threads), threads, cost)
    cost = AdCensus.of(pair, threads=threads)
    shared = chosen.data_cost is ad_census

    def ours() -> DepthMap:
        return _solve(chosen, pair, cost if shared else None, seed)

    def theirs() -> DepthMap:
        return _solve(chosen, pair.mirrored(), cost.mirrored() if shared else None, seed)

    left, mirrored = at_once([ours, theirs], threads)
    return _Views(pair, left, np.ascontiguousarray(mirrored[:, ::-1]), threads, cost)


def _solve(chosen: solvers.Solver, pair: StereoPair, cost: UnaryCost | None, seed: int) -> DepthMap:
    """Return the map of a view; its cost is built unless it is known."""
    known = chosen.data_cost(pair) if cost is None else cost
    return chosen.solve(known, pair, np.zeros(pair.shape, np.float32), np.random.default_rng(seed))


def _solve_by_steps(
    chosen: solvers.Solver, pair: StereoPair, view: str, stage: Stage, seed: int
) -> Generator[Stage, None, DepthMap]:
    """Solve for one view, and announce every step."""
    disparity = np.zeros(pair.shape, np.float32)
    assert chosen.steps is not None
    for step in chosen.steps(chosen.data_cost(pair), pair, disparity, np.random.default_rng(seed)):
        disparity = step.disparity
        yield replace(stage, description=f"{view} view, {step.done} of {step.total}: energy {step.energy:.0f}")
    return disparity


def _solve_with_belief(
    chosen: solvers.Solver, views: _Views, disparity: DepthMap, belief: Belief, seed: int
) -> DepthMap:
    """Solve again from a map and its belief; unmatched pixels have no data, and are believed to be as filled."""
    unary = with_belief(chosen.data_cost(views.pair), belief, chosen.feedback)
    unary = unary.where_hidden(views.unmatched, disparity, chosen.hidden_feedback)
    return occlusion.smooth(chosen.solve(unary, views.pair, disparity, np.random.default_rng(seed)))


def match_evidence(pair: StereoPair) -> Evidence:
    """Match a pair with the default solver, and return the features of its variance."""
    views = _matched(solvers.load(DEFAULT_SOLVER), pair, cores(), seed=0)
    return views.evidence(views.filled())


def _result(views: _Views, disparity: DepthMap) -> Match:
    """Estimate the variance, and look for what is suspicious."""
    found, threads = (views.left, views.unmatched, views.pair.max_disparity), views.threads
    tasks: list[Callable[[], Any]] = [
        lambda: disparity_variance(views.evidence(disparity), threads),
        lambda: pair_warnings(views.cost, *found, threads=threads),
    ]
    variance, warnings = at_once(tasks, threads)
    origin = np.where(views.unmatched, np.uint8(Origin.FILLED), np.uint8(Origin.MEASURED))
    return Match(disparity, variance, origin, warnings)


def _require_matchable(pair: StereoPair, rounds: int, threads: int | None) -> None:
    if rounds < 0:
        raise InputError(f"rounds is {rounds}; it must be zero or more")
    if threads is not None and threads < 1:
        raise InputError(f"threads is {threads}; it must be at least 1")
    for name in ("left", "right"):
        if _has_one_colour(getattr(pair, name)):
            raise InputError(f"the {name} view has one colour everywhere; there is nothing to match")


def _has_one_colour(view: Floats) -> bool:
    """Tell whether all pixels are alike; a part of most views shows that they are not."""
    first = view[0, 0]
    return bool((view[::16, ::16] == first).all() and (view == first).all())


def _require_small(pair: StereoPair) -> None:
    costs = pair.shape[0] * pair.shape[1] * (pair.max_disparity + 1)
    if costs > MAX_COSTS:
        raise InputError(
            f"{pair.shape[1]} x {pair.shape[0]} pixels at {pair.max_disparity + 1} disparities need {costs * 4e-9:.1f} "
            "GB for each volume of costs; make the pictures smaller, or the range, or use the solver "
            "semi_global without rounds, which has no limit"
        )

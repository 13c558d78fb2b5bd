"""Second-order stereo (2OP; Woodford et al. 2009): planes cost nothing; maps are fused until the energy rests.

The energy is that of `stereo.fusion`, the maps are those of `stereo.proposals`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Generator as Steps
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sparsedepth.stereo import proposals
from sparsedepth.stereo.costs import LOG_2, photo_consistency
from sparsedepth.stereo.fusion import SecondOrderEnergy, fuse
from sparsedepth.stereo.opencv import mean_shift_segments
from sparsedepth.stereo.prior import Believed, Feedback
from sparsedepth.vocabulary import DepthMap, Floats, InputError, StereoPair, UnaryCost

MAX_BEND_COST_WITHIN, MAX_BEND_COST_ACROSS = 4.32, 0.36
"""What a bend costs at most within a segment of the picture, and across its border; those of the authors' program."""
MAX_BEND_PX = 1.18
"""Pixels of second difference from which on it costs that; the authors' 2 % of the range of 59 pixels of Teddy."""
SEGMENT_COLOUR_RADIUS = 5.0
"""Of the mean shift whose segments these are."""
HIDDEN_COST = LOG_2 + 0.01
"""What a pixel costs that the right view does not show."""
STAGE_FUSIONS = 60
"""Most fusions of a stage of the authors' schedule."""

data_cost = photo_consistency
feedback = Feedback(prior=0.1)
hidden_feedback = Feedback(prior=1.0, least_deviation=1.0)


Propose = Callable[[DepthMap], DepthMap]
"""The current map -> another."""


@dataclass(frozen=True, eq=False)
class Fusion:
    """The map after one more proposal."""

    disparity: DepthMap
    energy: float
    proposal: str
    labelled: float
    """The share of pixels that roof duality decided."""
    seconds: float
    """Of the processor, for the proposal and its fusion."""
    done: int
    total: int
    """Fusions so far, and at most."""


def solve(
    unary: UnaryCost,
    pair: StereoPair,
    start: DepthMap | None,
    rng: Generator,
    *,
    schedule: str = "quick",
    with_mean: bool = False,
    **strengths: float,
) -> DepthMap:
    """Find real-valued disparities that no proposal of the schedule improves any more, in its order.

    ``schedule`` is "quick" (from semi-global matching; the start is but a proposal, and none if it is level), "touch"
    (from the start, a third of the effort, for a map that is good already), or "authors" (from random maps, until it no
    longer pays).
    ``with_mean`` also proposes the mean of the belief that is in the cost, if one is. ``strengths`` are those of
    `energy_of`.
    """
    steps = fusions(
        unary, pair, start, rng, schedule=schedule, with_mean=with_mean, stage_fusions=STAGE_FUSIONS, **strengths
    )
    return deque(steps, maxlen=1)[0].disparity


def fusions(
    unary: UnaryCost,
    pair: StereoPair,
    start: DepthMap | None,
    rng: Generator,
    *,
    schedule: str = "quick",
    with_mean: bool = False,
    stage_fusions: int = STAGE_FUSIONS,
    **strengths: float,
) -> Iterator[Fusion]:
    """Yield every fusion of `solve`; the energy never rises, except where the authors' schedule restarts at random.

    ``stage_fusions`` is how many fusions a stage of that schedule has at most.
    """
    if schedule not in SCHEDULES:
        raise InputError(f"the schedule is {schedule!r}; choose one of {', '.join(map(repr, SCHEDULES))}")
    begin = np.zeros(pair.shape, np.float32) if start is None else np.asarray(start, np.float32)
    first = np.clip(begin, 0, pair.max_disparity)
    work = _Work(energy_of(unary, pair, **strengths), unary, pair, first, rng, stage_fusions)
    if with_mean and isinstance(unary, Believed):
        work.also.append(("belief", np.clip(unary.mean, 0, pair.max_disparity)))
    yield from SCHEDULES[schedule](work)


@dataclass(eq=False)
class _Work:
    """The inputs that every schedule needs."""

    energy: SecondOrderEnergy
    cost: UnaryCost
    pair: StereoPair
    start: DepthMap
    rng: Generator
    stage_fusions: int
    also: list[tuple[str, DepthMap]] = field(default_factory=list)
    """Further proposals, by name."""

    def further(self) -> list[tuple[str, Propose]]:
        return [(name, lambda _, each=each: each) for name, each in self.also]

    def fused(self, begin: DepthMap, proposed: Iterable[tuple[str, Propose]], total: int) -> Iterator[Fusion]:
        """Fuse a map with one proposal after the other."""
        current, value = begin, self.energy.value(begin)
        for done, (name, propose) in enumerate(proposed, 1):
            began = time.thread_time()
            found = fuse(self.energy, current, propose(current), self.rng, before=value)
            current, value = found.disparity, found.energy
            yield Fusion(current, value, name, found.labelled, time.thread_time() - began, done, total)

    def planes(self, disparity: DepthMap, trusted: NDArray[np.bool_], kind: int) -> Propose:
        """Propose planes in one of the segmentations: fine ones first, alternately with and without a blur."""
        coarseness = proposals.COARSENESS[kind // 2 % len(proposals.COARSENESS)]

        def propose(current: DepthMap) -> DepthMap:
            segments = proposals.segmentation(self.pair.left, coarseness, blurred=kind % 2 == 1)
            return proposals.planes(disparity, trusted, segments, self.pair.max_disparity, self.rng)

        return propose


def _quick(work: _Work) -> Iterator[Fusion]:
    """Fuse semi-global matching with planes fitted to it, the start, the cost's own map, and smoothing."""
    matched, agree = proposals.matched_both_ways(work.pair)
    proposed = [("planes", work.planes(matched, agree, kind)) for kind in range(N_SEGMENTATIONS)]
    proposed.insert(1, ("semi-global by cost", lambda _: proposals.matched_by_cost(work.cost, work.pair)))
    if np.ptp(work.start):  # what the right view does not show has no data, and would fall for a level map
        proposed.insert(2, ("start", lambda _: work.start))
    proposed += [*work.further(), *_smoothing(4)]
    yield from work.fused(matched, proposed, len(proposed))


def _touch(work: _Work) -> Iterator[Fusion]:
    """Fuse the start with planes in segments of three random kinds, and smoothing."""
    matched, agree = proposals.matched_both_ways(work.pair)
    kinds = work.rng.permutation(N_SEGMENTATIONS)[:3]
    proposed = [("planes", work.planes(matched, agree, int(kind))) for kind in kinds]
    proposed += [*work.further(), *_smoothing(2)]
    yield from work.fused(work.start, proposed, len(proposed))


def _smoothing(count: int) -> list[tuple[str, Propose]]:
    return [("smooth", partial(proposals.smoothed, vertical=turn % 2 == 0)) for turn in range(count)]


N_SEGMENTATIONS = 8
"""Of segments: the finer ones; planes in coarser ones lower the energy, but make more pixels wrong than right."""
RECENT_FUSIONS, MIN_RECENT_GAIN = 20, 0.002
"""A stage ends when that number of recent fusions has lowered the energy by less than this share of it."""


def _authors(work: _Work) -> Iterator[Fusion]:
    """Fuse from random maps: planes, constant maps, then both results and smoothing in turn."""
    matched = proposals.matched_windows(work.cost, work.pair)
    everywhere, most = np.ones(work.pair.shape, bool), work.stage_fusions
    level: tuple[str, Propose] = ("level", lambda _: proposals.level(work.pair, work.rng))
    results = []
    stages = [
        (("planes", work.planes(matched, everywhere, kind % 14)) for kind in range(most)),
        (level for _ in range(most)),
    ]
    for number, stage in enumerate(stages):
        last = yield from _until_it_does_not_pay(work, stage, number * most)
        results.append(last)
    again = [("earlier", lambda _, each=each: each) for each in results]
    cycle = [*again, *work.further(), *_smoothing(4)]
    yield from _until_it_does_not_pay(work, (cycle[i % len(cycle)] for i in range(most)), 2 * most)


def _until_it_does_not_pay(
    work: _Work, proposed: Iterable[tuple[str, Propose]], before: int
) -> Steps[Fusion, None, DepthMap]:
    begin = proposals.random_map(work.pair, work.rng)
    energies = [work.energy.value(begin)]
    last = begin
    for fusion in work.fused(begin, proposed, work.stage_fusions):
        last = fusion.disparity
        energies.append(fusion.energy)
        yield replace(fusion, done=before + fusion.done, total=3 * work.stage_fusions)
        if (
            len(energies) > RECENT_FUSIONS
            and energies[-1 - RECENT_FUSIONS] - energies[-1] < MIN_RECENT_GAIN * energies[-1]
        ):
            break
    return last


SCHEDULES: dict[str, Callable[[_Work], Iterator[Fusion]]] = {"quick": _quick, "touch": _touch, "authors": _authors}


def energy_of(
    unary: UnaryCost,
    pair: StereoPair,
    *,
    together: float = MAX_BEND_COST_WITHIN,
    apart: float = MAX_BEND_COST_ACROSS,
    colour: float = SEGMENT_COLOUR_RADIUS,
) -> SecondOrderEnergy:
    """Build the energy of a pair under a cost: a hidden pixel has no data, but the prior of a belief.

    ``together`` and ``apart`` are what a bend costs at most, ``colour`` is the radius of the mean shift that segments
    the left view.
    """

    def costs(disparity: DepthMap) -> tuple[Floats, Floats]:
        if not isinstance(unary, Believed):
            seen = unary(disparity)
            return seen, np.maximum(seen, np.float32(HIDDEN_COST))
        data = unary.data(disparity)
        hidden = np.maximum(data, np.float32(HIDDEN_COST))
        return unary.with_data(lambda _: data)(disparity), unary.with_data(lambda _: hidden)(disparity)

    segments = mean_shift_segments(pair.left, colour=colour)
    rows = (segments[:, :-2] == segments[:, 1:-1]) & (segments[:, 1:-1] == segments[:, 2:])
    columns = (segments[:-2] == segments[1:-1]) & (segments[1:-1] == segments[2:])
    along_rows, along_columns = (np.where(same, together, apart).astype(np.float32) for same in (rows, columns))
    return SecondOrderEnergy(costs, along_rows, along_columns, MAX_BEND_PX)

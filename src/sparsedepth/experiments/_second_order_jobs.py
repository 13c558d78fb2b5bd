"""Variants of second-order stereo with the sparse prior, the jobs that run them, and their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from sparsedepth.baselines import median
from sparsedepth.data.middlebury import StereoScene
from sparsedepth.experiments._cache import baselines_version, cached, restoration_version, stereo_version
from sparsedepth.experiments._methods import Outcome
from sparsedepth.experiments._scenes import PARTS, SPARSITY, STRIDE, SURE, WINDOW, believe_median, believing, known
from sparsedepth.metrics import bad_pixels
from sparsedepth.stereo.prior import NO_FEEDBACK, Feedback
from sparsedepth.stereo.solvers import second_order
from sparsedepth.stereo.twolayer import Believe, Solve, two_layer
from sparsedepth.vocabulary import DepthMap, StereoPair, UnaryCost

SEEDS, FEW = 5, 2
"""Of the arms that the claims are about and of their halves, and of the others."""
ROUNDS = 2
"""Of both layers; the paper's."""
PLAIN, AGAIN, WEIGHTS, PRIOR, BOTH, PROPOSED, BY_MEDIAN, ANEW, ANEW_BOTH, FILTERED = (
    "2OP",
    "2OP, again",
    "2OP + ns-SC, weights only",
    "2OP + ns-SC, prior only",
    "2OP + ns-SC",
    "2OP + ns-SC, its mean proposed",
    "2OP + median",
    "2OP, anew",
    "2OP + ns-SC, anew",
    "median of 2OP",
)


@dataclass(frozen=True)
class Arm:
    """A way in which the two layers continue from a plain map."""

    feedback: Feedback
    seeds: int
    anew: bool = False
    """Whether every round begins anew, as the plain matcher did, rather than at the map before."""
    with_mean: bool = False
    by_median: bool = False

    def solve(self) -> Solve:
        if not self.anew:
            return partial(second_order.solve, schedule="touch", with_mean=self.with_mean)
        return _anew


def _anew(unary: UnaryCost, pair: StereoPair, start: DepthMap | None, rng: np.random.Generator) -> DepthMap:
    del start
    return second_order.solve(unary, pair, None, rng)


FULL = second_order.feedback
ARMS: Mapping[str, Arm] = {
    AGAIN: Arm(NO_FEEDBACK, SEEDS),
    BOTH: Arm(FULL, SEEDS),
    WEIGHTS: Arm(Feedback(prior=0.0), SEEDS),
    PRIOR: Arm(Feedback(prior=FULL.prior, least_weight=1.0), SEEDS),
    PROPOSED: Arm(FULL, FEW, with_mean=True),
    BY_MEDIAN: Arm(FULL, FEW, by_median=True),
    ANEW: Arm(NO_FEEDBACK, FEW, anew=True),
    ANEW_BOTH: Arm(FULL, FEW, anew=True),
}


@dataclass(frozen=True, eq=False)
class Job:
    """One scene and seed: the plain map, then one variant from it; every map is cached."""

    name: str
    scene: StereoScene
    seed: int
    arm: str
    dictionary: str
    stride: int

    def done(self) -> DepthMap:
        pair = self.scene.pair
        plain = self._cached(PLAIN, lambda: second_order.solve(self._cost(), pair, None, self._chance(0)))
        if self.arm == PLAIN:
            return plain
        if self.arm == FILTERED:
            return median(plain, WINDOW)
        return self._cached(self.arm, lambda: self._gone_on(plain))

    def _gone_on(self, plain: DepthMap) -> DepthMap:
        arm = ARMS[self.arm]
        top: Believe = believe_median if arm.by_median else believing(self.dictionary, self.stride)
        rounds = two_layer(
            self.scene.pair,
            self._cost(),
            arm.solve(),
            top,
            self._chance(1),
            rounds=ROUNDS,
            feedback=arm.feedback,
            first=plain,
        )
        return list(rounds)[-1].disparity

    def _cost(self) -> UnaryCost:
        return second_order.data_cost(self.scene.pair)

    def _chance(self, number: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, number])

    def _cached(self, arm: str, make: Callable[[], DepthMap]) -> DepthMap:
        how = None if arm == PLAIN else replace(ARMS[arm], seeds=0)
        layers = f"{ROUNDS}, {self.dictionary}, {self.stride}, {SPARSITY}, {WINDOW}, {SURE}"
        version = f"{stereo_version()}, {restoration_version(self.dictionary)}, {baselines_version()}"
        pictures = [view.reshape(len(view), -1) for view in (self.scene.pair.left, self.scene.pair.right)]
        return cached(f"{arm}, seed {self.seed}, {how}, {layers}", version, pictures, lambda: Outcome(make())).depth


@dataclass(frozen=True, eq=False)
class Plan:
    scenes: Mapping[str, StereoScene]
    seeds: Mapping[str, int]
    """Of each arm."""
    dictionary: str = "phi1_32"
    stride: int = STRIDE
    note: str = ""

    def jobs(self) -> list[Job]:
        """Seed by seed, the arms with most seeds first: a run that is stopped has kept whole seeds of the claims'."""
        return [
            Job(name, scene, seed, arm, self.dictionary, self.stride)
            for seeds in sorted(set(self.seeds.values()), reverse=True)
            for seed in range(seeds)
            for arm, wanted in self.seeds.items()
            if wanted == seeds
            for name, scene in self.scenes.items()
        ]


@dataclass(frozen=True, eq=False)
class Results:
    """Percent of bad pixels: (scene, part, px) -> variant -> one a seed; and the maps of the first seed."""

    bad: dict[tuple[str, str, float], dict[str, list[float]]] = field(default_factory=dict)
    shown: dict[str, dict[str, DepthMap]] = field(default_factory=dict)

    def add(self, job: Job, disparity: DepthMap) -> None:
        for part in PARTS:
            for pixels in (1.0, 0.5):
                share = bad_pixels(disparity, known(job.scene, part), pixels)
                self.bad.setdefault((job.name, part, pixels), {}).setdefault(job.arm, []).append(100 * share)
        if job.seed == 0:
            self.shown.setdefault(job.name, {})[job.arm] = disparity

    def mean(self, scene: str, arm: str, part: str = "all", pixels: float = 1.0) -> float:
        return float(np.mean(self.bad[scene, part, pixels][arm]))

    def gains(self, scene: str, arm: str, over: str = PLAIN) -> list[float]:
        """Compute by how many points of "all" at 1 px a variant is better, for each seed that both have."""
        of = self.bad[scene, "all", 1.0]
        return [before - after for before, after in zip(of[over], of[arm], strict=False)]

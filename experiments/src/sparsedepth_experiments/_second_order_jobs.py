"""Variants of second-order stereo with the sparse prior, the jobs that run them, and their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from sparsedepth.baselines import median
from sparsedepth.data.middlebury import StereoScene
from sparsedepth.metrics import bad_pixels
from sparsedepth.stereo.prior import NO_FEEDBACK, Feedback
from sparsedepth.stereo.solvers import second_order
from sparsedepth.stereo.twolayer import Believe, Solve, two_layer
from sparsedepth.vocabulary import DepthMap, StereoPair, UnaryCost
from sparsedepth_experiments._cache import baselines_version, cached, restoration_version, stereo_version
from sparsedepth_experiments._methods import Outcome
from sparsedepth_experiments._scenes import PARTS, SPARSITY, STRIDE, SURE, WINDOW, believe_median, believing, known

SEEDS, FEW = 5, 2
"""Of the variants that the claims are about and of their halves, and of the others."""
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
class Variant:
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

    def key(self) -> str:
        """Format the variant for the keys of cached maps; its number of seeds does not change them."""
        return repr(replace(self, seeds=0)).replace(type(self).__qualname__, "Arm", 1)


def _anew(unary: UnaryCost, pair: StereoPair, start: DepthMap | None, rng: np.random.Generator) -> DepthMap:
    del start
    return second_order.solve(unary, pair, None, rng)


FULL = second_order.feedback
VARIANTS: Mapping[str, Variant] = {
    AGAIN: Variant(NO_FEEDBACK, SEEDS),
    BOTH: Variant(FULL, SEEDS),
    WEIGHTS: Variant(Feedback(prior=0.0), SEEDS),
    PRIOR: Variant(Feedback(prior=FULL.prior, least_weight=1.0), SEEDS),
    PROPOSED: Variant(FULL, FEW, with_mean=True),
    BY_MEDIAN: Variant(FULL, FEW, by_median=True),
    ANEW: Variant(NO_FEEDBACK, FEW, anew=True),
    ANEW_BOTH: Variant(FULL, FEW, anew=True),
}


@dataclass(frozen=True, eq=False)
class Job:
    """One scene and seed: the plain map, then one variant from it; every map is cached."""

    name: str
    scene: StereoScene
    seed: int
    variant: str
    dictionary: str
    stride: int

    def done(self) -> DepthMap:
        pair = self.scene.pair
        plain = self._cached(PLAIN, lambda: second_order.solve(self._cost(), pair, None, self._chance(0)))
        if self.variant == PLAIN:
            return plain
        if self.variant == FILTERED:
            return median(plain, WINDOW)
        return self._cached(self.variant, lambda: self._gone_on(plain))

    def _gone_on(self, plain: DepthMap) -> DepthMap:
        variant = VARIANTS[self.variant]
        top: Believe = believe_median if variant.by_median else believing(self.dictionary, self.stride)
        rounds = two_layer(
            self.scene.pair,
            self._cost(),
            variant.solve(),
            top,
            self._chance(1),
            rounds=ROUNDS,
            feedback=variant.feedback,
            first=plain,
        )
        return list(rounds)[-1].disparity

    def _cost(self) -> UnaryCost:
        return second_order.data_cost(self.scene.pair)

    def _chance(self, number: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, number])

    def _cached(self, variant: str, make: Callable[[], DepthMap]) -> DepthMap:
        how = None if variant == PLAIN else VARIANTS[variant].key()
        layers = f"{ROUNDS}, {self.dictionary}, {self.stride}, {SPARSITY}, {WINDOW}, {SURE}"
        version = f"{stereo_version()}, {restoration_version(self.dictionary)}, {baselines_version()}"
        pictures = [view.reshape(len(view), -1) for view in (self.scene.pair.left, self.scene.pair.right)]
        return cached(f"{variant}, seed {self.seed}, {how}, {layers}", version, pictures, lambda: Outcome(make())).depth


@dataclass(frozen=True, eq=False)
class Plan:
    scenes: Mapping[str, StereoScene]
    seeds: Mapping[str, int]
    """Of each variant."""
    dictionary: str = "phi1_32"
    stride: int = STRIDE
    note: str = ""

    def jobs(self) -> list[Job]:
        """List the jobs seed by seed, most seeds first: a run that is stopped has kept whole seeds of the claims'."""
        return [
            Job(name, scene, seed, variant, self.dictionary, self.stride)
            for seeds in sorted(set(self.seeds.values()), reverse=True)
            for seed in range(seeds)
            for variant, wanted in self.seeds.items()
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
                self.bad.setdefault((job.name, part, pixels), {}).setdefault(job.variant, []).append(100 * share)
        if job.seed == 0:
            self.shown.setdefault(job.name, {})[job.variant] = disparity

    def mean(self, scene: str, variant: str, part: str = "all", pixels: float = 1.0) -> float:
        return float(np.mean(self.bad[scene, part, pixels][variant]))

    def gains(self, scene: str, variant: str, over: str = PLAIN) -> list[float]:
        """Compute by how many points of "all" at 1 px a variant is better, for each seed that both have."""
        of = self.bad[scene, "all", 1.0]
        return [before - after for before, after in zip(of[over], of[variant], strict=False)]

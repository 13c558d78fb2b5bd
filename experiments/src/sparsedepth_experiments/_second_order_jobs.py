"""Variants of a matcher with occlusions and the sparse prior, the jobs that run them, and their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from sparsedepth.baselines import median
from sparsedepth.data.middlebury import StereoScene
from sparsedepth.metrics import bad_pixels
from sparsedepth.stereo.occlusion import fill_along_colours, hidden_pixels
from sparsedepth.stereo.prior import NO_FEEDBACK, Feedback
from sparsedepth.stereo.rows import byte_rows
from sparsedepth.stereo.solvers import graph_cut, load, second_order, semi_global
from sparsedepth.stereo.twolayer import Believe, Solve, believe_nothing, two_layer
from sparsedepth.vocabulary import Belief, DepthMap, StereoPair, UnaryCost
from sparsedepth_experiments._cache import (
    OUTCOMES,
    Stored,
    baselines_version,
    cached,
    restoration_version,
    stereo_version,
)
from sparsedepth_experiments._methods import Outcome
from sparsedepth_experiments._scenes import PARTS, SPARSITY, SURE, WINDOW, believe_median, believing, known
from sparsedepth_experiments.harness import Job, Key, Records

PLAIN, AGAIN, BOTH, FILTERED, FILLED, FILLED_FILTERED, PROPOSED, WITHOUT, WITH, BY_MEDIAN, ANEW, ANEW_LOOP = (
    "2OP",
    "2OP, again",
    "2OP + ns-SC (the paper)",
    "median of 2OP",
    "fill only",
    "median of the fill",
    "fill as a proposal only",
    "loop without dictionary",
    "loop with dictionary",
    "loop with median",
    "2OP, anew",
    "loop without dictionary, anew",
)


@dataclass(frozen=True)
class Variant:
    """A way in which one round goes on from a plain map."""

    top: str
    """What the belief is inferred with: "dictionary", "median", "fill" or "nothing"."""
    feedback: Feedback = NO_FEEDBACK
    hidden: Feedback | None = None
    """Strength of the filled disparities of hidden pixels; None = no pixel is taken for hidden."""
    with_mean: bool = False
    anew: bool = False
    """Whether the round begins anew, as the plain matcher did, rather than at the map before."""

    def solve(self) -> Solve:
        if not self.anew:
            return partial(second_order.solve, schedule="touch", with_mean=self.with_mean)
        return partial(_anew, with_mean=self.with_mean)

    def scaled_for(self, solver: str) -> Variant:
        """Replace the strengths by those of another solver, whose costs have another scale."""
        own = load(solver)
        prior = replace(own.feedback, least_weight=1.0) if self.feedback is PRIOR else self.feedback
        return replace(self, feedback=prior, hidden=own.hidden_feedback if self.hidden else None)


def _anew(
    unary: UnaryCost, pair: StereoPair, start: DepthMap | None, rng: np.random.Generator, *, with_mean: bool
) -> DepthMap:
    del start
    return second_order.solve(unary, pair, None, rng, with_mean=with_mean)


FULL, HIDDEN = second_order.feedback, second_order.hidden_feedback
PRIOR = Feedback(prior=FULL.prior, least_weight=1.0)
"""The prior without the weights of the data, as in the recipe that was chosen on Middlebury 2005."""
VARIANTS: Mapping[str, Variant] = {
    AGAIN: Variant("nothing"),
    BOTH: Variant("dictionary", FULL),
    PROPOSED: Variant("fill", NO_FEEDBACK, with_mean=True),
    WITHOUT: Variant("nothing", NO_FEEDBACK, HIDDEN, with_mean=True),
    WITH: Variant("dictionary", PRIOR, HIDDEN, with_mean=True),
    BY_MEDIAN: Variant("median", PRIOR, HIDDEN, with_mean=True),
    ANEW: Variant("nothing", anew=True),
    ANEW_LOOP: Variant("nothing", NO_FEEDBACK, HIDDEN, with_mean=True, anew=True),
}

CONFIRMING, TEST, MATCH = "confirming", "test", "match"
"""Groups of arms, beside those of the other solvers; the last goes through the steps of `match`."""
SECOND_ORDER = "second_order"
OTHERS: Mapping[str, Solve] = {
    "graph_cut": partial(graph_cut.solve, move="expansion", cycles=2),
    "semi_global": semi_global.solve,
}
"""Solvers that the same loop goes over; where labels are many, expansions take a third of the time of swaps."""


def filled(pair: StereoPair, disparity: DepthMap) -> DepthMap:
    """Fill what a map says to be hidden."""
    return fill_along_colours(disparity, hidden_pixels(disparity), byte_rows(pair.left))


@dataclass(frozen=True, eq=False)
class Score:
    """Percent of bad pixels by part and pixels, and the map of a first seed."""

    bad: Mapping[tuple[str, float], float]
    shown: DepthMap | None


@dataclass(frozen=True, eq=False)
class Arm:
    """One scene and seed: the plain map, then one variant from it; every map is cached."""

    name: str
    scene: StereoScene
    seed: int
    variant: str
    dictionary: str
    stride: int
    solver: str = SECOND_ORDER

    def disparity(self) -> DepthMap:
        """Compute the map."""
        pair = self.scene.pair
        plain = self._cached(PLAIN, self._first)
        simple: dict[str, Callable[[], DepthMap]] = {
            PLAIN: lambda: plain,
            FILTERED: lambda: median(plain, WINDOW),
            FILLED: lambda: filled(pair, plain),
            FILLED_FILTERED: lambda: median(filled(pair, plain), WINDOW),
        }
        if self.variant in simple:
            return simple[self.variant]()
        return self._cached(self.variant, lambda: self._gone_on(plain))

    def key(self, group: str) -> Key:
        """Name it among all jobs of the experiment."""
        return {"group": group, "scene": self.name, "variant": self.variant, "seed": self.seed}

    def job(self, group: str) -> Job[Score]:
        """Describe its work; the map finds itself in the cache."""
        return Job(self.key(group), self.disparity, self.score)

    def score(self, disparity: DepthMap) -> Score:
        """Measure its map."""
        bad = {
            (part, pixels): 100 * bad_pixels(disparity, known(self.scene, part), pixels)
            for part in PARTS
            for pixels in (1.0, 0.5)
        }
        return Score(bad, disparity if self.seed == 0 else None)

    def mirrored(self) -> DepthMap:
        """Match the right view in the same way, from right to left."""
        pair = self.scene.pair.mirrored()
        right = replace(self, scene=replace(self.scene, pair=pair)).disparity()
        return np.ascontiguousarray(right[:, ::-1])

    def _first(self) -> DepthMap:
        solve = OTHERS.get(self.solver, second_order.solve)
        start = np.zeros(self.scene.pair.shape, np.float32)
        return solve(self._cost(), self.scene.pair, start, self._chance(0))

    def _gone_on(self, plain: DepthMap) -> DepthMap:
        variant = self._how(self.variant)
        rounds = two_layer(
            self.scene.pair,
            self._cost(),
            OTHERS.get(self.solver, variant.solve()),
            self._top(variant.top),
            self._chance(1),
            rounds=1,
            feedback=variant.feedback,
            hidden_feedback=variant.hidden,
            first=plain,
        )
        return list(rounds)[-1].disparity

    def _how(self, name: str) -> Variant:
        variant = VARIANTS[name]
        return variant if self.solver == SECOND_ORDER else variant.scaled_for(self.solver)

    def _top(self, name: str) -> Believe:
        pair = self.scene.pair
        if name == "dictionary":
            return believing(self.dictionary, self.stride)
        if name == "fill":
            return lambda disparity: Belief(filled(pair, disparity), np.ones(pair.shape))
        return {"median": believe_median, "nothing": believe_nothing}[name]

    def _cost(self) -> UnaryCost:
        return load(self.solver).data_cost(self.scene.pair)

    def _chance(self, number: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, number])

    def _cached(self, variant: str, make: Callable[[], DepthMap]) -> DepthMap:
        how = None if variant == PLAIN else self._how(variant)
        layers = f"{self.dictionary}, {self.stride}, {SPARSITY}, {WINDOW}, {SURE}"
        version = f"{stereo_version()}, {restoration_version(self.dictionary)}, {baselines_version()}"
        pictures = [view.reshape(len(view), -1) for view in (self.scene.pair.left, self.scene.pair.right)]
        solver = "2OP" if self.solver == SECOND_ORDER else self.solver
        name = f"{solver}, up to {self.scene.pair.max_disparity} px, seed {self.seed}, {how}, {layers}"
        return cached(Stored(name, version, pictures, OUTCOMES), lambda: Outcome(make())).depth


@dataclass(frozen=True, eq=False)
class Group:
    """Scenes, and the variants that run on them with their seeds."""

    scenes: Mapping[str, StereoScene]
    seeds: Mapping[str, int]
    """Of each variant."""
    solver: str = SECOND_ORDER

    def arms(self, dictionary: str, stride: int) -> list[Arm]:
        """List the arms seed by seed, most seeds first: a run that is stopped has kept whole seeds of the claims'."""
        return [
            Arm(name, scene, seed, variant, dictionary, stride, self.solver)
            for seeds in sorted(set(self.seeds.values()), reverse=True)
            for seed in range(seeds)
            for name, scene in self.scenes.items()
            for variant, wanted in self.seeds.items()
            if wanted == seeds
        ]


@dataclass(frozen=True, eq=False)
class Results:
    """Views of the records of a group."""

    records: Records[Score]

    @cached_property
    def bad(self) -> dict[Any, dict[str, list[float]]]:
        """Percent of bad pixels: (scene, part, px) -> variant -> one a seed."""
        errors = self.records.spread("part", "pixels", value=lambda score: score.bad)
        return {at: of.nested("variant", value=float) for at, of in errors.groups("scene", "part", "pixels").items()}

    def shown(self, scene: str) -> dict[Any, DepthMap]:
        """Return the maps of the first seed."""
        return self.records.where(scene=scene, seed=0).tree("variant", value=lambda score: score.shown)

    @cached_property
    def scenes(self) -> list[str]:
        return [str(name) for (name,) in self.records.groups("scene")]

    def mean(self, scene: str, variant: str, part: str = "all", pixels: float = 1.0) -> float:
        return float(np.mean(self.bad[scene, part, pixels][variant]))

    def mean_of_scenes(self, variant: str, part: str = "all") -> float:
        return float(np.mean([self.mean(scene, variant, part) for scene in self.scenes]))

    def gains(self, scene: str, variant: str, over: str = PLAIN, part: str = "all") -> list[float]:
        """Compute by how many points at 1 px a variant is better, for each seed that both have."""
        of = self.bad[scene, part, 1.0]
        return [before - after for before, after in zip(of[over], of[variant], strict=False)]

    def scene_gains(self, variant: str, over: str) -> list[float]:
        """Compute the gain of each scene, the mean of its seeds."""
        return [float(np.mean(self.gains(scene, variant, over))) for scene in self.scenes]

"""Graph cuts from one start, and every variant that continues from there: with a belief, half of one, or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from sparsedepth.baselines import median
from sparsedepth.data.middlebury import StereoScene
from sparsedepth.stereo.costs import Cost, birchfield_tomasi, squared
from sparsedepth.stereo.prior import NO_FEEDBACK, Feedback
from sparsedepth.stereo.solvers import graph_cut
from sparsedepth.stereo.twolayer import two_layer
from sparsedepth.vocabulary import DepthMap, StereoPair
from sparsedepth_experiments._cache import baselines_version, cached_arrays, restoration_version, stereo_version
from sparsedepth_experiments._scenes import SPARSITY, SURE, WINDOW, believe_median, believing, known

DATA: Mapping[str, Cost] = {"squared": squared, "Birchfield-Tomasi": birchfield_tomasi}
PLAIN, AGAIN, WEIGHTS, PRIOR, BOTH, BY_MEDIAN, FILTERED = (
    "GC",
    "GC, again",
    "GC + ns-SC, weights only",
    "GC + ns-SC, prior only",
    "GC + ns-SC",
    "GC + median",
    "median of GC",
)
FEEDBACK = {
    AGAIN: NO_FEEDBACK,
    WEIGHTS: Feedback(prior=0.0),
    PRIOR: Feedback(least_weight=1.0),
    BOTH: Feedback(),
    BY_MEDIAN: Feedback(),
}


@dataclass(frozen=True, eq=False)
class Scene:
    """Views with their truth, and the moves that graph cuts use for them."""

    name: str
    truth: StereoScene
    move: str = "swap"
    cycles: int = 6
    """Over all moves, at most: in the first run, and in every round of every variant."""
    rounds: int = 1

    def known(self, part: str) -> DepthMap:
        """Select the true disparities of a part, NaN elsewhere."""
        return known(self.truth, part)


@dataclass(frozen=True, eq=False)
class Job:
    """One scene and data term from one start: the plain map, then every variant from it with equal effort."""

    scene: Scene
    data: str
    start: int
    dictionary: str
    stride: int

    def done(self) -> dict[str, DepthMap]:
        """Compute the map of every variant, or load them from the cache."""
        pair = self.scene.truth.pair
        scene = f"{self.scene.move}, {self.scene.cycles} cycles, {self.scene.rounds} rounds of {pair.max_disparity} px"
        layers = f"{self.dictionary} every {self.stride}, {SPARSITY}, {WINDOW}, {SURE}, {FEEDBACK}"
        name = f"{self.data}, start {self.start}, {scene}, {layers}"
        version = f"{stereo_version()}, {restoration_version(self.dictionary)}, {baselines_version()}"
        return cached_arrays(name, version, [pair.left, pair.right], self._maps)

    def _maps(self) -> dict[str, DepthMap]:
        pair = self.scene.truth.pair.grey()
        cost = DATA[self.data](pair)
        solve = partial(graph_cut.solve, move=self.scene.move, cycles=self.scene.cycles)
        plain = solve(cost, pair, _start(pair, self.start), np.random.default_rng([self.start, 0]))
        by_dictionary = believing(self.dictionary, self.stride)
        maps = {PLAIN: plain}
        for name, feedback in FEEDBACK.items():
            top = by_dictionary if name in (WEIGHTS, PRIOR, BOTH) else believe_median
            rng = np.random.default_rng([self.start, 1])
            rounds = two_layer(pair, cost, solve, top, rng, rounds=self.scene.rounds, feedback=feedback, first=plain)
            maps[name] = list(rounds)[-1].disparity
        return {**maps, FILTERED: median(plain, WINDOW)}


def _start(pair: StereoPair, number: int) -> DepthMap:
    """Choose the start: zeros first, then random labels."""
    if number == 0:
        return np.zeros(pair.shape, np.float32)
    return np.random.default_rng(number).integers(0, pair.max_disparity + 1, pair.shape).astype(np.float32)

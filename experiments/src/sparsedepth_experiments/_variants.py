"""Graph cuts from one start, and every variant that continues from there: with a belief, half of one, or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from sparsedepth.baselines import median
from sparsedepth.data.middlebury import StereoScene
from sparsedepth.metrics import bad_pixels
from sparsedepth.stereo.costs import Cost, birchfield_tomasi, squared
from sparsedepth.stereo.prior import NO_FEEDBACK, Feedback
from sparsedepth.stereo.solvers import graph_cut
from sparsedepth.stereo.twolayer import two_layer
from sparsedepth.vocabulary import DepthMap, StereoPair
from sparsedepth_experiments._cache import ARRAYS, Stored, baselines_version, restoration_version, stereo_version
from sparsedepth_experiments._scenes import PARTS, SPARSITY, SURE, WINDOW, believe_median, believing, known
from sparsedepth_experiments.harness import Job

CUTS = "graph cuts"
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
class Score:
    """Percent of bad pixels by part and variant, and the maps of a first start."""

    bad: Mapping[tuple[str, str], float]
    """The part "any" is every wrong label."""
    shown: Mapping[str, DepthMap]
    """Empty = they are not shown."""


def cuts(scene: Scene, data: str, start: int, dictionary: str, stride: int) -> Job[Score]:
    """Describe the work on one scene and data term from one start: the plain map, then variants of equal effort."""
    pair = scene.truth.pair
    moves = f"{scene.move}, {scene.cycles} cycles, {scene.rounds} rounds of {pair.max_disparity} px"
    layers = f"{dictionary} every {stride}, {SPARSITY}, {WINDOW}, {SURE}, {FEEDBACK}"
    return Job(
        {"what": CUTS, "scene": scene.name, "data": data, "start": start},
        partial(_maps, scene, data, start, dictionary, stride),
        partial(_score, scene=scene, shown=start == 0),
        lambda: Stored(
            f"{data}, start {start}, {moves}, {layers}",
            f"{stereo_version()}, {restoration_version(dictionary)}, {baselines_version()}",
            [pair.left, pair.right],
            ARRAYS,
        ),
    )


def _maps(scene: Scene, data: str, start: int, dictionary: str, stride: int) -> dict[str, DepthMap]:
    """Compute the map of every variant."""
    pair = scene.truth.pair.grey()
    cost = DATA[data](pair)
    solve = partial(graph_cut.solve, move=scene.move, cycles=scene.cycles)
    plain = solve(cost, pair, _start(pair, start), np.random.default_rng([start, 0]))
    by_dictionary = believing(dictionary, stride)
    maps = {PLAIN: plain}
    for name, feedback in FEEDBACK.items():
        top = by_dictionary if name in (WEIGHTS, PRIOR, BOTH) else believe_median
        rng = np.random.default_rng([start, 1])
        rounds = two_layer(pair, cost, solve, top, rng, rounds=scene.rounds, feedback=feedback, first=plain)
        maps[name] = list(rounds)[-1].disparity
    return {**maps, FILTERED: median(plain, WINDOW)}


def _score(maps: Mapping[str, DepthMap], scene: Scene, shown: bool) -> Score:
    judged = {part: (scene.known(part), 1.0) for part in PARTS} | {"any": (scene.known("all"), np.nextafter(1.0, 0.0))}
    bad = {
        (part, name): 100 * bad_pixels(disparity, *judged[part]) for name, disparity in maps.items() for part in judged
    }
    return Score(bad, maps if shown else {})


def _start(pair: StereoPair, number: int) -> DepthMap:
    """Choose the start: zeros first, then random labels."""
    if number == 0:
        return np.zeros(pair.shape, np.float32)
    return np.random.default_rng(number).integers(0, pair.max_disparity + 1, pair.shape).astype(np.float32)

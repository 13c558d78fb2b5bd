"""Comparison of `match` with OpenCV's matchers: bad pixels, and how the variance ranks the errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.markdown import table
from sparsedepth.matching import match
from sparsedepth.metrics import bad_pixels, calibration, sparsification
from sparsedepth.neighbourhood import local_variance
from sparsedepth.pictures import Panel
from sparsedepth.stereo import opencv
from sparsedepth.stereo.variance import WINDOW_PX
from sparsedepth.vocabulary import DepthMap, StereoPair
from sparsedepth_experiments._cache import ARRAYS, Stored, matching_version
from sparsedepth_experiments._scenes import PARTS, judged, save_disparities
from sparsedepth_experiments._variants import Scene
from sparsedepth_experiments.harness import Bar, Job

MATCH = "match and OpenCV"
OURS, THEIRS, SMOOTHED = "sparsedepth match", "OpenCV SGBM, filled", "OpenCV SGBM + WLS"
VARIANCE, LOCAL = "variance", "local deviation of the disparity"
MOST_BAD = {"Tsukuba": 4.2, "Venus": 1.2, "Teddy": 10.6, "Cones": 8.2}
"""Percent of all pixels: what was asked of `match` before it was measured."""


@dataclass(frozen=True, eq=False)
class Matched:
    """The maps of all matchers for a scene, and their scores."""

    scene: Scene
    maps: Mapping[str, NDArray[Any]]
    """Disparities of every matcher, and the variance of ours."""

    def bad(self, matcher: str, part: str) -> float:
        """Compute the percentage of bad pixels."""
        return 100 * bad_pixels(self.maps[matcher], self.scene.known(part), 1.0)

    def area(self, by: str) -> float:
        """Compute the area under the sparsification curve of our map; 1 = pixels removed at random."""
        order = local_variance(np.asarray(self.maps[OURS], np.float64), WINDOW_PX) if by == LOCAL else self.maps[by]
        curve = sparsification(self.error, order)
        return float(np.trapezoid(curve.by_variance, curve.share))

    @property
    def error(self) -> DepthMap:
        return self.maps[OURS] - self.scene.known("all")


def matching(scene: Scene) -> Job[Matched]:
    """Describe the work of all matchers on a scene."""
    pair = scene.truth.pair
    stored = partial(
        Stored, f"matchers up to {pair.max_disparity} px", matching_version(), [pair.left, pair.right], ARRAYS
    )
    return Job({"what": MATCH, "scene": scene.name}, partial(_maps, pair), partial(Matched, scene), stored)


def _maps(pair: StereoPair) -> dict[str, NDArray[Any]]:
    views: dict[str, Any] = {"left": pair.left, "right": pair.right, "max_disparity": pair.max_disparity}
    found = match(**views, threads=1)
    peers: dict[str, Callable[[StereoPair], DepthMap]] = {THEIRS: opencv.filled, SMOOTHED: opencv.filtered}
    return {
        OURS: found.disparity,
        VARIANCE: found.variance,
        **{name: matcher(pair) for name, matcher in peers.items()},
    }


def sections(test: Sequence[Matched], chosen_on: Sequence[Matched]) -> list[str]:
    """Format the tables of a page."""
    columns: list[tuple[str, str, Sequence[Matched]]] = [
        *((each.scene.name, part, [each]) for each in test for part in PARTS),
        *(("2005", part, chosen_on) for part in PARTS if chosen_on),
    ]
    rows = [
        [matcher, *(f"{np.mean([m.bad(matcher, part) for m in group]):.2f}" for _, part, group in columns)]
        for matcher in (OURS, THEIRS, SMOOTHED)
    ]
    head = ["", *(each.scene.name for each in test), *(["2005"] if chosen_on else [])]
    groups = [*([each] for each in test), *([chosen_on] if chosen_on else [])]
    areas = [[by, *(f"{np.mean([m.area(by) for m in group]):.3f}" for group in groups)] for by in (VARIANCE, LOCAL)]
    honest = ["squared error / variance", *(f"{np.mean([_honesty(m) for m in group]):.2f}" for group in groups)]
    return [
        "## `match` beside OpenCV",
        "Bad pixels, %, more than 1 px wrong; colour views. OpenCV's SGBM has eight paths, blocks of 3, and its usual "
        "penalties; its holes are filled from behind in the row. The settings of `match` were chosen on the 27 scenes "
        "of Middlebury 2005 and 2006 in two sizes, and frozen before this run on the four scenes here; `2005` is the "
        "mean of its six.",
        table(["", *(f"{name} {part}" for name, part, _ in columns)], rows),
        "The area under the sparsification curve: the error (RMSE) of what is left as ever more pixels are left out, "
        "those of largest variance first, over the error of all; 1 = in random order. Last, the mean of squared error "
        "over promised variance: 1 = honest, more = too sure.",
        table(head, [*areas, honest]),
    ]


def _honesty(each: Matched) -> float:
    return calibration(each.error, each.maps[VARIANCE]).overall


def verdicts(test: Sequence[Matched]) -> list[Bar]:
    """Decide each requirement of `match`, with its numbers."""
    ratios = [_honesty(each) for each in test]
    return [
        *(_judged(each, MOST_BAD[each.scene.name]) for each in test if each.scene.name in MOST_BAD),
        _ranks(test, "random, halved", lambda each: 0.5),
        _ranks(test, LOCAL, lambda each: each.area(LOCAL)),
        Bar(
            "`match`: squared error over variance 0.5 ... 2, on every scene",
            ", ".join(f"{ratio:.2f}" for ratio in ratios),
            all(0.5 <= ratio <= 2 for ratio in ratios),
        ),
    ]


def _judged(each: Matched, most: float) -> Bar:
    bad, rival = each.bad(OURS, "all"), each.bad(SMOOTHED, "all")
    wanted = f"`match`: at most {most:g} % of {each.scene.name} bad, and less than SGBM + WLS"
    return Bar(wanted, f"{bad:.2f}, {rival:.2f}", bad <= most and bad < rival)


def _ranks(test: Sequence[Matched], other: str, area_of_other: Callable[[Matched], float]) -> Bar:
    pairs = [(each.area(VARIANCE), area_of_other(each)) for each in test]
    return Bar(
        f"`match`: its variance ranks errors better than {other}, on every scene",
        ", ".join(f"{ours:.2f} and {theirs:.2f}" for ours, theirs in pairs),
        all(ours < theirs for ours, theirs in pairs),
    )


def picture(name: str) -> str:
    return f"stereo-match-{name.lower()}.png"


def draw(each: Matched, path: Path) -> None:
    """Draw views, truth, the three maps, our errors and our variance."""
    truth = each.scene.known("all")
    panels = [
        Panel("left view", each.scene.truth.pair.left.mean(axis=2), "photo"),
        *(judged(name, each.maps[name], truth) for name in (OURS, SMOOTHED)),
        Panel("truth", truth),
        Panel("error of match, px, up to 5", np.minimum(np.abs(each.error), 5), "error"),
        Panel("standard deviation of match, px", np.sqrt(each.maps[VARIANCE]), "variance"),
    ]
    save_disparities(panels, truth, path)

"""Tables and verdicts of the page on second-order stereo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sparsedepth.markdown import table
from sparsedepth.metrics import bad_pixels
from sparsedepth.stereo.ad_census import AdCensus
from sparsedepth.stereo.match import _Views  # the steps of `match` after both views are solved
from sparsedepth.stereo.solvers import second_order
from sparsedepth_experiments._scenes import PARTS, SPARSITY, SURE, WINDOW, known
from sparsedepth_experiments._second_order_jobs import (
    AGAIN,
    ANEW,
    ANEW_LOOP,
    BOTH,
    BY_MEDIAN,
    CONFIRMING,
    FILLED,
    FILLED_FILTERED,
    FILTERED,
    PLAIN,
    PROPOSED,
    TEST,
    WITH,
    WITHOUT,
    Arm,
    Results,
)
from sparsedepth_experiments.harness import Bar

PAPER: Mapping[str, Mapping[str, float]] = {
    "Teddy": {PLAIN: 9.40, BOTH: 8.14, "gain": 1.25},
    "Cones": {PLAIN: 12.73, BOTH: 11.98, "gain": 0.92},
}
"""Percent of bad pixels in the paper's Figs. 9 and 10, and the mean gain of its five runs."""
BARS = {"Teddy": (8.2, 0.25), "Cones": (7.4, 0.9)}
"""What the loop should reach, and its gain over equal effort."""


@dataclass(frozen=True, eq=False)
class Found:
    """All errors: of the scenes that confirm, of those tested afterwards, of other solvers, and within `match`."""

    confirming: Results
    test: Results
    others: Mapping[str, Results]
    matched: Mapping[str, Mapping[str, Sequence[float]]]
    """Variant -> scene -> errors of the left map and of what `match` makes of both views."""

    def bad(self) -> dict[str, dict[str, dict[str, list[float]]]]:
        groups = {CONFIRMING: self.confirming, TEST: self.test, **self.others}
        return {
            group: {
                f"{scene}, {part}, {pixels:g} px": dict(of) for (scene, part, pixels), of in sorted(each.bad.items())
            }
            for group, each in groups.items()
        }

    def match_gains(self) -> tuple[list[float], list[float]]:
        """Compute what the loop gains within `match`, and what its left map alone gains over today's `match`."""
        before, after = (np.array(list(self.matched[variant].values())) for variant in (PLAIN, WITHOUT))
        return (before[:, 1] - after[:, 1]).tolist(), (before[:, 1] - after[:, 0]).tolist()

    def match_table(self) -> list[str]:
        within, alone = self.match_gains()
        means = {variant: np.mean(list(of.values()), axis=0) for variant, of in self.matched.items()}
        rows = [
            [f"`match` over {PLAIN}: both views, pixels that disagree filled", f"{means[PLAIN][1]:.2f}", ""],
            ["`match` over the loop of both views", f"{means[WITHOUT][1]:.2f}", spread_over_scenes(within)],
            ["the loop's left map alone", f"{means[WITHOUT][0]:.2f}", spread_over_scenes(alone)],
        ]
        return [
            f"## Within `match`: bad pixels, %, all, 1 px, mean of {len(within)} confirming scenes, first seed",
            table(["", "mean", "gain ± standard error, scenes better"], rows),
        ]


def in_match(arm: Arm) -> list[float]:
    """Compute the errors of the left map, and of what `match` makes of both views."""
    left = arm.disparity()
    pair = arm.scene.pair
    both = _Views(pair, left, arm.mirrored(), threads=1, cost=AdCensus.of(pair)).filled()
    return [100 * bad_pixels(each, known(arm.scene, "all"), 1.0) for each in (left, both)]


TEXTS = {
    FILTERED: f"filters the plain map ({WINDOW}x{WINDOW}) and fuses no more",
    AGAIN: "has no feedback: equal effort",
    BOTH: "is the paper's loop (Eqs. 13 and 14), which knows no occlusions",
    FILLED: "fills the hidden pixels of the plain map and fuses no more",
    FILLED_FILTERED: "filters that",
    PROPOSED: "proposes the filled map once, in the plain energy",
    WITHOUT: "takes the data of hidden pixels away, holds them to the filled map, and proposes it",
    WITH: "adds the dictionary's belief about the filled map at all other pixels",
    BY_MEDIAN: f"has a {WINDOW}x{WINDOW} median of standard deviation {SURE:g} px in place of the dictionary",
    ANEW: "is a second whole run",
    ANEW_LOOP: "is a second whole run with the hidden pixels of the first held to their filled disparities",
}


def described(confirming: Mapping[str, int], test: Mapping[str, int], dictionary: str, stride: int) -> str:
    variants = "; ".join(f"`{variant}` {text}" for variant, text in TEXTS.items() if variant in test)
    few = ", ".join(f"`{variant}`" for variant, n in confirming.items() if n < confirming[PLAIN])
    within, across = second_order.MAX_BEND_COST_WITHIN, second_order.MAX_BEND_COST_ACROSS
    return (
        f"Colour views, photo-consistency, visibility, triples that cost {within:g} at most within a "
        f"segment and {across:g} across. `{PLAIN}` is the quick schedule: semi-global matching, then "
        f"{second_order.N_SEGMENTATIONS} plane-fitted segmentations, the cost's own semi-global map and smoothing, "
        "fused one after the other; a seed is the chance in plane fits and in what is tried again. Every arm goes on "
        "from the plain map of its seed for one round: five fusions (planes in three random kinds of segments, two "
        "smoothings), and one more where a map is proposed; those called anew have a whole run. Hidden is what the "
        "map itself says to be hidden: a nearer pixel lands within half a pixel of the same place of the right view, "
        f"or the place is outside of it. {variants}. The dictionary is `{dictionary}`, its patches {stride} pixels "
        f"apart, with sparsity {SPARSITY:g}. Seeds: {confirming[PLAIN]} on the scenes that confirm"
        + (f" (one of {few})" if few else "")
        + f", {test[PLAIN]} on those tested."
    )


def spread_over_scenes(gains: Sequence[float]) -> str:
    """Format the mean gain over scenes, its standard error, and how many scenes gain."""
    error = np.std(gains, ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
    return f"{np.mean(gains):+.2f} ± {error:.2f}, {sum(gain > 0 for gain in gains)} of {len(gains)}"


def confirmation(results: Results, seeds: Mapping[str, int]) -> list[str]:
    """Format the means over the scenes that nothing was chosen on, and gains over equal effort."""
    rows = [
        [
            variant,
            *(f"{results.mean_of_scenes(variant, part):.2f}" for part in PARTS),
            spread_over_scenes(results.scene_gains(variant, AGAIN)) if variant != AGAIN else "",
            spread_over_scenes(results.scene_gains(variant, FILLED)) if variant != FILLED else "",
        ]
        for variant in seeds
    ]
    head = ["", *PARTS, f"gain over `{AGAIN}` ± standard error, scenes better", f"over `{FILLED}`"]
    title = f"## Confirmation on {len(results.scenes)} scenes of Middlebury 2006: bad pixels, %, 1 px, mean"
    return [title, table(head, rows)]


def against_the_paper(results: Results) -> list[str]:
    rows = []
    for name in results.scenes:
        paper = PAPER.get(name, {})
        printed = [f"{paper[key]:.2f}" if key in paper else "" for key in (PLAIN, BOTH, "gain")]
        ours = [f"{results.mean(name, variant):.2f}" for variant in (PLAIN, WITHOUT, WITH)]
        gains = [f"{np.mean(results.gains(name, variant, AGAIN)):+.2f}" for variant in (WITHOUT, WITH)]
        rows.append([name, *printed, *ours, *gains])
    head = ["", f"paper, {PLAIN}", "paper, with ns-SC", "its gain", PLAIN, WITHOUT, WITH]
    head += [f"gain over `{AGAIN}`, without", "with"]
    text = "The paper compares with its own start; it has no run of equal effort without the prior."
    return ["## Beside the paper: bad pixels, %, all, 1 px", table(head, rows), text]


def test_tables(results: Results, seeds: Mapping[str, int]) -> list[str]:
    """Format the errors of every variant, and gains over equal effort."""
    columns = [(name, part) for name in results.scenes for part in PARTS]
    tables = []
    for pixels in (1.0, 0.5):
        rows = [
            [variant, *(_level(results.bad[name, part, pixels][variant]) for name, part in columns)]
            for variant in seeds
        ]
        tables += [
            f"## Bad pixels at {pixels:g} px, %, mean ± standard deviation over {seeds[PLAIN]} seed(s)",
            table(["", *(f"{name} {part}" for name, part in columns)], rows),
        ]
    gains = [
        [variant, *(_spread(results.gains(name, variant, AGAIN)) for name in results.scenes)]
        for variant in seeds
        if variant != AGAIN
    ]
    title = f'## Gain over `{AGAIN}` of the same seed, points of "all" at 1 px, mean [least, most]'
    return [*tables, title, table(["", *results.scenes], gains)]


def _spread(gains: Sequence[float]) -> str:
    return f"{np.mean(gains):+.2f} [{min(gains):+.2f}, {max(gains):+.2f}]"


def _level(errors: Sequence[float]) -> str:
    return f"{np.mean(errors):.2f}" + (f" ± {np.std(errors, ddof=1):.2f}" if len(errors) > 1 else "")


def other_solvers(found: Found) -> list[str]:
    """Format the same loop, with the same rule for hidden pixels, over other solvers."""
    confirmed, tested = found.confirming.scenes, found.test.scenes
    rows = []
    for solver, results in found.others.items():
        for variant in next(iter(results.bad.values())):
            gains = [np.mean(results.gains(name, variant, AGAIN)) for name in confirmed]
            rows.append(
                [
                    f"{solver}, {_short(variant)}",
                    f"{np.mean([results.mean(name, variant) for name in confirmed]):.2f}",
                    "" if variant == AGAIN else spread_over_scenes([float(gain) for gain in gains]),
                    *(f"{results.mean(name, variant):.2f}" for name in tested),
                ]
            )
    text = (
        "One rule for what is hidden, each solver's own strengths. Semi-global matching has no start, so that again is "
        "the same; graph cuts make two cycles of expansions from zeros, and two more a round."
    )
    head = ["", "2006", "gain over again ± standard error, scenes better", *tested]
    return ["## The same loop over other solvers: bad pixels, %, all, 1 px", text, table(head, rows)]


def _short(variant: str) -> str:
    return {PLAIN: "plain", AGAIN: "again"}.get(variant, variant)


def every_scene(results: Results) -> list[str]:
    variants = (PLAIN, AGAIN, FILLED, WITHOUT, WITH)
    rows = [[name, *(f"{results.mean(name, variant):.2f}" for variant in variants)] for name in results.scenes]
    return ["## Every confirming scene, bad pixels, %, all, 1 px", table(["", *variants], rows)]


def verdicts_of(found: Found) -> list[Bar]:
    """Decide each claim, with its numbers."""
    within, alone = found.match_gains()
    gains = {
        f"2006: `{WITHOUT}` beats `{AGAIN}`": found.confirming.scene_gains(WITHOUT, AGAIN),
        f"2006: `{WITHOUT}` beats `{FILLED}`": found.confirming.scene_gains(WITHOUT, FILLED),
        f"2006: the dictionary gains, `{WITH}` over `{WITHOUT}`": found.confirming.scene_gains(WITH, WITHOUT),
        "2006: `match` is better over the loop": within,
        "2006: the loop's left map is better than `match`": alone,
    }
    bars = [Bar(what, spread_over_scenes(each), float(np.mean(each)) > 0) for what, each in gains.items()]
    return [*bars[:3], *(bar for name in found.test.scenes for bar in _of_scene(found.test, name)), *bars[3:]]


def _of_scene(results: Results, name: str) -> list[Bar]:
    def gains(what: str, variant: str, over: str, wanted: float | None = None) -> Bar:
        gain = float(np.mean(results.gains(name, variant, over)))
        return Bar(f"{name}: {what}", f"{gain:+.2f}", gain > 0 if wanted is None else gain >= wanted)

    most, wanted = BARS.get(name, (100.0, 0.0))
    error = results.mean(name, WITHOUT)
    bars = [
        Bar(f"{name}: `{WITHOUT}` has at most {most:g} % bad pixels", f"{error:.2f}", error <= most),
        gains(f"it gains at least {wanted:g} over `{AGAIN}`", WITHOUT, AGAIN, wanted),
        gains(f"the dictionary gains, `{WITH}` over `{WITHOUT}`", WITH, WITHOUT),
    ]
    if name in PAPER:
        wanted = PAPER[name]["gain"]
        bars.append(gains(f"`{BOTH}` gains the paper's {wanted:g} over its start", BOTH, PLAIN, wanted))
    return bars

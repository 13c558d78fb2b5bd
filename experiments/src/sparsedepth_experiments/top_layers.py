"""Top layers over second-order stereo: what corrects its filled map better than nothing, a median, or the paper's?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from sparsedepth.data.middlebury import StereoScene, benchmark_pair, scene_names, stereo_pair
from sparsedepth.markdown import table
from sparsedepth.pictures import Panel, save_panels
from sparsedepth.vocabulary import DepthMap
from sparsedepth_experiments import Progress, harness
from sparsedepth_experiments._refiner import (
    EPOCHS,
    PICTURE,
    PIXELS_A_SCENE,
    REFINER_UNITS,
    SEMI_GLOBAL,
    TrainingRows,
    train_refiner,
)
from sparsedepth_experiments._scenes import STRIDE, WINDOW, changed, cut_out, small_scene
from sparsedepth_experiments._second_order_jobs import PLAIN, Job
from sparsedepth_experiments._top_layers import (
    EDGE_WINDOWS,
    ERROR_PRICES,
    ERROR_STEPS,
    N_ERROR_ATOMS,
    VARIANCE_SCALES,
    Correct,
    Fit,
    Sample,
    another_matcher,
    dictionary_belief,
    filled,
    fit_edges,
    fit_errors,
    fit_noise,
    median_of_filled,
)

FILL, MEDIAN, ANOTHER, BELIEF, ERRORS, EDGES, NOISE, REFINER, NO_PICTURE, NO_SEMI_GLOBAL = (
    "fill only",
    "median of the fill",
    "semi-global map, filled",
    "the paper's dictionary",
    "(a) dictionary of errors",
    "(b) medians along the picture's edges",
    "(c) known noise",
    "(d) trained refiner",
    "(d) without the picture",
    "(d) without the semi-global map",
)
EVERYTHING = frozenset({PICTURE, SEMI_GLOBAL})
Corrected = tuple[str, Sample, DepthMap]
"""Name of a layer, a scene, and the disparities that the layer makes of it."""
BAR = 0.2
"""Points by which a top layer should be better than the fill alone."""
SEEDS = 5
"""Of the maps of Teddy and Cones."""


def methods(error_steps: int = ERROR_STEPS) -> dict[str, Fit]:
    """List the top layers; what needs no scenes ignores them."""

    def needs_none(correct: Correct) -> Fit:
        return lambda _: correct

    def refiner(*knows: str) -> Fit:
        return partial(train_refiner, rows_of=TrainingRows(frozenset(knows)))

    return {
        FILL: needs_none(filled),
        MEDIAN: needs_none(median_of_filled),
        ANOTHER: needs_none(another_matcher),
        BELIEF: needs_none(dictionary_belief),
        ERRORS: partial(fit_errors, steps=error_steps),
        EDGES: fit_edges,
        NOISE: fit_noise,
        REFINER: refiner(*EVERYTHING),
        NO_PICTURE: refiner(SEMI_GLOBAL),
        NO_SEMI_GLOBAL: refiner(PICTURE),
    }


@dataclass(frozen=True, eq=False)
class Plan:
    """Scenes in folds, and scenes that are judged once by what all the others have taught."""

    folds: Sequence[Sequence[Sample]]
    last: Mapping[str, Sequence[Sample]] = field(default_factory=dict)
    """Of each name, the maps of several seeds."""
    note: str = ""

    @property
    def scenes(self) -> list[Sample]:
        return sorted((each for fold in self.folds for each in fold), key=lambda each: each.name)

    def all_but(self, fold: Sequence[Sample]) -> list[Sample]:
        """List the scenes of the other folds."""
        return [each for other in self.folds if other is not fold for each in other]


@dataclass(frozen=True, eq=False)
class Results:
    """Percent of bad pixels: method -> scene -> error, and the maps of some methods."""

    bad: dict[str, dict[str, float]] = field(default_factory=dict)
    maps: dict[tuple[str, str], DepthMap] = field(default_factory=dict)

    def add_all(self, judged: Iterable[Sequence[Corrected]]) -> None:
        for method, sample, disparity in chain.from_iterable(judged):
            self.bad.setdefault(method, {})[sample.name] = sample.bad(disparity)
            if method in (FILL, REFINER):
                self.maps[method, sample.name] = disparity

    def gains(self, method: str, over: str = FILL) -> dict[str, float]:
        return {scene: self.bad[over][scene] - error for scene, error in self.bad[method].items()}

    def mean_gain(self, method: str) -> tuple[float, float]:
        """Compute the mean gain over the fill and its standard error over scenes."""
        gains = list(self.gains(method).values())
        return float(np.mean(gains)), float(np.std(gains, ddof=1) / np.sqrt(len(gains)))


def _judge(fits: Mapping[str, Fit], known: Sequence[Sample], judged: Sequence[Sample]) -> list[Corrected]:
    """Fit layers to the scenes that are known, and correct the maps of those to be judged."""
    layers = {name: fit(known) for name, fit in fits.items()}
    return [(name, sample, correct(sample)) for name, correct in layers.items() for sample in judged]


def run(output: Path, progress: Progress, quick: bool = False) -> dict[str, Any]:
    """Fit every top layer to all folds but one and judge it on that one; write tables, verdicts and pictures."""
    plan = _quick_plan() if quick else _plan(progress)
    fits, results, last = methods(2 if quick else ERROR_STEPS), Results(), Results()
    jobs = [
        harness.Job({"layer": name, "fold": number}, partial(_judge, {name: fit}, plan.all_but(fold), fold))
        for name, fit in fits.items()
        for number, fold in enumerate(plan.folds, 1)
    ]
    one_by_one = partial(harness.run_jobs, progress=progress, parallel="no", total=len(jobs) + len(plan.last))
    results.add_all(one_by_one(jobs).scores)
    best = max((name for name in fits if name != FILL), key=lambda name: results.mean_gain(name)[0])
    kept = {name: fits[name] for name in (FILL, MEDIAN, best)}
    once = [harness.Job({"scene": name}, partial(_judge, kept, plan.scenes, of)) for name, of in plan.last.items()]
    last.add_all(one_by_one(once, before=len(jobs)).scores)
    output.mkdir(parents=True, exist_ok=True)
    shown = _shown(results)
    for sample in (each for each in plan.scenes if each.name in shown):
        _draw(sample, results, output / _picture(sample.name))
    verdicts = _verdicts(results, best)
    parts = [
        plan.note,
        _described(plan),
        "## Bad pixels, %, all, 1 px: means over scenes, each judged by a layer that has not seen it",
        _summary(results),
        "## What was hoped for, and what is so",
        harness.verdict_table(verdicts),
        *_last_scenes(plan, last, best),
        "## Every scene, bad pixels, %, all, 1 px",
        _every_scene(results),
        "## The refiner's largest, middle and smallest gain",
        *(f"![{name}]({_picture(name)})" for name in shown),
    ]
    harness.write_page(output, "top_layers", "Stereo: top layers", parts, quick)
    return {
        "note": plan.note,
        "bad": results.bad,
        "last": last.bad,
        "gain": {name: results.mean_gain(name) for name in fits},
        "verdicts": {what: holds for what, (holds, _) in verdicts.items()},
    }


N_FOLDS = 5


def folds_of(samples: Sequence[Sample], n_folds: int = N_FOLDS) -> list[list[Sample]]:
    """Divide scenes into folds of about equal size; scenes whose names differ by a number stay together."""
    families: dict[str, list[Sample]] = {}
    for each in samples:
        families.setdefault(each.name.rstrip("0123456789"), []).append(each)
    folds: list[list[Sample]] = [[] for _ in range(n_folds)]
    for family in sorted(families.values(), key=len, reverse=True):
        min(folds, key=len).extend(family)
    return folds


def _sample(name: str, scene: StereoScene, seed: int = 0, shown: str = "") -> Sample:
    return Sample(shown or name, scene, Job(name, scene, seed, PLAIN, "phi1_32", STRIDE).done())


def _plan(progress: Progress) -> Plan:
    names, samples = scene_names(2006), []
    for done, name in enumerate(names):
        progress(f"{name}, matched", done, len(names))
        samples.append(_sample(name, stereo_pair(2006, name)))
    last = {
        name: [_sample(name, benchmark_pair(name), seed, f"{name} {seed + 1}") for seed in range(SEEDS)]
        for name in ("Teddy", "Cones")
    }
    return Plan(folds_of(samples), last)


def _quick_plan() -> Plan:
    """Plan three small parts of a scene that needs no data sets."""
    note = "A quick run: three small parts of Motorcycle stand in for the scenes."
    whole = small_scene()
    samples = [
        Sample(name, part, Job(name, part, 0, PLAIN, "phi1", 8).done())
        for name, part in (
            (f"Motorcycle, part {n + 1}", cut_out(whole, 0, left, (48, 40))) for n, left in enumerate((0, 20, 40))
        )
    ]
    return Plan([[each] for each in samples], note=note)


def _described(plan: Plan) -> str:
    windows = sorted({radius for radius, _ in EDGE_WINDOWS})
    return (
        f"{len(plan.scenes)} scenes, second-order stereo (`2OP`, quick schedule, one seed), its hidden pixels filled "
        f"from the background along the colours: that map is `{FILL}`, and every layer starts from it. "
        f"{len(plan.folds)} folds; scenes of one family (Baby1, Baby2, ...) share a fold. What a layer learns or "
        f"chooses, it learns and chooses on the other folds. `{MEDIAN}`: {WINDOW}x{WINDOW}. `{ANOTHER}`: what the "
        f"refiner also knows, alone. `{BELIEF}`: the mean that `phi1_32` believes. `{ERRORS}`: {N_ERROR_ATOMS} atoms "
        "of the errors of filled maps beside those of depth; what they explain is subtracted; the price of their "
        f"codes is one of {_listed(ERROR_PRICES)}. `{EDGES}`: weighted medians of radius {_listed(windows)}, in which "
        "pixels count by their colour. "
        f"`{NOISE}`: the dictionary `phi1` under the variance that `match` estimates, times one of "
        f"{_listed(VARIANCE_SCALES)}. "
        f"`{REFINER}`: a network of {_listed(REFINER_UNITS)} hidden units scores candidates (the filled map, two "
        "medians, three medians along colours, the semi-global map, and that map filled) by their data costs, their "
        "agreement with neighbours and with the right view; the best one is taken wherever candidates are more than "
        f"1 px apart. It is trained on {PIXELS_A_SCENE} such pixels a scene for {EPOCHS} epochs. The dictionaries and "
        "the variance of `match` were fitted to Middlebury 2005 and 2006 as a whole, which favours the rows that use "
        "them."
    )


def _listed(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)


def _summary(results: Results) -> str:
    rows = []
    for name, errors in results.bad.items():
        gains = list(results.gains(name).values())
        mean, error = results.mean_gain(name)
        better = f"{sum(gain > 0 for gain in gains)} of {len(gains)}"
        spread = [f"{mean:+.2f} ± {error:.2f}", f"{np.median(gains):+.2f}", better] if name != FILL else [""] * 3
        rows.append([name, f"{np.mean(list(errors.values())):.2f}", *spread])
    return table(["", "mean", f"gain over `{FILL}` ± standard error", "median gain", "scenes better"], rows)


def _every_scene(results: Results) -> str:
    scenes = sorted(results.bad[FILL])
    rows = [[scene, *(f"{errors[scene]:.2f}" for errors in results.bad.values())] for scene in scenes]
    return table(["", *results.bad], rows)


def _verdicts(results: Results, best: str) -> dict[str, tuple[bool, str]]:
    found = {}
    for name in (ERRORS, EDGES, NOISE, REFINER):
        mean, error = results.mean_gain(name)
        found[f"{name} gains at least {BAR:g} points over `{FILL}`"] = (mean >= BAR, f"{mean:+.2f} ± {error:.2f}")
    mean, error = results.mean_gain(best)
    found[f"The best, `{best}`, gains more than two standard errors"] = (mean > 2 * error, f"{mean:+.2f} ± {error:.2f}")
    return found


def _last_scenes(plan: Plan, last: Results, best: str) -> list[str]:
    if not plan.last:
        return []
    rows = []
    for name, errors in last.bad.items():
        cells = []
        for samples in plan.last.values():
            of = [errors[each.name] for each in samples]
            gains = [last.bad[FILL][each.name] - errors[each.name] for each in samples]
            cells += [f"{np.mean(of):.2f} ± {np.std(of, ddof=1):.2f}", f"{np.mean(gains):+.2f}" if name != FILL else ""]
        rows.append([name, *cells])
    head = ["", *(cell for name in plan.last for cell in (name, f"gain over `{FILL}`"))]
    return [
        "## Teddy and Cones, once, with the best layer",
        f"`{best}` as fitted to all scenes of 2006; bad pixels, %, all, 1 px, mean ± standard deviation of {SEEDS} "
        "seeds.",
        table(head, rows),
    ]


def _shown(results: Results) -> list[str]:
    """Name the scenes of the largest, the middle and the smallest gain."""
    gains = results.gains(REFINER)
    order = sorted(gains, key=lambda name: -gains[name])
    return list(dict.fromkeys((order[0], order[len(order) // 2], order[-1])))


def _picture(scene: str) -> str:
    return f"top-layers-{scene.lower().replace(', ', '-').replace(' ', '-')}.png"


def _draw(sample: Sample, results: Results, path: Path) -> None:
    before, after = (results.maps[name, sample.name] for name in (FILL, REFINER))
    panels = [
        Panel(f"{sample.name}, left view", sample.scene.pair.left.mean(axis=2), "photo"),
        Panel("truth", sample.truth),
        Panel("hidden, by the matcher's own map", sample.hidden.astype(float), "photo"),
        Panel(f"{FILL}, {sample.bad(before):.2f} % bad", before),
        Panel(f"{REFINER}, {sample.bad(after):.2f} % bad", after),
        changed(REFINER, before, after, sample.truth),
    ]
    limits = float(np.nanmin(sample.truth)), float(np.nanmax(sample.truth))
    save_panels(panels, path, limits=limits, unit="px", columns=3, width=300)

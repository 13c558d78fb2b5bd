"""Top layers over second-order stereo: what corrects its filled map better than nothing, a median, or the paper's?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sparsedepth.data.middlebury import StereoScene, benchmark_pair, scene_names, stereo_pair
from sparsedepth.markdown import table
from sparsedepth.pictures import Panel
from sparsedepth_experiments import Progress
from sparsedepth_experiments._refiner import EPOCHS, PIXELS_A_SCENE, REFINER_UNITS
from sparsedepth_experiments._scenes import STRIDE, WINDOW, changed, cut_out, judged, save_disparities, small_scene
from sparsedepth_experiments._second_order_jobs import PLAIN, Arm
from sparsedepth_experiments._top_layers import (
    EDGE_WINDOWS,
    ERROR_PRICES,
    ERROR_STEPS,
    N_ERROR_ATOMS,
    VARIANCE_SCALES,
    Sample,
)
from sparsedepth_experiments._top_layers_jobs import (
    ANOTHER,
    BELIEF,
    EDGES,
    ERRORS,
    FILL,
    MEDIAN,
    NOISE,
    REFINER,
    Plan,
    Results,
    folds_of,
    methods,
    results_of,
)
from sparsedepth_experiments.harness import Bar, Job, run_jobs, verdict_facts, verdict_table, write_page

LEAST_GAIN = 0.2
"""Points by which a top layer should be better than the fill alone."""
SEEDS = 5
"""Of the maps of Teddy and Cones."""


def run(output: Path, progress: Progress, quick: bool = False) -> dict[str, Any]:
    """Fit every top layer to all folds but one and judge it on that one; write tables, verdicts and pictures."""
    plan = _quick_plan(progress) if quick else _plan(progress)
    fits = methods(2 if quick else ERROR_STEPS)
    folds = [(number, plan.all_but(fold), fold) for number, fold in enumerate(plan.folds, 1)]
    results = results_of(fits, folds, progress)
    best = max((name for name in fits if name != FILL), key=lambda name: results.mean_gain(name)[0])
    kept = {name: fits[name] for name in (FILL, MEDIAN, best)}
    last = results_of(kept, [(name, plan.scenes, samples) for name, samples in plan.last.items()], progress)
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
        verdict_table(verdicts),
        *_last_scenes(plan, last, best),
        "## Every scene, bad pixels, %, all, 1 px",
        _every_scene(results),
        "## The refiner's largest, middle and smallest gain",
        *(f"![{name}]({_picture(name)})" for name in shown),
    ]
    write_page(output, "top_layers", "Stereo: top layers", parts, quick)
    return {
        "note": plan.note,
        "bad": results.bad,
        "last": last.bad,
        "gain": {name: results.mean_gain(name) for name in fits},
        "verdicts": verdict_facts(verdicts),
    }


def _plan(progress: Progress) -> Plan:
    """Match the scenes first: every layer starts from their plain maps."""
    arms = {name: _arm(name, stereo_pair(2006, name)) for name in scene_names(2006)}
    last = {name: [f"{name} {seed + 1}" for seed in range(SEEDS)] for name in ("Teddy", "Cones")}
    again = {each: _arm(name, benchmark_pair(name), k) for name, of in last.items() for k, each in enumerate(of)}
    samples = _matched(arms | again, progress)
    folds = folds_of([samples[name] for name in arms])
    return Plan(folds, {name: [samples[each] for each in of] for name, of in last.items()})


def _quick_plan(progress: Progress) -> Plan:
    """Plan three small parts of a scene that needs no data sets."""
    note = "A quick run: three small parts of Motorcycle stand in for the scenes."
    parts = [cut_out(small_scene(), 0, left, (48, 40)) for left in (0, 20, 40)]
    names = [f"Motorcycle, part {n + 1}" for n in range(len(parts))]
    arms = {name: Arm(name, part, 0, PLAIN, "phi1", 8) for name, part in zip(names, parts, strict=True)}
    return Plan([[sample] for sample in _matched(arms, progress).values()], note=note)


def _arm(name: str, scene: StereoScene, seed: int = 0) -> Arm:
    return Arm(name, scene, seed, PLAIN, "phi1_32", STRIDE)


def _matched(arms: Mapping[str, Arm], progress: Progress) -> dict[str, Sample]:
    jobs = [Job({"matched": name}, arm.disparity, partial(Sample, name, arm.scene)) for name, arm in arms.items()]
    return dict(zip(arms, run_jobs(jobs, progress, parallel="no").scores, strict=True))


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


def _verdicts(results: Results, best: str) -> list[Bar]:
    bars = []
    for name in (ERRORS, EDGES, NOISE, REFINER):
        mean, error = results.mean_gain(name)
        wanted = f"{name} gains at least {LEAST_GAIN:g} points over `{FILL}`"
        bars.append(Bar(wanted, f"{mean:+.2f} ± {error:.2f}", mean >= LEAST_GAIN))
    mean, error = results.mean_gain(best)
    wanted = f"The best, `{best}`, gains more than two standard errors"
    return [*bars, Bar(wanted, f"{mean:+.2f} ± {error:.2f}", mean > 2 * error)]


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
    before, after = (results.shown(name, sample.name) for name in (FILL, REFINER))
    panels = [
        Panel(f"{sample.name}, left view", sample.scene.pair.left.mean(axis=2), "photo"),
        Panel("truth", sample.truth),
        Panel("hidden, by the matcher's own map", sample.hidden.astype(float), "photo"),
        judged(FILL, before, sample.truth),
        judged(REFINER, after, sample.truth),
        changed(REFINER, before, after, sample.truth),
    ]
    save_disparities(panels, sample.truth, path)

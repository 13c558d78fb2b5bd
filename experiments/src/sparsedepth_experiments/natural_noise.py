"""The noise of real sensors: a laser scan and a time-of-flight frame (the paper's Figs. 6 and 7), and numbers on maps
with simulated time-of-flight noise, whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sparsedepth.baselines import nl_means
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.range_scans import log_scan
from sparsedepth.data.time_of_flight import FACTORS, SIMULATED, mug, simulated
from sparsedepth.markdown import table, write_made_part
from sparsedepth.metrics import rmse
from sparsedepth.parallel import map_in_threads
from sparsedepth.pictures import Panel, save_panels
from sparsedepth.restore import denoise
from sparsedepth.vocabulary import DepthMap, Origin
from sparsedepth_experiments import Progress
from sparsedepth_experiments._cache import baselines_version, cached, restoration_version
from sparsedepth_experiments._methods import (
    NOISY,
    Method,
    Outcome,
    coded,
    competitor,
    data_at_hand,
    own_methods,
    threads,
)
from sparsedepth_experiments._natural_sensors import Errors, Window, all_windows, errors, section

SIDE = 128
"""Of what is shown, in pixels."""
WALKWAY, MUG, WALL = (10, 220), (300, 250), (30, 420)
"""First row and column: pillars and branches before far walls; the handle of a mug; grain and drop-outs on a wall."""
STRENGTH = 0.1
"""Of the non-local means where no truth can choose it, in standard deviations of the map."""
PATCHES_APART = {2: 4, 4: 2, 8: 1, 16: 1}
"""Pixels between the 16x16 patches at each factor, so that a large map has about as many as a small one."""
COMPETITORS = ("median", "bilateral", "TV-L2", "NL-means")
PAPER_METHOD = "ns-SC Φ1"
SHOWN = {
    "tof_pico_zense": "Time of flight: a frame with a reference",
    "kinect_v1_7scenes": "Structured light: a frame with a reference",
}


@dataclass(frozen=True, eq=False)
class View:
    """A real map with its own noise, whose truth is unknown."""

    name: str
    title: str
    unit: str
    depth: DepthMap
    variance: DepthMap | None = None
    """Of the sensor at these depths, where it is known."""


@dataclass(frozen=True, eq=False)
class Scene:
    """A map with simulated noise, and its truth."""

    name: str
    factor: int
    noisy: DepthMap
    truth: DepthMap


@dataclass(frozen=True, eq=False)
class Plan:
    """The maps that are shown and measured."""

    views: Sequence[View]
    scenes: Sequence[Scene]
    note: str = ""
    windows: Sequence[Window] = ()
    """Of frames that have a reference."""


@dataclass(frozen=True, eq=False)
class Job:
    """One method on one simulated map."""

    scene: Scene
    method: Method

    def done(self) -> Outcome:
        noisy, truth = self.scene.noisy, self.scene.truth
        name = f"{self.method.name} at 1/{self.scene.factor}"
        version = f"{restoration_version('default', 'phi1')}, {baselines_version()}"
        return cached(name, version, [noisy, truth], lambda: self.method.restore(noisy, truth))


@dataclass(frozen=True, eq=False)
class Results:
    """RMSE and chosen parameters: method -> factor -> one a scene."""

    rmse: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    parameters: dict[str, dict[int, list[float | None]]] = field(default_factory=dict)
    help: dict[str, str] = field(default_factory=dict)

    def add(self, job: Job, outcome: Outcome) -> None:
        name, factor = job.method.name, job.scene.factor
        self.help[name] = job.method.help
        self.rmse.setdefault(name, {}).setdefault(factor, []).append(rmse(outcome.depth, job.scene.truth))
        if job.method.tuned:
            self.parameters.setdefault(name, {}).setdefault(factor, []).append(outcome.parameter)


def run(output: Path, progress: Progress, quick: bool = False) -> dict[str, Any]:
    """Restore real maps and write their panels; measure all methods where the noise is simulated."""
    plan = _quick_plan() if quick else _plan()
    jobs = [Job(scene, each) for scene in plan.scenes for each in _methods(scene.factor)]
    total = len(jobs) + len(plan.views)
    output.mkdir(parents=True, exist_ok=True)
    facts = {}
    for done, view in enumerate(plan.views):
        progress(view.title, done, total)
        facts[view.name] = _show(view, output / f"natural-noise-{view.name}.png")
    results = Results()
    for done, (job, outcome) in enumerate(zip(jobs, map_in_threads(Job.done, jobs, threads()), strict=True)):
        progress(f"{job.scene.name} at 1/{job.scene.factor}: {job.method.name}", len(plan.views) + done + 1, total)
        results.add(job, outcome)
    with_law = errors(plan.windows)
    _write(output, quick, plan, facts, results, with_law)
    return {
        "with the sensor's law": with_law,
        "note": plan.note,
        "shown": facts,
        "rmse": results.rmse,
        "parameters": results.parameters,
    }


def _plan() -> Plan:
    frame = mug().depth
    views = [
        View("laser", "Laser scan: walkway", "ln (range / m)", _window(log_scan("walkway"), WALKWAY)),
        View("mug", "Time of flight: the handle of a mug", "m", _window(frame, MUG)),
        View("wall", "Time of flight: a far wall", "m", _window(frame, WALL)),
    ]
    seen = all_windows()
    shown = {sensor: next(window for window in seen if window.sensor == sensor) for sensor in SHOWN}
    views += [View(s, title, "mm", shown[s].depth, shown[s].variance) for s, title in SHOWN.items()]
    return Plan(views, [_simulated(name, factor) for factor in FACTORS for name in SIMULATED], windows=seen)


def _quick_plan() -> Plan:
    """Plan small windows and one small scene; without the data sets, parts of a map that needs none."""
    if data_at_hand():
        plan = _plan()
        small = [View(v.name, v.title, v.unit, v.depth[:32, :32]) for v in plan.views[:2]]
        return Plan(small, [_simulated(SIMULATED[0], FACTORS[-1])], "A quick run on small parts of the maps.")
    disparity = motorcycle_disparity()
    views = [
        View(name, f"Part of Motorcycle in place of the {name}", "px", disparity[150:182, left : left + 32])
        for name, left in (("laser", 300), ("mug", 520))
    ]
    truth = disparity[100:420:8, 200:520:8]
    noise = 0.12 * np.nanstd(truth) * np.random.default_rng(0).standard_normal(truth.shape)
    note = (
        "A quick run. SPARSEDEPTH_DATA names no folder, so parts of the Motorcycle disparities stand in for the real "
        "maps, and one with Gaussian noise of 12 % of its standard deviation for the simulated ones."
    )
    return Plan(views, [Scene("Motorcycle", FACTORS[-1], (truth + noise).astype(np.float32), truth)], note)


def _window(depth: DepthMap, corner: tuple[int, int]) -> DepthMap:
    top, left = corner
    return depth[top : top + SIDE, left : left + SIDE]


def _simulated(name: str, factor: int) -> Scene:
    maps = simulated(name, factor)
    return Scene(name, factor, maps.noisy, maps.truth)


def _methods(factor: int) -> list[Method]:
    paper = coded(PAPER_METHOD, "phi1", PATCHES_APART[factor])
    return [NOISY, *map(competitor, COMPETITORS), paper, *own_methods()]


def _show(view: View, path: Path) -> dict[str, float]:
    """Draw panels as in the paper; report the fractions of noisy and of filled pixels in each pass."""
    depth = view.depth
    known = np.isfinite(depth)
    first = denoise(depth, method="paper", quality="paper", dictionary="phi1", fill=False, threads=threads())
    second = denoise(depth, method="paper", quality="paper", dictionary="phi1", second_pass=True, threads=threads())
    smoothed = nl_means(depth, STRENGTH * float(np.nanstd(depth)))
    own = [(each.name, each.restore(depth, depth).depth) for each in own_methods()]
    panels = [
        Panel("original", depth),
        Panel("NL-means", smoothed),
        Panel("ns-SC Φ1", first.depth),
        Panel("inferred variance", np.where(known, first.variance, np.nan), "variance"),
        Panel("second pass: noisy pixels inpainted", second.depth),
        *(Panel(name, restored) for name, restored in own),
        *(Panel("ns-SC Φ1, the sensor's variance", _with_variance(view)) for _ in range(view.variance is not None)),
    ]
    low, high = np.nanpercentile(depth, (0.5, 99.5))
    save_panels(panels, path, limits=(float(low), float(high)), unit=view.unit, columns=3, width=260)
    shares = {origin.name.lower(): round(float((second.origin == origin).mean()), 4) for origin in Origin}
    changed = np.abs(second.depth - first.depth)[second.origin == Origin.CORRECTED]
    return {
        **shares,
        "changed by the second pass": round(float(np.sqrt(np.mean(changed**2))), 4) if changed.size else 0.0,
    }


def _with_variance(view: View) -> DepthMap:
    options = {"method": "paper", "quality": "paper", "dictionary": "phi1", "fill": False, "threads": threads()}
    return denoise(view.depth, variance=view.variance, **options).depth


def _write(
    output: Path,
    quick: bool,
    plan: Plan,
    facts: dict[str, dict[str, float]],
    results: Results,
    with_law: Errors,
) -> None:
    apart = ", ".join(f"{PATCHES_APART[f]} (1/{f})" for f in dict.fromkeys(s.factor for s in plan.scenes))
    shown = [
        part
        for view in plan.views
        for part in (
            f"## {view.title}",
            f"![{view.title}](natural-noise-{view.name}.png)",
            _found(view, facts[view.name]),
        )
    ]
    parts = [
        plan.note,
        "Nobody knows the truth of the maps that are shown: look for what is lost beside what is cleaned. Unknown "
        f"pixels are red. The non-local means have a strength of {STRENGTH:g} standard deviations of the map. `ns-SC` "
        "has a 16x16 patch at every pixel; its second pass takes the pixels it found noisy for holes, and fills holes.",
        *shown,
        *section(with_law),
        "## Simulated time-of-flight noise: RMSE, px of full size",
        _table(plan, results),
        "Means over the scenes " + ", ".join(dict.fromkeys(scene.name for scene in plan.scenes)) + ". The noise is as "
        "large at every pixel, so there is nothing for an inferred variance to find. What is tuned has the "
        f"parameter that suits each map best, chosen with its truth. The patches of `ns-SC` are {apart} pixels apart.",
    ]
    command = "sparsedepth reproduce natural_noise" + " --quick" * quick
    write_made_part(output / "natural_noise.md", "Denoising natural noise", command, [part for part in parts if part])


def _found(view: View, facts: dict[str, float]) -> str:
    return (
        f"Of {view.depth.shape[0]}x{view.depth.shape[1]} pixels, {facts['corrected']:.1%} were found noisy, "
        f"{facts['filled']:.1%} were holes and are filled, {facts['refused']:.1%} lie in holes too wide to fill. The "
        f"second pass moved the noisy ones by {facts['changed by the second pass']:.3g} (RMS, {view.unit})."
    )


def _table(plan: Plan, results: Results) -> str:
    """Format a table of mean errors, the least of each column in bold."""
    factors = list(dict.fromkeys(scene.factor for scene in plan.scenes))
    means = np.array([[np.mean(by[factor]) for factor in factors] for by in results.rmse.values()])
    rows = [
        [
            name,
            results.help[name],
            *(f"**{m:.2f}**" if m == least else f"{m:.2f}" for m, least in zip(row, means.min(axis=0), strict=True)),
        ]
        for name, row in zip(results.rmse, means, strict=True)
    ]
    return table(["", "", *(f"1/{factor}" for factor in factors)], rows)

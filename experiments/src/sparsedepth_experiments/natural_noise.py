"""The noise of real sensors: a laser scan and a time-of-flight frame (the paper's Figs. 6 and 7), and numbers on maps
with simulated time-of-flight noise, whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.range_scans import log_scan
from sparsedepth.data.time_of_flight import FACTORS, SIMULATED, mug, simulated
from sparsedepth.markdown import table
from sparsedepth.pictures import Panel, save_panels
from sparsedepth.vocabulary import DepthMap, Origin
from sparsedepth_experiments import Progress
from sparsedepth_experiments._methods import Outcome, data_at_hand
from sparsedepth_experiments._natural_jobs import (
    PAPER_METHOD,
    PATCHES_APART,
    SECOND_PASS,
    STRENGTH,
    Plan,
    Results,
    Scene,
    View,
)
from sparsedepth_experiments._natural_sensors import all_windows, section
from sparsedepth_experiments.harness import run_jobs, write_page

SIDE = 128
"""Of what is shown, in pixels."""
WALKWAY, MUG, WALL = (10, 220), (300, 250), (30, 420)
"""First row and column: pillars and branches before far walls; the handle of a mug; grain and drop-outs on a wall."""
SHOWN = {
    "tof_pico_zense": "Time of flight: a frame with a reference",
    "kinect_v1_7scenes": "Structured light: a frame with a reference",
}


def run(output: Path, progress: Progress, quick: bool = False) -> dict[str, Any]:
    """Restore real maps and write their panels; measure all methods where the truth is known."""
    plan = _quick_plan() if quick else _plan()
    results = Results(run_jobs(plan.jobs(), progress))
    output.mkdir(parents=True, exist_ok=True)
    for view in plan.views:
        _draw(view, results.shown(view), output / f"natural-noise-{view.name}.png")
    facts = {view.name: _facts(results.shown(view)) for view in plan.views}
    write_page(output, "natural_noise", "Denoising natural noise", _parts(plan, results, facts), quick)
    return {
        "with the sensor's law": results.with_law(),
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


def _draw(view: View, outcomes: Mapping[str, Outcome], path: Path) -> None:
    """Draw panels as in the paper, then further methods."""
    depth, variance = view.depth, outcomes[PAPER_METHOD].variance
    assert variance is not None
    panels = [Panel("original", depth), *(Panel(name, outcome.depth) for name, outcome in outcomes.items())]
    panels.insert(3, Panel("inferred variance", np.where(np.isfinite(depth), variance, np.nan), "variance"))
    low, high = np.nanpercentile(depth, (0.5, 99.5))
    save_panels(panels, path, limits=(float(low), float(high)), unit=view.unit, columns=3, width=260)


def _facts(outcomes: Mapping[str, Outcome]) -> dict[str, float]:
    """Compute the fractions of noisy and of filled pixels, and what the second pass changes."""
    first, second = outcomes[PAPER_METHOD], outcomes[SECOND_PASS]
    shares = {origin.name.lower(): round(float((second.origin == origin).mean()), 4) for origin in Origin}
    changed = np.abs(second.depth - first.depth)[second.origin == Origin.CORRECTED]
    moved = float(np.sqrt(np.mean(changed**2))) if changed.size else 0.0
    return {**shares, "changed by the second pass": round(moved, 4)}


def _parts(plan: Plan, results: Results, facts: Mapping[str, Mapping[str, float]]) -> list[str]:
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
    return [
        plan.note,
        "Nobody knows the truth of the maps that are shown: look for what is lost beside what is cleaned. Unknown "
        f"pixels are red. The non-local means have a strength of {STRENGTH:g} standard deviations of the map. `ns-SC` "
        "has a 16x16 patch at every pixel; its second pass takes the pixels it found noisy for holes, and fills holes.",
        *shown,
        *section(results.with_law()),
        "## Simulated time-of-flight noise: RMSE, px of full size",
        _table(plan, results),
        "Means over the scenes " + ", ".join(dict.fromkeys(scene.name for scene in plan.scenes)) + ". The noise is as "
        "large at every pixel, so there is nothing for an inferred variance to find. What is tuned has the "
        f"parameter that suits each map best, chosen with its truth. The patches of `ns-SC` are {apart} pixels apart.",
    ]


def _found(view: View, facts: Mapping[str, float]) -> str:
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

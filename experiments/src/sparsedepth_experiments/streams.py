"""Streams of depth frames, recorded and simulated: error and honesty over time, ghosts, flicker, slow change, time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from sparsedepth.data.simulated_streams import FOCAL, STREAM_SENSORS, StreamScene
from sparsedepth.markdown import table
from sparsedepth_experiments import Progress
from sparsedepth_experiments._methods import data_at_hand
from sparsedepth_experiments._streams_bars import bars_of
from sparsedepth_experiments._streams_methods import best_parameters
from sparsedepth_experiments._streams_page import (
    DEVELOPMENT,
    Results,
    age_table,
    described,
    filled_table,
    object_table,
    pixel_table,
    seconds_table,
    slow_table,
    turning_table,
)
from sparsedepth_experiments._streams_pictures import draw_ages, draw_maps, draw_object, write_video
from sparsedepth_experiments._streams_runs import Run, recorded_runs, simulated_run
from sparsedepth_experiments._streams_scores import (
    honesty_of_pixels,
    score_ages,
    score_object,
    score_slow,
    score_turning,
)
from sparsedepth_experiments._streams_time import growth_of_memory, kinect_frames, simulated_frames, timings
from sparsedepth_experiments.harness import Bar, Job, bar_facts, count_met, run_jobs, write_page

SPEEDS = (0.2, 0.5, 1.0)
"""Of slow change, in standard deviations a frame."""
RATES = (0.01, 0.03, 0.08)
"""Of turning cameras, in radians a frame."""


@dataclass(frozen=True)
class Plan:
    """What is simulated: sensors, seeds of scenes, sizes, and whether recordings are read."""

    sensors: tuple[str, ...] = tuple(STREAM_SENSORS)
    seeds: tuple[tuple[int, ...], ...] = ((2606, 0), (2606, 1))
    shape: tuple[int, int] = (240, 320)
    timed_shape: tuple[int, int] = (480, 640)
    frames: int = 30
    long_frames: int = 1000
    """Frames of the stream whose memory is measured."""
    speeds: tuple[float, ...] = SPEEDS
    rates: tuple[float, ...] = RATES
    recorded: bool = True
    note: str = ""

    @property
    def shown(self) -> str:
        """Sensor of the video."""
        return self.sensors[len(self.sensors) // 2]

    def scenes(self, sensor: str) -> list[StreamScene]:
        """List the scenes before a sensor."""
        return [StreamScene(STREAM_SENSORS[sensor], seed, self.shape) for seed in self.seeds]


QUICK = Plan(
    sensors=("time of flight",),
    seeds=((1, 1),),
    shape=(54, 72),
    timed_shape=(54, 72),
    frames=5,
    long_frames=100,
    speeds=(0.5,),
    rates=(0.02,),
    recorded=False,
    note="A quick run: few small simulated frames.",
)


def run(output: Path, progress: Progress, quick: bool = False) -> dict[str, Any]:
    """Restore all sequences by all methods; write tables, targets, pictures and a video."""
    plan = QUICK if quick else _plan()
    results = Results.merged(run_jobs(_jobs(plan), progress, parallel="no").scores)
    bars = bars_of(results)
    output.mkdir(parents=True, exist_ok=True)
    _draw(plan, results, output)
    write_page(output, "streams", "Streams of depth frames", _parts(plan, results, bars), quick)
    return {"note": plan.note, **results.facts(), "bars": bar_facts(bars)}


def _plan() -> Plan:
    if data_at_hand():
        return Plan()
    return Plan(recorded=False, note="SPARSEDEPTH_DATA names no folder: only simulated sequences were run.")


def _jobs(plan: Plan) -> list[Job[Results]]:
    recorded = [Job({"what": "recorded sequences"}, _recorded)] if plan.recorded else []
    simulated = [
        Job({"sensor": sensor, "what": name}, partial(measure, plan, sensor))
        for sensor in plan.sensors
        for name, measure in _SIMULATED.items()
    ]
    return [*recorded, *simulated, Job({"what": "CPU time"}, partial(_times, plan))]


def _recorded() -> Results:
    return Results.merged([_ages(name, runs) for name, runs in recorded_runs().items()])


def _ages(name: str, runs: list[Run]) -> Results:
    parameters = best_parameters(runs)
    return Results(ages={name: score_ages(runs, parameters)}, parameters={name: parameters})


def _static(plan: Plan, sensor: str) -> Results:
    runs = [simulated_run(scene, scene.static(plan.frames)) for scene in plan.scenes(sensor)]
    return _ages(f"simulated {sensor}, static", runs)


def _moving(plan: Plan, sensor: str) -> Results:
    runs = [simulated_run(scene, scene.moving(plan.frames), moves=True) for scene in plan.scenes(sensor)]
    name = f"simulated {sensor}, poses"
    ages = _ages(name, runs)
    pixels = {name: honesty_of_pixels(runs, True), f"{name}, unknown sensor": honesty_of_pixels(runs, False)}
    return replace(ages, pixels=pixels)


def _object(plan: Plan, sensor: str) -> Results:
    runs = [simulated_run(scene, scene.passing_object()) for scene in plan.scenes(sensor)]
    parameters = best_parameters(runs)
    return Results(
        parameters={f"{sensor}, passing object": parameters}, objects={sensor: score_object(runs, parameters)}
    )


def _slow(plan: Plan, sensor: str) -> Results:
    found = {}
    for speed in plan.speeds:
        runs = [simulated_run(scene, scene.slow_change(speed)) for scene in plan.scenes(sensor)]
        found[speed] = score_slow(runs, best_parameters(runs))
    return Results(slow={sensor: found})


def _turning(plan: Plan, sensor: str) -> Results:
    found = {}
    for rate, scene in zip(plan.rates, cycle(plan.scenes(sensor)), strict=False):
        taken = simulated_run(scene, scene.stops_and_turns(rate), moves=True)
        for what, known in (("aligned", True), ("no intrinsics", False)):
            found[f"{what}, {rate * FOCAL * plan.shape[1]:.0f} px a frame"] = score_turning(taken, known)
    return Results(turning={sensor: found})


_SIMULATED: dict[str, Callable[[Plan, str], Results]] = {
    "static": _static,
    "moving camera": _moving,
    "passing object": _object,
    "slow change": _slow,
    "turning camera": _turning,
}


def _times(plan: Plan) -> Results:
    size, seed = f"{plan.timed_shape[1]} x {plan.timed_shape[0]}", plan.seeds[0][0]
    recorded = {"Kinect v1, 640 x 480": timings(kinect_frames())} if plan.recorded else {}
    simulated = {f"simulated, {size}": timings(simulated_frames(seed, plan.timed_shape, plan.frames))}
    grown = plan.long_frames, growth_of_memory(seed, plan.long_frames)
    return Results(times=recorded | simulated, grown=grown)


def _draw(plan: Plan, results: Results, output: Path) -> None:
    """Draw simulated frames and curves: most recordings may not be redistributed."""
    draw_ages(results.ages, output / "streams-error.png", "left")
    draw_ages(results.ages, output / "streams-honesty.png", "honesty")
    sensor, first = plan.shown, plan.scenes(plan.sensors[0])[-1]
    scene = plan.scenes(sensor)[-1]
    passing = simulated_run(scene, scene.passing_object())
    draw_object(passing, results.parameters[f"{sensor}, passing object"], output / "streams-object.png")
    write_video(passing, output / "streams-object.webp")
    draw_maps(simulated_run(first, first.moving(plan.frames), moves=True), output / "streams-maps.png")


def _parts(plan: Plan, results: Results, bars: Sequence[Bar]) -> list[str]:
    rows = [[*bar.wanted.split(" | "), bar.measured, bar.verdict] for bar in bars]
    seeds = f"{len(plan.seeds)} room{'s' * (len(plan.seeds) > 1)} a sensor, seeds {', '.join(map(str, plan.seeds))}. "
    seeds += "No setting was chosen on them; other seeds of the same generator were used in development"
    return [
        plan.note,
        DEVELOPMENT if plan.recorded else "",
        described(seeds),
        f"## Targets: {count_met(bars)}",
        table(["", "asked", "got", "met"], rows),
        "## A stream",
        f"Before, after, and the logarithm of the standard deviation: a simulated {plan.shown}, a passing object.",
        "![Video of a simulated stream](streams-object.webp)",
        f"The last frame of a simulated {plan.sensors[0]} that moves, with poses:",
        "![Maps before and after](streams-maps.png)",
        "## Error and honesty over time",
        "![Error against the number of frames](streams-error.png)",
        "![Honesty against the number of frames](streams-honesty.png)",
        *(part for name in results.ages for part in (f"### {name}", age_table(results, name))),
        "### By the age of the pixel",
        pixel_table(results),
        "## Missing pixels",
        filled_table(results),
        "## A passing object: ghosts and flicker",
        object_table(results),
        "![Errors of all methods while an object passes](streams-object.png)",
        "## Slow change",
        slow_table(results),
        "## A camera without poses that stops and turns",
        turning_table(results),
        "## CPU time and memory",
        seconds_table(results),
    ]

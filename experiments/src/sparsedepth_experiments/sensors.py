"""Frames of real depth cameras and of simulated ones: error left, calibration of the variance, holes, CPU time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparsedepth.data.simulated_sensors import SIMULATED
from sparsedepth.markdown import table, write_made_part
from sparsedepth_experiments import Progress
from sparsedepth_experiments._sensors_bars import bars_of
from sparsedepth_experiments._sensors_methods import Camera, real_cameras, restored, simulated_camera
from sparsedepth_experiments._sensors_page import (
    Results,
    definition_table,
    described,
    error_table,
    facts_of,
    seconds_table,
    simulated_table,
    variance_table,
)
from sparsedepth_experiments._sensors_pictures import BAND_ROWS, draw_frame
from sparsedepth_experiments._sensors_scores import error_of_raw, errors_of_filters, score
from sparsedepth_experiments._zoo import SENSOR_IMPULSES
from sparsedepth_experiments.harness import Bar

SCENES = 3
"""Simulated rooms of each sensor."""
QUICK_SIDE = 144
"""Pixels of the frames of a quick run."""
DEVELOPMENT = (
    "**Every map here is a development map**: settings, presets and rules were chosen with these frames in view, or "
    "with frames of the same recordings. None of the numbers is a held-out result."
)


NOT_SHOWN = ("kinect_v1_7scenes", "realsense_d4xx_cup", "tof_pico_zense")
"""Data sets without a licence to redistribute: simulated frames are drawn in their place."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Cameras with references, and simulated sensors with impulses."""

    cameras: Sequence[Callable[[], list[Camera]]]
    simulated: Sequence[str]
    scenes: int
    side: int | None = None
    note: str = ""


def run(output: Path, progress: Progress, quick: bool = False) -> dict[str, Any]:
    """Restore the frames by all methods; write tables, targets and one picture a camera."""
    plan = _quick_plan() if quick else Plan([real_cameras], SIMULATED, SCENES)
    results = Results()
    progress("frames and calibrations", 0, 1)
    cameras = [camera for load in plan.cameras for camera in load()]
    total, done = len(cameras) + len(plan.simulated) * len(SENSOR_IMPULSES), 0
    output.mkdir(parents=True, exist_ok=True)
    for camera in cameras:
        _measure(camera, results)
        _draw(camera, output)
        progress(camera.name, done := done + 1, total)
    for name in plan.simulated:
        for impulses in SENSOR_IMPULSES:
            _measure_simulated(simulated_camera(name, impulses, plan.scenes, plan.side), impulses, results)
            progress(f"{name}, {impulses:.0%} impulses", done := done + 1, total)
    bars = bars_of(results)
    _write(output, quick, plan, cameras, results, bars)
    return {"note": plan.note, **facts_of(results), "bars": [[bar.wanted, bar.measured, bar.met] for bar in bars]}


def _quick_plan() -> Plan:
    """Plan two small simulated cameras, which need no data set."""
    note = "A quick run: small simulated frames stand in for those of real cameras."
    few = (SIMULATED[0], SIMULATED[-1])
    return Plan([lambda: [simulated_camera(name, 0.0, 1, QUICK_SIDE) for name in few]], few[:1], 1, QUICK_SIDE, note)


def _measure(camera: Camera, results: Results) -> None:
    height, width = camera.frames[0].depth.shape
    results.shapes[camera.name] = (len(camera.frames), height, width)
    results.raw[camera.name] = error_of_raw(camera)
    results.filters[camera.name] = errors_of_filters(camera)
    results.modes[camera.name] = {mode: score(camera, sensor_of) for mode, sensor_of in camera.modes().items()}


def _measure_simulated(camera: Camera, impulses: float, results: Results) -> None:
    raw = error_of_raw(camera)
    for mode, sensor_of in camera.modes().items():
        by = results.simulated.setdefault(camera.name, {}).setdefault(mode, {})
        by[impulses] = raw, score(camera, sensor_of)


def _draw(camera: Camera, output: Path) -> None:
    """Draw the middle frame of a camera; a simulated one in place of data that may not be redistributed."""
    shown = simulated_camera(camera.preset, 0.0, 1) if camera.name in NOT_SHOWN else camera
    frame = shown.frames[len(shown.frames) // 2]
    draw_frame(shown, frame, restored(frame.depth, None), output / _picture(camera.name))


def _picture(camera: str) -> str:
    return f"sensors-{camera.replace('_', '-')}.png"


def _write(
    output: Path, quick: bool, plan: Plan, cameras: Sequence[Camera], results: Results, bars: Sequence[Bar]
) -> None:
    met = sum(bar.met for bar in bars)
    parts = [
        plan.note,
        DEVELOPMENT,
        described(results),
        "## Error left",
        error_table(results),
        definition_table(results),
        "## Variance and holes",
        variance_table(results),
        f"## Targets: {met} of {len(bars)} are met",
        table(["", "measured", "met"], [[b.wanted, b.measured, "yes" if b.met else "**no**"] for b in bars]),
        "## Simulated sensors and impulses",
        simulated_table(results, plan.scenes),
        "## CPU time",
        seconds_table(results),
        "## Pictures",
        f"Blind mode. The last two panels show the points of {BAND_ROWS} rows from above. Frames of data sets that may "
        "not be redistributed are replaced by simulated frames of the same sensor: the title names it.",
        *(f"![{camera.name}]({_picture(camera.name)})" for camera in cameras),
    ]
    command = "sparsedepth reproduce sensors" + " --quick" * quick
    write_made_part(output / "sensors.md", "Frames of depth cameras", command, [part for part in parts if part])

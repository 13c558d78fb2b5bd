"""Frames of real depth cameras and of simulated ones: error left, calibration of the variance, holes, CPU time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sparsedepth.data.simulated_sensors import SIMULATED
from sparsedepth_experiments import Progress
from sparsedepth_experiments._sensors_bars import bars_of
from sparsedepth_experiments._sensors_methods import Camera, real_cameras, restored, simulated_camera
from sparsedepth_experiments._sensors_page import (
    CameraScores,
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
from sparsedepth_experiments._sensors_scores import Score, error_of_raw, errors_of_filters, score
from sparsedepth_experiments._zoo import SENSOR_IMPULSES
from sparsedepth_experiments.harness import Bar, Job, bar_facts, bar_table, count_met, run_jobs, write_page

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

    cameras: Sequence[Camera]
    simulated: Sequence[str]
    scenes: int
    side: int | None = None
    note: str = ""

    def jobs(self) -> list[Job[CameraScores]]:
        """List the cameras, then the simulated sensors with each fraction of impulses."""
        judged = [Job({"camera": camera.name, "impulses": None}, partial(_judged, camera)) for camera in self.cameras]
        return judged + [
            Job({"camera": name, "impulses": share}, partial(_simulated, name, share, self.scenes, self.side))
            for name in self.simulated
            for share in SENSOR_IMPULSES
        ]


def run(output: Path, progress: Progress, quick: bool = False) -> dict[str, Any]:
    """Restore the frames by all methods; write tables, targets and one picture a camera."""
    progress("frames and calibrations", 0, 1)
    plan = _quick_plan() if quick else Plan(real_cameras(), SIMULATED, SCENES)
    results = Results(run_jobs(plan.jobs(), progress, parallel="no"))
    output.mkdir(parents=True, exist_ok=True)
    for camera in plan.cameras:
        _draw(camera, output)
    bars = bars_of(results)
    write_page(output, "sensors", "Frames of depth cameras", _parts(plan, results, bars), quick)
    return {"note": plan.note, **facts_of(results), "bars": bar_facts(bars)}


def _quick_plan() -> Plan:
    """Plan two small simulated cameras, which need no data set."""
    note = "A quick run: small simulated frames stand in for those of real cameras."
    few = (SIMULATED[0], SIMULATED[-1])
    return Plan([simulated_camera(name, 0.0, 1, QUICK_SIDE) for name in few], few[:1], 1, QUICK_SIDE, note)


def _judged(camera: Camera) -> CameraScores:
    """Measure all methods on frames as they are."""
    shape = (len(camera.frames), *camera.frames[0].depth.shape)
    return CameraScores(error_of_raw(camera), _modes(camera), errors_of_filters(camera), shape)


def _simulated(name: str, impulses: float, scenes: int, side: int | None) -> CameraScores:
    """Measure our method on simulated frames with impulses."""
    camera = simulated_camera(name, impulses, scenes, side)
    return CameraScores(error_of_raw(camera), _modes(camera))


def _modes(camera: Camera) -> dict[str, Score]:
    return {mode: score(camera, sensor_of) for mode, sensor_of in camera.modes().items()}


def _draw(camera: Camera, output: Path) -> None:
    """Draw the middle frame of a camera; a simulated one in place of data that may not be redistributed."""
    shown = simulated_camera(camera.preset, 0.0, 1) if camera.name in NOT_SHOWN else camera
    frame = shown.frames[len(shown.frames) // 2]
    draw_frame(shown, frame, restored(frame.depth, None), output / _picture(camera.name))


def _picture(camera: str) -> str:
    return f"sensors-{camera.replace('_', '-')}.png"


def _parts(plan: Plan, results: Results, bars: Sequence[Bar]) -> list[str]:
    return [
        plan.note,
        DEVELOPMENT,
        described(results),
        "## Error left",
        error_table(results),
        definition_table(results),
        "## Variance and holes",
        variance_table(results),
        f"## Targets: {count_met(bars)}",
        bar_table(bars),
        "## Simulated sensors and impulses",
        simulated_table(results, plan.scenes),
        "## CPU time",
        seconds_table(results),
        "## Pictures",
        f"Blind mode. The last two panels show the points of {BAND_ROWS} rows from above. Frames of data sets that may "
        "not be redistributed are replaced by simulated frames of the same sensor: the title names it.",
        *(f"![{camera.name}]({_picture(camera.name)})" for camera in plan.cameras),
    ]

"""Occlusions and the sparse prior over second-order stereo: the paper's Teddy and Cones (Figs. 9, 10), and controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sparsedepth.data.middlebury import StereoScene, benchmark_pair, scene_names, stereo_pair
from sparsedepth.metrics import bad_pixels
from sparsedepth.pictures import Panel, save_panels
from sparsedepth.vocabulary import DepthMap
from sparsedepth_experiments import Progress, harness
from sparsedepth_experiments._scenes import STRIDE, changed, known, small_scene
from sparsedepth_experiments._second_order_jobs import (
    AGAIN,
    ANEW,
    ANEW_LOOP,
    BOTH,
    BY_MEDIAN,
    FILLED,
    FILLED_FILTERED,
    FILTERED,
    OTHERS,
    PLAIN,
    PROPOSED,
    WITH,
    WITHOUT,
    Group,
    Job,
    Results,
)
from sparsedepth_experiments._second_order_tables import (
    PAPER,
    Found,
    against_the_paper,
    confirmation,
    described,
    every_scene,
    in_match,
    other_solvers,
    test_tables,
    verdicts_of,
)

CONTINUED: Sequence[str] = (PLAIN, FILTERED, AGAIN, BOTH, FILLED, FILLED_FILTERED, PROPOSED, WITHOUT, WITH, BY_MEDIAN)
ALL: Sequence[str] = (*CONTINUED, ANEW, ANEW_LOOP)
SHORT: Sequence[str] = (PLAIN, AGAIN, FILLED, WITHOUT, WITH)
"""Of the other solvers."""
SEEDS, CONFIRMING_SEEDS = 5, 2


@dataclass(frozen=True, eq=False)
class Plan:
    """The scenes that confirm, those that are tested afterwards, and the other solvers' scenes."""

    confirming: Group
    test: Group
    others: Mapping[str, Group] = field(default_factory=dict)
    dictionary: str = "phi1_32"
    stride: int = STRIDE
    note: str = ""

    def jobs(self) -> list[tuple[str, Job]]:
        """List the jobs of every group; those that confirm come first."""
        groups = {"confirming": self.confirming, "test": self.test, **self.others}
        return [(name, job) for name, group in groups.items() for job in group.jobs(self.dictionary, self.stride)]

    def match_jobs(self) -> list[Job]:
        """List the jobs of the first seed that confirm, whose maps of both views go through the steps of `match`."""
        jobs = self.confirming.jobs(self.dictionary, self.stride)
        return [job for job in jobs if job.seed == 0 and job.variant in (PLAIN, WITHOUT)]


def run(output: Path, progress: Progress, quick: bool = False) -> dict[str, Any]:
    """Match all scenes with every variant and seed; write tables, verdicts, and what changed where."""
    plan = _quick_plan() if quick else _plan()
    jobs, in_both = plan.jobs(), plan.match_jobs()
    one_by_one = partial(harness.run_jobs, progress=progress, parallel="no", total=len(jobs) + len(in_both))
    scores = one_by_one([harness.Job(job.key, job.done, job.score) for _, job in jobs]).scores
    results: dict[str, Results] = {}
    for (group, job), score in zip(jobs, scores, strict=True):
        results.setdefault(group, Results()).add(job, score)
    both_views = [harness.Job({**job.key, "views": "both views"}, partial(in_match, job)) for job in in_both]
    rows: dict[str, dict[str, list[float]]] = {}
    for job, errors in zip(in_both, one_by_one(both_views, before=len(jobs)).scores, strict=True):
        rows.setdefault(job.variant, {})[job.name] = errors
    found = Found(results.pop("confirming"), results.pop("test"), results, rows)
    output.mkdir(parents=True, exist_ok=True)
    for name, scene in plan.test.scenes.items():
        _draw(scene, found.test.shown[name], output / _picture(name))
    verdicts = verdicts_of(found)
    parts = [
        plan.note,
        described(plan.confirming.seeds, plan.test.seeds, plan.dictionary, plan.stride),
        "## What was hoped for, and what is so",
        harness.verdict_table(verdicts),
        *confirmation(found.confirming, plan.confirming.seeds),
        *against_the_paper(found.test),
        *test_tables(found.test, plan.test.seeds),
        *other_solvers(found),
        *found.match_table(),
        *every_scene(found.confirming),
        *(f"## {name}, the first seed\n\n![{name}]({_picture(name)})" for name in plan.test.scenes),
    ]
    title = "Stereo: second-order smoothness, occlusions and the sparse prior"
    harness.write_page(output, "second_order", title, parts, quick)
    return {"note": plan.note, "bad": found.bad(), "verdicts": {what: holds for what, (holds, _) in verdicts.items()}}


def _plan() -> Plan:
    confirming = {name: stereo_pair(2006, name) for name in scene_names(2006)}
    test = {name: benchmark_pair(name) for name in PAPER}
    once = dict.fromkeys(SHORT, 1)
    seeds = dict.fromkeys(CONTINUED, CONFIRMING_SEEDS) | {BOTH: 1, WITH: 1}
    others = {solver: Group({**confirming, **test}, once, solver) for solver in OTHERS}
    return Plan(Group(confirming, seeds), Group(test, dict.fromkeys(ALL, SEEDS)), others)


def _quick_plan() -> Plan:
    note = "A quick run: a small part of Motorcycle stands in for the scenes, with the variants of the claims."
    scenes, once = {"Motorcycle": small_scene()}, dict.fromkeys(SHORT, 1)
    others = {solver: Group(scenes, once, solver) for solver in OTHERS}
    return Plan(Group(scenes, once), Group(scenes, once), others, "phi1", 8, note)


def _picture(scene: str) -> str:
    return f"second-order-{scene.lower()}.png"


def _draw(scene: StereoScene, maps: dict[str, DepthMap], path: Path) -> None:
    """Draw the truth, the maps of the plain matcher and of the loop, and what the loop and its control change."""
    truth, photo = known(scene, "all"), scene.pair.left.mean(axis=2)

    def matched(name: str) -> Panel:
        return Panel(f"{name}, {100 * bad_pixels(maps[name], truth, 1.0):.2f} % bad", maps[name])

    panels = [
        Panel("left view", photo, "photo"),
        Panel("truth", truth),
        matched(PLAIN),
        matched(WITHOUT),
        changed(WITHOUT, maps[PLAIN], maps[WITHOUT], truth),
        changed(AGAIN, maps[PLAIN], maps[AGAIN], truth),
    ]
    limits = float(np.nanmin(truth)), float(np.nanmax(truth))
    save_panels(panels, path, limits=limits, unit="px", columns=3, width=300)

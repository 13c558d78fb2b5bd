"""Occlusions and the sparse prior over second-order stereo: the paper's Teddy and Cones (Figs. 9, 10), and controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sparsedepth.data.middlebury import StereoScene, benchmark_pair, scene_names, stereo_pair
from sparsedepth.pictures import Panel
from sparsedepth.vocabulary import DepthMap
from sparsedepth_experiments import Progress, harness
from sparsedepth_experiments._scenes import STRIDE, changed, judged, known, save_disparities, small_scene
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
    MATCH,
    OTHERS,
    PLAIN,
    PROPOSED,
    TEST,
    WITH,
    WITHOUT,
    Group,
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
from sparsedepth_experiments.harness import Job

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

    def jobs(self) -> list[Job[Any]]:
        """List the arms of every group, those that confirm first; then arms through the steps of `match`."""
        groups = {CONFIRMING: self.confirming, TEST: self.test, **self.others}
        arms = {name: group.arms(self.dictionary, self.stride) for name, group in groups.items()}
        matched = [arm for arm in arms[CONFIRMING] if arm.seed == 0 and arm.variant in (PLAIN, WITHOUT)]
        return [
            *(arm.job(group) for group, of in arms.items() for arm in of),
            *(Job(arm.key(MATCH), partial(in_match, arm)) for arm in matched),
        ]


def run(output: Path, progress: Progress, quick: bool = False) -> dict[str, Any]:
    """Match all scenes with every variant and seed; write tables, verdicts, and what changed where."""
    plan = _quick_plan() if quick else _plan()
    records = harness.run_jobs(plan.jobs(), progress, parallel="no")
    confirming, test, *others = (Results(records.where(group=group)) for group in (CONFIRMING, TEST, *plan.others))
    matched = records.where(group=MATCH).tree("variant", "scene", value=list)
    found = Found(confirming, test, dict(zip(plan.others, others, strict=True)), matched)
    output.mkdir(parents=True, exist_ok=True)
    for name, scene in plan.test.scenes.items():
        _draw(scene, found.test.shown(name), output / _picture(name))
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
    return {"note": plan.note, "bad": found.bad(), "verdicts": harness.verdict_facts(verdicts)}


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
    panels = [
        Panel("left view", photo, "photo"),
        Panel("truth", truth),
        *(judged(name, maps[name], truth) for name in (PLAIN, WITHOUT)),
        changed(WITHOUT, maps[PLAIN], maps[WITHOUT], truth),
        changed(AGAIN, maps[PLAIN], maps[AGAIN], truth),
    ]
    save_disparities(panels, truth, path)

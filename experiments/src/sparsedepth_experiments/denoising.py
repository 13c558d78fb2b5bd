"""Synthetic noise on laser and disparity maps: the paper's panels (Fig. 4), its curves (Fig. 5) and its claims."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparsedepth.data.crops import Crop, crops
from sparsedepth.data.middlebury import benchmark_scene
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.range_scans import SCANS, log_scan
from sparsedepth.metrics import psnr
from sparsedepth.pictures import Curve, Panel, save_curves, save_panels
from sparsedepth.vocabulary import DepthMap
from sparsedepth_experiments import Progress, _zoo
from sparsedepth_experiments._claims import Claim, claim_facts, judge_all
from sparsedepth_experiments._denoising_jobs import (
    ANNEALED,
    MILD_NOISE,
    PAPER_NOISE,
    PHI1,
    PHI2,
    PHI3,
    SC,
    SC1,
    TIGHT,
    UNIT,
    Part,
    Plan,
    Results,
)
from sparsedepth_experiments._denoising_page import KINDS, page_of
from sparsedepth_experiments._methods import NOISY, data_at_hand, own_methods
from sparsedepth_experiments._zoo import Source
from sparsedepth_experiments.harness import run_jobs, write_page

SIZE, CROP_SEED, FRESH_SEED = 100, 0, 1
PARTS = (
    Part(PAPER_NOISE, 0.01, draws=2, seeds=3, further=True),
    Part(PAPER_NOISE, 0.02),
    Part(PAPER_NOISE, 0.05, draws=2, seeds=3),
    Part(PAPER_NOISE, 0.1),
    Part(PAPER_NOISE, 0.2),
    Part(MILD_NOISE, 0.01),
    Part(MILD_NOISE, 0.05),
)
FEW_PARTS = (
    Part(PAPER_NOISE, 0.01, further=True),
    Part(PAPER_NOISE, 0.05),
    Part(MILD_NOISE, 0.01),
    Part(MILD_NOISE, 0.05),
)
FRESH_LASER = {"street_trees_os2": 2, "corner_os1_a": 1, "trees_os1_sparse": 2}
FRESH_DISPARITY = {"Teddy": 1, "Cones": 2, "Venus": 2}
"""Five maps of each kind, beside the development maps of `_zoo`; the other two scans have no more room for one."""
FRESH = (
    "These maps are fresh: no setting, rule or dictionary was chosen with them. They lie in the same scans and scenes "
    "as the development maps of [Restoration](restoration.md), beside those, without overlap. The way of learning, the "
    "size of the noise and the tight frame were found on the development maps."
)
PANELS = (PHI1, PHI2, PHI3, SC, "median", "TV-L2", "NL-means", TIGHT)
OTHERS = ("median", "TV-L2", "NL-means", TIGHT)
OWN = tuple(each.name for each in own_methods())
MARGINS = {"laser": 2.0, "disparity": 1.0}


def claims() -> list[Claim]:
    """List what the paper says of its Figs. 4 and 5, one comparison each."""
    order = ((PHI1, PHI2, True), (PHI2, PHI3, False), (PHI3, SC, False))
    return [
        Claim(better, worse, kind, share, ties=ties)
        for kind in KINDS
        for share in (0.01, 0.05)
        for better, worse, ties in order
    ] + [Claim(PHI1, worse, kind, 0.01, MARGINS[kind], ties=True) for kind in KINDS for worse in OTHERS]


def further_claims() -> list[Claim]:
    """List the same with the other frame, and what the text says besides.

    "Any of the learned dictionaries outperforms the other solutions"; Φ2 "performs better than SC with Φ1".
    """
    return [
        *(Claim(PHI1, UNIT, kind, 0.01, MARGINS[kind], ties=True) for kind in KINDS),
        *(Claim(PHI2, SC1, kind, 0.01) for kind in KINDS),
        *(Claim(better, worse, kind, 0.01) for kind in KINDS for better in (PHI2, PHI3) for worse in OTHERS),
    ]


def run(output: Path, progress: Progress, quick: bool = False) -> dict[str, Any]:
    """Corrupt the maps, restore them by all methods; write panels, curves, and verdicts on the paper's claims."""
    plan = _quick_plan() if quick else _plan()
    results = Results(run_jobs(plan.jobs(), progress))
    output.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        _draw_panels(plan, results, kind, output / f"denoising-{kind}.png")
    _draw_curves(plan, results, output / "denoising-curves.png")
    scores = {noise: results.scores(noise) for noise in (PAPER_NOISE, MILD_NOISE)}
    verdicts = judge_all(claims(), scores[PAPER_NOISE])
    further = judge_all(further_claims(), scores[PAPER_NOISE])
    mild = judge_all(claims(), scores[MILD_NOISE])
    parts = page_of(plan, results, verdicts, further, mild)
    write_page(output, "denoising", "Denoising with synthetic noise", parts, quick)
    return {
        "note": plan.note,
        "maps": [
            {"kind": s.kind, "name": s.name, "top": s.crop.top, "left": s.crop.left, "size": len(s.crop.depth)}
            for s in plan.sources
        ],
        "psnr": scores[PAPER_NOISE],
        "psnr of the milder noise": scores[MILD_NOISE],
        "parameters": results.parameters,
        "claims": claim_facts(verdicts),
        "further claims": claim_facts(further),
        "claims at the milder noise": claim_facts(mild),
    }


def _plan() -> Plan:
    drawn = [
        ("laser", name, crop)
        for name, n in FRESH_LASER.items()
        for crop in _fresh(log_scan(name), n, _zoo.LASER_CROPS[name])
    ] + [
        ("disparity", name, crop)
        for name, n in FRESH_DISPARITY.items()
        for crop in _fresh(benchmark_scene(name).disparity, n, _zoo.DISPARITY_CROPS[name])
    ]
    return Plan(_sources(drawn), PARTS, note=FRESH)


def _fresh(depth: DepthMap, n: int, developed: int) -> list[Crop]:
    """Draw crops that overlap none of the development maps."""
    old = crops(depth, developed, SIZE, seed=CROP_SEED)
    return crops(depth, n, SIZE, seed=FRESH_SEED, apart_from=old)


def _sources(drawn: Sequence[tuple[str, str, Crop]]) -> list[Source]:
    return [Source(kind, name, crop, number=number) for number, (kind, name, crop) in enumerate(drawn)]


def _quick_plan() -> Plan:
    """Plan one small map of each kind; without the data sets, parts of a map that needs none."""
    size = 20
    if data_at_hand():
        maps = {("laser", SCANS[0]): log_scan(SCANS[0]), ("disparity", "Teddy"): benchmark_scene("Teddy").disparity}
        drawn = [(*which, crops(depth, 1, size, seed=CROP_SEED)[0]) for which, depth in maps.items()]
        return Plan(_sources(drawn), FEW_PARTS, stride=4, note="A quick run: one small map of each kind.")
    found = crops(motorcycle_disparity(), len(KINDS), size, seed=CROP_SEED)
    drawn = [(kind, "Motorcycle", crop) for kind, crop in zip(KINDS, found, strict=True)]
    note = (
        "A quick run. SPARSEDEPTH_DATA names no folder, so one small part of the Motorcycle disparities stands in for "
        "laser maps and one for disparity maps."
    )
    return Plan(_sources(drawn), FEW_PARTS, stride=4, units=dict.fromkeys(KINDS, "px"), note=note)


def _draw_panels(plan: Plan, results: Results, kind: str, path: Path) -> None:
    """Draw the paper's twelve panels in its order, then further methods. Holes stay holes."""
    truth, outcomes = plan.of_kind(kind)[0].crop.depth, results.shown(kind)
    known = np.isfinite(truth)

    def restored(name: str) -> Panel:
        depth = np.where(known, outcomes[name].depth, np.nan)
        return Panel(f"{name}, {psnr(depth, truth):.1f} dB", depth)

    variance = outcomes[PHI1].variance
    assert variance is not None
    panels = [
        Panel("original", truth),
        restored(NOISY.name),
        Panel("size of the noise", np.abs(outcomes[NOISY.name].depth - truth), "error"),
        Panel("variance inferred with Φ1", np.where(known, variance, np.nan), "variance"),
        *map(restored, (*PANELS, ANNEALED, UNIT, "TV-L1", *OWN)),
    ]
    save_panels(panels, path, limits=(float(np.nanmin(truth)), float(np.nanmax(truth))), unit=plan.units[kind])


def _draw_curves(plan: Plan, results: Results, path: Path) -> None:
    shares = plan.shares(PAPER_NOISE)
    groups = {}
    for kind in KINDS:
        curves = {
            name: [results.mean(PAPER_NOISE, kind, name, share) for share in shares]
            for name in (*PANELS, UNIT, ANNEALED, "TV-L1", *OWN)
        }
        dictionaries, own = (PHI1, PHI2, PHI3), {PHI1, *OWN}
        groups[f"{kind}: Fig. 5a, dictionaries"] = [Curve(name, curves[name], ours=True) for name in dictionaries]
        others = [name for name in curves if name not in (PHI2, PHI3)]
        groups[f"{kind}: Fig. 5b, methods"] = [Curve(name, curves[name], ours=name in own) for name in others]
    save_curves(groups, [100 * share for share in shares], path, x="% of the pixels corrupted", y="PSNR, dB")

"""Synthetic noise on laser and disparity maps: the paper's panels (Fig. 4), its curves (Fig. 5) and its claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from sparsedepth.data.crops import Crop, crops
from sparsedepth.data.middlebury import benchmark_scene
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.range_scans import SCANS, log_scan
from sparsedepth.markdown import write_made_part
from sparsedepth.metrics import psnr
from sparsedepth.parallel import map_in_threads
from sparsedepth.pictures import Curve, Panel, save_curves, save_panels
from sparsedepth_experiments import Progress, _zoo
from sparsedepth_experiments._claims import Claim, judge
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
    Job,
    Part,
    Plan,
    Results,
    Source,
)
from sparsedepth_experiments._denoising_page import KINDS, page_of
from sparsedepth_experiments._methods import NOISY, Outcome, data_at_hand, own_methods, threads

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
    results = Results()
    jobs = list(plan.jobs())
    firsts = {kind: plan.of_kind(kind)[0] for kind in KINDS}
    for done, (job, outcome) in enumerate(zip(jobs, map_in_threads(Job.done, jobs, threads()), strict=True)):
        kind, part = job.source.kind, job.part
        progress(f"{kind}, {part.share:.0%} corrupted: {job.method.name}", done + 1, len(jobs))
        first = job.source is firsts[kind] and part is plan.parts[0] and (job.draw, job.seed) == (0, 0)
        results.add(job, outcome, show=first)
    output.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        _draw_panels(firsts[kind], results.shown[kind], output / f"denoising-{kind}.png")
    _draw_curves(plan, results, output / "denoising-curves.png")
    scores = {noise: results.scores(noise) for noise in (PAPER_NOISE, MILD_NOISE)}
    verdicts = {claim: judge(claim, scores[PAPER_NOISE]) for claim in claims()}
    further = {claim: judge(claim, scores[PAPER_NOISE]) for claim in further_claims()}
    mild = {claim: judge(claim, scores[MILD_NOISE]) for claim in claims()}
    parts = page_of(plan, results, verdicts, further, mild)
    command = "sparsedepth reproduce denoising" + " --quick" * quick
    write_made_part(
        output / "denoising.md", "Denoising with synthetic noise", command, [part for part in parts if part]
    )
    facts = {
        "note": plan.note,
        "maps": [
            {"kind": s.kind, "name": s.name, "top": s.crop.top, "left": s.crop.left, "size": len(s.crop.depth)}
            for s in plan.sources
        ],
        "psnr": scores[PAPER_NOISE],
        "psnr of the milder noise": scores[MILD_NOISE],
        "parameters": results.parameters,
        "claims": [asdict(claim) | asdict(verdict) for claim, verdict in verdicts.items()],
        "further claims": [asdict(claim) | asdict(verdict) for claim, verdict in further.items()],
        "claims at the milder noise": [asdict(claim) | asdict(verdict) for claim, verdict in mild.items()],
    }
    return facts


def _plan() -> Plan:
    laser = [
        Source("laser", name, "ln (range / m)", crop)
        for name, n in FRESH_LASER.items()
        for crop in _fresh(log_scan(name), n, _zoo.LASER_CROPS[name])
    ]
    disparity = [
        Source("disparity", name, "px", crop)
        for name, n in FRESH_DISPARITY.items()
        for crop in _fresh(benchmark_scene(name).disparity, n, _zoo.DISPARITY_CROPS[name])
    ]
    return Plan(laser + disparity, PARTS, note=FRESH)


def _fresh(depth: Any, n: int, developed: int) -> list[Crop]:
    """Draw crops that overlap none of the development maps."""
    old = crops(depth, developed, SIZE, seed=CROP_SEED)
    return crops(depth, n, SIZE, seed=FRESH_SEED, apart_from=old)


def _quick_plan() -> Plan:
    """Plan one small map of each kind; without the data sets, parts of a map that needs none."""
    size = 20
    if data_at_hand():
        laser = Source("laser", SCANS[0], "ln (range / m)", crops(log_scan(SCANS[0]), 1, size, seed=CROP_SEED)[0])
        teddy = crops(benchmark_scene("Teddy").disparity, 1, size, seed=CROP_SEED)[0]
        return _short([laser, Source("disparity", "Teddy", "px", teddy)], "A quick run: one small map of each kind.")
    found = crops(motorcycle_disparity(), len(KINDS), size, seed=CROP_SEED)
    return _short(
        [Source(kind, "Motorcycle", "px", crop) for kind, crop in zip(KINDS, found, strict=True)],
        "A quick run. SPARSEDEPTH_DATA names no folder, so one small part of the Motorcycle disparities stands in for "
        "laser maps and one for disparity maps.",
    )


def _short(sources: Sequence[Source], note: str) -> Plan:
    parts = [
        Part(PAPER_NOISE, 0.01, further=True),
        Part(PAPER_NOISE, 0.05),
        Part(MILD_NOISE, 0.01),
        Part(MILD_NOISE, 0.05),
    ]
    return Plan(sources, parts, stride=4, wavelet_stride=4, note=note)


def _draw_panels(source: Source, outcomes: dict[str, Outcome], path: Path) -> None:
    """Draw the paper's twelve panels in its order, then further methods. Holes stay holes."""
    truth = source.crop.depth
    known = np.isfinite(truth)

    def restored(name: str) -> Panel:
        depth = np.where(known, outcomes[name].depth, np.nan)
        return Panel(f"{name}, {psnr(depth, truth):.1f} dB", depth)

    variance = outcomes[PHI1].variance
    assert variance is not None
    further = [ANNEALED, UNIT, "TV-L1", *(each.name for each in own_methods())]
    panels = [
        Panel("original", truth),
        restored(NOISY.name),
        Panel("size of the noise", np.abs(outcomes[NOISY.name].depth - truth), "error"),
        Panel("variance inferred with Φ1", np.where(known, variance, np.nan), "variance"),
        *map(restored, PANELS),
        *map(restored, further),
    ]
    save_panels(panels, path, limits=(float(np.nanmin(truth)), float(np.nanmax(truth))), unit=source.unit)


def _draw_curves(plan: Plan, results: Results, path: Path) -> None:
    shares = plan.shares(PAPER_NOISE)
    groups = {}
    for kind in KINDS:
        curves = {
            name: [results.mean(PAPER_NOISE, kind, name, share) for share in shares]
            for name in (*PANELS, UNIT, ANNEALED, "TV-L1", *(each.name for each in own_methods()))
        }
        dictionaries, own = (PHI1, PHI2, PHI3), {PHI1, *(each.name for each in own_methods())}
        groups[f"{kind}: Fig. 5a, dictionaries"] = [Curve(name, curves[name], ours=True) for name in dictionaries]
        others = [name for name in curves if name not in (PHI2, PHI3)]
        groups[f"{kind}: Fig. 5b, methods"] = [Curve(name, curves[name], ours=name in own) for name in others]
    save_curves(groups, [100 * share for share in shares], path, x="% of the pixels corrupted", y="PSNR, dB")

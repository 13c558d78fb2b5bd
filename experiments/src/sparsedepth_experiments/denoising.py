"""Synthetic noise on laser and disparity maps: the paper's panels (Fig. 4), its curves (Fig. 5) and its claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from sparsedepth.data.crops import crops
from sparsedepth.data.middlebury import benchmark_scene
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.range_scans import SCANS, log_scan
from sparsedepth.markdown import table, write_made_part
from sparsedepth.metrics import psnr
from sparsedepth.parallel import map_in_threads
from sparsedepth.pictures import Curve, Panel, save_curves, save_panels
from sparsedepth_experiments import Progress
from sparsedepth_experiments._claims import Claim, judge, table_of
from sparsedepth_experiments._denoising_jobs import PHI1, PHI2, PHI3, SC, WAVELETS, Job, Plan, Results, Source
from sparsedepth_experiments._methods import NOISY, VARIANCES, Outcome, data_at_hand, own_methods, threads
from sparsedepth_experiments._zoo import DEVELOPMENT

KINDS = ("laser", "disparity")
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2)
"""Of corrupted pixels."""
SIZE, CROP_SEED = 100, 0
DISPARITY_CROPS = {"Teddy": 2, "Cones": 2, "Venus": 1}
"""Five maps, of scenes on which no dictionary was trained; all ten are among the development maps of `_zoo`."""
PAPER = {
    NOISY.name: 28.5,
    PHI1: 37.8,
    PHI2: 36.3,
    PHI3: 35.3,
    SC: 32.3,
    "median": 31.3,
    "TV-L2": 31.8,
    "NL-means": 32.9,
    WAVELETS: 33.7,
}
"""PSNR in the paper's Fig. 4, on one laser map with 1 % of the pixels corrupted."""


def claims() -> list[Claim]:
    """List what the paper says of its Figs. 4 and 5, one comparison each."""
    order = ((PHI1, PHI2, True), (PHI2, PHI3, False), (PHI3, SC, False))
    margins = {"laser": 2.0, "disparity": 1.0}
    return [
        Claim(better, worse, kind, share, ties=ties)
        for kind in KINDS
        for share in (0.01, 0.05)
        for better, worse, ties in order
    ] + [
        Claim(PHI1, worse, kind, 0.01, margins[kind], ties=True)
        for kind in KINDS
        for worse in ("median", "TV-L2", "NL-means", WAVELETS)
    ]


def run(output: Path, progress: Progress, quick: bool = False) -> dict[str, Any]:
    """Corrupt the maps, restore them by all methods; write panels, curves, and verdicts on the paper's claims."""
    plan = _quick_plan() if quick else _plan()
    results = Results()
    jobs = list(plan.jobs())
    for done, (job, outcome) in enumerate(zip(jobs, map_in_threads(Job.done, jobs, threads()), strict=True)):
        kind = job.source.kind
        progress(f"{kind}, {job.share:.0%} corrupted: {job.method.name}", done + 1, len(jobs))
        results.add(job, outcome, show=job.share == plan.shares[0] and job.source is plan.of_kind(kind)[0])
    output.mkdir(parents=True, exist_ok=True)
    verdicts = {claim: judge(claim, results.psnr) for claim in claims()}
    for kind in KINDS:
        _draw_panels(plan.of_kind(kind)[0], results.shown[kind], output / f"denoising-{kind}.png")
    _draw_curves(plan, results, output / "denoising-curves.png")
    parts = [
        plan.note,
        _described(plan),
        "## Beside the paper",
        _against_the_paper(plan, results),
        "The paper's numbers are of one natural laser scan, which is not public. Its NL-means may be the one of "
        "medians.",
        *(part for kind in KINDS for part in _means(kind, plan, results)),
        "![PSNR over corrupted pixels](denoising-curves.png)",
        f"## The paper's claims: {sum(v.holds for v in verdicts.values())} of {len(verdicts)} hold here",
        table_of(verdicts),
        "Differences are means over the maps, with their standard errors. The margins ask for less than the paper's: "
        f"its Φ1 is {PAPER[PHI1] - PAPER[WAVELETS]:.1f} dB above the best of the four.",
        *_against_the_best(plan, results),
        *(f"## {kind.capitalize()}, the first map\n\n![{kind} map](denoising-{kind}.png)" for kind in KINDS),
    ]
    command = "sparsedepth reproduce denoising" + " --quick" * quick
    write_made_part(
        output / "denoising.md", "Denoising with synthetic noise", command, [part for part in parts if part]
    )
    return {
        "note": plan.note,
        "maps": [
            {"kind": s.kind, "name": s.name, "top": s.crop.top, "left": s.crop.left, "size": len(s.crop.depth)}
            for s in plan.sources
        ],
        "psnr": results.psnr,
        "parameters": results.parameters,
        "claims": [asdict(claim) | asdict(verdict) for claim, verdict in verdicts.items()],
    }


def _plan() -> Plan:
    laser = [Source("laser", n, "ln (range / m)", crops(log_scan(n), 1, SIZE, seed=CROP_SEED)[0]) for n in SCANS]
    disparity = [
        Source("disparity", name, "px", crop)
        for name, n in DISPARITY_CROPS.items()
        for crop in crops(benchmark_scene(name).disparity, n, SIZE, seed=CROP_SEED)
    ]
    return Plan(laser + disparity, SHARES, note=DEVELOPMENT)


def _quick_plan() -> Plan:
    """Plan one small map of each kind; without the data sets, parts of a map that needs none."""
    size = 32
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
    return Plan(sources, (0.01, 0.05), wavelet_stride=8, note=note)


def _draw_panels(source: Source, outcomes: dict[str, Outcome], path: Path) -> None:
    """Draw the paper's twelve panels in its order, then further methods. Holes stay holes."""
    truth = source.crop.depth
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
        *(restored(name) for name in PAPER if name != NOISY.name),
        *(restored(name) for name in outcomes if name not in PAPER),
    ]
    save_panels(panels, path, limits=(float(np.nanmin(truth)), float(np.nanmax(truth))), unit=source.unit)


def _draw_curves(plan: Plan, results: Results, path: Path) -> None:
    own = {PHI1, *(each.name for each in own_methods())}
    groups = {}
    for kind in KINDS:
        names = [each.name for each in plan.methods]
        curves = {name: [results.mean(kind, name, share) for share in plan.shares] for name in names}
        groups[f"{kind}: dictionaries"] = [Curve(name, curves[name], ours=True) for name in (PHI1, PHI2, PHI3)]
        others = [name for name in names if name not in (PHI2, PHI3)]
        groups[f"{kind}: methods"] = [Curve(name, curves[name], ours=name in own) for name in others]
    save_curves(groups, [100 * share for share in plan.shares], path, x="% of the pixels corrupted", y="PSNR, dB")


def _described(plan: Plan) -> str:
    """Describe the procedure in words."""
    size = len(plan.sources[0].crop.depth)
    where = "; ".join(
        f"{kind}: " + ", ".join(f"{s.name} ({s.crop.top}, {s.crop.left})" for s in plan.of_kind(kind)) for kind in KINDS
    )
    return (
        "Each chosen pixel gets Gaussian noise whose variance is uniform in (0, 1) variances of the map. The maps are "
        f"{size}x{size} pixels, drawn by seed among the places where little is missing; named with their first row and "
        f"column, they are {where}. Holes stay holes and are not scored. PSNR is in dB, over the true map's range. "
        "`ns-SC` is the paper's method, with a 16x16 patch at every pixel; `SC` codes with one variance, the best of "
        f"{', '.join(f'{v:g}' for v in VARIANCES)} variances of the patch, chosen with patches 4 pixels apart; `TIWF` "
        f"is `ns-SC` with the wavelet frame, its patches {plan.wavelet_stride} pixels apart. What is tuned has the "
        "parameter that suits each map best, chosen with its truth; what is blind has one setting for all."
    )


def _against_the_paper(plan: Plan, results: Results) -> str:
    share = plan.shares[0]
    head = [
        f"{share:.0%} corrupted",
        "",
        "paper",
        *(f"ours, {k}, {what}" for k in KINDS for what in ("first map", "mean")),
    ]
    rows = []
    for name, help_ in ((each.name, each.help) for each in plan.methods):
        ours = [v for kind in KINDS for v in (results.psnr[kind][name][share][0], results.mean(kind, name, share))]
        rows.append([name, help_, f"{PAPER[name]:.1f}" if name in PAPER else "", *(f"{v:.1f}" for v in ours)])
    return table(head, rows)


def _means(kind: str, plan: Plan, results: Results) -> list[str]:
    """Format a table of means, the best of each column in bold."""
    means = np.array([[results.mean(kind, each.name, share) for share in plan.shares] for each in plan.methods])
    cells = [
        [f"**{m:.1f}**" if m == best else f"{m:.1f}" for m, best in zip(row, means.max(axis=0), strict=True)]
        for row in means
    ]
    rows = [[each.name, each.help, *row] for each, row in zip(plan.methods, cells, strict=True)]
    n = len(plan.of_kind(kind))
    title = f"## {kind.capitalize()}: mean PSNR over {n} map{'s' * (n > 1)}"
    return [title, table(["", "", *(f"{share:.0%}" for share in plan.shares)], rows)]


def _against_the_best(plan: Plan, results: Results) -> list[str]:
    """Compare our methods that the paper does not have with the best tuned baseline."""
    rivals = [each.name for each in plan.methods if each.tuned and each.name != SC]
    rows = []
    for name in (each.name for each in own_methods()):
        for kind in KINDS:
            row = [name, kind]
            for share in plan.shares:
                best, rival = max((results.mean(kind, rival, share), rival) for rival in rivals)
                row.append(f"{results.mean(kind, name, share) - best:+.1f} ({rival})")
            rows.append(row)
    head = ["", "maps", *(f"{share:.0%}" for share in plan.shares)]
    return ["## Our own methods, blind, less the best tuned competitor, dB", table(head, rows)] if rows else []

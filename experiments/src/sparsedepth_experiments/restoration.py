"""The default restoration on development maps with many kinds of noise and holes, and the calibration of its variance.

Its competitors have parameters that were chosen with the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparsedepth.data.time_of_flight import SIMULATED
from sparsedepth.markdown import table
from sparsedepth.metrics import psnr
from sparsedepth.pictures import Panel, save_panels
from sparsedepth.vocabulary import DepthMap
from sparsedepth_experiments import Progress
from sparsedepth_experiments import _zoo as zoo
from sparsedepth_experiments._calibration_tables import calibration_table, draw_calibration
from sparsedepth_experiments._methods import NOISY
from sparsedepth_experiments._restoration_jobs import (
    CLEAR,
    DENOISE,
    FILLERS,
    GUIDED,
    INPAINT,
    MOST,
    RIVALS,
    TOF_RIVALS,
    Plan,
    Results,
)
from sparsedepth_experiments._zoo import KINDS, SHARES, Source, impulses
from sparsedepth_experiments.harness import (
    Bar,
    bar_facts,
    bar_table,
    count_met,
    mean_and_error,
    run_jobs,
    write_page,
)

TOF_FACTORS = (2, 4)


def run(output: Path, progress: Progress, quick: bool = False) -> dict[str, Any]:
    """Spoil the maps, restore them by all methods; write tables, bars, and the calibration of the variance."""
    plan = _quick_plan() if quick else _plan()
    results = Results(run_jobs(plan.jobs(), progress))
    bars = bars_of(results, plan)
    output.mkdir(parents=True, exist_ok=True)
    _draw_zoo(plan, results, output)
    draw_calibration(results.predicted, output)
    write_page(output, "restoration", "Restoration on development maps", _parts(plan, results, bars), quick)
    return {
        "note": plan.note,
        "maps": {kind: [str(source) for source in plan.of_kind(kind)] for kind in KINDS},
        "psnr": results.psnr,
        "average precision": {kind: results.precision(kind)[:, 0].tolist() for kind in KINDS},
        "rmse": results.rmse,
        "bars": bar_facts(bars),
    }


def _plan() -> Plan:
    """Plan every row on every development map."""
    return Plan(zoo.development_sources(), zoo.rows(), _tof_maps(), zoo.DEVELOPMENT)


def _quick_plan() -> Plan:
    """Plan parts of a map that needs no data set, under a few rows."""
    note = (
        "A quick run: one small part of the Motorcycle disparities stands in for laser maps and one for disparity maps."
    )
    return Plan(zoo.stand_ins(), zoo.few_rows(), note=note)


def _tof_maps() -> list[tuple[str, int]]:
    return [(scene, factor) for factor in TOF_FACTORS for scene in SIMULATED]


def bars_of(results: Results, plan: Plan) -> list[Bar]:
    """Compare a run with what was asked of the default method before it was measured."""
    have = {row.name for row in plan.rows}
    bars = []
    for kind, margin in (("disparity", 0.5), ("laser", 1.0)):
        for amplitude in zoo.IMPULSE_AMPLITUDES:
            for name in (impulses(share, amplitude) for share in SHARES):
                if name in have:
                    bars += _impulse_bars(results, kind, name, margin)
        if "clean" in have:
            least = float(results.of(kind, "clean", DENOISE.name).min())
            bars.append(Bar(f"{kind}, clean: at least 60 dB", f"{least:.1f} at least", least >= 60))
        for share, least in zip(zoo.MISSING, (0.5, 0.5, 0.0), strict=True):
            name = f"{share:.0%} missing"
            if name in have:
                gain, error = results.gain(kind, name, INPAINT.name, "biharmonic")
                wanted = f"{kind}, {name}: biharmonic + {least:g} dB"
                bars.append(Bar(wanted, f"{gain:+.2f} ± {error:.2f}", gain >= least))
    bars.append(_never_below(results))
    for kind, least in (("disparity", 0.95), ("laser", 0.85)):
        mean, error = mean_and_error(results.precision(kind)[:, 0])
        wanted = f"{kind}, 5% impulses: average precision of detection at least {least:g}"
        bars.append(Bar(wanted, f"{mean:.3f} ± {error:.3f}", mean >= least))
    bars += [
        Bar(f"{what}: error² / variance in 0.8 ... 1.25 in every tenth", f"{low:.2f} ... {high:.2f}", good)
        for what, (low, high, good) in results.predicted.ends().items()
    ]
    for factor in TOF_FACTORS:
        if errors := [by for name, by in results.rmse.items() if name.endswith(f"/{factor}")]:
            ours = np.mean([by[DENOISE.name] for by in errors])
            best, name = min((np.mean([by[rival] for by in errors]), rival) for rival in TOF_RIVALS)
            wanted = f"simulated time of flight, 1/{factor}: RMSE 5 % below the best of {', '.join(TOF_RIVALS)}"
            bars.append(Bar(wanted, f"{ours:.2f} against {best:.2f} ({name})", bool(ours <= 0.95 * best)))
    return bars


def _impulse_bars(results: Results, kind: str, name: str, margin: float) -> list[Bar]:
    gain, error = results.gain(kind, name, DENOISE.name, "TV-L1")
    others = {rival: results.gain(kind, name, DENOISE.name, rival) for rival in RIVALS if rival != "TV-L1"}
    nearest = min(others, key=lambda rival: others[rival][0])
    return [
        Bar(f"{kind}, {name}: TV-L1 + {margin:g} dB", f"{gain:+.2f} ± {error:.2f}", gain >= margin),
        Bar(
            f"{kind}, {name}: all others + 3 dB",
            f"{others[nearest][0]:+.2f} ± {others[nearest][1]:.2f} ({nearest})",
            others[nearest][0] >= 3,
        ),
    ]


def _never_below(results: Results) -> Bar:
    """Count the noisy maps that became worse, over all rows."""
    worst, where, below, n = np.inf, "", 0, 0
    for kind, by_row in results.psnr.items():
        for row, by in by_row.items():
            if NOISY.name in by and row != "clean":
                for name, ours in by[DENOISE.name].items():
                    gains = np.subtract(ours, by[NOISY.name][name])
                    below, n = below + int((gains < 0).sum()), n + len(gains)
                    if gains.min() < worst:
                        worst, where = float(gains.min()), f"{kind}, {name}, {row}"
    return Bar("never below the noisy map", f"below on {below} of {n}; least {worst:+.2f} dB ({where})", below == 0)


def _draw_zoo(plan: Plan, results: Results, output: Path) -> None:
    """Draw the first map of each kind under most rows, and its restoration."""
    for kind in KINDS:
        source = plan.of_kind(kind)[0]
        panels = [Panel("true", source.crop.depth)]
        for row in plan.rows:
            if row.sensor:  # maps in mm, which have a page of their own
                continue
            if row.name == impulses(0.05) or row.holes or not (row.name == "clean" or "impulses" in row.name):
                spoilt, ours = results.shown(kind, row.name)
                shown = [_as_source(source, depth) if row.of_ranges else depth for depth in (spoilt.depth, ours)]
                panels += [Panel(row.name, shown[0]), Panel(f"ours, {psnr(ours, spoilt.truth):.1f} dB", shown[1])]
        low, high = np.nanmin(source.crop.depth), np.nanmax(source.crop.depth)
        path = output / f"restoration-{kind}.png"
        save_panels(panels, path, limits=(float(low), float(high)), unit="", columns=5, width=170)


def _as_source(source: Source, ranges: DepthMap) -> DepthMap:
    positive = np.maximum(ranges, np.nanmin(source.ranges) / 2)
    return (100 / positive if source.kind == "disparity" else np.log(positive)).astype(ranges.dtype)


def _parts(plan: Plan, results: Results, bars: Sequence[Bar]) -> list[str]:
    return [
        plan.note,
        _described(plan),
        f"## What was asked for: {count_met(bars)}",
        bar_table(bars),
        *(part for kind in KINDS for part in _tables(kind, plan, results)),
        "## Finding noisy pixels: average precision at 5 % impulses",
        _detection(results),
        "## Can the variance be trusted?",
        calibration_table(results.predicted),
        "![reliability](restoration-reliability.png)",
        "![sparsification](restoration-sparsification.png)",
        *_tof_parts(results.rmse),
        *(f"## {kind.capitalize()}, the first map\n\n![{kind}](restoration-{kind}.png)" for kind in KINDS),
    ]


def _described(plan: Plan) -> str:
    where = "; ".join(f"{kind}: " + ", ".join(map(str, plan.of_kind(kind))) for kind in KINDS)
    size = len(plan.sources[0].crop.depth)
    draws = max(row.draws for row in plan.rows)
    return (
        "`denoise` and `inpaint` run without any argument (`inpaint` with `holes='all'`, so that wide holes are filled "
        "too). Each competitor has the parameter that suits each map best, chosen with its truth. The maps are "
        f"{size}x{size} pixels, drawn by seed among the places where little is missing, and named with their first row "
        f"and column: {where}. Laser maps are logarithms of ranges.\n\nThe rows, done by `sparsedepth.data.synthetic`: "
        "*impulses* are the paper's noise; x0.5 and x2 have that amplitude. *Clusters* are discs of 1 to 3 pixels in "
        f"radius, each shifted by one number. *Flying pixels* mix near and far at {zoo.FLYING:.0%} of the pixels "
        "beside edges. *Range noise* is Gaussian and grows with the square of the range; at the median range it has "
        f"{zoo.RANGE_NOISE:g} deviations of the map, which is turned into ranges for it. *Quantised* maps have "
        f"{zoo.LEVELS} levels. *Missing* pixels are drawn at random. *Matching shadows* are what a second camera "
        "cannot see, up to 12 pixels wide; *Kinect shadows* have ragged rims, and dark spots. Rows with the name of a "
        "sensor are its frames, simulated by `sparsedepth.data.simulated_sensors` over disparities turned into mm, "
        "with that fraction of impulses; their holes are not evaluated.\n\nMeans are over the "
        f"maps, {draws} draw{'s' * (draws > 1)} of the noise each; ± is the "
        f"standard error over the maps. PSNR is in dB over the true map's range, {MOST:g} at most."
    )


def _tables(kind: str, plan: Plan, results: Results) -> list[str]:
    n = len(plan.of_kind(kind))
    noise = [row.name for row in plan.rows if not row.holes and row.name != "clean" and kind in row.kinds]
    holes = [row.name for row in plan.rows if row.holes]
    return [
        f"## {kind.capitalize()}: mean PSNR over {n} map{'s' * (n > 1)}",
        _means(results, kind, noise, [NOISY.name, *RIVALS], DENOISE.name),
        _means(results, kind, holes, list(FILLERS), INPAINT.name),
        *_guided(results, kind, holes),
    ]


def _guided(results: Results, kind: str, holes: Sequence[str]) -> list[str]:
    """Tabulate the gain by a picture of the same view, where there is one."""
    if not holes or GUIDED not in results.psnr[kind][holes[0]]:
        return []
    rows = []
    for name in holes:
        gain, error = results.gain(kind, name, GUIDED, INPAINT.name)
        wins = int((results.of(kind, name, GUIDED) > results.of(kind, name, INPAINT.name)).sum())
        means = [f"{results.of(kind, name, each).mean():.1f}" for each in (INPAINT.name, GUIDED)]
        rows.append([name, *means, f"{gain:+.2f} ± {error:.2f}", f"{wins} of {len(results.of(kind, name, GUIDED))}"])
    head = ["with the left picture as guide", INPAINT.name, GUIDED, "gain", "maps won"]
    return [table(head, rows)]


def _means(results: Results, kind: str, names: Sequence[str], rivals: Sequence[str], ours: str) -> str:
    """Tabulate each row of damage, the best in bold; and ours less the best rival with its error."""
    rows = []
    for name in names:
        means = {each: float(results.of(kind, name, each).mean()) for each in (*rivals, ours)}
        best = max(rivals, key=lambda rival: means[rival])
        gain, error = results.gain(kind, name, ours, best)
        wins = int((results.of(kind, name, ours) > results.of(kind, name, best)).sum())
        n = len(results.of(kind, name, ours))
        cells = [f"**{mean:.1f}**" if mean == max(means.values()) else f"{mean:.1f}" for mean in means.values()]
        rows.append([name, *cells, f"{gain:+.2f} ± {error:.2f} ({best}; {wins} of {n})"])
    return table(["", *rivals, ours, "ours less the best (maps won)"], rows)


def _detection(results: Results) -> str:
    rows = []
    for kind in KINDS:
        cells = [mean_and_error(column) for column in results.precision(kind).T]
        rows.append([kind, *(f"{mean:.3f} ± {error:.3f}" for mean, error in cells)])
    head = ["", f"noise beyond {CLEAR:g} deviations of the map", "all noise, however small"]
    return table(head, rows) + "\n\nThe score of a pixel is how far `denoise` moved it."


def _tof_parts(tof: dict[str, dict[str, float]]) -> list[str]:
    if not tof:
        return []
    names = list(next(iter(tof.values())))
    rows = [[name, *(f"{tof[scene][name]:.2f}" for scene in tof)] for name in names]
    return ["## Simulated time-of-flight noise: RMSE, px of full size", table(["", *tof], rows)]

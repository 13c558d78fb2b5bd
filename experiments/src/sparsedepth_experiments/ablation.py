"""What each part of the default method is worth: it is left out, everything else stays.

Every part is a field of `sparsedepth.restore.Settings`, so a variant is a record, and variants run in parallel.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from sparsedepth.data import data_folder
from sparsedepth.data.sensor_frames import SENSORS, SensorFrame, sensor_frames
from sparsedepth.markdown import table
from sparsedepth.metrics import psnr
from sparsedepth.restore import Restorer, Settings
from sparsedepth.vocabulary import DepthMap, Floats, InputError
from sparsedepth_experiments import Progress
from sparsedepth_experiments import _zoo as zoo
from sparsedepth_experiments._zoo import KINDS, Row, Source, impulses
from sparsedepth_experiments.harness import Job, Records, mean_and_error, run_jobs, write_page

MAX_PSNR = 99.0
"""Decibels of a map that came back unchanged: means need an end."""
EVERY, FRAMES_EVERY = 2, 3
"""Steps between the used maps of the zoo, and between the used frames of each sensor."""
DENOISED = ("clean", impulses(0.01), impulses(0.05), impulses(0.2), impulses(0.05, 0.5), impulses(0.05, 2.0))
OTHERS = ("5% in clusters", "flying pixels", "range noise", "quantised", "3% stuck", "Gaussian noise", "Gaussian + 1%")
FEATURE_GROUPS = {
    "residual over amplitude": (0,),
    "outlier fraction": (1,),
    "amplitude": (2,),
    "score": (3,),
    "residual": (4,),
    "patch variance": (5,),
    "local residual": (6,),
    "valid fraction": (7, 8),
    "suspects around": (9, 10, 11),
    "mean residual around": (12,),
    "nearest in 3x3": (13, 14, 15),
    "nearest in 5x5": (16, 17, 18, 19, 20),
    "nearest in 7x7": (21, 22, 23),
    "median of neighbours": (24, 25),
    "beyond the range": (26,),
    "range": (27,),
    "similar neighbours": (28,),
    "asymmetry nearby": (29,),
    "asymmetry of the map": (30,),
    "far neighbours": (31, 32),
}
"""Groups of the classifier's features, by their columns."""
SENSOR = "sensor"
"""Kind of the frames of real sensors; their rows are the sensors."""
HOLES = ("50% missing", "80% missing", "95% missing", "matching shadows", "Kinect shadows")


@dataclass(frozen=True, eq=False)
class Variant:
    """The default method without a part, and the row of the zoo that the part is for."""

    name: str
    settings: Settings
    own_row: str = ""
    fills: bool = False
    """Whether it is about filling holes."""


@dataclass(frozen=True)
class Outcome:
    """How good a restored map is."""

    decibels: float
    """PSNR; for a frame of a sensor 20 log10 of the raw 99 % RMSE over that left."""
    log_score: float
    """Mean log-likelihood of the errors under the variance, in nats a pixel; larger is better."""


def variants() -> list[Variant]:
    """List the whole method and what is left without each part."""
    full = Settings()

    def without(name: str, own_row: str, part: str, fills: bool = False, **fields: Any) -> Variant:
        return Variant(name, replace(full, **{part: replace(getattr(full, part), **fields)}), own_row, fills)

    five, twenty = impulses(0.05), impulses(0.2)
    return [
        Variant("the default", full),
        Variant("stuck pixels", replace(full, stuck=None), "3% stuck"),
        Variant("clusters of outliers", replace(full, clusters=None), "5% in clusters"),
        Variant("flying pixels", replace(full, flying=None), "flying pixels"),
        without("dense noise", "Gaussian noise", "dense", min_sigma=np.inf),
        without("clean maps by fewer outliers than estimated", "clean", "outliers", min_detected_fraction=0.0),
        without("clean maps by raw roughness", "clean", "outliers", raw_map_fraction=0.0),
        without("penalty in uniform blocks", five, "outliers", block_similarity=0.0),
        without("penalty above the amplitude", five, "outliers", max_amplitude=np.inf),
        without("pixels near a border", "clean", "scores", border_valid_fraction=0.0),
        without("noise model on the smooth part", "clean", "noise_model", smooth_fractions=(1.0,)),
        without("amplitude of the noise", impulses(0.05, 2.0), "noise_model", prior_count=10**9),
        without("second scoring", five, "scores", rescore_above=np.inf),
        without("third scoring", twenty, "outliers", third_pass_fraction=np.inf),
        without("weight of a patch's pixels", five, "coding", window=np.inf),
        without("clusters: larger steps", "5% in clusters", "clusters", step_multiples=()),
        without("clusters: largest offset", "5% in clusters", "clusters", max_offset_ratio=np.inf),
        without("clusters: variance of missed ones", "5% in clusters", "clusters", max_missed_fraction=0.0),
        without("flying: order of pairs", "clean", "flying", max_ordered_ratio=np.inf, max_disordered_ratio=np.inf),
        without("flying: pixels beyond the faces", "clean", "flying", chance_factor=0.0),
        without("flying: faces", "clean", "flying", min_face_fraction=0.0),
        without("flying: mean of unsure sides", "flying pixels", "flying", snap_probability=0.5),
        without("dense: texture is no noise", "clean", "dense", max_tail_ratio=np.inf),
        without("dense: shrinkage", "Gaussian noise", "dense", texture_ratio=np.inf),
        without("dense: second coding", "range noise", "dense", second_pass_ratio=0.0),
        without("variance: pooled pixels", five, "variance", pooled_fraction=0.0),
        without("robust plate", "80% missing", "surfaces", True, reweightings=0),
        without("codes", "80% missing", "inpainting", True, rounds=0),
        *(
            without(f"feature: {name}", five, "outliers", ignored_features=which)
            for name, which in FEATURE_GROUPS.items()
        ),
    ]


def rows() -> list[Row]:
    """List the rows of the zoo on which parts are left out, drawn once."""
    known = {row.name: replace(row, draws=1) for row in zoo.rows()}
    return [known[name] for name in (*DENOISED, *OTHERS, *HOLES)]


@dataclass(frozen=True, eq=False)
class Plan:
    """Maps, rows and frames of sensors."""

    sources: Sequence[Source]
    rows: Sequence[Row]
    variants: Sequence[Variant]
    sensors: Sequence[str] = ()
    note: str = ""

    def jobs(self, quick: bool) -> list[Job[Outcome]]:
        """List everything to be done: each variant on corrupted maps and on frames of sensors."""
        of_maps = [
            (variant, row.name, source.kind, index)
            for index, source in enumerate(self.sources)
            for row in self.rows
            for variant in self.variants
            if variant is self.variants[0] or (variant.fills == row.holes and _concerns(variant, row.name))
        ]
        frames = [(sensor, index) for sensor in self.sensors for index in range(len(_frames(sensor)))]
        of_frames = [
            (variant, sensor, SENSOR, index)
            for sensor, index in frames
            for variant in self.variants
            if not variant.fills and _concerns(variant, sensor)
        ]
        return [
            Job(
                {"row": row, "variant": variant.name, "kind": kind, "index": index},
                partial(_restored, variant.settings, row, kind, index, quick),
            )
            for variant, row, kind, index in (*of_maps, *of_frames)
        ]


def _concerns(variant: Variant, row: str) -> bool:
    """Tell whether a variant is tried on a row: details of a part only on its own row and on few others."""
    is_detail = ": " in variant.name
    return not is_detail or row in (variant.own_row, *DENOISED[:3])


def run(output: Path, progress: Progress, quick: bool = False) -> dict[str, Any]:
    """Leave each part out, over the zoo and on real frames; write a table with standard errors."""
    plan = _plan(quick)
    records = run_jobs(plan.jobs(quick), progress, parallel="no" if quick else "processes")
    changes = _changes(records)
    write_page(output, "ablation", "What each part is worth", _parts(plan, changes), quick)
    return {
        "note": plan.note,
        "changes": [[*key, change.mean, change.error, change.log_score] for key, change in changes.items()],
    }


@cache
def _plan(quick: bool) -> Plan:
    if quick:
        note = "A quick run: small parts of the Motorcycle disparities stand in for the maps."
        few = [row for row in rows() if row.name in ("clean", impulses(0.05), "80% missing")]
        return Plan(zoo.stand_ins(), few, variants()[:3], note=note)
    sources = zoo.development_sources()
    every_second = [source for kind in KINDS for source in [s for s in sources if s.kind == kind][::EVERY]]
    return Plan(every_second, rows(), variants(), SENSORS if _has_sensors() else ())


def _has_sensors() -> bool:
    try:
        return (data_folder() / "sensors").is_dir()
    except InputError:
        return False


def _frames(sensor: str) -> list[SensorFrame]:
    return list(sensor_frames(sensor))[::FRAMES_EVERY]


def _restored(settings: Settings, row: str, kind: str, index: int, quick: bool) -> Outcome:
    """Restore a map or a frame; maps are loaded once in each process."""
    if kind == SENSOR:
        return _restored_frame(settings, _frames(row)[index])
    plan = _plan(quick)
    return _restored_map(settings, plan.sources[index], next(each for each in plan.rows if each.name == row))


def _restored_frame(settings: Settings, frame: SensorFrame) -> Outcome:
    result = Restorer(quality="fast", settings=settings)(frame.depth, threads=1)
    raw, left = (rmse_99(depth - frame.reference) for depth in (frame.depth, result.depth))
    return Outcome(20 * np.log10(raw / left), log_score(result.depth - frame.reference, result.variance))


def _restored_map(settings: Settings, source: Source, row: Row) -> Outcome:
    spoilt = row.done(source, 0)
    restorer = Restorer(correct=not row.holes, holes="all" if row.holes else "auto", settings=settings)
    result = restorer(spoilt.depth, threads=1)
    decibels = min(psnr(result.depth, spoilt.truth, missing="ignore"), MAX_PSNR)
    return Outcome(decibels, log_score(result.depth - spoilt.truth, result.variance))


def rmse_99(error: DepthMap) -> float:
    """Return the root mean square of the 99 % smallest errors."""
    squares = np.sort(np.square(error[np.isfinite(error)], dtype=np.float64))
    return float(np.sqrt(squares[: int(np.ceil(0.99 * len(squares)))].mean()))


def log_score(error: Floats, variance: Floats) -> float:
    """Return the mean log-likelihood of errors under a Gaussian, whose exponent counts 50 at most."""
    valid = np.isfinite(error) & np.isfinite(variance)
    square, variance = np.square(error[valid], dtype=np.float64), variance[valid].astype(np.float64)
    return float(-(np.log(variance) / 2 + np.minimum(square / variance / 2, 50)).mean())


@dataclass(frozen=True)
class Change:
    """What leaving a part out changes on a row: mean over the maps, its standard error, and the log score."""

    mean: float
    error: float
    log_score: float


Changes = Mapping[tuple[Hashable, ...], Change]
"""By variant, row and kind."""


def _changes(records: Records[Outcome]) -> Changes:
    """Compare each variant with the default, row by row and kind by kind."""
    place = itemgetter("row", "kind", "index")
    default = {place(key): outcome for key, outcome in records.where(variant=variants()[0].name)}
    return {
        names: _change([(default[place(key)], outcome) for key, outcome in group])
        for names, group in records.groups("variant", "row", "kind").items()
    }


def _change(pairs: Sequence[tuple[Outcome, Outcome]]) -> Change:
    change = np.array([theirs.decibels - ours.decibels for ours, theirs in pairs])
    scores = np.array([theirs.log_score - ours.log_score for ours, theirs in pairs])
    return Change(*mean_and_error(change), float(scores.mean()))


def _parts(plan: Plan, changes: Changes) -> list[str]:
    by_variant: dict[Hashable, dict[tuple[Hashable, ...], Change]] = {}
    for (name, *place), change in changes.items():
        by_variant.setdefault(name, {})[tuple(place)] = change
    lines = [_line(variant, by_variant[variant.name]) for variant in plan.variants[1:]]
    head = [
        "left out",
        "own row",
        "disparity",
        "laser",
        "most lost in other rows",
        "most gained in other rows",
        "log score",
    ]
    maps = {kind: sum(source.kind == kind for source in plan.sources) for kind in KINDS}
    text = (
        f"Change of the PSNR in dB when a part is left out and everything else stays; ± is the standard error over "
        f"{maps['disparity']} disparity and {maps['laser']} laser maps, one draw of the noise each. These are "
        "development maps. *Own row* is what the part is for. Frames of real sensors count by the 99 % RMSE against "
        "their reference. *Log score* is the change of the mean log-likelihood of the errors under the variance, in "
        "nats a pixel, over all rows: negative is worse. A part pays if its own row loses 0.3 dB or more without it."
    )
    return [plan.note, text, table(head, lines)]


def _line(variant: Variant, changes: Mapping[tuple[Hashable, ...], Change]) -> list[str]:
    own = [changes.get((variant.own_row, kind)) for kind in KINDS]
    others = {key: change for key, change in changes.items() if key[0] != variant.own_row}
    lost = min(others, key=lambda key: others[key].mean, default=None)
    gained = max(others, key=lambda key: others[key].mean, default=None)
    scores = [change.log_score for change in changes.values()]
    return [
        variant.name,
        variant.own_row,
        *("" if change is None else _shown(change) for change in own),
        "" if lost is None or others[lost].mean > -0.005 else f"{_shown(others[lost])} ({lost[1]}, {lost[0]})",
        "" if gained is None or others[gained].mean < 0.005 else f"{_shown(others[gained])} ({gained[1]}, {gained[0]})",
        f"{np.mean(scores):+.3f}",
    ]


def _shown(change: Change) -> str:
    return f"{change.mean:+.2f} ± {change.error:.2f}"

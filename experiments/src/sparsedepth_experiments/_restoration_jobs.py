"""The methods and spoilt maps of the experiment on development maps, and the scores of the results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sparsedepth.metrics import average_precision, psnr
from sparsedepth.vocabulary import DepthMap, Floats
from sparsedepth_experiments._cache import baselines_version, cached, restoration_version
from sparsedepth_experiments._calibration_tables import PredictedVariances
from sparsedepth_experiments._methods import NOISY, Method, Outcome, filler, own_filler, own_methods, searched
from sparsedepth_experiments._zoo import SHARES, Row, Source, Spoilt, impulses

MOST = 99.0
"""Decibels of a map that came back as it was: means need an end."""
RIVALS = ("median", "switching median", "TV-L2", "TV-L1", "NL-means", "bilateral")
FILLERS = ("biharmonic", "linear")
DENOISE, INPAINT, GUIDED = own_methods()[0], own_filler(), "inpaint, guided"
CLEAR = 0.1
"""Deviations of the map beyond which noise is called an outlier, where detection is judged."""


@dataclass(frozen=True, eq=False)
class Job:
    """One method on one spoilt map."""

    source: Source
    row: Row
    draw: int
    spoilt: Spoilt
    method: Method

    @property
    def ours(self) -> bool:
        return self.method in (DENOISE, INPAINT) or self.method.name == GUIDED

    def done(self) -> Outcome:
        depth, truth = self.spoilt.depth, self.spoilt.truth
        version = restoration_version() if self.ours else baselines_version()
        return cached(self.method.name, version, self._seen(), lambda: self.method.restore(depth, truth))

    def _seen(self) -> list[Floats]:
        """List all arrays that the outcome depends on."""
        if self.method.name == GUIDED and self.source.picture is not None:
            return [self.spoilt.depth, self.source.picture]
        return [self.spoilt.depth] if self.ours else [self.spoilt.depth, self.spoilt.truth]


@dataclass(frozen=True, eq=False)
class Plan:
    """Which maps are spoilt how, and who restores them."""

    sources: Sequence[Source]
    rows: Sequence[Row]
    tof: Sequence[tuple[str, int]] = ()
    note: str = ""

    def jobs(self) -> list[Job]:
        return [
            Job(source, row, draw, spoilt, method)
            for source in self.sources
            for row in self.rows
            if source.kind in row.kinds
            for draw in range(row.draws)
            for spoilt in [row.done(source, draw)]
            for method in methods(row, source)
        ]

    def of_kind(self, kind: str) -> list[Source]:
        return [source for source in self.sources if source.kind == kind]


def methods(row: Row, source: Source) -> list[Method]:
    if row.holes:
        guided = [] if source.picture is None else [own_filler(source.picture)]
        return [*map(filler, FILLERS), INPAINT, *guided]
    return [NOISY, DENOISE] if row.name == "clean" else [NOISY, *map(searched, RIVALS), DENOISE]


@dataclass(frozen=True, eq=False)
class Results:
    """The scores: decibels of every map, how well noise was found, and the predicted variances."""

    psnr: dict[str, dict[str, dict[str, dict[str, list[float]]]]] = field(default_factory=dict)
    """kind -> row -> method -> map -> one a draw."""
    precision: dict[str, list[float]] = field(default_factory=dict)
    """kind -> average precision of each map with 5 % of impulses; outliers are noise that is `CLEAR`."""
    precision_of_all: dict[str, list[float]] = field(default_factory=dict)
    """The same, with all noise called outliers, however small."""
    predicted: PredictedVariances = field(default_factory=PredictedVariances)
    shown: dict[tuple[str, str], tuple[Spoilt, DepthMap]] = field(default_factory=dict)
    """(kind, row) -> the first map, and what we made of it."""

    def add(self, job: Job, outcome: Outcome) -> None:
        kind, truth = job.source.kind, job.spoilt.truth
        by_row = self.psnr.setdefault(kind, {}).setdefault(job.row.name, {})
        score = min(psnr(outcome.depth, truth), MOST)
        by_row.setdefault(job.method.name, {}).setdefault(str(job.source), []).append(score)
        if job.method in (DENOISE, INPAINT):
            self.shown.setdefault((kind, job.row.name), (job.spoilt, outcome.depth))
        if job.ours and job.row.name == impulses(0.05):
            self._judge_detection(kind, job.spoilt, outcome)
        if job.ours and job.method.name != GUIDED and (job.row.holes or job.row.name in map(impulses, SHARES)):
            self.predicted.add(kind, truth, outcome)

    def _judge_detection(self, kind: str, spoilt: Spoilt, outcome: Outcome) -> None:
        noise = spoilt.depth - spoilt.truth
        known = np.isfinite(noise)
        size, change = np.abs(noise[known]) / np.nanstd(spoilt.truth), np.abs(outcome.depth - spoilt.depth)[known]
        judged = (size == 0) | (size > CLEAR)
        self.precision.setdefault(kind, []).append(average_precision(change[judged], size[judged] > CLEAR))
        self.precision_of_all.setdefault(kind, []).append(average_precision(change, size > 0))

    def of(self, kind: str, row: str, name: str) -> np.ndarray:
        """Average the decibels of each map over the draws."""
        return np.array([np.mean(draws) for draws in self.psnr[kind][row][name].values()])

    def gain(self, kind: str, row: str, name: str, rival: str) -> tuple[float, float]:
        """Compute the mean difference over the maps, and its standard error."""
        return mean_and_error(self.of(kind, row, name) - self.of(kind, row, rival))


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Compute the mean of some numbers and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0

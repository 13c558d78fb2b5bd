"""The methods and spoilt maps of the experiment on development maps, and the scores of the results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from sparsedepth.data.time_of_flight import simulated
from sparsedepth.metrics import average_precision, psnr, rmse
from sparsedepth.vocabulary import DepthMap, Floats
from sparsedepth_experiments._cache import OUTCOMES, Stored, baselines_version, restoration_version
from sparsedepth_experiments._calibration_tables import OriginErrors, PredictedVariances, errors_by_origin
from sparsedepth_experiments._methods import NOISY, Method, Outcome, filler, own_filler, own_methods, searched
from sparsedepth_experiments._zoo import KINDS, SHARES, Row, Source, Spoilt, impulses
from sparsedepth_experiments.harness import Job, Key, Records, mean_and_error

MOST = 99.0
"""Decibels of a map that came back as it was: means need an end."""
RIVALS = ("median", "switching median", "TV-L2", "TV-L1", "NL-means", "bilateral")
FILLERS = ("biharmonic", "linear")
TOF_RIVALS = ("median", "bilateral", "TV-L2", "NL-means")
DENOISE, INPAINT, GUIDED = own_methods()[0], own_filler(), "inpaint, guided"
OURS = (DENOISE.name, INPAINT.name, GUIDED)
TOF = "time of flight"
CLEAR = 0.1
"""Deviations of the map beyond which noise is called an outlier, where detection is judged."""


@dataclass(frozen=True, eq=False)
class Score:
    """What is kept of a restored map.

    Parameters
    ----------
    psnr, rmse
        Against the truth; the PSNR is at most `MOST`.
    precision
        Average precision of detection, of outliers beyond `CLEAR` and of all noise; None = not judged.
    errors
        Errors and variances of the pixels, by origin; empty = not judged.
    shown
        The map before and after, for pictures; None = it is not shown.
    """

    psnr: float
    rmse: float
    precision: tuple[float, float] | None = None
    errors: OriginErrors = field(default_factory=dict)
    shown: tuple[Spoilt, DepthMap] | None = None


@dataclass(frozen=True, eq=False)
class Plan:
    """Which maps are spoilt how, and who restores them."""

    sources: Sequence[Source]
    rows: Sequence[Row]
    tof: Sequence[tuple[str, int]] = ()
    note: str = ""

    def jobs(self) -> list[Job[Score]]:
        """List every method on every spoilt map, then on the maps of time of flight."""
        return [*self._zoo_jobs(), *(job for scene, factor in self.tof for job in _tof_jobs(scene, factor))]

    def _zoo_jobs(self) -> Iterator[Job[Score]]:
        for source in self.sources:
            for row in (row for row in self.rows if source.kind in row.kinds):
                for draw in range(row.draws):
                    spoilt = row.done(source, draw)
                    for method in methods(row, source):
                        key = {"map": str(source), "row": row.name, "method": method.name, "kind": source.kind}
                        shown = source is self.of_kind(source.kind)[0] and draw == 0
                        score = partial(score_restored, row=row, method=method.name, spoilt=spoilt, shown=shown)
                        yield _job({**key, "draw": draw}, method, spoilt, source.picture, score)

    def of_kind(self, kind: str) -> list[Source]:
        """Select the maps of a kind."""
        return [source for source in self.sources if source.kind == kind]


def methods(row: Row, source: Source) -> list[Method]:
    """List the methods that restore a map of a row."""
    if row.holes:
        guided = [] if source.picture is None else [own_filler(source.picture)]
        return [*map(filler, FILLERS), INPAINT, *guided]
    return [NOISY, DENOISE] if row.name == "clean" else [NOISY, *map(searched, RIVALS), DENOISE]


def _tof_jobs(scene: str, factor: int) -> list[Job[Score]]:
    """List the methods on a map with simulated time-of-flight noise."""
    maps = simulated(scene, factor)
    spoilt = Spoilt(maps.noisy, maps.truth)

    def score(outcome: Outcome) -> Score:
        return Score(psnr(outcome.depth, maps.truth), rmse(outcome.depth, maps.truth))

    key = {"kind": TOF, "map": f"{scene}, 1/{factor}"}
    every = (NOISY, *map(searched, TOF_RIVALS), DENOISE)
    return [_job({**key, "method": method.name}, method, spoilt, None, score) for method in every]


def _job(
    key: Key, method: Method, spoilt: Spoilt, picture: Floats | None, score: Callable[[Outcome], Score]
) -> Job[Score]:
    """Describe a method on a map, and all arrays that its outcome depends on."""
    ours = method.name in OURS
    guide = [picture] if method.name == GUIDED and picture is not None else []
    seen = [spoilt.depth, *guide] if ours else [spoilt.depth, spoilt.truth]
    version = restoration_version() if ours else baselines_version()
    restore = partial(method.restore, spoilt.depth, spoilt.truth)
    return Job(key, restore, score, lambda: Stored(method.name, version, seen, OUTCOMES))


def score_restored(outcome: Outcome, row: Row, method: str, spoilt: Spoilt, shown: bool = False) -> Score:
    """Score a restored map: error, and for our methods detection and variance on the rows that judge them."""
    blind = method in (DENOISE.name, INPAINT.name)
    judged = blind and (row.holes or row.name in map(impulses, SHARES))
    return Score(
        min(psnr(outcome.depth, spoilt.truth), MOST),
        rmse(outcome.depth, spoilt.truth, missing="ignore"),
        detection(spoilt, outcome) if blind and row.name == impulses(0.05) else None,
        errors_by_origin(spoilt.truth, outcome) if judged else {},
        (spoilt, outcome.depth) if blind and shown else None,
    )


def detection(spoilt: Spoilt, outcome: Outcome) -> tuple[float, float]:
    """Compute the average precision of detection: of outliers that are `CLEAR`, and of all noise."""
    noise = spoilt.depth - spoilt.truth
    known = np.isfinite(noise)
    size, change = np.abs(noise[known]) / np.nanstd(spoilt.truth), np.abs(outcome.depth - spoilt.depth)[known]
    judged = (size == 0) | (size > CLEAR)
    return average_precision(change[judged], size[judged] > CLEAR), average_precision(change, size > 0)


@dataclass(frozen=True, eq=False)
class Results:
    """Views of the records of a run."""

    records: Records[Score]

    @cached_property
    def psnr(self) -> dict[str, dict[str, dict[str, dict[str, list[float]]]]]:
        """kind -> row -> method -> map -> decibels, one a draw."""
        zoo = Records((key, score) for key, score in self.records if key["kind"] in KINDS)
        return zoo.nested("kind", "row", "method", "map", value=lambda score: score.psnr)

    @cached_property
    def rmse(self) -> dict[str, dict[str, float]]:
        """Map of time of flight -> method -> RMSE."""
        return self.records.where(kind=TOF).tree("map", "method", value=lambda score: score.rmse)

    def precision(self, kind: str) -> np.ndarray:
        """List the average precisions of the maps of a kind: columns of outliers that are `CLEAR`, and of all noise."""
        return np.array([score.precision for score in self.records.where(kind=kind).scores if score.precision])

    @cached_property
    def predicted(self) -> PredictedVariances:
        """The judged errors and variances."""
        return PredictedVariances((str(key["kind"]), score.errors) for key, score in self.records)

    def shown(self, kind: str, row: str) -> tuple[Spoilt, DepthMap]:
        """Return the first map of a kind under a row, before and after."""
        return next(score.shown for score in self.records.where(kind=kind, row=row).scores if score.shown)

    def of(self, kind: str, row: str, name: str) -> np.ndarray:
        """Average the decibels of each map over the draws."""
        return np.array([np.mean(draws) for draws in self.psnr[kind][row][name].values()])

    def gain(self, kind: str, row: str, name: str, rival: str) -> tuple[float, float]:
        """Compute the mean difference over the maps, and its standard error."""
        return mean_and_error(self.of(kind, row, name) - self.of(kind, row, rival))

"""The top layers that are compared, the folds of scenes that they learn on, and their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from sparsedepth.vocabulary import DepthMap
from sparsedepth_experiments import Progress
from sparsedepth_experiments._refiner import PICTURE, SEMI_GLOBAL, TrainingRows, train_refiner
from sparsedepth_experiments._top_layers import (
    ERROR_STEPS,
    Correct,
    Fit,
    Sample,
    another_matcher,
    dictionary_belief,
    filled,
    fit_edges,
    fit_errors,
    fit_noise,
    median_of_filled,
)
from sparsedepth_experiments.harness import Job, Records, mean_and_error, run_jobs

FILL, MEDIAN, ANOTHER, BELIEF, ERRORS, EDGES, NOISE, REFINER, NO_PICTURE, NO_SEMI_GLOBAL = (
    "fill only",
    "median of the fill",
    "semi-global map, filled",
    "the paper's dictionary",
    "(a) dictionary of errors",
    "(b) medians along the picture's edges",
    "(c) known noise",
    "(d) trained refiner",
    "(d) without the picture",
    "(d) without the semi-global map",
)
N_FOLDS = 5


def methods(error_steps: int = ERROR_STEPS) -> dict[str, Fit]:
    """List the top layers; what needs no scenes ignores them."""

    def needs_none(correct: Correct) -> Fit:
        return lambda _: correct

    def refiner(*knows: str) -> Fit:
        return partial(train_refiner, rows_of=TrainingRows(frozenset(knows)))

    return {
        FILL: needs_none(filled),
        MEDIAN: needs_none(median_of_filled),
        ANOTHER: needs_none(another_matcher),
        BELIEF: needs_none(dictionary_belief),
        ERRORS: partial(fit_errors, steps=error_steps),
        EDGES: fit_edges,
        NOISE: fit_noise,
        REFINER: refiner(PICTURE, SEMI_GLOBAL),
        NO_PICTURE: refiner(SEMI_GLOBAL),
        NO_SEMI_GLOBAL: refiner(PICTURE),
    }


@dataclass(frozen=True, eq=False)
class Plan:
    """Scenes in folds, and scenes that are judged once by what all the others have taught."""

    folds: Sequence[Sequence[Sample]]
    last: Mapping[str, Sequence[Sample]] = field(default_factory=dict)
    """Of each name, the maps of several seeds."""
    note: str = ""

    @property
    def scenes(self) -> list[Sample]:
        return sorted((each for fold in self.folds for each in fold), key=lambda each: each.name)

    def all_but(self, fold: Sequence[Sample]) -> list[Sample]:
        """List the scenes of the other folds."""
        return [each for other in self.folds if other is not fold for each in other]


@dataclass(frozen=True, eq=False)
class Score:
    """Percent of bad pixels of a scene, and the map of a layer that is drawn."""

    bad: float
    shown: DepthMap | None


@dataclass(frozen=True, eq=False)
class Results:
    """Views of the records of a run."""

    records: Records[Score]

    @cached_property
    def bad(self) -> dict[str, dict[str, float]]:
        """Percent of bad pixels: layer -> scene -> error."""
        return self.records.tree("layer", "scene", value=lambda score: score.bad)

    def shown(self, layer: str, scene: str) -> Any:
        """Return what a layer made of a scene."""
        return self.records.where(layer=layer, scene=scene).scores[0].shown

    def gains(self, method: str, over: str = FILL) -> dict[str, float]:
        return {scene: self.bad[over][scene] - error for scene, error in self.bad[method].items()}

    def mean_gain(self, method: str) -> tuple[float, float]:
        """Compute the mean gain over the fill and its standard error over scenes."""
        return mean_and_error(np.array(list(self.gains(method).values())))


Parts = Sequence[tuple[Any, Sequence[Sample], Sequence[Sample]]]
"""Name of a part, the scenes that layers are fitted to, and those that they are judged by."""


def results_of(fits: Mapping[str, Fit], parts: Parts, progress: Progress) -> Results:
    """Judge every layer on every part."""
    jobs = [
        Job({"layer": name, "part": part}, partial(_judged, name, fit, known, judged))
        for name, fit in fits.items()
        for part, known, judged in parts
    ]
    return Results(run_jobs(jobs, progress, parallel="no").spread("scene", value=dict))


def _judged(name: str, fit: Fit, known: Sequence[Sample], judged: Sequence[Sample]) -> dict[tuple[str], Score]:
    """Fit a layer to the scenes that are known, and correct the maps of those to be judged."""
    correct = fit(known)
    maps = [(sample, correct(sample)) for sample in judged]
    is_shown = name in (FILL, REFINER)
    return {(sample.name,): Score(sample.bad(depth), depth if is_shown else None) for sample, depth in maps}


def folds_of(samples: Sequence[Sample], n_folds: int = N_FOLDS) -> list[list[Sample]]:
    """Divide scenes into folds of about equal size; scenes whose names differ by a number stay together."""
    families: dict[str, list[Sample]] = {}
    for each in samples:
        families.setdefault(each.name.rstrip("0123456789"), []).append(each)
    folds: list[list[Sample]] = [[] for _ in range(n_folds)]
    for family in sorted(families.values(), key=len, reverse=True):
        min(folds, key=len).extend(family)
    return folds

"""Which method restores which map with the noise of a sensor, real or simulated, and the scores of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from sparsedepth.baselines import nl_means
from sparsedepth.metrics import rmse
from sparsedepth.vocabulary import DepthMap, Floats
from sparsedepth_experiments._cache import OUTCOMES, Stored, baselines_version, restoration_version
from sparsedepth_experiments._methods import (
    NOISY,
    TUNED,
    Method,
    Outcome,
    coded,
    competitor,
    denoised,
    own_methods,
)
from sparsedepth_experiments._natural_sensors import Errors, Window, errors_of, window_methods
from sparsedepth_experiments.harness import Job, Key, Records

VIEW, SCENE, WINDOW = "view", "scene", "window"
STRENGTH = 0.1
"""Of the non-local means where no truth can choose it, in standard deviations of the map."""
PATCHES_APART = {2: 4, 4: 2, 8: 1, 16: 1}
"""Pixels between the 16x16 patches at each factor, so that a large map has about as many as a small one."""
COMPETITORS = ("median", "bilateral", "TV-L2", "NL-means")
SMOOTHED, PAPER_METHOD, SECOND_PASS, WITH_VARIANCE = (
    "NL-means",
    "ns-SC Φ1",
    "second pass: noisy pixels inpainted",
    "ns-SC Φ1, the sensor's variance",
)


@dataclass(frozen=True, eq=False)
class View:
    """A real map with its own noise, whose truth is unknown."""

    name: str
    title: str
    unit: str
    depth: DepthMap
    variance: DepthMap | None = None
    """Of the sensor at these depths, where it is known."""

    def methods(self) -> list[Method]:
        """List what its panels show."""
        as_paper = partial(denoised, method="paper", quality="paper", dictionary="phi1")
        known = [as_paper(WITH_VARIANCE, variance=self.variance, fill=False)]
        return [
            Method(SMOOTHED, lambda depth, _: Outcome(nl_means(depth, STRENGTH * float(np.nanstd(depth))))),
            as_paper(PAPER_METHOD, fill=False),
            as_paper(SECOND_PASS, second_pass=True),
            *own_methods(),
            *([] if self.variance is None else known),
        ]


@dataclass(frozen=True, eq=False)
class Scene:
    """A map with simulated noise, and its truth."""

    name: str
    factor: int
    noisy: DepthMap
    truth: DepthMap

    def methods(self) -> list[Method]:
        """List what is measured."""
        paper = coded(PAPER_METHOD, "phi1", PATCHES_APART[self.factor])
        return [NOISY, *map(competitor, COMPETITORS), paper, *own_methods()]


@dataclass(frozen=True, eq=False)
class Score:
    """What is kept of a restored map.

    Parameters
    ----------
    help, parameter
        How the method finds its parameter, and what it found.
    errors
        Against the truth: RMSE, or median and RMSE on frames; empty = nobody knows the truth.
    shown
        All of it, for pictures; None = it is not shown.
    """

    help: str
    parameter: float | None
    errors: tuple[float, ...] = ()
    shown: Outcome | None = None


@dataclass(frozen=True, eq=False)
class Plan:
    """The maps that are shown and measured."""

    views: Sequence[View]
    scenes: Sequence[Scene]
    note: str = ""
    windows: Sequence[Window] = ()
    """Of frames that have a reference."""

    def jobs(self) -> list[Job[Score]]:
        """List every method on every map: those that are shown first."""
        return [
            *(job for view in self.views for job in _on_view(view)),
            *(job for scene in self.scenes for job in _on_scene(scene)),
            *(job for number, window in enumerate(self.windows) for job in _on_window(window, number)),
        ]


def _on_view(view: View) -> list[Job[Score]]:
    seen = [view.depth] if view.variance is None else [view.depth, view.variance]
    key = {"kind": VIEW, "map": view.name}
    return _jobs(key, view.methods(), (view.depth, view.depth), f"shown, {STRENGTH:g}", seen)


def _on_scene(scene: Scene) -> list[Job[Score]]:
    maps = scene.noisy, scene.truth
    key = {"kind": SCENE, "map": scene.name, "factor": scene.factor}
    return _jobs(key, scene.methods(), maps, f"at 1/{scene.factor}", maps, lambda depth: (rmse(depth, scene.truth),))


def _on_window(window: Window, number: int) -> list[Job[Score]]:
    maps, seen = (window.depth, window.reference), (window.depth, window.variance)
    key = {"kind": WINDOW, "map": window.sensor, "number": number}
    return _jobs(key, window_methods(window), maps, window.sensor, seen, partial(errors_of, window))


def _jobs(
    key: Key,
    methods: Sequence[Method],
    maps: tuple[DepthMap, DepthMap],
    settings: str,
    seen: Sequence[Floats],
    errors: Callable[[DepthMap], tuple[float, ...]] | None = None,
) -> list[Job[Score]]:
    """List methods on one map with its truth; settings and what is seen find the outcomes in the cache."""
    version = f"{restoration_version('default', 'phi1')}, {baselines_version()}"
    return [
        Job(
            {**key, "method": method.name},
            partial(method.restore, *maps),
            partial(_score, method=method, errors=errors),
            partial(Stored, f"{method.name} {settings}", version, seen, OUTCOMES),
        )
        for method in methods
    ]


def _score(outcome: Outcome, method: Method, errors: Callable[[DepthMap], tuple[float, ...]] | None) -> Score:
    """Measure what has a truth, and keep what is shown."""
    if errors is None:
        return Score(method.help, outcome.parameter, shown=outcome)
    return Score(method.help, outcome.parameter, errors(outcome.depth))


@dataclass(frozen=True, eq=False)
class Results:
    """Views of the records of a run."""

    records: Records[Score]

    @cached_property
    def measured(self) -> Records[Score]:
        """The scores on simulated noise."""
        return self.records.where(kind=SCENE)

    @cached_property
    def rmse(self) -> dict[str, dict[int, list[float]]]:
        """Method -> factor -> RMSE, one a scene."""
        return self.measured.nested("method", "factor", value=lambda score: score.errors[0])

    @property
    def parameters(self) -> dict[str, dict[int, list[float | None]]]:
        """Method -> factor -> chosen parameter, one a scene."""
        tuned = Records((key, score) for key, score in self.measured if score.help == TUNED)
        return tuned.nested("method", "factor", value=lambda score: score.parameter)

    @property
    def help(self) -> dict[Any, str]:
        """How each method finds its parameter."""
        return self.measured.tree("method", value=lambda score: score.help)

    def shown(self, view: View) -> dict[Any, Outcome]:
        """Return what each method made of a view."""
        return self.records.where(kind=VIEW, map=view.name).tree("method", value=lambda score: score.shown)

    def with_law(self) -> Errors:
        """Average the errors over the windows of each sensor."""
        found = self.records.where(kind=WINDOW).nested("map", "method", value=lambda score: score.errors)
        return {s: {name: np.mean(v, axis=0).round(2).tolist() for name, v in by.items()} for s, by in found.items()}

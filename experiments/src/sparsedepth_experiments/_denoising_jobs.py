"""Which method restores which noisy map in the paper's experiment on denoising, and the scores of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sparsedepth.data.crops import Crop
from sparsedepth.data.synthetic import corrupted
from sparsedepth.metrics import psnr
from sparsedepth.vocabulary import DepthMap
from sparsedepth_experiments._methods import (
    NOISY,
    Method,
    Outcome,
    coded,
    coded_with_one_variance,
    coded_with_wavelets,
    competitor,
    own_methods,
)

NOISE_SEED = 0
WAVELET_STRIDE = 4
"""Pixels between patches where 2560 wavelets code them: ten times as many atoms as are learned."""

PHI1, PHI2, PHI3, SC, WAVELETS = "ns-SC Φ1", "ns-SC Φ2", "ns-SC Φ3", "SC Φ3", "TIWF"


@dataclass(frozen=True, eq=False)
class Source:
    """A true map, and its position in the data set."""

    kind: str
    name: str
    unit: str
    crop: Crop


@dataclass(frozen=True, eq=False)
class Job:
    """One method on one noisy map."""

    source: Source
    share: float
    noisy: DepthMap
    method: Method

    def done(self) -> Outcome:
        return self.method.restore(self.noisy, self.source.crop.depth)


@dataclass(frozen=True, eq=False)
class Plan:
    """The maps, their noise levels, and the methods."""

    sources: Sequence[Source]
    shares: Sequence[float]
    wavelet_stride: int = WAVELET_STRIDE
    note: str = ""

    @cached_property
    def methods(self) -> list[Method]:
        return [
            NOISY,
            coded(PHI1, "phi1"),
            coded(PHI2, "phi2"),
            coded(PHI3, "phi3"),
            coded_with_one_variance(SC, "phi3"),
            coded_with_wavelets(WAVELETS, self.wavelet_stride),
            *map(competitor, ("median", "switching median", "TV-L2", "TV-L1", "NL-means", "NL-means, median")),
            *own_methods(),
        ]

    def jobs(self) -> Iterator[Job]:
        for index, source in enumerate(self.sources):
            for share in self.shares:
                rng = np.random.default_rng([NOISE_SEED, index, round(1000 * share)])
                noisy = corrupted(source.crop.depth, share, rng)
                for method in self.methods:
                    yield Job(source, share, noisy, method)

    def of_kind(self, kind: str) -> list[Source]:
        return [source for source in self.sources if source.kind == kind]


@dataclass(frozen=True, eq=False)
class Results:
    """PSNR and chosen parameters, kind -> method -> fraction -> one a map; and the pictures, kind -> method."""

    psnr: dict[str, dict[str, dict[float, list[float]]]] = field(default_factory=dict)
    parameters: dict[str, dict[str, dict[float, list[float | None]]]] = field(default_factory=dict)
    shown: dict[str, dict[str, Outcome]] = field(default_factory=dict)

    def add(self, job: Job, outcome: Outcome, show: bool) -> None:
        kind, name = job.source.kind, job.method.name

        def note(where: dict[str, dict[str, dict[float, list[Any]]]], value: float | None) -> None:
            where.setdefault(kind, {}).setdefault(name, {}).setdefault(job.share, []).append(value)

        note(self.psnr, psnr(outcome.depth, job.source.crop.depth))
        if job.method.tuned:
            note(self.parameters, outcome.parameter)
        if show:
            self.shown.setdefault(kind, {})[name] = outcome

    def mean(self, kind: str, name: str, share: float) -> float:
        return float(np.mean(self.psnr[kind][name][share]))

"""Which method restores which noisy map in the paper's experiment on denoising, and the scores of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from sparsedepth.data.synthetic import corrupted, corrupted_as_in_paper
from sparsedepth.dictionary import Dictionary
from sparsedepth.metrics import psnr
from sparsedepth.vocabulary import DepthMap
from sparsedepth_experiments._cache import OUTCOMES, Stored, baselines_version, checksum_of, restoration_version
from sparsedepth_experiments._methods import (
    NOISY,
    TUNED,
    Method,
    Outcome,
    alternated,
    coded,
    coded_with_one_variance,
    coded_with_tight_frame,
    coded_with_wavelets,
    competitor,
    own_methods,
    searched,
)
from sparsedepth_experiments._paper_dictionaries import paper_dictionary
from sparsedepth_experiments._zoo import Source
from sparsedepth_experiments.harness import Job, Records

NOISE_SEED = 1
STRIDE = 2
"""Pixels between the patches of ns-SC and SC."""
WAVELET_STRIDE = 4
"""Pixels between patches where 2560 wavelets code them: ten times as many atoms as are learned."""
ALTERNATIONS = (1, 2, 3, 5)

UNITS = {"laser": "ln (range / m)", "disparity": "px"}
PHI1, PHI2, PHI3, SC = "ns-SC Φ1", "ns-SC Φ2", "ns-SC Φ3", "SC Φ3"
SC1 = "SC Φ1"
TIGHT, UNIT = "TIWF, tight", "TIWF, unit norm"
ANNEALED = "ns-SC, annealed Φ1"
PAPER_NOISE, MILD_NOISE = "paper", "mild"
NOISES: dict[str, Callable[[DepthMap, float, np.random.Generator], DepthMap]] = {
    PAPER_NOISE: corrupted_as_in_paper,
    MILD_NOISE: corrupted,
}
"""How the pixels are corrupted, by the name of the noise."""


@dataclass(frozen=True)
class Part:
    """A share of corrupted pixels, and how often it is drawn and with how many learning seeds."""

    noise: str
    share: float
    draws: int = 1
    seeds: int = 1
    further: bool = False
    """Whether the shipped Φ1 is also run with exact alternations, and with one variance."""


@dataclass(frozen=True, eq=False)
class Score:
    """What is kept of a restored map."""

    psnr: float
    help: str
    """How the method finds its parameter."""
    parameter: float | None
    shown: Outcome | None
    """All of it, for pictures; None = it is not shown."""


Versioned = tuple[Method, str]
"""A method, and the version of what it is made of."""


@dataclass(frozen=True, eq=False)
class Plan:
    """The maps, their noise, and the methods."""

    sources: Sequence[Source]
    parts: Sequence[Part]
    stride: int = STRIDE
    wavelet_stride: int = WAVELET_STRIDE
    dictionary: Callable[[str, int], Dictionary] = paper_dictionary
    units: Mapping[str, str] = field(default_factory=lambda: UNITS)
    """Of the maps of each kind."""
    note: str = ""

    def shares(self, noise: str) -> list[float]:
        return [part.share for part in self.parts if part.noise == noise]

    def of_kind(self, kind: str) -> list[Source]:
        return [source for source in self.sources if source.kind == kind]

    def unseeded(self) -> list[Versioned]:
        """Return the methods without a learning seed."""
        annealed = Dictionary.builtin("phi1_annealed")
        frames = f"{restoration_version()}, stride {self.wavelet_stride}"
        rivals = ("median", "switching median", "TV-L2", "TV-L1")
        return [
            (NOISY, ""),
            (coded_with_tight_frame(TIGHT, self.wavelet_stride), frames),
            (coded_with_wavelets(UNIT, self.wavelet_stride), frames),
            *((competitor(name), baselines_version()) for name in rivals),
            (searched("NL-means"), baselines_version()),
            (competitor("NL-means, median"), baselines_version()),
            (coded(ANNEALED, annealed, self.stride), self._coding(annealed)),
            *((method, restoration_version()) for method in own_methods()),
        ]

    def seeded(self, seed: int) -> list[Versioned]:
        """Return the methods with dictionaries of a learning seed."""
        phi = [self.dictionary(name, seed) for name in ("phi1", "phi2", "phi3")]
        named = zip((PHI1, PHI2, PHI3), phi, strict=True)
        return [
            *((coded(name, each, self.stride), self._coding(each)) for name, each in named),
            (coded_with_one_variance(SC, phi[2], self.stride), self._coding(phi[2])),
        ]

    def further(self) -> list[Versioned]:
        """Return the methods with the shipped Φ1 alone: alternations, and one variance."""
        phi1 = self.dictionary("phi1", 0)
        methods = [alternated(_times(n), phi1, n, self.stride) for n in ALTERNATIONS]
        return [(each, self._coding(phi1)) for each in (*methods, coded_with_one_variance(SC1, phi1, self.stride))]

    def _coding(self, dictionary: Dictionary) -> str:
        return f"{restoration_version()}, {checksum_of(dictionary)}, stride {self.stride}"

    def jobs(self) -> list[Job[Score]]:
        """List all jobs: those without learned dictionaries first, then seed by seed."""
        return [
            job
            for seed, parts, methods in self._rounds()
            for part in parts
            for source in self.sources
            for draw in range(part.draws)
            for job in self._jobs_on(source, part, draw, seed, methods)
        ]

    def _rounds(self) -> Iterator[tuple[int, Sequence[Part], Sequence[Versioned]]]:
        yield 0, self.parts, self.unseeded()
        for seed in range(max(part.seeds for part in self.parts)):
            yield seed, [part for part in self.parts if seed < part.seeds], self.seeded(seed)
        yield 0, [part for part in self.parts if part.further], self.further()

    def _jobs_on(
        self, source: Source, part: Part, draw: int, seed: int, methods: Sequence[Versioned]
    ) -> Iterator[Job[Score]]:
        """List methods on one noisy map."""
        noisy, truth = noisy_map(source, part, draw), source.crop.depth
        shown = source is self.of_kind(source.kind)[0] and part is self.parts[0] and (draw, seed) == (0, 0)
        noise = {"kind": source.kind, "noise": part.noise, "share": part.share}
        for method, version in methods:
            yield Job(
                {**noise, "method": method.name, "map": str(source), "draw": draw, "seed": seed},
                partial(method.restore, noisy, truth),
                partial(_score, method=method, truth=truth, shown=shown),
                partial(Stored, method.name, version, [noisy, truth], OUTCOMES),
            )


def noisy_map(source: Source, part: Part, draw: int) -> DepthMap:
    """Corrupt a map."""
    rng = np.random.default_rng([NOISE_SEED, source.number, round(1000 * part.share), draw])
    return NOISES[part.noise](source.crop.depth, part.share, rng)


def _score(outcome: Outcome, method: Method, truth: DepthMap, shown: bool) -> Score:
    return Score(psnr(outcome.depth, truth), method.help, outcome.parameter, outcome if shown else None)


def _times(n: int) -> str:
    return f"{n} alternation{'s' * (n > 1)}"


Table = dict[str, dict[str, dict[float, Any]]]


@dataclass(frozen=True, eq=False)
class Results:
    """Views of the records of a run."""

    records: Records[Score]

    @cached_property
    def _groups(self) -> dict[Any, Records[Score]]:
        """(noise, kind, method, share) -> records."""
        return self.records.groups("noise", "kind", "method", "share")

    @cached_property
    def help(self) -> dict[Any, str]:
        """How each method finds its parameter."""
        return self.records.tree("method", value=lambda score: score.help)

    @property
    def parameters(self) -> dict[str, dict[str, dict[str, list[float | None]]]]:
        """The chosen parameters: kind -> method -> noise and share."""
        found: dict[str, dict[str, dict[str, list[float | None]]]] = {}
        for (noise, kind, name, share), group in self._groups.items():
            if self.help[name] == TUNED:
                chosen = [score.parameter for score in group.scores]
                found.setdefault(kind, {}).setdefault(name, {})[f"{noise} {share:g}"] = chosen
        return found

    def shown(self, kind: str) -> dict[Any, Outcome]:
        """Return what each method made of the first map of a kind."""
        return {key["method"]: score.shown for key, score in self.records.where(kind=kind) if score.shown}

    def scores(self, noise: str) -> Table:
        """Return kind -> method -> share -> (maps, draws, seeds) of a noise."""
        found: Table = {}
        for (which, kind, name, share), group in self._groups.items():
            if which == noise:
                found.setdefault(kind, {}).setdefault(name, {})[share] = _cube(group)
        return found

    def of(self, noise: str, kind: str, name: str, share: float) -> Records[Score]:
        """Select the scores of a method."""
        return self._groups[noise, kind, name, share]

    def mean(self, noise: str, kind: str, name: str, share: float) -> float:
        """Average decibels over maps, draws and seeds."""
        return self.of(noise, kind, name, share).mean(_decibels)

    def names(self, noise: str, kind: str, share: float) -> list[str]:
        """List the methods that were run, in the order of tables."""
        found = {name for which, k, name, s in self._groups if (which, k, s) == (noise, kind, share)}
        return [name for name in ORDER if name in found] + sorted(found - set(ORDER))


def _decibels(score: Score) -> float:
    return score.psnr


def _cube(group: Records[Score]) -> list[list[list[float]]]:
    """Arrange decibels as (maps, draws, seeds)."""
    by_map = group.tree("map", "draw", "seed", value=_decibels)
    return [[list(by_seed.values()) for by_seed in by_draw.values()] for by_draw in by_map.values()]


RIVALS = ("median", "switching median", "TV-L2", "TV-L1", "NL-means", "NL-means, median")
ORDER = (NOISY.name, PHI1, PHI2, PHI3, SC, SC1, TIGHT, UNIT, *RIVALS, *map(_times, ALTERNATIONS), ANNEALED)

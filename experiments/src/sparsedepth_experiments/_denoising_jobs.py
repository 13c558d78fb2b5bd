"""Which method restores which noisy map in the paper's experiment on denoising, and the scores of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sparsedepth.data.crops import Crop
from sparsedepth.data.synthetic import corrupted, corrupted_as_in_paper
from sparsedepth.dictionary import Dictionary
from sparsedepth.metrics import psnr
from sparsedepth.vocabulary import DepthMap
from sparsedepth_experiments._cache import baselines_version, cached, checksum_of, restoration_version
from sparsedepth_experiments._methods import (
    NOISY,
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

NOISE_SEED = 1
STRIDE = 2
"""Pixels between the patches of ns-SC and SC."""
WAVELET_STRIDE = 4
"""Pixels between patches where 2560 wavelets code them: ten times as many atoms as are learned."""
ALTERNATIONS = (1, 2, 3, 5)

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


@dataclass(frozen=True, eq=False)
class Source:
    """A true map, and its position in the data set."""

    kind: str
    name: str
    unit: str
    crop: Crop


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
class Job:
    """One method on one noisy map."""

    number: int
    source: Source
    part: Part
    draw: int
    seed: int
    noisy: DepthMap
    method: Method
    version: str

    def done(self) -> Outcome:
        truth = self.source.crop.depth
        return cached(
            self.method.name, self.version, [self.noisy, truth], lambda: self.method.restore(self.noisy, truth)
        )


@dataclass(frozen=True, eq=False)
class Plan:
    """The maps, their noise, and the methods."""

    sources: Sequence[Source]
    parts: Sequence[Part]
    stride: int = STRIDE
    wavelet_stride: int = WAVELET_STRIDE
    dictionary: Callable[[str, int], Dictionary] = paper_dictionary
    note: str = ""

    def shares(self, noise: str) -> list[float]:
        return [part.share for part in self.parts if part.noise == noise]

    def of_kind(self, kind: str) -> list[Source]:
        return [source for source in self.sources if source.kind == kind]

    @cached_property
    def unseeded(self) -> list[tuple[Method, str]]:
        """The methods without a learning seed, each with the version of what it is made of."""
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

    def seeded(self, seed: int) -> list[tuple[Method, str]]:
        """Return the methods with dictionaries of a learning seed."""
        phi = [self.dictionary(name, seed) for name in ("phi1", "phi2", "phi3")]
        named = zip((PHI1, PHI2, PHI3), phi, strict=True)
        return [
            *((coded(name, each, self.stride), self._coding(each)) for name, each in named),
            (coded_with_one_variance(SC, phi[2], self.stride), self._coding(phi[2])),
        ]

    def further(self) -> list[tuple[Method, str]]:
        """Return the methods with the shipped Φ1 alone: alternations, and one variance."""
        phi1 = self.dictionary("phi1", 0)
        methods = [alternated(_times(n), phi1, n, self.stride) for n in ALTERNATIONS]
        return [(each, self._coding(phi1)) for each in (*methods, coded_with_one_variance(SC1, phi1, self.stride))]

    def _coding(self, dictionary: Dictionary) -> str:
        return f"{restoration_version()}, {checksum_of(dictionary)}, stride {self.stride}"

    def jobs(self) -> Iterator[Job]:
        """List all jobs: those without learned dictionaries first, then seed by seed."""
        for methods, seed in self._rounds():
            for part in self.parts:
                for number, source in enumerate(self.sources):
                    for draw in range(part.draws if seed < part.seeds else 0):
                        noisy = self._noisy(number, part, draw)
                        for method, version in methods(part):
                            yield Job(number, source, part, draw, seed, noisy, method, version)

    def _rounds(self) -> Iterator[tuple[Callable[[Part], list[tuple[Method, str]]], int]]:
        yield (lambda part: self.unseeded), 0
        for seed in range(max(part.seeds for part in self.parts)):
            yield (lambda part, seed=seed: self.seeded(seed)), seed
        yield (lambda part: self.further() if part.further else []), 0

    def _noisy(self, number: int, part: Part, draw: int) -> DepthMap:
        rng = np.random.default_rng([NOISE_SEED, number, round(1000 * part.share), draw])
        return NOISES[part.noise](self.sources[number].crop.depth, part.share, rng)


def _times(n: int) -> str:
    return f"{n} alternation{'s' * (n > 1)}"


Table = dict[str, dict[str, dict[float, Any]]]


@dataclass(frozen=True, eq=False)
class Results:
    """PSNR of every job, the chosen parameters, and the pictures of the first maps: kind -> method."""

    psnr: dict[tuple[str, str, str, float], dict[tuple[int, int, int], float]] = field(default_factory=dict)
    """(noise, kind, method, share) -> (map, draw, seed) -> dB."""
    parameters: dict[str, dict[str, dict[str, list[float | None]]]] = field(default_factory=dict)
    shown: dict[str, dict[str, Outcome]] = field(default_factory=dict)
    help: dict[str, str] = field(default_factory=dict)

    def add(self, job: Job, outcome: Outcome, show: bool) -> None:
        kind, name, noise = job.source.kind, job.method.name, job.part.noise
        self.help[name] = job.method.help
        scores = self.psnr.setdefault((noise, kind, name, job.part.share), {})
        scores[job.number, job.draw, job.seed] = psnr(outcome.depth, job.source.crop.depth)
        if job.method.tuned:
            chosen = self.parameters.setdefault(kind, {}).setdefault(name, {})
            chosen.setdefault(f"{noise} {job.part.share:g}", []).append(outcome.parameter)
        if show:
            self.shown.setdefault(kind, {})[name] = outcome

    def scores(self, noise: str) -> Table:
        """Return kind -> method -> share -> (maps, draws, seeds) of a noise."""
        found: Table = {}
        for (which, kind, name, share), by in self.psnr.items():
            if which == noise:
                found.setdefault(kind, {}).setdefault(name, {})[share] = _cube(by).tolist()
        return found

    def mean(self, noise: str, kind: str, name: str, share: float) -> float:
        return float(np.mean(list(self.psnr[noise, kind, name, share].values())))

    def names(self, noise: str, kind: str, share: float) -> list[str]:
        """List the methods that were run, in the order of tables."""
        found = {name for which, k, name, s in self.psnr if (which, k, s) == (noise, kind, share)}
        return [name for name in ORDER if name in found] + sorted(found - set(ORDER))


RIVALS = ("median", "switching median", "TV-L2", "TV-L1", "NL-means", "NL-means, median")
ORDER = (NOISY.name, PHI1, PHI2, PHI3, SC, SC1, TIGHT, UNIT, *RIVALS, *map(_times, ALTERNATIONS), ANNEALED)


def _cube(by: Mapping[tuple[int, int, int], float]) -> Any:
    """Arrange scores as (maps, draws, seeds)."""
    axes = [sorted({key[axis] for key in by}) for axis in range(3)]
    return np.array([[[by[m, d, s] for s in axes[2]] for d in axes[1]] for m in axes[0]])

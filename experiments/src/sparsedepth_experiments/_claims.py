"""Claims that one method is better than another, and verdicts by measured numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sparsedepth.markdown import table
from sparsedepth.vocabulary import Floats

Scores = Mapping[str, Mapping[str, Mapping[float, Sequence[Any]]]]
"""kind of maps -> method -> share of corrupted pixels -> PSNR of each map: one number, or (draws, learning seeds)."""


@dataclass(frozen=True)
class Claim:
    """The claim that a method is better than another in the mean over a kind of maps, by a margin in decibels."""

    better: str
    worse: str
    kind: str
    share: float
    margin: float = 0.0
    ties: bool = False
    """Whether a difference of exactly the margin bears the claim out."""

    def true_of(self, gain: Any) -> Any:
        return gain >= self.margin if self.ties else gain > self.margin

    def __str__(self) -> str:
        return f"{self.better} {'≥' if self.ties else '>'} {self.worse}" + (
            f" + {self.margin:g} dB" * bool(self.margin)
        )


@dataclass(frozen=True)
class Verdict:
    """The outcome of a claim."""

    difference: float
    """Mean over maps, draws and learning seeds, in decibels."""
    error: float | None
    """The standard error of that mean over the maps; None = there was only one map."""
    agreeing: int
    """Maps on which the claim holds, in the mean over draws and seeds."""
    maps: int
    seeds_agreeing: int
    """Learning seeds with which the claim holds, in the mean over maps and draws."""
    seeds: int
    least_draw: float
    """The mean over maps and seeds of the noise draw that speaks most against the claim, in decibels."""
    holds: bool


def judge(claim: Claim, scores: Scores) -> Verdict:
    """Decide whether the mean over the maps supports a claim."""
    better, worse = (_repeats(scores[claim.kind][name][claim.share]) for name in (claim.better, claim.worse))
    gains = better - worse
    by_map, by_seed, by_draw = gains.mean(axis=(1, 2)), gains.mean(axis=(0, 1)), gains.mean(axis=(0, 2))
    n, mean = len(by_map), float(by_map.mean())
    error = float(by_map.std(ddof=1) / np.sqrt(n)) if n > 1 else None
    return Verdict(
        mean,
        error,
        int(claim.true_of(by_map).sum()),
        n,
        int(claim.true_of(by_seed).sum()),
        len(by_seed),
        float(by_draw.min()),
        bool(claim.true_of(mean)),
    )


def judge_all(claims: Iterable[Claim], scores: Scores) -> dict[Claim, Verdict]:
    """Decide every claim."""
    return {claim: judge(claim, scores) for claim in claims}


def claim_facts(verdicts: Mapping[Claim, Verdict]) -> list[dict[str, Any]]:
    """Convert verdicts to what JSON can hold."""
    return [asdict(claim) | asdict(verdict) for claim, verdict in verdicts.items()]


def _repeats(scores: Sequence[Any]) -> Floats:
    """Return scores as (maps, draws, seeds)."""
    found = np.asarray(scores, np.float64)
    return found[:, None, None] if found.ndim == 1 else found


def table_of(verdicts: Mapping[Claim, Verdict]) -> str:
    """Format the verdicts."""
    head = [
        "claim",
        "maps",
        "corrupted",
        "difference, dB",
        "least draw",
        "maps that agree",
        "seeds that agree",
        "holds",
    ]
    rows = [
        [
            str(claim),
            claim.kind,
            f"{claim.share:.0%}",
            f"{verdict.difference:+.2f}" + ("" if verdict.error is None else f" ± {verdict.error:.2f}"),
            f"{verdict.least_draw:+.2f}",
            f"{verdict.agreeing} of {verdict.maps}",
            "" if verdict.seeds == 1 else f"{verdict.seeds_agreeing} of {verdict.seeds}",
            "yes" if verdict.holds else "**no**",
        ]
        for claim, verdict in verdicts.items()
    ]
    return table(head, rows)

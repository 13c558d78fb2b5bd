"""Claims that one method is better than another, and verdicts by measured numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsedepth.markdown import table

Scores = Mapping[str, Mapping[str, Mapping[float, Sequence[float]]]]
"""kind of maps -> method -> share of corrupted pixels -> PSNR of each map."""


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
    """Mean over the maps, in decibels."""
    error: float | None
    """The standard error of that mean; None = there was only one map."""
    agreeing: int
    """Maps on which the claim holds."""
    maps: int
    holds: bool


def judge(claim: Claim, scores: Scores) -> Verdict:
    """Decide whether the mean over the maps supports a claim."""
    better, worse = (np.asarray(scores[claim.kind][name][claim.share]) for name in (claim.better, claim.worse))
    gains = better - worse
    n, mean = len(gains), float(gains.mean())
    error = float(gains.std(ddof=1) / np.sqrt(n)) if n > 1 else None
    return Verdict(mean, error, int(claim.true_of(gains).sum()), n, bool(claim.true_of(mean)))


def table_of(verdicts: Mapping[Claim, Verdict]) -> str:
    head = ["claim", "maps", "corrupted", "difference, dB", "maps that agree", "holds"]
    rows = [
        [
            str(claim),
            claim.kind,
            f"{claim.share:.0%}",
            f"{verdict.difference:+.2f}" + ("" if verdict.error is None else f" ± {verdict.error:.2f}"),
            f"{verdict.agreeing} of {verdict.maps}",
            "yes" if verdict.holds else "**no**",
        ]
        for claim, verdict in verdicts.items()
    ]
    return table(head, rows)

"""Filling what was refused, ring by ring from the outside, for those who would rather have a guess than a hole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.restore.votes import Coding, vote
from sparsedepth.vocabulary import Floats, Origin

MEASURED_VARIANCE = 1e-6
"""What a measured pixel's variance counts for beside the noise floor, in squared deviations of the map."""


def fill(
    mean: Floats, variance: Floats, origin: NDArray[np.integer[Any]], coding: Coding, threads: int
) -> tuple[Floats, Floats, NDArray[np.integer[Any]]]:
    """Fill refused pixels from those that are known or filled, each ring less certain than the one before.

    Only patches that are at least half known have a vote, and what an earlier ring filled enters with its variance.
    """
    ring = replace(coding, least_known=0.5, stride=max(1, min(coding.stride, min(coding.dictionary.patch_shape) // 4)))
    growth, last = 0.0, np.zeros(mean.shape, bool)
    while (origin == Origin.REFUSED).any():
        known = origin != Origin.REFUSED
        guessed = known & (origin == Origin.FILLED)
        depth = np.where(known, mean, np.nan).astype(np.float32)
        given = np.where(known, np.where(guessed, variance, MEASURED_VARIANCE), np.inf).astype(np.float32)
        votes = vote(depth, ring, given, threads=threads)
        fresh = ~known & (votes.count > 0)
        if not fresh.any():
            break
        growth = max(growth, float(variance[last].max(initial=0)))
        mean = np.where(fresh, votes.mean, mean)
        variance = np.where(fresh, votes.spread + votes.floor + growth, variance)
        origin, last = np.where(fresh, Origin.FILLED, origin), fresh
    return mean, variance, origin

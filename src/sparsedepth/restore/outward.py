"""Filling what was refused, ring by ring from the outside, for those who would rather have a guess than a hole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsedepth.restore.door import Work, padded
from sparsedepth.restore.votes import Coding, vote
from sparsedepth.vocabulary import Origin, Restoration

MEASURED_VARIANCE = 1e-6
"""What a measured pixel's variance counts for beside the noise floor, in squared deviations of the map."""


def fill(work: Work, result: Restoration, coding: Coding, threads: int) -> None:
    """Fill refused pixels from those that are known or filled, each ring less certain than the one before.

    Only patches that are at least half known have a vote, and what an earlier ring filled enters with its variance.
    """
    ring = replace(coding, least_known=0.5, stride=max(1, min(coding.stride, min(coding.dictionary.patch_shape) // 4)))
    mean = padded((result.depth - work.reference) / work.spread, work.patch_shape, np.nan)
    variance = padded(result.variance / work.spread**2, work.patch_shape, np.inf)
    origin = padded(result.origin, work.patch_shape, Origin.REFUSED)
    growth, last = 0.0, np.zeros(mean.shape, bool)
    while (origin == Origin.REFUSED).any():
        known = origin != Origin.REFUSED
        guessed = known & (origin == Origin.FILLED)
        depth = np.where(known, mean, np.nan).astype(np.float32)
        given = np.where(known, np.where(guessed, variance, MEASURED_VARIANCE), np.inf).astype(np.float32)
        votes = vote(depth, ring, given, only=~known, threads=threads)
        fresh = ~known & (votes.count > 0)
        if not fresh.any():
            break
        growth = max(growth, float(variance[last].max(initial=0)))
        mean = np.where(fresh, votes.mean, mean)
        variance = np.where(fresh, votes.spread + votes.floor + growth, variance)
        origin, last = np.where(fresh, Origin.FILLED, origin), fresh
    filled = (origin == Origin.FILLED)[: work.shape[0], : work.shape[1]] & (result.origin == Origin.REFUSED)
    places = np.nonzero(filled)
    result.depth[filled] = mean[places] * work.spread + work.reference
    result.variance[filled] = variance[places] * work.spread**2
    result.origin[filled] = Origin.FILLED

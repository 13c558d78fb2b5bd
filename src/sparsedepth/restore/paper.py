"""The paper's restoration: every patch centred, scaled to unit variance and coded, every pixel their average."""

from __future__ import annotations

import numpy as np

from sparsedepth.dictionary import Dictionary
from sparsedepth.restore import outward as rings
from sparsedepth.restore.door import Work, too_wide
from sparsedepth.restore.votes import Coding, Votes, vote
from sparsedepth.vocabulary import Floats, InputError, Origin, Restoration

STRIDES = {"paper": 1, "best": 2, "balanced": 5, "fast": 7}
"""Pixels between patches of eight; larger patches lie further apart in proportion."""
EFFORT = {"paper": (2e-3, 300), "best": (2e-3, 300), "balanced": (1e-2, 56), "fast": (2e-2, 32)}
"""Tolerance and most rounds of the inference."""
HALF = 0.5
"""A pixel that keeps less than this share of its weight is noisy."""


def coding(dictionary: Dictionary | None, quality: str) -> Coding:
    """The coding of a quality; without a dictionary, the paper's for quality "paper" and the default for the others."""
    if quality not in STRIDES:
        raise InputError(f"quality is {quality!r}; choose one of {', '.join(map(repr, STRIDES))}")
    if dictionary is None:
        dictionary = Dictionary.builtin("phi1" if quality == "paper" else "default")
    stride = STRIDES[quality] if quality == "paper" else max(1, STRIDES[quality] * min(dictionary.patch_shape) // 8)
    tolerance, most = EFFORT[quality]
    return Coding(dictionary, stride=stride, tolerance=tolerance, max_rounds=most)


def restore(
    work: Work, coding: Coding, *, correct: bool, fill: bool, outward: bool, second_pass: bool, threads: int
) -> Restoration:
    """Correct the known pixels and fill the unknown ones, as asked."""
    depth, known = work.depth, np.isfinite(work.depth)
    votes = vote(depth, coding, work.variance, threads=threads)
    noisy = known & (votes.trust < HALF) & correct
    mean, variance = votes.mean, np.where(known, votes.noise, predicted_variance(votes))
    if second_pass and noisy.any():
        again = vote(np.where(noisy, np.nan, depth), coding, work.variance, threads=threads)
        held = again.count > 0
        mean = np.where(held, again.mean, mean)
        variance = np.where(noisy, variance, np.where(known, again.noise, predicted_variance(again)))
    if not correct:
        mean = np.where(known, depth, mean)
    refused = ~known & ((votes.count == 0) | too_wide(~known, coding.dictionary.patch_shape) | (not fill))
    origin = np.select([refused, ~known, noisy], [Origin.REFUSED, Origin.FILLED, Origin.CORRECTED], Origin.MEASURED)
    if outward and fill and refused.any():
        mean, variance, origin = rings.fill(mean, variance, origin, coding, threads)
    return work.back(mean, variance, origin)


def predicted_variance(votes: Votes) -> Floats:
    """Of a filled pixel: how far its patches disagree, beside the noise of what they rest on."""
    return votes.spread + votes.floor

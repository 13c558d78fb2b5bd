"""The paper's restoration: every patch centred, scaled to unit variance and coded, every pixel their average."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.dictionary import Dictionary
from sparsedepth.restore.aggregate import Coding, NoiseVotes, vote_on_noise
from sparsedepth.restore.tiling import Part, RestorePart, Work, origins, too_wide
from sparsedepth.vocabulary import Floats, InputError

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


def restorer(work: Work, coding: Coding, *, correct: bool, fill: bool, second_pass: bool, threads: int) -> RestorePart:
    """How to correct the known pixels of a part of the map and fill the unknown ones; the map teaches nothing."""

    def restored(part: Part, threads: int) -> tuple[Floats, Floats, NDArray[np.integer[Any]]]:
        depth, known = part.depth, np.isfinite(part.depth)
        votes = vote_on_noise(depth, coding, part.variance, window=part.window, threads=threads)
        noisy = known & (votes.trust < HALF) & correct
        mean, variance = votes.mean, np.where(known, votes.noise, predicted_variance(votes))
        if second_pass and noisy.any():
            shown = np.where(noisy, np.nan, depth)
            again = vote_on_noise(shown, coding, part.variance, window=part.window, threads=threads)
            held = again.count > 0
            mean = np.where(held, again.mean, mean)
            variance = np.where(noisy, variance, np.where(known, again.noise, predicted_variance(again)))
        if not correct:
            mean = np.where(known, depth, mean)
        refused = ~known & ((votes.count == 0) | too_wide(~known, coding.dictionary.patch_shape) | (not fill))
        return mean, variance, origins(known, noisy, refused)

    return restored


def predicted_variance(votes: NoiseVotes) -> Floats:
    """Of a filled pixel: how far its patches disagree, beside the noise of what they rest on."""
    return votes.spread + votes.floor

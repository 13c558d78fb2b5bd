"""The law of a map's noise: how many of its pixels are noisy, and how large their noise is.

Noise of many sizes was added to some pixels. Counting them anew, each by how often its size would occur under a law,
shows the scores of that law's noise. A law must not foretell more pixels of high score than the map has, and those it
foretells must be as large as the map's. This bounds the share of noisy pixels from above, tightly where no other
pixels score so high. Noise may fall anywhere, texture does not: where the smoothest part of a map has clearly fewer
such pixels than the whole foretells, or clearly smaller ones, the smooth part is right. Slivers of what a border or a
hole cuts off look like noise, so pixels on a rim are not asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from sparsedepth.restore.scores import Evidence
from sparsedepth.restore.simulation import Rehearsal
from sparsedepth.vocabulary import Floats, Vector

SIZES = np.geomspace(0.25, 4, 17)
"""The sizes that are tried, in deviations of the map: noise is Gaussian, its variance uniform up to a size squared."""
MANY_SIZES = SIZES[2:15]
"""Those of the noise that is added to learn the law."""
PARTS = (1.0, 0.5, 0.25)
"""The shares of a map, its smoothest pixels, in which the law is sought."""
SURE = 2.5
"""Deviations of a count by which the smooth part has to differ."""
SCATTER, CLEARLY = 0.7, 0.3
"""The deviation of the logarithm of noise that is found, and by how much it has to be smaller: two of the `SIZES`."""
TOP, STEPS = 0.5, 60
"""Scores are counted beyond low quantiles of the noise, up to this one: few pixels count badly."""
FEW = 5
"""Pixels that count as much as the guess that noise is as large as the map's own deviation."""


@dataclass(frozen=True)
class Law:
    """Noise at random pixels."""

    share: float
    """Of the pixels that are noisy: rather too many than too few."""
    size: float
    """In deviations of the map."""
    limit: float
    """The score beyond which noise was counted."""
    lean: float = 0.0
    """How many more of the pixels beyond it lie above what the codes say than below: from -1 to 1. Noise lies on both
    sides, things that look like noise mostly on one."""


@dataclass(frozen=True)
class _Count:
    """What is found in one part of the map."""

    law: Law
    weight: Vector
    """How often noise of each size that was added occurs under the law."""
    beyond: Vector
    """How often each pixel of the added noise lies in this part with a high score: mostly 0 or 1."""
    found: int
    """Pixels of the map in this part with such scores."""


def density(magnitudes: Floats, size: float) -> Floats:
    """Of the magnitude of Gaussian noise whose variance is uniform up to the size squared."""
    unit = magnitudes / size
    return 4 / size * (np.exp(-np.square(unit) / 2) / np.sqrt(2 * np.pi) - unit * ndtr(-unit))


def estimate(evidence: Evidence, known: NDArray[np.bool_], rehearsal: Rehearsal, rehearsed: Evidence) -> Law:
    """The law of the noise, from a rehearsal with noise of many sizes; if most pixels are on no rim, these tell it."""
    inside = known & ~evidence.rim
    if 2 * inside.sum() > known.sum():
        known, rehearsal = inside, replace(rehearsal, noise=np.where(rehearsed.rim, 0, rehearsal.noise))
    added = rehearsal.noise != 0
    if not added.any() or not known.any():
        return Law(0.0, 1.0, np.inf)
    sizes = np.abs(rehearsal.noise[added])
    weights = np.stack([density(sizes, size) for size in SIZES])
    weights /= np.mean([density(sizes, size) for size in MANY_SIZES], axis=0)
    weights /= weights.sum(axis=1, keepdims=True)
    best = _counted(evidence, known, rehearsal, rehearsed, weights, PARTS[0])
    for part in PARTS[1:]:
        smoother = _counted(evidence, known, rehearsal, rehearsed, weights, part)
        foretold = known.sum() * best.law.share * (best.weight @ smoother.beyond)
        fewer = smoother.found < foretold - SURE * np.sqrt(foretold) - 1
        luck = SURE * SCATTER / np.sqrt(max(smoother.found, 1))
        smaller = np.log(best.law.size / smoother.law.size) > max(luck, CLEARLY)
        if fewer or smaller:
            best = smoother
    return replace(best.law, lean=_lean(evidence.residual[known & (evidence.score > best.law.limit)]))


def _lean(residuals: Vector) -> float:
    return float(np.sign(residuals).sum() / (len(residuals) + FEW))


def smooth_limit(textures: Vector, part: float) -> float:
    """The texture up to which a pixel belongs to the smoothest part of the map."""
    return float(np.quantile(textures, part)) if part < 1 and len(textures) else np.inf


def _counted(
    evidence: Evidence,
    known: NDArray[np.bool_],
    rehearsal: Rehearsal,
    rehearsed: Evidence,
    weights: Floats,
    part: float,
) -> _Count:
    added = rehearsal.noise != 0
    limit = smooth_limit(evidence.texture[known], part)
    smooth = known & (evidence.texture <= limit)
    score = evidence.score[smooth].astype(np.float32)
    residual = evidence.residual[smooth]
    rising = np.sort(score)
    # Noise makes its own surroundings rougher, so all that was added counts, also what is no longer in the smooth part;
    # but tiles may by chance have more or less of it than the map.
    sampled = rehearsal.sample(known)
    luck = (smooth.sum() / known.sum()) / max((rehearsal.sample(evidence.texture) <= limit)[sampled].mean(), 1e-9)
    their_score = np.where(rehearsed.texture <= limit, rehearsed.score, -1)[added]
    score_before = rehearsal.sample(evidence.score)[added]
    their_size = _log_size(rehearsed.residual[added])
    best, least = None, np.inf
    for weight, size_of_law in zip(weights, SIZES, strict=True):
        share, beyond = _share(rising, known.sum(), their_score, weight * luck)
        theirs, ours = their_score > beyond, score > beyond
        alone = weight * (theirs & (score_before <= beyond))  # noise on top of noise is larger than what was added
        count, mass = int(ours.sum()), alone.sum()
        larger = _log_size(residual[ours]).mean() - (alone @ their_size) / mass if count and mass > 0 else 0.0
        misfit = (count * abs(larger) + FEW * abs(np.log(size_of_law))) / (count + FEW)
        if misfit < least:
            best = _Count(Law(share, float(size_of_law), beyond), weight, luck * theirs, count)
            least = misfit
    assert best is not None
    return best


def _log_size(residuals: Vector) -> Vector:
    return np.log(np.maximum(np.abs(residuals), 1e-6))


def _share(scores: Vector, n_pixels: int, noisy: Vector, weight: Vector) -> tuple[float, float]:
    """The least upper bound of the share of noisy pixels, and the score beyond which it was counted.

    ``scores`` rise; ``noisy`` are scores of added noise, negative where it is not counted.
    """
    order = np.argsort(noisy)
    noisy, weight = noisy[order], weight[order]
    first = int(np.searchsorted(noisy, 0))
    if first == len(noisy):
        return 0.0, np.inf
    left = np.cumsum(weight[::-1])[::-1]  # at or beyond each
    wanted = left[first] * (1 - np.linspace(0, TOP, STEPS))
    at = np.maximum(len(left) - np.searchsorted(left[::-1], wanted, side="left") - 1, first)
    limits = np.nextafter(noisy[at], -1)
    above = len(scores) - np.searchsorted(scores, limits, side="right") + 1
    bounds = above / n_pixels / np.maximum(left[at], 1e-3)
    return float(min(1.0, bounds.min())), float(limits[bounds.argmin()])

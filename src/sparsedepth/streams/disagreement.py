"""Smooth disagreement of a warped belief with a frame: errors of poses, of the lens and of the depth calibration."""

from __future__ import annotations

import numpy as np

from sparsedepth.streams.belief import FLOAT, Belief
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.vocabulary import Floats

MIN_PIXELS = 500
"""Fewest pixels that a fit of eight numbers may have (set by hand)."""


def remove_disagreement(
    belief: Belief, value: Floats, noise: Floats, shape: tuple[int, int], settings: StreamSettings
) -> None:
    """Move the mean of a belief by its smooth disagreement with a frame: a quadric in the picture and in depth.

    Parameters
    ----------
    belief
        State of all pixels, changed in place.
    value, noise
        Measurements on the axis and their variances, flat; NaN = missing.
    shape
        Height and width.
    settings
        Stride and iterations.
    """
    every = settings.fit_stride_px
    mean, variance, shown, level = (
        each.reshape(shape)[::every, ::every] for each in (belief.mean, belief.variance, value, noise)
    )
    gap = (shown - mean).astype(float)
    known = np.isfinite(gap)
    if known.sum() < MIN_PIXELS:
        return
    rows, columns = np.nonzero(known)
    terms = _terms(rows * every / shape[0] - 0.5, columns * every / shape[1] - 0.5, mean[known].astype(float))
    found = _huber(terms, gap[known], np.sqrt((variance + level)[known]).astype(float), settings)
    _add(belief, found.astype(FLOAT), shape)


def _terms(y: Floats, x: Floats, w: Floats) -> Floats:
    return np.stack([np.ones_like(x), x, y, x * x, x * y, y * y, w, w * w], axis=-1)


def _huber(terms: Floats, gap: Floats, std: Floats, settings: StreamSettings) -> Floats:
    """Fit by reweighted least squares with Huber's weights; sums do not depend on the number of threads."""
    precision = 1 / np.square(std)
    weight, found = precision * (np.abs(gap) < settings.gate_sigmas * std), np.zeros(terms.shape[1])
    for _ in range(settings.fit_iterations):
        weighted = terms * weight[:, None]
        normal = np.einsum("ki,kj->ij", weighted, terms)
        normal += np.diag(1e-6 * np.diag(normal) + 1e-12 * np.trace(normal))
        found = np.linalg.solve(normal, np.einsum("ki,k->i", weighted, gap))
        size = np.abs(gap - np.einsum("ki,i->k", terms, found)) / std
        weight = precision * np.minimum(1.0, 1.5 / np.maximum(size, 1e-9)) * (size < settings.gate_sigmas)
    return found


def _add(belief: Belief, found: Floats, shape: tuple[int, int]) -> None:
    """Add the fitted quadric to the mean, in place."""
    y = (np.arange(shape[0], dtype=FLOAT) / FLOAT(shape[0]) - FLOAT(0.5))[:, None]
    x = np.arange(shape[1], dtype=FLOAT) / FLOAT(shape[1]) - FLOAT(0.5)
    mean = belief.mean.reshape(shape)
    plane = found[0] + found[1] * x + found[3] * x * x + (found[2] * y + found[5] * y * y) + (found[4] * y) * x
    plane += mean * (found[6] + found[7] * mean)
    moved = mean + plane
    np.copyto(mean, moved, where=moved > mean / 2)

"""Noise as the paper adds it, on maps of any kind."""

from __future__ import annotations

import numpy as np

from sparsedepth.vocabulary import DepthMap


def corrupted(depth: DepthMap, share: float, rng: np.random.Generator) -> DepthMap:
    """Add Gaussian noise to a share of the pixels, each with its own variance, uniform in (0, 1) map variances."""
    chosen = rng.random(depth.shape) < share
    deviation = np.sqrt(rng.random(depth.shape)) * np.nanstd(depth)
    return (depth + np.where(chosen, rng.standard_normal(depth.shape) * deviation, 0)).astype(depth.dtype)

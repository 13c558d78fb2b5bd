"""Slow, readable references of the fast solver: one coefficient at a time."""

from __future__ import annotations

import numpy as np

from sparsedepth import Exponential


def weighted_lasso(patches, atoms, variance, sparsity, codes=None, passes=3000, tolerance=1e-9):
    """Cyclic coordinate descent on each patch; pixels that are NaN or of infinite variance have weight zero."""
    weight = np.where(np.isnan(patches), 0, 1 / variance)
    codes = np.zeros((len(patches), len(atoms))) if codes is None else codes.copy()
    residual = np.nan_to_num(patches) - codes @ atoms
    curvature = weight @ (atoms**2).T
    for _ in range(passes):
        before = codes.copy()
        for j, atom in enumerate(atoms):
            pull = (weight * residual) @ atom + curvature[:, j] * codes[:, j]
            shrunk = np.sign(pull) * np.maximum(np.abs(pull) - sparsity, 0)
            new = np.divide(shrunk, curvature[:, j], out=np.zeros(len(patches)), where=curvature[:, j] > 0)
            residual += np.outer(codes[:, j] - new, atom)
            codes[:, j] = new
        if np.abs(codes - before).max() <= tolerance * max(1e-300, np.abs(codes).max()):
            break
    return codes


def objective(patches, atoms, codes, variance, sparsity):
    """What `weighted_lasso` minimises, for each patch."""
    weight = np.where(np.isnan(patches), 0, 1 / variance)
    misfit = np.nan_to_num(patches) - codes @ atoms
    return (weight * misfit**2).sum(axis=1) / 2 + sparsity * np.abs(codes).sum(axis=1)


def prior(noise, s, floor):
    """The first term of Eq. 6 for one variance, or what stands in its place."""
    if isinstance(noise, Exponential):
        return s / (2 * floor)
    if hasattr(noise, "degrees"):  # Student's t
        return noise.degrees / 2 * (np.log(s / floor) + floor / s - 1)
    return np.log(s)


def energy(patches, atoms, codes, variance, sparsity, noise):
    """Eq. 6, literally, over the known pixels, for each patch."""
    floors = np.broadcast_to(getattr(noise, "floor", 0.0), patches.shape)
    total = []
    for row, (patch, code, spread) in enumerate(zip(patches, codes, variance, strict=True)):
        value = sparsity * np.abs(code).sum()
        for pixel, (f, fitted, s) in enumerate(zip(patch, code @ atoms, spread, strict=True)):
            if not np.isnan(f) and np.isfinite(s):
                value += prior(noise, s, floors[row, pixel]) + (f - fitted) ** 2 / (2 * s)
        total.append(value)
    return np.array(total)


def alternate(patches, atoms, noise, sparsity, rounds=8):
    """The paper's alternation with exact steps: codes for fixed variances, then the closed-form variances."""
    variance = noise.initial_variance(patches)
    codes = None
    for _ in range(rounds if noise.inferred else 1):
        codes = weighted_lasso(patches, atoms, variance, sparsity, codes, passes=500, tolerance=1e-6)
        variance = noise.best_variance(patches - codes @ atoms)
    return codes, variance

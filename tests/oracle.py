"""Slow, readable references of the fast solver: one patch, one coefficient at a time."""

from __future__ import annotations

import numpy as np


def weighted_lasso(patch, atoms, variance, sparsity, passes=20_000, tolerance=1e-12):
    """Cyclic coordinate descent; pixels that are NaN or of infinite variance have weight zero."""
    weight = np.where(np.isnan(patch), 0, 1 / variance)
    target = np.nan_to_num(patch)
    codes = np.zeros(len(atoms))
    residual = target.copy()
    for _ in range(passes):
        largest = 0.0
        for j, atom in enumerate(atoms):
            curvature = (weight * atom * atom).sum()
            if curvature == 0:
                continue
            pull = (weight * atom * residual).sum() + curvature * codes[j]
            new = np.sign(pull) * max(abs(pull) - sparsity, 0) / curvature
            if new != codes[j]:
                residual += (codes[j] - new) * atom
                largest = max(largest, abs(new - codes[j]))
                codes[j] = new
        if largest < tolerance * max(1, np.abs(codes).max()):
            break
    return codes


def objective(patch, atoms, codes, variance, sparsity):
    weight = np.where(np.isnan(patch), 0, 1 / variance)
    return (weight * (np.nan_to_num(patch) - codes @ atoms) ** 2).sum() / 2 + sparsity * np.abs(codes).sum()


def energy(patch, atoms, codes, variance, sparsity):
    """Eq. 6, literally, over the known pixels."""
    total = sparsity * np.abs(codes).sum()
    for value, fitted, s in zip(patch, codes @ atoms, variance, strict=True):
        if not np.isnan(value) and np.isfinite(s):
            total += np.log(s) + (value - fitted) ** 2 / (2 * s)
    return total


def alternate(patch, atoms, noise, sparsity, rounds=30):
    """The paper's alternation with exact steps: codes for fixed variances, then the closed-form variances."""
    variance = noise.initial_variance(patch[None])[0]
    codes = np.zeros(len(atoms))
    for _ in range(rounds):
        codes = weighted_lasso(patch, atoms, variance, sparsity, tolerance=1e-7)
        variance = noise.best_variance((patch - codes @ atoms)[None])[0]
    return codes, variance

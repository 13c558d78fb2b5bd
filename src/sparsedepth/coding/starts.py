"""Dictionaries that learning starts from: patches of the data, or noise."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from sparsedepth.dictionary import Dictionary
from sparsedepth.patches import Batch
from sparsedepth.vocabulary import InputError, Patches

Batches = Callable[[int], Batch]
"""From a step's number to its patches."""

APART = 1 << 40
"""A step that learning never reaches: what a start is made of is not learned from again."""


def start_from(batches: Batches, n_atoms: int, patch_shape: tuple[int, int] | None = None, seed: int = 0) -> Dictionary:
    """Start with patches of the data, with a little noise, as atoms: far better than random ones."""
    if n_atoms < 1:
        raise InputError(f"{n_atoms} atoms were asked for; a dictionary has at least one")
    patches: list[Patches] = []
    while sum(map(len, patches)) < n_atoms:
        patches.append(np.nan_to_num(batches(APART + len(patches)).patches))
    atoms = np.concatenate(patches)[:n_atoms].astype(np.float32)
    atoms += np.random.default_rng([seed, APART]).normal(0, 0.02, atoms.shape).astype(np.float32)
    return Dictionary(atoms / np.linalg.norm(atoms, axis=1, keepdims=True), patch_shape or _square(atoms.shape[1]))


def random_start(n_atoms: int, patch_shape: tuple[int, int], seed: int = 0) -> Dictionary:
    """Start with Gaussian noise as atoms, as the paper does; no data is looked at.

    Parameters
    ----------
    n_atoms
        Number of atoms.
    patch_shape
        Height and width of a patch, in pixels.
    seed
        The same seed gives the same atoms.

    Returns
    -------
    Dictionary
        Atoms of norm 1.

    Examples
    --------
    >>> random_start(4, (8, 8)).atoms.shape
    (4, 64)
    """
    if n_atoms < 1:
        raise InputError(f"{n_atoms} atoms were asked for; a dictionary has at least one")
    atoms = np.random.default_rng([seed, APART]).standard_normal((n_atoms, patch_shape[0] * patch_shape[1]))
    return Dictionary((atoms / np.linalg.norm(atoms, axis=1, keepdims=True)).astype(np.float32), patch_shape)


def _square(n_pixels: int) -> tuple[int, int]:
    side = math.isqrt(n_pixels)
    if side * side != n_pixels:
        raise InputError(
            f"patches of {n_pixels} pixels are not square; give a Dictionary with its patch_shape as the start"
        )
    return side, side

"""The translation-invariant 7-9 wavelet frame of a patch, as a dictionary that needs no learning."""

from __future__ import annotations

import numpy as np

from sparsedepth.extras import needed_for
from sparsedepth.vocabulary import Floats, InputError, Vector

with needed_for("a baseline", "reproduce"):
    import pywt


def wavelet_frame(patch_shape: tuple[int, int], wavelet: str = "bior4.4") -> Floats:
    """Compute the synthesis atoms of the translation-invariant 7-9 wavelet transform: unit norm, one a row.

    At each level an atom of each of three orientations is centred at every pixel, and a scaling function of the last
    level. Atoms are cut at the border of the patch, like those of a frame on the whole map. Periodic atoms would
    join opposite sides of a patch. Atoms centred outside
    are left out: their remainders are nearly single pixels and would explain noise. The levels are those whose atoms
    keep 95 % of their energy inside the patch when they are centred in it: 3 in 16 x 16, and 2560 atoms.

    Parameters
    ----------
    patch_shape
        Height and width of a patch, in pixels.
    wavelet
        Name as in PyWavelets.

    Returns
    -------
    ndarray of float, shape (atoms, pixels)
        Three orientations at each level, then the scaling functions; atoms that are alike come once.

    Examples
    --------
    >>> wavelet_frame((16, 16)).shape
    (2560, 256)
    """
    if len(patch_shape) != 2 or min(patch_shape) < 4:
        raise InputError(f"a patch of shape {patch_shape} has no room for wavelets; take 4 x 4 or more")
    lows, highs = _levels(wavelet, min(patch_shape))
    pairs = [pair for low, high in zip(lows, highs, strict=True) for pair in ((low, high), (high, low), (high, high))]
    bands = [np.kron(_centred(a, patch_shape[0]), _centred(b, patch_shape[1])) for a, b in [*pairs, (lows[-1],) * 2]]
    atoms = np.concatenate(bands)
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    alike = np.triu(np.abs(atoms @ atoms.T) > 1 - 1e-9, 1).any(axis=0)
    return atoms[~alike]


def tight_wavelet_frame(patch_shape: tuple[int, int], wavelet: str = "bior4.4", levels: int = 3) -> Floats:
    """Compute the synthesis atoms of the periodic stationary 7-9 wavelet transform, as they are: not of unit norm.

    All coefficients of a patch sum to the patch, and their energy is about its own; fine atoms are shorter than coarse
    ones. Atoms wrap round the patch.

    Parameters
    ----------
    patch_shape
        Height and width of a patch, in pixels; multiples of 2 ** levels.
    wavelet, levels
        Name as in PyWavelets, and number of scales.

    Returns
    -------
    ndarray of float, shape (atoms, pixels)
        Three orientations at each level, then the scaling functions; one atom at every pixel.

    Examples
    --------
    >>> tight_wavelet_frame((8, 8)).shape
    (640, 64)
    """
    if len(patch_shape) != 2 or any(side % 2**levels for side in patch_shape):
        raise InputError(
            f"a patch of shape {patch_shape} cannot be halved {levels} times; take multiples of {2**levels}"
        )
    atoms = []
    for level in range(levels + 1):
        for band in range(3 if level else 1):
            empty = [np.zeros(patch_shape) for _ in range(3 * levels + 1)]
            empty[3 * level - 2 + band if level else 0][0, 0] = 1.0
            details = [tuple(empty[1 + 3 * i : 4 + 3 * i]) for i in range(levels)]
            atom = pywt.iswt2([empty[0], *details], wavelet, norm=True)
            shifts = np.ndindex(*patch_shape)
            atoms.append(np.stack([np.roll(atom, shift, (0, 1)).ravel() for shift in shifts]))
    return np.concatenate([*atoms[1:], atoms[0]])


def _levels(wavelet: str, side: int) -> tuple[list[Vector], list[Vector]]:
    """Compute scaling functions and wavelets of each level that fits into a side, odd in length and symmetric."""
    filters = pywt.Wavelet(wavelet)  # pyright: ignore[reportAttributeAccessIssue]
    low, high = (np.trim_zeros(np.asarray(taps)) for taps in (filters.rec_lo, filters.rec_hi))
    lows, highs = [], []
    scaling = np.ones(1)
    for level in range(64):
        wave, scaling = (np.convolve(scaling, _dilated(taps, 2**level)) for taps in (high, low))
        if level and min(_energy_inside(wave, side), _energy_inside(scaling, side)) < 0.95:
            break
        lows.append(scaling)
        highs.append(wave)
    return lows, highs


def _dilated(taps: Vector, step: int) -> Vector:
    spread = np.zeros((len(taps) - 1) * step + 1)
    spread[::step] = taps
    return spread


def _energy_inside(function: Vector, side: int) -> float:
    centre = len(function) // 2
    first = max(centre - side // 2, 0)
    return float((function[first : centre + (side + 1) // 2] ** 2).sum() / (function**2).sum())


def _centred(function: Vector, side: int) -> Floats:
    """Centre the function at each of ``side`` positions, cut at both ends, one a row."""
    padded = np.pad(function, side)
    middle = len(padded) // 2
    return np.stack([padded[middle - place : middle - place + side] for place in range(side)])

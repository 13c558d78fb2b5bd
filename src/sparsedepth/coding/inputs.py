"""Checks of what goes into inference: patches, atoms, prices and the sizes of blocks."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from sparsedepth.checks import LARGEST, as_floats
from sparsedepth.coding.noise import Known, NoiseModel
from sparsedepth.dictionary import Dictionary
from sparsedepth.parallel import cores
from sparsedepth.vocabulary import Floats, InputError, Patches, Vector, as_array

MAX_FLOAT32_VALUE = 1e15
"""What float32 patches may hold: squares over a variance stay finite."""


def checked_inputs(
    patches: Patches, dictionary: Dictionary | Floats, noise: NoiseModel, sparsity: float | Vector, tolerance: float
) -> tuple[Patches, Floats]:
    """Convert patches and atoms to one float type, or raise an error that says what to do."""
    patches, atoms = real_numbers(patches), atoms_of(dictionary)
    if patches.ndim != 2:
        raise InputError(f"patches have shape {patches.shape}; give them as rows, (n, pixels)")
    if patches.shape[1] != atoms.shape[1]:
        raise InputError(
            f"the patches have {patches.shape[1]} pixels but the dictionary's atoms {atoms.shape[1]}; "
            "cut the patches with dictionary.patch_shape"
        )
    norms = np.linalg.norm(atoms, axis=1)
    if np.abs(norms - 1).max() > 1e-3:
        raise InputError(f"an atom has norm {norms[np.abs(norms - 1).argmax()]:.4g}; divide each atom by its norm")
    values = np.asarray(sparsity)
    if values.dtype.kind not in "fiu" or not (np.isfinite(values).all() and (values >= 0).all() and (values > 0).any()):
        raise InputError(f"sparsity is {sparsity!r}; it must be a positive number, or one for each atom (0 = free)")
    if values.ndim and values.shape != (len(atoms),):
        raise InputError(
            f"the sparsity has shape {values.shape}; give one number, or one for each of {len(atoms)} atoms"
        )
    if not (isinstance(tolerance, Real) and tolerance >= 0):
        raise InputError(f"tolerance is {tolerance!r}; it must be a number, zero or more")
    if not isinstance(noise, NoiseModel):
        raise InputError(f"the noise model is {noise!r}; give one, such as Jeffreys() or Stationary(0.01)")
    if isinstance(noise, Known):
        noise.require(patches.shape)
    patches = np.ascontiguousarray(patches, np.float32 if patches.dtype == np.float32 else np.float64)
    highest, lowest = (float(f.reduce(patches, axis=None, initial=0)) for f in (np.fmax, np.fmin))
    largest = MAX_FLOAT32_VALUE if patches.dtype == np.float32 else LARGEST
    if max(highest, -lowest) > largest:
        raise InputError(f"patches hold values that are infinite or beyond {largest:g}; mark missing pixels with NaN")
    if not (noise.take(slice(0, 1)).floor_variance(patches[:1]) > 0).all():
        raise InputError(f"the variance is too small for {patches.dtype}; use float64 patches or larger units")
    return patches, atoms.astype(patches.dtype)


def prices(sparsity: float | Vector, n_atoms: int) -> tuple[float, Vector | None]:
    """Find the largest sparsity and, if they differ, that of each atom relative to it."""
    if isinstance(sparsity, Real):
        return float(sparsity), None
    return float(np.max(sparsity)), np.asarray(sparsity, np.float64) / np.max(sparsity)


def real_numbers(values: Any) -> Floats:
    """Convert to an array of real numbers; masked entries become NaN."""
    array = as_array("what came", values)
    return as_floats("what came", array) if np.ma.isMaskedArray(array) else array


def atoms_of(dictionary: Dictionary | Floats) -> Floats:
    """Return the atoms of a dictionary, or the array itself; refuse what is none."""
    atoms = dictionary.atoms if isinstance(dictionary, Dictionary) else real_numbers(dictionary)
    if atoms.ndim != 2 or atoms.size == 0 or not np.isfinite(atoms).all():
        raise InputError(
            f"a dictionary is a finite array of atoms in rows, (atoms, pixels); this one has shape {atoms.shape}"
        )
    return atoms


def block_and_threads(n: int, block: int, threads: int | None, max_rounds: int) -> tuple[int, int]:
    """Choose the patches of a block and the threads; small work is cut finer, to occupy every thread."""
    threads = cores() if threads is None else threads
    for name, count in {"threads": threads, "block": block, "max_rounds": max_rounds}.items():
        if count < 1:
            raise InputError(f"{name} is {count}; it must be at least 1")
    return min(block, max(128, -(-n // threads))), threads

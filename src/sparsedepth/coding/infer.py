"""Codes and variances of many patches, and their energy (Eq. 6)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from sparsedepth.coding.noise import Jeffreys, Known, NoiseModel
from sparsedepth.coding.solver import Block, EnergyAtRest, Factors, GapBelow, Job, Solution, plan, solve
from sparsedepth.dictionary import Dictionary
from sparsedepth.vocabulary import Codes, Floats, InputError, Patches, Vector

LARGEST = 1e100
"""Patch values beyond this are refused: their squares would leave float64."""


@dataclass(frozen=True)
class SparseCode:
    """What inference found: a row for each patch."""

    codes: Codes
    """(n, atoms); the patch is about ``codes @ atoms``."""
    variance: Floats
    """(n, pixels) in squared units of the patches; inf where a pixel was missing."""
    energy: Vector
    """(n,) Eq. 6 at these codes and variances, float64."""
    rounds: NDArray[np.int32]
    """(n,) iterations spent on each patch."""
    converged: NDArray[np.bool_]
    """(n,) False where the iterations ran out before the energy came to rest."""


def energy(
    patches: Patches, dictionary: Dictionary | Floats, codes: Codes, variance: Floats, sparsity: float = 1.0
) -> Vector:
    """Eq. 6 of each patch: sum of log variance + squared residual / (2 variance), plus sparsity |codes|_1.

    Pixels that are NaN or whose variance is infinite take no part. float64, whatever comes in.
    """
    atoms = _atoms_of(dictionary)
    misfit = np.asarray(patches, np.float64) - np.asarray(codes, np.float64) @ np.asarray(atoms, np.float64)
    spread = np.broadcast_to(np.asarray(variance, np.float64), misfit.shape)
    known = np.isfinite(misfit) & np.isfinite(spread)
    misfit, spread = np.where(known, misfit, 0.0), np.where(known, spread, 1.0)
    pixels = np.log(spread) + misfit * (misfit / spread) / 2
    return pixels.sum(axis=1) + sparsity * np.abs(codes).sum(axis=1, dtype=np.float64)


def infer(
    patches: Patches,
    dictionary: Dictionary | Floats,
    noise: NoiseModel = Jeffreys(),  # noqa: B008 (frozen)
    sparsity: float = 1.0,
    *,
    tolerance: float = 2e-3,
    max_rounds: int = 300,
    threads: int | None = None,
    block: int = 1024,
) -> SparseCode:
    """The codes and variances that minimise Eq. 6 for each patch (n, pixels); NaN pixels take no part.

    A patch is done when its energy has come to rest: twice in a row, eight iterations changed it by less than
    ``tolerance`` of what exceeds the noise floor.
    A patch without known pixels, or all zero, gets zero codes. ``threads=None`` uses every core; neither it nor
    ``block`` changes a result.

    >>> import numpy as np
    >>> from sparsedepth import Jeffreys, infer
    >>> code = infer(np.array([[3.0, 0.0, np.nan]]), np.eye(3), Jeffreys(floor=0.01))
    >>> code.codes.round(2)
    array([[2.99, 0.  , 0.  ]])
    >>> code.variance
    array([[0.01, 0.01,  inf]])
    """
    patches, atoms = _at_the_door(patches, dictionary, sparsity)
    block, threads = _sizes(len(patches), block, threads, max_rounds)
    factors = Factors(atoms)
    solution = _solve(patches, noise, sparsity, factors, EnergyAtRest(tolerance), max_rounds, block, threads)
    variance, value = np.empty_like(patches), np.empty(len(patches))

    def explain(rows: slice) -> None:
        mine, codes = patches[rows], solution.codes[rows]
        variance[rows] = noise.take(rows).best_variance(mine - factors.reconstruct(codes))
        value[rows] = energy(mine, atoms, codes, variance[rows], sparsity)

    _in_threads(explain, [slice(i, i + block) for i in range(0, len(patches), block)], threads)
    return SparseCode(solution.codes, variance, value, solution.rounds, solution.converged)


def weighted_lasso(
    patches: Patches,
    dictionary: Dictionary | Floats,
    variance: Floats | float,
    sparsity: float = 1.0,
    *,
    tolerance: float = 2e-3,
    max_rounds: int = 3000,
    threads: int | None = None,
    block: int = 1024,
) -> Codes:
    """The codes (n, atoms) that minimise sum of squared residual / (2 variance) + sparsity |codes|_1, variances fixed.

    The variance has one value for each pixel (n, pixels), for each column (pixels,), or one for all; infinite or NaN
    pixels take no part. A patch is done when its duality gap, an upper bound of how far its objective is from the
    minimum, is below ``tolerance`` of the objective; in practice it is then about a hundred times closer than that.
    """
    patches, atoms = _at_the_door(patches, dictionary, sparsity)
    block, threads = _sizes(len(patches), block, threads, max_rounds)
    noise = Known(np.asarray(variance))
    return _solve(patches, noise, sparsity, Factors(atoms), GapBelow(tolerance), max_rounds, block, threads).codes


def _solve(
    patches: Patches,
    noise: NoiseModel,
    sparsity: float,
    factors: Factors,
    at_rest: EnergyAtRest | GapBelow,
    max_rounds: int,
    block: int,
    threads: int,
) -> Solution:
    """Solve all patches, a block at a time; those with nothing to code keep zero codes and no rounds."""
    n = len(patches)
    whole = Solution(np.zeros((n, factors.n_atoms), patches.dtype), np.zeros(n, np.int32), np.ones(n, bool))

    def code(job: Job) -> None:
        mine = Block(patches[job.rows], noise.take(job.rows), sparsity, factors, job)
        for values, found in zip(whole, solve(mine, at_rest, max_rounds), strict=True):
            values[job.rows] = found

    jobs = plan(patches, noise, sparsity, block)
    _in_threads(factors.of, sorted({exponent for job in jobs for exponent in job.exponents}), threads)
    _in_threads(code, jobs, threads)
    return whole


def _at_the_door(patches: Patches, dictionary: Dictionary | Floats, sparsity: float) -> tuple[Patches, Floats]:
    """Patches and atoms in one float type, or an error that says what to do."""
    patches, atoms = np.asarray(patches), _atoms_of(dictionary)
    if patches.ndim != 2:
        raise InputError(f"patches have shape {patches.shape}; give them as rows, (n, pixels)")
    if patches.dtype.kind not in "fiu":
        raise InputError(f"patches are of type {patches.dtype}; give real numbers, NaN = missing")
    if patches.shape[1] != atoms.shape[1]:
        raise InputError(
            f"the patches have {patches.shape[1]} pixels but the dictionary's atoms {atoms.shape[1]}; "
            "cut the patches with dictionary.patch_shape"
        )
    if not (np.isfinite(sparsity) and sparsity > 0):
        raise InputError(f"sparsity is {sparsity!r}; it must be a positive number")
    patches = np.ascontiguousarray(patches, np.float32 if patches.dtype == np.float32 else np.float64)
    highest, lowest = (float(f.reduce(patches, axis=None, initial=0)) for f in (np.fmax, np.fmin))
    if max(highest, -lowest) > LARGEST:
        raise InputError(f"patches hold infinite or absurd values (beyond {LARGEST:g}); mark unknown pixels with NaN")
    return patches, atoms.astype(patches.dtype)


def _atoms_of(dictionary: Dictionary | Floats) -> Floats:
    atoms = dictionary.atoms if isinstance(dictionary, Dictionary) else np.asarray(dictionary)
    if atoms.ndim != 2 or len(atoms) == 0 or atoms.dtype.kind not in "fiu" or not np.isfinite(atoms).all():
        raise InputError(
            f"a dictionary is a finite array of atoms in rows, (atoms, pixels); this one has shape {atoms.shape}"
        )
    return atoms


def _in_threads(work: Callable[[Any], Any], items: Sequence[Any], threads: int) -> None:
    """Do every item, in threads that each keep to one BLAS thread."""
    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, items))


def _sizes(n: int, block: int, threads: int | None, max_rounds: int) -> tuple[int, int]:
    """Patches a block and threads: small work is cut finer, so that every thread has some."""
    threads = (os.cpu_count() or 1) if threads is None else threads
    for name, count in {"threads": threads, "block": block, "max_rounds": max_rounds}.items():
        if count < 1:
            raise InputError(f"{name} is {count}; it must be at least 1")
    return min(block, max(128, -(-n // threads))), threads


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within it, a matrix product uses the thread that calls it and no other."""
    with _blas_libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _blas_libraries() -> ThreadpoolController:
    return ThreadpoolController()

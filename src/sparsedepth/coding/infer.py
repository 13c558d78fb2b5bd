"""Inference of codes and variances of many patches, and their energy (Eq. 6)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.checks import LARGEST, as_floats
from sparsedepth.coding.admm import Block, EnergyAtRest, Factors, GapBelow, Job, Solution, plan, solve
from sparsedepth.coding.noise import Jeffreys, Known, NoiseModel
from sparsedepth.dictionary import Dictionary
from sparsedepth.parallel import cores, run_in_threads
from sparsedepth.vocabulary import Codes, Floats, InputError, Patches, Vector, as_array

MAX_FLOAT32_VALUE = 1e15
"""What float32 patches may hold: squares over a variance stay finite."""
BLOCK_PATCHES = 512
"""Patches of 8x8 coded at once: with more, their codes leave the cache; with fewer, the calls count."""


@dataclass(frozen=True)
class SparseCode:
    """The result of inference: one row for each patch."""

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
    patches: Patches,
    dictionary: Dictionary | Floats,
    codes: Codes,
    variance: Floats,
    sparsity: float | Vector = 1.0,
    noise: NoiseModel = Jeffreys(),  # noqa: B008 (frozen)
) -> Vector:
    """Compute Eq. 6 for each patch: sum of log variance + squared residual / (2 variance), plus ``sparsity |codes|``.

    Pixels that are NaN or whose variance is infinite take no part. float64, whatever comes in. The sparsity may have
    one value for each atom; a noise model with another prior puts its own cost in place of the logarithms.
    """
    atoms = _atoms_of(dictionary).astype(np.float64)
    patches, codes, variance = (_real(values).astype(np.float64) for values in (patches, codes, variance))
    if patches.ndim != 2 or patches.shape[1] != atoms.shape[1] or codes.shape != (len(patches), len(atoms)):
        raise InputError(
            f"patches {patches.shape}, atoms {atoms.shape} and codes {codes.shape} do not fit: "
            "they are (n, pixels), (atoms, pixels) and (n, atoms)"
        )
    if (np.abs(patches) > LARGEST).any() or not (np.abs(codes) <= LARGEST).all():
        raise InputError(f"patches or codes are infinite or beyond {LARGEST:g}; mark unknown pixels with NaN")
    misfit = patches - Factors(atoms).reconstruct(codes)
    spread = Known(variance).floor_variance(patches)
    known = np.isfinite(spread)
    misfit = np.where(known, misfit, 0.0)
    with np.errstate(over="ignore"):  # an absurd residual over a tiny variance has infinite energy
        pixels = misfit * (misfit / np.where(known, spread, 1.0)) / 2
    return noise.cost(spread) + pixels.sum(axis=1) + (np.abs(codes) * sparsity).sum(axis=1)


def infer(
    patches: Patches,
    dictionary: Dictionary | Floats,
    noise: NoiseModel = Jeffreys(),  # noqa: B008 (frozen)
    sparsity: float | Vector = 1.0,
    *,
    tolerance: float = 2e-3,
    max_rounds: int = 300,
    threads: int | None = None,
    block: int = 1024,
) -> SparseCode:
    """Find the codes and variances that minimise Eq. 6 for each patch (n, pixels); NaN pixels are missing.

    A patch is done when its energy has come to rest: twice in a row, eight iterations changed it by less than
    ``tolerance`` of what exceeds the noise floor.
    ``sparsity`` may have one value for each atom, 0 for those that cost nothing.
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
    patches, atoms = _at_the_door(patches, dictionary, noise, sparsity, tolerance)
    block, threads = _sizes(len(patches), block, threads, max_rounds)
    largest, price = _prices(sparsity, len(atoms))
    factors = _factors(atoms, price)
    solution = _solve(patches, noise, largest, factors, EnergyAtRest(tolerance), max_rounds, block, threads)
    variance, value = np.empty_like(patches), np.empty(len(patches))

    def explain(rows: slice) -> None:
        mine, codes = patches[rows], solution.codes[rows]
        variance[rows] = noise.take(rows).best_variance(mine - factors.reconstruct(codes))
        value[rows] = energy(mine, atoms, codes, variance[rows], sparsity, noise.take(rows))

    run_in_threads(explain, [slice(i, i + block) for i in range(0, len(patches), block)], threads)
    return SparseCode(solution.codes, variance, value, solution.rounds, solution.converged)


def sparse_codes(
    patches: Patches,
    dictionary: Dictionary | Floats,
    noise: NoiseModel,
    sparsity: float | Vector,
    *,
    tolerance: float,
    max_rounds: int,
) -> Codes:
    """Find the codes of `infer` in one thread, without variances and energies."""
    patches, atoms = _at_the_door(patches, dictionary, noise, sparsity, tolerance)
    block, _ = _sizes(len(patches), BLOCK_PATCHES, 1, max_rounds)
    largest, price = _prices(sparsity, len(atoms))
    at_rest = EnergyAtRest(tolerance)
    return _solve(patches, noise, largest, _factors(atoms, price), at_rest, max_rounds, block, 1).codes


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
    """Codes (n, atoms) that minimise sum of squared residual / (2 variance) + ``sparsity |codes|``, variances fixed.

    The variance has one value for each pixel (n, pixels), for each column (pixels,), or one for all; infinite or NaN
    pixels take no part. A patch is done when its duality gap, an upper bound of how far its objective is from the
    minimum, is below ``tolerance`` of the objective; a `RuntimeWarning` counts the patches that ran out of rounds.
    """
    noise = Known(_real(variance))
    patches, atoms = _at_the_door(patches, dictionary, noise, sparsity, tolerance)
    block, threads = _sizes(len(patches), block, threads, max_rounds)
    solution = _solve(patches, noise, sparsity, _factors(atoms, None), GapBelow(tolerance), max_rounds, block, threads)
    left = int((~solution.converged).sum())
    if left:
        message = f"{left} of {len(patches)} patches are not within the tolerance after {max_rounds} rounds; allow more"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return solution.codes


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
    """Solve all patches block by block; those with nothing to code keep zero codes and no rounds."""
    n = len(patches)
    whole = Solution(np.zeros((n, factors.n_atoms), patches.dtype), np.zeros(n, np.int32), np.ones(n, bool))

    def code(job: Job) -> None:
        mine = Block(patches[job.rows], noise.take(job.rows), sparsity, factors, job)
        for values, found in zip(whole, solve(mine, at_rest, max_rounds), strict=True):
            values[job.rows] = found

    jobs = plan(patches, noise, sparsity, min(block, factors.layout.max_rows))
    run_in_threads(factors.of, sorted({exponent for job in jobs for exponent in job.exponents}), threads)
    run_in_threads(code, jobs, threads)
    return whole


def _factors(atoms: Floats, price: Vector | None) -> Factors:
    return _made_factors(atoms.tobytes(), atoms.shape, atoms.dtype.str, None if price is None else tuple(price))


@lru_cache(maxsize=2)
def _made_factors(atoms: bytes, shape: tuple[int, int], dtype: str, price: tuple[float, ...] | None) -> Factors:
    """Make the factors of a dictionary, or reuse them: with 16x16 patches they take a sixth of a fast restoration."""
    return Factors(np.frombuffer(atoms, dtype).reshape(shape), None if price is None else np.array(price))


def _at_the_door(
    patches: Patches, dictionary: Dictionary | Floats, noise: NoiseModel, sparsity: float | Vector, tolerance: float
) -> tuple[Patches, Floats]:
    """Convert patches and atoms to one float type, or raise an error that says what to do."""
    patches, atoms = _real(patches), _atoms_of(dictionary)
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
        raise InputError(f"patches hold infinite or absurd values (beyond {largest:g}); mark unknown pixels with NaN")
    if not (noise.take(slice(0, 1)).floor_variance(patches[:1]) > 0).all():
        raise InputError(f"the variance is too small for {patches.dtype}; use float64 patches or larger units")
    return patches, atoms.astype(patches.dtype)


def _prices(sparsity: float | Vector, n_atoms: int) -> tuple[float, Vector | None]:
    """Find the largest sparsity and, if they differ, that of each atom relative to it."""
    if isinstance(sparsity, Real):
        return float(sparsity), None
    return float(np.max(sparsity)), np.asarray(sparsity, np.float64) / np.max(sparsity)


def _real(values: Any) -> Floats:
    """Convert to an array of real numbers; masked entries become NaN."""
    array = as_array("what came", values)
    return as_floats("what came", array) if np.ma.isMaskedArray(array) else array


def _atoms_of(dictionary: Dictionary | Floats) -> Floats:
    atoms = dictionary.atoms if isinstance(dictionary, Dictionary) else _real(dictionary)
    if atoms.ndim != 2 or atoms.size == 0 or not np.isfinite(atoms).all():
        raise InputError(
            f"a dictionary is a finite array of atoms in rows, (atoms, pixels); this one has shape {atoms.shape}"
        )
    return atoms


def _sizes(n: int, block: int, threads: int | None, max_rounds: int) -> tuple[int, int]:
    """Choose the patches of a block and the threads; small work is cut finer, to occupy every thread."""
    threads = cores() if threads is None else threads
    for name, count in {"threads": threads, "block": block, "max_rounds": max_rounds}.items():
        if count < 1:
            raise InputError(f"{name} is {count}; it must be at least 1")
    return min(block, max(128, -(-n // threads))), threads

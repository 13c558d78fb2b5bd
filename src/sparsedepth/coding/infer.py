"""Inference of codes and variances of many patches, and their energy (Eq. 6)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sparsedepth.checks import LARGEST
from sparsedepth.coding.admm import Block, EnergyAtRest, Factors, GapBelow, Job, Solution, plan, solve
from sparsedepth.coding.descent import descend
from sparsedepth.coding.inputs import atoms_of, block_and_threads, checked_inputs, prices, real_numbers
from sparsedepth.coding.noise import Jeffreys, Known, NoiseModel
from sparsedepth.dictionary import Dictionary
from sparsedepth.parallel import run_in_threads
from sparsedepth.vocabulary import Codes, Floats, InputError, Patches, Vector

BLOCK_PATCHES = 512
"""Patches of 8x8 coded at once: with more, their codes leave the cache; with fewer, the calls count."""


@dataclass(frozen=True)
class SparseCode:
    """The result of inference: one row for each patch.

    Parameters
    ----------
    codes
        (n, atoms); the patch is about ``codes @ atoms``.
    variance
        (n, pixels) in squared units of the patches; inf where a pixel was missing.
    energy
        (n,) Eq. 6 at these codes and variances, float64.
    rounds
        (n,) iterations spent on each patch.
    converged
        (n,) False where the iterations ran out before the energy came to rest.

    Examples
    --------
    >>> from sparsedepth import infer
    >>> infer(np.array([[3.0, 0.0, np.nan]]), np.eye(3)).codes.shape
    (1, 3)
    """

    codes: Codes
    variance: Floats
    energy: Vector
    rounds: NDArray[np.int32]
    converged: NDArray[np.bool_]


def energy(
    patches: Patches,
    dictionary: Dictionary | Floats,
    codes: Codes,
    variance: Floats,
    sparsity: float | Vector = 1.0,
    noise: NoiseModel = Jeffreys(),
) -> Vector:
    """Compute Eq. 6 for each patch: sum of log variance + squared residual / (2 variance), plus ``sparsity |codes|``.

    Parameters
    ----------
    patches
        (n, pixels); NaN pixels take no part.
    dictionary
        A `Dictionary`, or atoms (atoms, pixels).
    codes
        (n, atoms).
    variance
        (n, pixels) in squared units of the patches; pixels of infinite variance take no part.
    sparsity
        Price of a code; one for all atoms, or one for each.
    noise
        A model with another prior puts its own cost in place of the logarithms.

    Returns
    -------
    (n,) float64, whatever comes in.

    Examples
    --------
    >>> from sparsedepth import energy
    >>> energy(np.array([[3.0, 1.0]]), np.eye(2), np.array([[3.0, 0.0]]), np.ones((1, 2)))
    array([3.5])
    """
    atoms = atoms_of(dictionary).astype(np.float64)
    patches, codes, variance = (real_numbers(values).astype(np.float64) for values in (patches, codes, variance))
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
    noise: NoiseModel = Jeffreys(),
    sparsity: float | Vector = 1.0,
    *,
    tolerance: float = 2e-3,
    max_rounds: int = 300,
    threads: int | None = None,
    block: int = 1024,
) -> SparseCode:
    """Find the codes and variances that minimise Eq. 6 for each patch (n, pixels); NaN pixels are missing.

    A patch without known pixels, or all zero, gets zero codes.

    Parameters
    ----------
    patches
        (n, pixels); NaN = missing.
    dictionary
        A `Dictionary`, or atoms (atoms, pixels).
    noise
        Model of the noise, in squared units of the patches.
    sparsity
        Price of a code; one for all atoms, or one for each, 0 for those that cost nothing.
    tolerance
        Largest change of the energy in eight iterations, as a fraction of what exceeds the noise floor. A patch is done
        when its energy changes by less twice in a row.
    max_rounds
        Most iterations for a patch.
    threads, block
        Number of threads, all cores by default, and patches that are coded together. Neither changes a result.

    Returns
    -------
    SparseCode
        Codes, variances and energies, one row for each patch.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsedepth import Jeffreys, infer
    >>> code = infer(np.array([[3.0, 0.0, np.nan]]), np.eye(3), Jeffreys(floor=0.01))
    >>> code.codes.round(2)
    array([[2.99, 0.  , 0.  ]])
    >>> code.variance
    array([[0.01, 0.01,  inf]])
    """
    patches, atoms = checked_inputs(patches, dictionary, noise, sparsity, tolerance)
    block, threads = block_and_threads(len(patches), block, threads, max_rounds)
    largest, price = prices(sparsity, len(atoms))
    factors = _factors(atoms, price)
    solution = solve_in_blocks(patches, noise, largest, factors, EnergyAtRest(tolerance), max_rounds, block, threads)
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
    patches, atoms = checked_inputs(patches, dictionary, noise, sparsity, tolerance)
    block, _ = block_and_threads(len(patches), BLOCK_PATCHES, 1, max_rounds)
    largest, price = prices(sparsity, len(atoms))
    at_rest = EnergyAtRest(tolerance)
    return solve_in_blocks(patches, noise, largest, _factors(atoms, price), at_rest, max_rounds, block, 1).codes


def fit_patches(
    patches: Patches,
    dictionary: Dictionary | Floats,
    noise: NoiseModel,
    sparsity: float | Vector,
    rounds: int,
) -> Patches:
    """Reconstruct patches (n, pixels) from their codes after so many rounds of descent, in one thread.

    The noise model is a convex one.
    """
    patches, atoms = checked_inputs(patches, dictionary, noise, sparsity, 0.0)
    return descend(patches, atoms, noise, np.asarray(sparsity), rounds)[0]


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
    """Find the codes that minimise sum of squared residual / (2 variance) + ``sparsity |codes|``, variances fixed.

    Parameters
    ----------
    patches
        (n, pixels); NaN = missing.
    dictionary
        A `Dictionary`, or atoms (atoms, pixels).
    variance
        One value for each pixel (n, pixels), for each column (pixels,), or one for all; infinite ones take no part.
    sparsity
        Price of a code.
    tolerance
        A patch is done when its duality gap is below this share of the objective. The gap is an upper bound of how far
        the objective is from the minimum.
    max_rounds
        Most iterations for a patch; a `RuntimeWarning` counts the patches that ran out of them.
    threads, block
        As for `infer`.

    Returns
    -------
    Codes (n, atoms).

    Examples
    --------
    >>> from sparsedepth import weighted_lasso
    >>> weighted_lasso(np.array([[3.0, 0.5]]), np.eye(2), 1.0).round(1)
    array([[2., 0.]])
    """
    noise = Known(real_numbers(variance))
    patches, atoms = checked_inputs(patches, dictionary, noise, sparsity, tolerance)
    block, threads = block_and_threads(len(patches), block, threads, max_rounds)
    solution = solve_in_blocks(
        patches, noise, sparsity, _factors(atoms, None), GapBelow(tolerance), max_rounds, block, threads
    )
    left = int((~solution.converged).sum())
    if left:
        message = f"{left} of {len(patches)} patches are not within the tolerance after {max_rounds} rounds; allow more"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
    return solution.codes


def solve_in_blocks(
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

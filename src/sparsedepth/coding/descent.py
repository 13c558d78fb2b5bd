"""A solver for many patches under squares or Huber's loss: coordinate descent on the few atoms that matter.

Codes have a handful of atoms, so most of what ADMM multiplies is zero. Here a round looks at all atoms once, admits the
most useful ones, and descends on the admitted ones alone. Huber's loss is a sum of squares whose weights follow the
residuals. Its threshold falls from the mean residual to the noise floor within a few rounds. So a step is coded first;
what is left of it decides which pixels are outliers. A patch is done when a round admits nothing and gains nothing.

The looks at all atoms are products of whole numbers of 16 bits: they only choose which atoms to admit. The slopes of
admitted atoms are computed in full.

The codes are those of `infer`, nearer to the minimum of Eq. 6 than ADMM in the same time. A patch's result depends on
that patch alone, and on no BLAS.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sparsedepth.coding.noise import NoiseModel
from sparsedepth.kernels import codes as kernels
from sparsedepth.kernels.admm import GROWTH_NONE, GROWTH_ROOT
from sparsedepth.vocabulary import Floats, Patches, Vector

PIXELS_PER_ADMITTED = 16
"""A round admits one atom for so many pixels of a patch, and at least `ADMITTED`: large patches need more atoms."""
ADMITTED = 4
SWEEPS = 10
"""Most passes over the codes in a round. Chosen with the others by energy over time, on patches of Motorcycle."""
TOLERANCE = 0.15
"""Root of twice the energy that a pass must gain, and least excess of a slope over a price. The largest at which long
descents end within 1.5 % of the minimum."""
THRESHOLD_FALL = 1.7
"""Divisor of Huber's threshold from round to round."""
RIDGE = 0.01
"""Cost of half a squared code, times the mean residual of the patch. It makes the minimum unique: flipped maps have
flipped results. It raises the energy by a tenth of what ADMM left; 0.05 raises it by as much as half."""


@dataclass(frozen=True, eq=False)
class PaddedAtoms:
    """A dictionary as the kernel reads it."""

    rows: Floats
    columns: NDArray[np.int16]
    """Rounded, by blocks of atoms and pairs of pixels: (blocks, pairs, atoms of a block, 2)."""
    prices: Vector
    """Infinite for padding."""

    @classmethod
    def of(cls, atoms: Floats, prices: Vector) -> PaddedAtoms:
        """Pad atoms (atoms, pixels) and the prices of their codes."""
        rows = np.zeros([-(-side // kernels.BLOCK) * kernels.BLOCK for side in atoms.shape], np.float32)
        rows[: len(atoms), : atoms.shape[1]] = atoms
        padded = np.full(len(rows), np.inf, np.float32)
        padded[: len(atoms)] = prices
        rounded = np.rint(kernels.ATOM_UNITS * rows).astype(np.int16)
        blocks = rounded.reshape(-1, kernels.BLOCK, rows.shape[1] // 2, 2).swapaxes(1, 2)
        return cls(rows, np.ascontiguousarray(blocks), padded)


def is_convex(noise: NoiseModel) -> bool:
    """Tell whether the energy under a noise model is known to be convex in the codes."""
    return noise.growth_law in (GROWTH_NONE, GROWTH_ROOT)


def descend(patches: Patches, atoms: Floats, noise: NoiseModel, prices: Vector, rounds: int) -> tuple[Patches, Vector]:
    """Fit patches (n, pixels); return the fits and the sums of absolute codes times their prices.

    Parameters
    ----------
    patches
        (n, pixels), float32; NaN = missing.
    atoms
        (atoms, pixels), of norm 1.
    noise
        A convex model: `Exponential`, `Stationary` or `Known`.
    prices
        Of the code of each atom.
    rounds
        Most looks at all atoms.
    """
    padded = _padded(atoms.tobytes(), atoms.shape, atoms.dtype.str, tuple(np.broadcast_to(prices, len(atoms))))
    n, length = patches.shape
    n_atoms, pixels = padded.rows.shape
    fitted, spent = np.empty((n, length), np.float32), np.empty(n, np.float32)
    arrays = (padded.rows, padded.columns, padded.prices, np.ascontiguousarray(patches, np.float32))
    floors = np.ascontiguousarray(noise.floor_variance(patches), np.float32)
    at_once = max(ADMITTED, length // PIXELS_PER_ADMITTED)
    effort = (noise.growth_law == GROWTH_ROOT, rounds, at_once, SWEEPS, TOLERANCE, THRESHOLD_FALL, RIDGE)
    scratch = np.empty(kernels.scratch(pixels, n_atoms), np.float32)
    kernels.fit(n, length, pixels, n_atoms, *arrays, floors, *effort, scratch, fitted, spent)
    return fitted, spent


@lru_cache(maxsize=4)
def _padded(atoms: bytes, shape: tuple[int, int], dtype: str, prices: tuple[float, ...]) -> PaddedAtoms:
    return PaddedAtoms.of(np.frombuffer(atoms, dtype).reshape(shape), np.array(prices))

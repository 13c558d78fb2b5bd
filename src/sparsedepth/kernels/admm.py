"""Element-wise steps of ADMM: what admm.c computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsedepth.kernels.library import ADDRESS, DOUBLE, FLOAT, INT, array, kernel

GROWTH_NONE, GROWTH_SQUARE, GROWTH_ROOT = range(3)
"""How a variance grows with its squared residual: not, in proportion, or with its root."""
GROWTH_OWN = 3
"""By a function of the noise model, which the kernels do not know."""


@dataclass(frozen=True)
class AdmmKernels:
    """The kernels for one type of numbers."""

    prepare: Callable[..., None]
    """Lay patches out as a block: (n, length, rows, pixels, idle, across, patches, floors, unit, next, penalty,
    least_floor, target, load, per_floor)."""
    step: Callable[..., None]
    """Update a block after its matrix products: (rows, atoms, pixels, across, step, limits, sum, difference, target,
    load, per_floor, dual, carried, wanted, relaxation, growth). It takes addresses of arrays: it is called often."""
    rescale: Callable[..., None]
    """Multiply codes: (rows, atoms, across, primal, limits, sum, difference)."""
    codes: Callable[..., None]
    """Compute codes: (rows, atoms, across, limits, sum, codes, spent)."""

    contrast: Callable[..., None]
    """Measure root mean squares: (n, pixels, patches, floors, robust, scratch, contrast)."""

    @classmethod
    def of(cls, name: str, kind: Any, number: Any) -> AdmmKernels:
        """Find the kernels of a type."""
        values = array(kind)
        return cls(
            kernel(f"admm_prepare_{name}", *(INT,) * 6, *(values,) * 9),
            kernel(f"admm_step_{name}", *(INT,) * 4, *(ADDRESS,) * 10, number, INT),
            kernel(f"admm_rescale_{name}", *(INT,) * 3, *(values,) * 4),
            kernel(f"admm_codes_{name}", *(INT,) * 3, *(values,) * 3, array(np.float64)),
            kernel(f"admm_contrast_{name}", INT, INT, values, values, INT, values, array(np.float64)),
        )


KERNELS = {
    np.dtype(np.float32): AdmmKernels.of("float", np.float32, FLOAT),
    np.dtype(np.float64): AdmmKernels.of("double", np.float64, DOUBLE),
}
"""By type of numbers."""

"""Sparse codes of patches: what codes.c computes."""

from __future__ import annotations

import numpy as np

from sparsedepth.kernels.library import FLOAT, INT, array, kernel

_F = array(np.float32)

BLOCK = 16
"""Pixels and atoms are padded to multiples of this."""

ATOM_UNITS = 16384
"""Whole numbers that stand for 1 in atoms of 16 bits."""

scratch = kernel("codes_scratch", INT, INT, result=INT)
"""Count the numbers of scratch for patches: (pixels, atoms)."""

fit = kernel("codes_fit", *(INT,) * 4, _F, array(np.int16), *(_F,) * 3, *(INT,) * 4, FLOAT, FLOAT, FLOAT, _F, _F, _F)
"""Fit patches: (n, length, pixels, atoms, rows, columns, prices, patches, floors, robust, rounds, at_once, sweeps,
tolerance, fall, ridge, scratch, fitted, spent)."""

"""Matrix products in which no row of the result depends on the other rows, to the last bit.

A BLAS computes rows that do not fill a whole tile of its registers by other code, which rounds differently. So rows
are padded to whole tiles. OpenBLAS for processors with AVX2 and no AVX-512 also rounds the first and the last numbers
of half of the columns in memory differently. There rows are stored as columns, with idle rows at both ends, and no
more are multiplied together than one call of the kernel takes. A trial decides which layout is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product as pairs
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sparsedepth.parallel import one_blas_thread
from sparsedepth.vocabulary import Floats

ROW_MULTIPLE = 32
"""Rows are padded to multiples of this: the largest register tile of common BLAS libraries."""
TRIAL_SHAPES = (64, 320), (320, 64), (33, 48)
"""Shapes of the matrices of the trial: about those of dictionaries, and of a network."""


@dataclass(frozen=True)
class Layout:
    """A memory layout of rows, with padding."""

    order: Literal["C", "F"]
    idle: int = 0
    """Rows of padding at each end."""
    max_rows: int = 2**16
    """Rows that are row_stable_matmul together, without padding."""

    def length(self, n: int) -> int:
        """Count the rows in memory, padding included, for n rows."""
        return -(-(n + 2 * self.idle) // ROW_MULTIPLE) * ROW_MULTIPLE

    def place(self, n: int) -> slice:
        """Locate n rows within the padding."""
        return slice(self.idle, self.idle + n)

    def full(self, rows: int, columns: int, fill: float, dtype: Any) -> Floats:
        """Create an array of this layout; ``rows`` counts the padding."""
        return np.full((rows, columns), fill, dtype, order=self.order)

    def column(self, values: NDArray[Any]) -> NDArray[Any]:
        """Arrange one number for each row as a column, with ones as padding."""
        whole = np.ones((self.length(len(values)), 1), values.dtype)
        whole[self.place(len(values)), 0] = values
        return whole

    def select(self, values: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[Any]:
        """Select some rows into a new array of this layout, padded with repeats."""
        behind = self.length(len(rows)) - self.idle - len(rows)
        rows = self.idle + np.concatenate([np.resize(rows, self.idle), rows, np.resize(rows, behind)])
        return np.asarray(values[rows], order=self.order)

    def times(self, rows: Floats, matrix: Floats) -> Floats:
        """Multiply an array of this layout with a matrix; the product has this layout."""
        return np.matmul(rows, matrix, out=self.full(len(rows), matrix.shape[1], 0, rows.dtype))


PLAIN_LAYOUT, ACROSS = Layout("C"), Layout("F", idle=8, max_rows=304)


@cache
def layout() -> Layout:
    """Choose the first layout that is row-stable with this BLAS; the plain one if none is."""
    with one_blas_thread:
        return next((each for each in (PLAIN_LAYOUT, ACROSS) if is_row_stable(each)), PLAIN_LAYOUT)


def is_row_stable(layout: Layout) -> bool:
    """Try whether equal rows give equal results, few or many, at any place."""
    rng = np.random.default_rng(0)
    for (height, width), dtype in pairs(TRIAL_SHAPES, (np.float32, np.float64)):
        matrix, row = (rng.standard_normal(shape).astype(dtype) for shape in ((height, width), height))
        few, many = (_matmul(np.tile(row, (n, 1)), matrix, layout) for n in (1, 300))
        if not (many == few).all():
            return False
    return True


def row_stable_matmul(rows: Floats, matrix: Floats, used: Layout | None = None) -> Floats:
    """Compute ``rows @ matrix`` so that each row of the result depends on its own row only, to the last bit.

    Parameters
    ----------
    rows : ndarray of float, shape (n, k)
    matrix : ndarray of float, shape (k, m)
    used : Layout, optional
        How rows lie in memory; that of this machine by default.

    Returns
    -------
    ndarray of float, shape (n, m)
    """
    used = used or layout()
    begins = range(0, max(len(rows), 1), used.max_rows)
    return np.concatenate([_matmul(rows[begin : begin + used.max_rows], matrix, used) for begin in begins])


def _matmul(rows: Floats, matrix: Floats, used: Layout) -> Floats:
    place = used.place(len(rows))
    whole = used.full(used.length(len(rows)), len(matrix), 0, np.result_type(rows, matrix))
    whole[place] = rows
    return used.times(whole, matrix)[place]

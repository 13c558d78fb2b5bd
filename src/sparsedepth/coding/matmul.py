"""Products of rows with a matrix in which no row depends on the others, to the last bit.

A BLAS computes the rows that fill no whole tile of its registers by other code than the rest, which rounds otherwise:
so rows are padded to whole tiles. Some (OpenBLAS for processors with AVX2 and no AVX-512) also round the first and the
last numbers of a column in memory otherwise, in half of the columns: there rows lie across, so that these numbers are
those of a few idle rows, and no more are multiplied together than it takes at once. A trial tells which is needed.
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

LANES = 32
"""Rows are padded to multiples of this."""
TRIED = (64, 320), (320, 64), (33, 48)
"""Shapes of matrices with which a layout is tried: about those of dictionaries, and of a network."""


@dataclass(frozen=True)
class Layout:
    """How rows lie in memory."""

    order: Literal["C", "F"]
    idle: int = 0
    """Rows at each end that nobody looks at."""
    most: int = 2**16
    """Rows that are multiplied together, without the idle ones."""

    def length(self, n: int) -> int:
        """Rows in memory for so many that are looked at."""
        return -(-(n + 2 * self.idle) // LANES) * LANES

    def place(self, n: int) -> slice:
        """Where these lie."""
        return slice(self.idle, self.idle + n)

    def full(self, rows: int, columns: int, fill: float, dtype: Any) -> Floats:
        """An array of so many rows in memory."""
        return np.full((rows, columns), fill, dtype, order=self.order)

    def column(self, values: NDArray[Any]) -> NDArray[Any]:
        """One number for each row, ones for the others."""
        whole = np.ones((self.length(len(values)), 1), values.dtype)
        whole[self.place(len(values)), 0] = values
        return whole

    def chosen(self, values: NDArray[Any], rows: NDArray[np.intp]) -> NDArray[Any]:
        """Some of the rows that are looked at, again in this layout; repeats are idle, and fill the last lanes."""
        behind = self.length(len(rows)) - self.idle - len(rows)
        rows = self.idle + np.concatenate([np.resize(rows, self.idle), rows, np.resize(rows, behind)])
        return np.asarray(values[rows], order=self.order)

    def times(self, rows: Floats, matrix: Floats) -> Floats:
        """The product of an array in this layout with a matrix, in this layout."""
        return np.matmul(rows, matrix, out=self.full(len(rows), matrix.shape[1], 0, rows.dtype))


PLAIN, ACROSS = Layout("C"), Layout("F", idle=8, most=304)


@cache
def layout() -> Layout:
    """The first that does here what it is for; the plain one if none does."""
    with one_blas_thread:
        return next((each for each in (PLAIN, ACROSS) if is_fair(each)), PLAIN)


def is_fair(layout: Layout) -> bool:
    """Whether equal rows come out equal, few or many, wherever they lie."""
    rng = np.random.default_rng(0)
    for (height, width), dtype in pairs(TRIED, (np.float32, np.float64)):
        matrix, row = (rng.standard_normal(shape).astype(dtype) for shape in ((height, width), height))
        few, many = (_multiplied(np.tile(row, (n, 1)), matrix, layout) for n in (1, 300))
        if not (many == few).all():
            return False
    return True


def multiplied(rows: Floats, matrix: Floats, used: Layout | None = None) -> Floats:
    """``rows @ matrix``, each row as if it were alone, in the layout of this machine unless another one is given."""
    used = used or layout()
    begins = range(0, max(len(rows), 1), used.most)
    return np.concatenate([_multiplied(rows[begin : begin + used.most], matrix, used) for begin in begins])


def _multiplied(rows: Floats, matrix: Floats, used: Layout) -> Floats:
    place = used.place(len(rows))
    whole = used.full(used.length(len(rows)), len(matrix), 0, np.result_type(rows, matrix))
    whole[place] = rows
    return used.times(whole, matrix)[place]

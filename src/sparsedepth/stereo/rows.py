"""Views as the kernels take them: bytes, row by row; and tasks or bands of rows in threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparsedepth.vocabulary import Floats

Bytes = NDArray[np.uint8]
Result = TypeVar("Result")

BANDS_PER_THREAD = 4
"""Bands of rows that a thread works on one after another, so that threads end at about the same time."""


def byte_rows(view: Floats) -> Bytes:
    """Round a view (height, width, channels) of brightness 0..255 to bytes (height, channels, width)."""
    rounded = np.rint(np.clip(view, 0, 255)).astype(np.uint8)
    return np.ascontiguousarray(rounded.transpose(0, 2, 1))


def reversed_rows(rows: NDArray[Any], n_repeated: int) -> NDArray[Any]:
    """Reverse rows along the last axis, and repeat their first column behind their end."""
    first = np.broadcast_to(rows[..., :1], (*rows.shape[:-1], n_repeated))
    return np.concatenate([rows[..., ::-1], first], axis=-1)


def at_once(tasks: Iterable[Callable[[], Result]], threads: int = 1) -> list[Result]:
    """Call functions in threads, of which the calling one is the first; return their results in order."""
    waiting = deque(enumerate(tasks))
    results: list[Any] = [None] * len(waiting)

    def work() -> None:
        while waiting:
            try:
                number, task = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            results[number] = task()

    helpers = min(threads, len(waiting)) - 1
    if helpers < 1:
        work()
        return results
    with ThreadPoolExecutor(helpers) as pool:
        working = [pool.submit(work) for _ in range(helpers)]
        work()
        for helper in working:
            helper.result()
    return results


def in_bands(work: Callable[[int, int], Any], n_rows: int, threads: int = 1) -> None:
    """Call a function with the first row of each band and the first behind it, in threads."""
    n_bands = 1 if threads == 1 else threads * BANDS_PER_THREAD
    edges = np.linspace(0, n_rows, n_bands + 1).astype(int).tolist()
    at_once([partial(work, *ends) for ends in pairwise(edges)], threads)

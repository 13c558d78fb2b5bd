"""Restoring maps in worker processes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.input_warnings import InputWarning, with_warnings
from sparsedepth.messages import Header, Message
from sparsedepth.process_pool import Answer, ProcessPool, Report, WorkerDied
from sparsedepth.vocabulary import DepthImage, Restoration

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class RestorerPool:
    """Restores maps in other processes; as many threads as there are processes may call it at once.

    Parameters
    ----------
    restore : callable
        Restores maps that cannot be sent, in this process. Those are not plain arrays of numbers, or their result is
        written to ``out``.
    make : callable
        A function of a module. Every worker calls it with ``config`` to make its own ``restore``.
    config : Message
        A header and arrays.
    n_workers : int
        The number of processes.
    """

    def __init__(
        self,
        restore: Callable[..., Restoration],
        make: Callable[[Message], Callable[..., Restoration]],
        config: Message,
        n_workers: int,
    ) -> None:
        header, arrays = config
        setup = {"make": f"{make.__module__}:{make.__qualname__}", "config": header}
        self._fallback, self._invalid, self._unit = restore, header.get("invalid"), header.get("unit", "")
        self._pool = ProcessPool(f"{__name__}:worker_entry", n_workers, (setup, arrays), ONE_THREAD)
        self._pool.spawn()

    def __call__(self, depth: Any, *, threads: int | None = None, out: Any = None, **more: Any) -> Restoration:
        if isinstance(depth, DepthImage):
            meaning = {"unit": depth.unit, "kind": depth.kind}
            return self(depth.values, threads=threads, out=out, **meaning, **more).described_by(depth)
        words = {name: more[name] for name in ("unit", "kind", "numbers_per_unit") if name in more}
        rest = {name: value for name, value in more.items() if name not in words and value is not None}
        given = {"depth": depth, **rest}
        if out is not None or not all(_is_plain(value) for value in given.values()):
            return self._fallback(depth, threads=threads, out=out, **more)
        try:
            arrays = self._pool.run((words, given))[1]
        except WorkerDied:
            raise MemoryError("the process that restored it has died") from None
        invalid, unit = more.get("invalid"), words.get("unit") or self._unit
        result = Restoration(arrays["depth"], arrays["variance"], arrays["origin"], unit=unit)
        return with_warnings(result, depth, self._invalid if invalid is None else invalid, unit)

    def __enter__(self) -> RestorerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()


def _is_plain(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype.kind in "fiu"


def worker_entry(setup: Header, arrays: dict[str, NDArray[Any]]) -> Answer:
    """Make what restores the maps that a worker is sent."""
    warnings.simplefilter("ignore", InputWarning)  # the process that asks emits them
    module, function = setup["make"].split(":")
    restore = getattr(import_module(module), function)((setup["config"], arrays))

    def answer(words: Header, given: dict[str, NDArray[Any]], _report: Report) -> Message:
        result = restore(**given, **words, threads=1)
        return {}, {"depth": result.depth, "variance": result.variance, "origin": result.origin}

    return answer

"""Restoring one map after the other: whatever does not depend on the map is made once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from sparsedepth.dictionary import Dictionary
from sparsedepth.parallel import cores, map_in_threads, one_blas_thread
from sparsedepth.process_pool import Message
from sparsedepth.restore import guided, large_holes, paper, pipeline
from sparsedepth.restore.tiling import Work
from sparsedepth.restore.worker import RestorerPool
from sparsedepth.vocabulary import DepthMap, InputError, Restoration

METHODS = {"calibrated": pipeline, "paper": paper}
"""Name -> module with ``coding(dictionary, quality)`` and ``restorer(work, coding, ...)``."""


class Restorer:
    """Restores maps, one by one or as they come from a camera, with the same wishes for all; those are of `denoise`.

    ``correct=False`` leaves what was measured as it is, as `inpaint` does. A map's result depends on that map alone.

    >>> import numpy as np
    >>> from sparsedepth import Restorer
    >>> restorer = Restorer(quality="fast")
    >>> frames = (np.add.outer(np.zeros(24), np.linspace(1.0, 2.0 + n, 24)) for n in range(3))
    >>> [float(result.depth.max().round(1)) for result in restorer.each(frames)]
    [2.0, 3.0, 4.0]
    """

    def __init__(
        self,
        dictionary: Dictionary | str | None = None,
        quality: str = "balanced",
        *,
        method: str = "calibrated",
        correct: bool = True,
        fill: bool = True,
        outward: bool = False,
        second_pass: bool = False,
        invalid: float | Sequence[float] | None = None,
    ) -> None:
        if method not in METHODS:
            raise InputError(f"method is {method!r}; choose one of {', '.join(map(repr, METHODS))}")
        self._method = "paper" if quality == "paper" else method
        self._coding = METHODS[self._method].coding(dictionary_of(dictionary), quality)
        self._wishes = {"correct": correct, "fill": fill, "second_pass": second_pass}
        self._outward = outward and fill
        self._invalid = invalid
        self._recipe = {**self._wishes, "quality": quality, "method": method, "outward": outward}

    def __call__(
        self,
        depth: Any,
        *,
        variance: Any = None,
        guide: Any = None,
        invalid: float | Sequence[float] | None = None,
        threads: int | None = None,
        out: Restoration | None = None,
    ) -> Restoration:
        """Restore one map; arguments are those of `denoise`, and ``invalid`` replaces what holds for the others."""
        codes = self._invalid if invalid is None else invalid
        work = Work.of(depth, variance, self._coding.dictionary.patch_shape, codes)
        picture = None if guide is None else guided.picture(guide, work.shape)
        if picture is not None and not self._wishes["fill"]:
            raise InputError("the guide tells how to fill holes, and fill=False leaves them; drop one of the two")
        threads = n_threads(threads)
        result = self._restored(work, self._wishes, out, threads)
        if picture is not None:
            guided.refill(result, picture, lambda holed: self._filled(holed, threads))
        return result

    def _filled(self, depth: DepthMap, threads: int) -> Restoration:
        """A map with nothing but its holes filled."""
        work = Work.of(depth, None, self._coding.dictionary.patch_shape, ())
        return self._restored(work, {**self._wishes, "correct": False, "second_pass": False}, None, threads)

    def _restored(self, work: Work, wishes: dict[str, bool], out: Restoration | None, threads: int) -> Restoration:
        with one_blas_thread:  # also where nothing is shared out: more threads would add up in another order
            restore = METHODS[self._method].restorer(work, self._coding, **wishes, threads=threads)
            result = work.do(restore, out, threads)
            if self._outward:
                large_holes.fill(result)
        return result

    def each(
        self, frames: Iterable[Any], *, threads: int | None = None, processes: int | None = None
    ) -> Iterator[Restoration]:
        """The results of a stream of maps in their order, several at the same time, each by one thread.

        At most two frames a thread are taken ahead, so that a stream without end needs no more memory than a short one.
        ``processes`` uses so many processes instead of threads: each takes a second to start and some memory, but they
        do not wait for each other, which pays for streams of many frames.
        """
        if processes is None:
            return map_in_threads(lambda frame: self(frame, threads=1), frames, n_threads(threads))
        return self._each_in_processes(frames, at_least_one("processes", processes))

    def _each_in_processes(self, frames: Iterable[Any], count: int) -> Iterator[Restoration]:
        with self.in_processes(count) as restore:
            yield from map_in_threads(restore, frames, count)

    def in_processes(self, count: int) -> RestorerPool:
        """The same by so many other processes, to be called by as many threads."""
        dictionary = self._coding.dictionary
        words = {**self._recipe, "patch_shape": dictionary.patch_shape}
        words["invalid"] = None if self._invalid is None else np.atleast_1d(self._invalid).tolist()
        return RestorerPool(self, _made, (words, {"atoms": dictionary.atoms}), count)


def _made(recipe: Message) -> Restorer:
    words, arrays = recipe
    return Restorer(Dictionary(arrays["atoms"], tuple(words.pop("patch_shape"))), **words)


def dictionary_of(dictionary: Dictionary | str | None) -> Dictionary | None:
    """A dictionary, or the built-in one of that name."""
    if dictionary is None or isinstance(dictionary, Dictionary):
        return dictionary
    if isinstance(dictionary, str):
        return Dictionary.builtin(dictionary)
    raise InputError(
        f"the dictionary is a {type(dictionary).__name__}; give a Dictionary or the name of a built-in one"
    )


def n_threads(threads: int | None) -> int:
    return cores() if threads is None else at_least_one("threads", threads)


def at_least_one(name: str, count: int) -> int:
    if count < 1:
        raise InputError(f"{name} is {count}; it must be at least 1")
    return count

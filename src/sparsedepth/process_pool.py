"""Restoring in processes of their own: threads of one process wait for each other's Python, processes do not.

They talk by pipes, in arrays and words, never in objects that would run something when they are read.
"""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from sparsedepth.vocabulary import DepthImage, InputError, Restoration

LENGTH = struct.Struct("<Q")
Message = tuple[dict[str, Any], dict[str, NDArray[Any]]]
"""Words, and arrays by their names."""


class Processes:
    """Restores maps as ``restore`` does, in so many other processes; may be called by many threads at once.

    ``recipe`` is what they make it from. They end when this process does, however it ends, because nothing is left to
    read then; should one of them die, another takes its place. What does not come as plain arrays of numbers, or grows
    in files (``out``), is restored here.
    """

    def __init__(self, restore: Callable[..., Restoration], recipe: Message, count: int) -> None:
        self._here, self._recipe = restore, _packed(recipe)
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._count = count
        for _ in range(count):
            self._idle.put(_Worker(self._recipe))

    def __call__(self, depth: Any, *, threads: int | None = None, out: Any = None, **more: Any) -> Restoration:
        if isinstance(depth, DepthImage):
            return self(depth.values, threads=threads, out=out, **more).described_by(depth)
        given = {"depth": depth, **{name: value for name, value in more.items() if value is not None}}
        if out is not None or not all(
            type(value) is np.ndarray and value.dtype.kind in "fiu" for value in given.values()
        ):
            return self._here(depth, threads=threads, out=out, **more)
        asked, worker = _packed(({}, given)), self._idle.get()
        try:
            words, arrays = worker.answer(asked)
        except BaseException as error:
            worker.kill()
            worker = _Worker(self._recipe)
            if isinstance(error, EOFError | OSError):
                raise MemoryError("the process that restored it has died") from None
            raise
        finally:
            self._idle.put(worker)
        if "refused" in words:
            raise InputError(words["refused"])
        if "mistake" in words:
            raise RuntimeError(words["mistake"])
        return Restoration(arrays["depth"], arrays["variance"], arrays["origin"])

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for _worker in range(self._count):
            self._idle.get().end()


class _Worker:
    """A process that has the modules of this one, but not its program: that may do anything when it is read."""

    def __init__(self, recipe: bytes) -> None:
        words = f"import sys; sys.path[:] = {sys.path!r}; from sparsedepth.restore.restorer import serve; serve()"
        one = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", words],
            env=one,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the one who asks
        )
        self._first = recipe

    def answer(self, asked: bytes) -> Message:
        into, out = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)
        into.write(self._first + asked)
        into.flush()
        self._first = b""
        return _unpacked(out)

    def kill(self) -> None:
        self._process.kill()
        self.end()

    def end(self) -> None:
        with self._process:  # closes its pipes and waits
            pass


def answer_all(make: Callable[[Message], Callable[..., Restoration]]) -> None:
    """Restore what comes on standard input, the recipe first, until there is no more or nobody wants the results."""
    given, told = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints does not mix with the results
    with suppress(EOFError, BrokenPipeError):
        restore = make(_unpacked(given))
        while True:
            told.write(_packed(_attempt(restore, _unpacked(given)[1])))
            told.flush()
    os._exit(0)  # without a word about results that could not be told


def _attempt(restore: Callable[..., Restoration], given: dict[str, NDArray[Any]]) -> Message:
    try:
        result = restore(**given, threads=1)
    except InputError as error:
        return {"refused": str(error)}, {}
    except Exception as error:
        return {"mistake": f"{type(error).__name__}: {error}"}, {}
    return {}, {"depth": result.depth, "variance": result.variance, "origin": result.origin}


def _packed(message: Message) -> bytes:
    words, arrays = message
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **{"": np.frombuffer(json.dumps(words).encode(), np.uint8)}, **arrays)
    return LENGTH.pack(content.tell()) + content.getvalue()


def _unpacked(pipe: IO[bytes]) -> Message:
    (length,) = LENGTH.unpack(_exactly(pipe, LENGTH.size))
    with np.load(io.BytesIO(_exactly(pipe, length)), allow_pickle=False) as content:
        arrays = {name: content[name] for name in content.files}
    return json.loads(arrays.pop("").tobytes()), arrays


def _exactly(pipe: IO[bytes], length: int) -> bytes:
    content = pipe.read(length)
    if len(content) < length:
        raise EOFError
    return content

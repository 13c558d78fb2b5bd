"""Many files at once: in threads, with a bar, to the last one whatever fails, and whole files only when stopped."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from threading import Condition
from typing import Any, Self, TypeVar

from rich.progress import ProgressColumn, Task
from rich.text import Text

from sparsedepth.atomic_files import discard_unfinished
from sparsedepth.vocabulary import InputError

Item = TypeVar("Item")


@dataclass(frozen=True)
class Outcome:
    """What became of one file; shares are of all its pixels."""

    input: str
    output: str
    shape: tuple[int, int] | None = None
    unit: str = ""
    known: float | None = None
    """Of what came in; the others of what went out."""
    corrected: float | None = None
    filled: float | None = None
    refused: float | None = None
    seconds: float = 0.0
    error: str | None = None

    def facts(self) -> dict[str, Any]:
        return asdict(self)


class WritingGate:
    """Lets any number of threads write, until it is closed: that waits for those inside and lets nobody in again."""

    def __init__(self) -> None:
        self._changed, self._inside, self._closed = Condition(), 0, False

    def __enter__(self) -> Self:
        with self._changed:
            self._changed.wait_for(lambda: not self._closed)
            self._inside += 1
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._inside -= 1
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._inside == 0)


@contextmanager
def whole_files_only(gate: WritingGate) -> Iterator[None]:
    """Within it a signal that ends the program waits for what is being written, but not for what is being computed."""
    try:
        yield
    except SystemExit as stop:
        gate.close()
        discard_unfinished()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(stop.code if isinstance(stop.code, int) else 1)


class Rate(ProgressColumn):
    """Files a second, or seconds a file."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        if not speed:
            return Text("")
        return Text(f"{speed:.1f} files/s" if speed >= 1 else f"{1 / speed:.1f} s/file")


def in_parallel(work: Callable[[Item], Outcome], items: Sequence[Item], jobs: int) -> Iterator[Outcome]:
    """The outcomes as they come. All work is done in threads, so that the main thread hears Ctrl-C at once."""
    pool = ThreadPoolExecutor(jobs)
    try:
        for future in as_completed([pool.submit(work, item) for item in items]):
            yield future.result()
        pool.shutdown()  # all is done: its threads end before those of another run begin, which then use their memory
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def attempted(work: Callable[[], Outcome], blank: Outcome) -> Outcome:
    """What the work gives, or the blank with the sentence on why it failed; with the time it took."""
    start = time.monotonic()
    try:
        done = work()
    except InputError as error:
        done = _failed(blank, str(error))
    except MemoryError:
        done = _failed(blank, f"{blank.input}: there is not enough memory for it; use fewer --jobs")
    except OSError as error:
        done = _failed(blank, f"{error.filename or blank.input}: {error.strerror or error}")
    except Exception as error:  # the other files go on, whatever is wrong with this one or with us
        if os.environ.get("SPARSEDEPTH_TRACEBACK"):
            raise
        done = _failed(blank, f"{blank.input}: a mistake in sparsedepth ({type(error).__name__}: {error})")
    return replace(done, seconds=round(time.monotonic() - start, 3))


def _failed(blank: Outcome, sentence: str) -> Outcome:
    return replace(blank, error=sentence)

"""Any failure of a file decoder becomes a one-line `InputError`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from sparsedepth.vocabulary import InputError, one_line


class _WithoutWarnings:
    """A context without warnings, for many threads at once.

    Filters of warnings belong to the process: the first thread sets them and the last one restores them.
    """

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._before = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = warnings.catch_warnings()
                self._before.__enter__()
                warnings.simplefilter("ignore")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._before.__exit__(None, None, None)


_without_warnings = _WithoutWarnings()


@contextmanager
def describe_errors(path: Path) -> Iterator[None]:
    """Turn whatever is raised inside into one sentence about the file; warnings are not shown."""
    try:
        with _without_warnings:
            yield
    except InputError as error:
        raise type(error)(f"{path}: {one_line(error)}") from None
    except Exception as error:  # decoders fail in many ways on broken or hostile files; all mean the same to the user
        reason = one_line(error) or type(error).__name__
        raise InputError(f"{path} cannot be read as {path.suffix}: {reason}; is it whole?") from None

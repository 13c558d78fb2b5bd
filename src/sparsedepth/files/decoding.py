"""What every decoder of files may do, failing in many ways and warning, as the user meets it: one sentence."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TypeVar

from sparsedepth.vocabulary import InputError, one_line

T = TypeVar("T")


class _WithoutWarnings:
    """Within it nothing warns; may be entered by many threads at once.

    Filters of warnings belong to the process, so the first one in sets them and the last one out takes them back.
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


def said_of(path: Path, step: Callable[[], T]) -> T:
    """What the step returns; whatever it raises becomes one sentence about the file, and warnings are left out."""
    try:
        with _without_warnings:
            return step()
    except InputError as error:
        raise type(error)(f"{path}: {one_line(error)}") from None
    except Exception as error:  # decoders fail in many ways on broken or hostile files; all mean the same to the user
        reason = one_line(error) or type(error).__name__
        raise InputError(f"{path} cannot be read as {path.suffix}: {reason}; is it whole?") from None

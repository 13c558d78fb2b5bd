"""What every decoder of files may do, failing in many ways and warning, as the user meets it: one sentence."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from sparsedepth.parallel import SharedContext
from sparsedepth.vocabulary import InputError, one_line

T = TypeVar("T")


@SharedContext
@contextmanager
def _without_warnings() -> Iterator[None]:
    """Let nothing warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


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

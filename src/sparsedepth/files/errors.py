"""Turn any failure of a file decoder into a one-line `InputError`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sparsedepth.checks import one_line
from sparsedepth.parallel import SharedContext
from sparsedepth.vocabulary import InputError


@SharedContext
@contextmanager
def _without_warnings() -> Iterator[None]:
    """Let nothing warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


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

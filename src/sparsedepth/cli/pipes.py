"""Standard input and output in place of files: the name ``-``."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

from sparsedepth.vocabulary import InputError

Command = TypeVar("Command", bound=Callable[..., None])
PIPE = "-"
BEGINNINGS = {
    b"\x89PNG": ".png",
    b"II*\0": ".tiff",
    b"MM\0*": ".tiff",
    b"II+\0": ".tiff",
    b"MM\0+": ".tiff",
    b"\x93NUM": ".npy",
    b"PK\x03\x04": ".npz",
    b"v/1\x01": ".exr",
    b"Pf": ".pfm",
    b"P5": ".pgm",
}
"""First bytes of a file -> the suffix of its format."""
_folders: set[Path] = set()


@contextmanager
def piped(inputs: Sequence[str], output: str, suffix: str | None = None) -> Iterator[tuple[list[str], str]]:
    """Put files in place of ``-`` while a command works; then write the result to standard output.

    What the command prints as its result goes to standard error where standard output is taken.

    Parameters
    ----------
    inputs
        Names of the inputs; ``-`` = standard input, which stands alone.
    output
        Name of the output; ``-`` = standard output.
    suffix
        Format of what is written to standard output; None = that of the input.

    Returns
    -------
    Names of files for the inputs and the output.
    """
    if PIPE not in (*inputs, output):
        yield list(inputs), output
        return
    with _temporary_folder() as folder:
        names = [_spool(folder, inputs)] if PIPE in inputs else list(inputs)
        if output != PIPE:
            yield names, output
            return
        _require_one(names)
        file = folder / f"standard-output{suffix or Path(names[0]).suffix}"
        with redirect_stdout(sys.stderr):
            yield names, str(file)
        with file.open("rb") as result:
            shutil.copyfileobj(result, sys.stdout.buffer)
        sys.stdout.flush()


def takes_pipes(suffix: str) -> Callable[[Command], Command]:
    """Let a command with the parameters ``file`` and ``output`` take ``-`` for both; it writes this format."""

    def wrap(command: Command) -> Command:
        @wraps(command)
        def run(*, file: Path, output: Path, **options: Any) -> None:
            with piped([str(file)], str(output), suffix) as (names, result):
                command(file=Path(names[0]), output=Path(result), **options)

        return cast(Command, run)

    return wrap


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sparsedepth-") as folder:
        _folders.add(Path(folder))
        yield Path(folder)
        _folders.discard(Path(folder))


def shown_name(path: str | Path) -> str:
    """Return how messages name a file: "standard input" and "standard output" where it stands for one of them."""
    return Path(path).stem.replace("-", " ") if Path(path).parent in _folders else str(path)


def discard_piped() -> None:
    """Remove what was piped in and out: this process is about to end."""
    for folder in list(_folders):
        shutil.rmtree(folder, ignore_errors=True)


def _spool(folder: Path, inputs: Sequence[str]) -> str:
    """Copy standard input to a file whose suffix is that of its format."""
    if len(inputs) > 1:
        raise InputError(f"- is standard input, and {len(inputs) - 1} other inputs were named; give it alone")
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("- is standard input, and nothing is piped into it; try: cat map.png | sparsedepth ...")
    first = sys.stdin.buffer.read(4)
    found = [suffix for beginning, suffix in BEGINNINGS.items() if first.startswith(beginning)]
    if not found:
        formats = ", ".join(dict.fromkeys(BEGINNINGS.values()))
        raise InputError(f"standard input is no map of a known format; it must be one of {formats}")
    file = folder / f"standard-input{found[0]}"
    with file.open("wb") as spooled:
        spooled.write(first)
        shutil.copyfileobj(sys.stdin.buffer, spooled)
    return str(file)


def _require_one(names: Sequence[str]) -> None:
    """Refuse several results for standard output, and a terminal, which would show bytes."""
    if len(names) > 1 or Path(names[0]).is_dir():
        raise InputError("- is standard output, which takes one map; name a folder for several")
    if sys.stdout.isatty():
        raise InputError("- is standard output, and that is a terminal; redirect it to a file or a command")

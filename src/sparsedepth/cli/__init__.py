"""The command line: parse, call, show progress, write. Results go to standard output, all else to standard error.

A module holds a command, or two that are alike; `application` lists them. This one handles errors and signals, and
imports nothing that a command does not need.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

RENAMED = {"--unit": "--profile", "--output-unit": "--output-profile", "--truth-unit": "--truth-profile"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a user's mistake is one sentence and exit code 2, Ctrl-C is 130."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    try:
        app = _application()
        app(_renamed(sys.argv[1:] if arguments is None else arguments), prog_name="sparsedepth")
    except Exception as error:
        _explain(error)


def _application() -> Callable[..., None]:
    """Import the application; without its packages, say what to install."""
    try:
        from sparsedepth.cli.application import app
    except ModuleNotFoundError:
        from sparsedepth.extras import needed_for

        with needed_for("the command line", "cli"):
            raise
    return app


def _explain(error: Exception) -> NoReturn:
    """Print an error as one sentence, and exit."""
    from sparsedepth.vocabulary import InputError

    if isinstance(error, InputError):
        _fail(str(error), 2)
    if isinstance(error, OSError):
        _fail(f"{error.filename or 'a file'}: {error.strerror or error}", 2)
    if isinstance(error, MemoryError):
        _fail("there is not enough memory for this; take smaller maps, or fewer --jobs", 1)
    if os.environ.get("SPARSEDEPTH_TRACEBACK"):
        raise error
    kind = type(error).__name__
    _fail(f"a mistake in sparsedepth ({kind}: {error}); SPARSEDEPTH_TRACEBACK=1 shows where, please report it", 1)


def _renamed(arguments: Sequence[str]) -> list[str]:
    """Replace options by their new names, with a warning; they are gone after the next release."""
    words = [word.partition("=") for word in arguments]
    for old in {word[0] for word in words} & RENAMED.keys():
        _say(f"{old} is now {RENAMED[old]}; the old name will be removed")
    return ["".join((RENAMED.get(name, name), *value)) for name, *value in words]


def _fail(message: str, code: int) -> NoReturn:
    try:
        from sparsedepth.cli.terminal import say_error
    except ModuleNotFoundError:
        print(f"error: {message}", file=sys.stderr)
    else:
        say_error(message)
    sys.exit(code)


def _stop(number: int, _: object) -> NoReturn:
    signal.signal(number, lambda *_: os._exit(128 + number))  # a second signal: exit without cleaning up
    _say("stopped")
    sys.exit(128 + number)


def _say(sentence: str) -> None:
    """Print a sentence; before a command has begun, without the library that draws progress bars."""
    terminal = sys.modules.get("sparsedepth.cli.terminal")
    say = getattr(terminal, "say", None)
    if say is None:
        print(sentence, file=sys.stderr)
    else:
        say(sentence)

"""The command line: parse, call, show progress, write. Results go to standard output, all else to standard error.

A module holds a command, or two that are alike. This one holds the application, and handles errors and signals.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

import sparsedepth
from sparsedepth.cli import (
    calibrate,
    cloud,
    denoise,
    dictionary,
    evaluate,
    learn,
    match,
    report,
    reproduce,
    serve,
    show,
    stream,
)
from sparsedepth.cli.terminal import say, say_error
from sparsedepth.input_warnings import InputWarning
from sparsedepth.vocabulary import InputError

app = typer.Typer(
    help="Sparse representations of depth: restore depth maps with a variance for every pixel, learn dictionaries.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for name, command in {
    "denoise": denoise.denoise_command,
    "inpaint": denoise.inpaint_command,
    "match": match.match_command,
    "calibrate": calibrate.calibrate_command,
    "stream": stream.stream_command,
    "cloud": cloud.cloud_command,
    "show": show.show_command,
    "evaluate": evaluate.evaluate_command,
    "report": report.report_command,
    "learn": learn.learn_command,
    "dictionary": dictionary.dictionary_command,
    "demo": reproduce.demo_command,
    "reproduce": reproduce.reproduce_command,
    "serve": serve.serve_command,
}.items():
    app.command(name)(command)


RENAMED = {"--unit": "--profile", "--output-unit": "--output-profile", "--truth-unit": "--truth-profile"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; a user's mistake is one sentence and exit code 2, Ctrl-C is 130."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    warnings.simplefilter("ignore", InputWarning)  # commands print them with the name of the file
    try:
        app(_renamed(sys.argv[1:] if arguments is None else arguments), prog_name="sparsedepth")
    except InputError as error:
        _fail(str(error), 2)
    except OSError as error:
        _fail(f"{error.filename or 'a file'}: {error.strerror or error}", 2)
    except MemoryError:
        _fail("there is not enough memory for this; take smaller maps, or fewer --jobs", 1)
    except Exception as error:
        if os.environ.get("SPARSEDEPTH_TRACEBACK"):
            raise
        kind = type(error).__name__
        _fail(f"a mistake in sparsedepth ({kind}: {error}); SPARSEDEPTH_TRACEBACK=1 shows where, please report it", 1)


def _renamed(arguments: Sequence[str]) -> list[str]:
    """Replace options by their new names, with a warning; they are gone after the next release."""
    words = [word.partition("=") for word in arguments]
    for old in {word[0] for word in words} & RENAMED.keys():
        say(f"{old} is now {RENAMED[old]}; the old name will be removed")
    return ["".join((RENAMED.get(name, name), *value)) for name, *value in words]


def _fail(message: str, code: int) -> NoReturn:
    say_error(message)
    sys.exit(code)


def _stop(number: int, _: object) -> NoReturn:
    signal.signal(number, lambda *_: os._exit(128 + number))  # a second signal: exit without cleaning up
    say("stopped")
    sys.exit(128 + number)


def _version(wanted: bool) -> None:
    if wanted:
        print(sparsedepth.__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...

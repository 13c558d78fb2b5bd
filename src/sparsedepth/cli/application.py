"""The application: its commands by name, each imported when it is used."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

import sparsedepth
from sparsedepth.cli.commands import COMMANDS

CONTEXT = {"help_option_names": ["-h", "--help"]}


def load(name: str) -> Any:
    """Import a command."""
    from sparsedepth.input_warnings import InputWarning

    warnings.simplefilter("ignore", InputWarning)  # commands print them with the name of the file
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    module = import_module(f"sparsedepth.cli.{COMMANDS[name].module}")
    alone.command(name, context_settings=CONTEXT)(getattr(module, f"{name}_command"))
    return typer.main.get_command(alone)


class Deferred(TyperCommand):
    """A command that is imported when its arguments are parsed; the list of commands only needs its help."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return the context of the command itself."""
        return load(str(self.name)).make_context(info_name, args, parent=parent, **extra)


app = typer.Typer(
    help="Sparse representations of depth: restore depth maps with a variance for every pixel, learn dictionaries.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=CONTEXT,
)
for _name, _entry in COMMANDS.items():
    app.command(_name, help=_entry.help, cls=Deferred)(lambda: None)


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

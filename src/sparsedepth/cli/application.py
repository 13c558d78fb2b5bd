"""The application: its commands by name, each imported when it is used."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

import sparsedepth


@dataclass(frozen=True)
class Entry:
    """A command of the application: the module that holds it, and the first paragraph of its help."""

    module: str
    help: str


COMMANDS = {
    "denoise": Entry(
        "denoise", "Correct noisy pixels and fill holes; say of each pixel how sure that is and where it comes from."
    ),
    "inpaint": Entry(
        "denoise",
        "Fill holes and leave what was measured as it is; options, files and exit codes are those of denoise.",
    ),
    "match": Entry(
        "match",
        "Match two rectified views: disparities of the left one, how sure they are, and which were hidden and filled.",
    ),
    "calibrate": Entry("calibrate", "Measure the noise of a depth camera from at least five frames of a static scene."),
    "stream": Entry("stream", "Restore the frames of a depth camera, each with what was seen before."),
    "cloud": Entry(
        "cloud",
        "Write a depth map as points in space, with normals, standard deviations along the rays, origins and colours.",
    ),
    "show": Entry(
        "show",
        "Draw a map in colours, with a scale bar in its unit; pixels of which nothing is known stand out.",
    ),
    "evaluate": Entry(
        "evaluate",
        "Measure how far a result is from the truth, and whether its variances are honest (calibration 1 = they are).",
    ),
    "report": Entry(
        "report",
        "Write pictures, numbers and settings of results as one HTML file that opens from disk and needs nothing else.",
    ),
    "learn": Entry(
        "learn",
        "Learn a dictionary of depth patches. Killed at any moment, --resume ends with the same dictionary.",
    ),
    "dictionary": Entry("dictionary", "Say what a dictionary is and where it comes from; draw it."),
    "demo": Entry(
        "reproduce",
        "Restore a real map with real holes and added noise, compare with other methods, and write a report.",
    ),
    "reproduce": Entry(
        "reproduce",
        "Repeat an experiment of the paper and write its table and pictures, and all of them as one report.html.",
    ),
    "serve": Entry(
        "serve",
        "Serve a page to look at maps, and the same over HTTP for programs; results are kept for a quarter of an hour.",
    ),
}
"""Name -> where its function is: ``name_command`` in the module. A test compares the help with the function's own."""
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

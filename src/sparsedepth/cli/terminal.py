"""What the user sees: sentences and progress on standard error, results on standard output."""

from __future__ import annotations

import json
import math
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

console = Console(stderr=True)
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
ClusterOption = Annotated[
    str | None, typer.Option("--cluster", help="Work by the workers of a Dask cluster: tcp://scheduler:8786.")
]


def say(sentence: str) -> None:
    console.print(escape(sentence), highlight=False, soft_wrap=True)


def say_error(sentence: str) -> None:
    console.print(f"[bold red]error:[/] {escape(sentence)}", highlight=False, soft_wrap=True)


def warn(sentence: str) -> None:
    console.print(f"[bold yellow]assumed by --profile auto:[/] {escape(sentence)}", highlight=False, soft_wrap=True)


def progress_bar(*more: ProgressColumn) -> Progress:
    """A bar that appears on a terminal only."""
    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        *more,
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    ]
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal, redirect_stdout=False)


def report(as_json: bool, facts: dict[str, Any]) -> None:
    """The result: one JSON document, or a fact a line."""
    if as_json:
        print_json(facts)
        return
    for key, value in facts.items():
        print_line(f"{key}: {value}")


def print_json(facts: Any) -> None:
    print(json.dumps(_finite(facts), indent=2, default=str, allow_nan=False))


def print_line(line: str) -> None:
    """A line on standard output; letters that it cannot show, as of a name in an unknown encoding, become ``\\xff``."""
    encoding = sys.stdout.encoding or "utf-8"
    print(line.encode(encoding, "backslashreplace").decode(encoding))


def _finite(value: Any) -> Any:
    """JSON knows no NaN and no infinity: they become null."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""Print sentences and progress on standard error, results on standard output."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

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


def say(sentence: str) -> None:
    """Print a sentence on standard error."""
    console.print(escape(sentence), highlight=False, soft_wrap=True)


def say_error(sentence: str) -> None:
    """Print an error."""
    console.print(f"[bold red]error:[/] {escape(sentence)}", highlight=False, soft_wrap=True)


def say_warning(sentence: str) -> None:
    """Print a warning."""
    console.print(f"[bold yellow]warning:[/] {escape(sentence)}", highlight=False, soft_wrap=True)


def warn(sentence: str) -> None:
    """Print what was assumed of a file."""
    console.print(f"[bold yellow]assumed by --profile auto:[/] {escape(sentence)}", highlight=False, soft_wrap=True)


def progress_bar(*more: ProgressColumn) -> Progress:
    """Return a progress bar that appears on a terminal only."""
    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        *more,
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    ]
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal, redirect_stdout=False)


def print_facts(as_json: bool, facts: dict[str, Any]) -> None:
    """Print the result: one JSON document, or a fact a line."""
    if as_json:
        print_json(facts)
        return
    for key, value in facts.items():
        print_line(f"{key}: {value}")


def print_json(facts: Any) -> None:
    """Print one JSON document on standard output."""
    print(json.dumps(_finite(facts), indent=2, default=str, allow_nan=False))


def print_line(line: str) -> None:
    """Print a line on standard output; letters that it cannot show, as of a broken file name, become ``\\xff``."""
    encoding = sys.stdout.encoding or "utf-8"
    print(line.encode(encoding, "backslashreplace").decode(encoding))


def _finite(value: Any) -> Any:
    """Replace NaN and infinities, which JSON does not know, by None."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""Run the demo, and the experiments of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from sparsedepth import experiments
from sparsedepth.cli.batch.plan import require_folder, require_new
from sparsedepth.cli.options import ForceOption, JsonOption
from sparsedepth.cli.terminal import print_facts, progress_bar
from sparsedepth.findings import closing
from sparsedepth.report import Html, markdown_page, write_report


def demo_command(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the report and its pictures.")] = Path(
        "demo"
    ),
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Restore a real map with real holes and added noise, compare with other methods, and write a report."""
    require_folder(output)
    require_new([output / name for name in experiments.load("demo").PRODUCTS], force)
    print_facts(as_json, _run("demo", experiments.load("demo"), output))


def reproduce_command(
    name: Annotated[str, typer.Argument(help="An experiment, or 'all'.")] = "all",
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for tables and pictures.")] = Path(
        "docs/results"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="A short version of the experiment.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Repeat an experiment of the paper and write its table and pictures, and all of them as one report.html."""
    names = experiments.names() if name == "all" else [name]
    print_facts(as_json, run_all({each: experiments.load(each) for each in names}, output, quick=quick))


def run_all(chosen: Mapping[str, Any], output: Path, *, quick: bool) -> dict[str, Any]:
    """Run experiments, by their names, and write one report of their pages; returns their facts."""
    require_folder(output)
    facts = {name: _run(name, experiment, output, quick=quick) for name, experiment in chosen.items()}
    pages = (_page(output, name) for name in chosen)
    write_report(output / "report.html", "sparsedepth reproduced", *pages, *closing())
    return {**facts, "report": str(output / "report.html")}


def _page(output: Path, name: str) -> Html:
    """Return the page that the experiment wrote."""
    return markdown_page(output / f"{name}.md")


def _run(name: str, experiment: Any, output: Path, **options: bool) -> dict[str, Any]:
    with progress_bar() as bar:
        task = bar.add_task(name, total=None)

        def show(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        return experiment.run(output, show, **options)

"""Run the demo, and the experiments of the paper."""

from __future__ import annotations

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
    print_facts(as_json, _run("demo", output))


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
    for each in names:
        experiments.load(each)
    require_folder(output)
    facts = {each: _run(each, output, quick=quick) for each in names}
    write_report(output / "report.html", "sparsedepth reproduced", *(_page(output, each) for each in names), *closing())
    print_facts(as_json, {**facts, "report": str(output / "report.html")})


def _page(output: Path, name: str) -> Html:
    """Return the page that the experiment wrote."""
    return markdown_page(output / f"{name}.md")


def _run(name: str, output: Path, **options: bool) -> dict[str, Any]:
    with progress_bar() as bar:
        task = bar.add_task(name, total=None)

        def show(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        return experiments.load(name).run(output, show, **options)

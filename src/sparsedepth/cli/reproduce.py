"""Run the demo, and the experiments of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from sparsedepth.cli.batch.plan import require_folder, require_new
from sparsedepth.cli.options import ForceOption, JsonOption
from sparsedepth.cli.terminal import print_facts, progress_bar
from sparsedepth.extras import needed_for
from sparsedepth.findings import closing
from sparsedepth.report import Html, markdown_page, write_report
from sparsedepth.vocabulary import InputError


def demo_command(
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the report and its pictures.")] = Path(
        "demo"
    ),
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Restore a real map with real holes and added noise, compare with other methods, and write a report."""
    with needed_for("the demo", "reproduce"):
        from sparsedepth import demo
    require_folder(output)
    require_new([output / name for name in demo.PRODUCTS], force)
    print_facts(as_json, _run("demo", demo, output))


def reproduce_command(
    name: Annotated[str, typer.Argument(help="An experiment, or 'all'.")] = "all",
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for tables and pictures.")] = Path(
        "docs/results"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="A short version of the experiment.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Repeat an experiment of the paper and write its table and pictures, and all of them as one report.html."""
    experiments = _experiments()
    names = sorted(experiments.names(), key="paper".__eq__) if name == "all" else [name]
    print_facts(as_json, run_all({each: experiments.load(each) for each in names}, output, quick=quick))


def run_all(chosen: Mapping[str, Any], output: Path, *, quick: bool) -> dict[str, Any]:
    """Run experiments, by their names, and write one report of their pages; returns their facts."""
    require_folder(output)
    facts = {name: _run(name, experiment, output, quick=quick) for name, experiment in chosen.items()}
    pages = (_page(output, name) for name in chosen)
    write_report(output / "report.html", "sparsedepth reproduced", *pages, *closing())
    return {**facts, "report": str(output / "report.html")}


def _experiments() -> ModuleType:
    """Import the package of the experiments, which is next to this one in the repository."""
    try:
        import sparsedepth_experiments
    except ModuleNotFoundError as error:
        if error.name != "sparsedepth_experiments":
            raise
        raise InputError(
            "the experiments are a package of their own; install it from a clone with: pip install ./experiments"
        ) from None
    return sparsedepth_experiments


def _page(output: Path, name: str) -> Html:
    """Return the page that the experiment wrote."""
    return markdown_page(output / f"{name}.md")


def _run(name: str, experiment: Any, output: Path, **options: bool) -> dict[str, Any]:
    with progress_bar() as bar:
        task = bar.add_task(name, total=None)

        def show(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        return experiment.run(output, show, **options)

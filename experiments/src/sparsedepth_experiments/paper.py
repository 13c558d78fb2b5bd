"""The whole paper on one page: every figure, table and claim in its order, with what was measured here."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparsedepth.markdown import commit
from sparsedepth_experiments import Progress, load
from sparsedepth_experiments.harness import write_page

EXPERIMENTS = ("dictionaries", "denoising", "natural_noise", "stereo", "second_order")
PAPER = "*Learning sparse representations of depth* (Tosic, Olshausen and Culpepper)"


@dataclass(frozen=True)
class Item:
    """A figure or a claim of the paper, and the sections of a page that answer it."""

    title: str
    said: str
    page: str = ""
    """The experiment; empty = nothing is measured."""
    found: str = ""
    """What the sections of its page contain, in their heading or below."""


ITEMS = (
    Item(
        "Fig. 1: the model of two layers",
        "A drawing: sparse codes above, disparities in the middle, two pictures below. "
        "[The model](../model.md) has every equation with its function.",
    ),
    Item(
        "Fig. 2: maps to learn from",
        "Two disparity maps of Middlebury 2006. Here the dictionaries learn from all maps of 2005 and 2006; "
        "[For researchers](../researchers.md) says how to get them.",
    ),
    Item(
        "Fig. 3: three dictionaries",
        "Paper: Φ1 and Φ2 have edges and slants; Φ3, learned with one variance, repeats its atoms.",
        "dictionaries",
        "## The paper's Fig. 3",
    ),
    Item(
        "Inference: a few iterations",
        "Paper: codes and variances come to rest within a few alternations.",
        "denoising",
        "## A few iterations",
    ),
    Item(
        "Fig. 4: one laser map, 1 % of its pixels corrupted",
        "Paper: Φ1 37.8 dB, Φ2 36.3, Φ3 35.3, plain sparse coding 32.3, wavelets 33.7, non-local means 32.9.",
        "denoising",
        "## Beside the paper's Fig. 4",
    ),
    Item(
        "Fig. 5: more and more corrupted pixels",
        "Paper: means of five laser maps, in the same order at every share.",
        "denoising",
        "## The paper's Fig. 5",
    ),
    Item("The claims of Figs. 4 and 5", "Each as one comparison.", "denoising", "## The paper's claims"),
    Item(
        "Figs. 6 and 7: natural noise of a laser scanner and of a time-of-flight camera",
        "Paper, by eye: noise is removed, texture stays, and the inferred variance marks the noisy pixels.",
        "natural_noise",
        "natural-noise-",
    ),
    Item(
        "Fig. 8: graph cuts with the sparse prior, Tsukuba",
        "Paper: 9.58 % of the pixels are bad with graph cuts, 9.21 % with the prior.",
        "stereo",
        "## Beside the paper",
    ),
    Item(
        "Figs. 9 and 10: second-order stereo with the sparse prior, Teddy and Cones",
        "Paper: 9.40 % and 8.14 % on Teddy, 12.73 % and 11.98 % on Cones, without and with the prior.",
        "second_order",
        "## Beside the paper",
    ),
)


def run(
    output: Path,
    progress: Progress,
    quick: bool = False,
    experiment: Callable[[str], Any] = load,
    at_commit: Callable[[], str] = commit,
) -> dict[str, Any]:
    """Run the experiments whose pages were not made at this commit, and collect all pages into one."""
    at = at_commit()
    now = [name for name in EXPERIMENTS if not _is_made(output / f"{name}.md", name, quick, at)]
    for done, name in enumerate(now):
        experiment(name).run(output, _within(progress, name, done, len(now)), quick=quick)
    progress("the page", len(now), max(len(now), 1))
    collect(output, quick)
    return {"run": now, "page": str(output / "paper.md")}


def collect(output: Path, quick: bool = False) -> None:
    """Write the page from the pages that are there."""
    parts = [
        f"The figures, tables and claims of {PAPER} in their order. What is measured is copied from the page that is "
        "linked; each names the commit and the command that made it.",
        *(part for item in ITEMS for part in _answer(item, output)),
    ]
    write_page(output, "paper", "The paper, figure by figure", parts, quick)


def sections(page: str) -> list[str]:
    """Split the made part of a page at its headings of the second level.

    Parameters
    ----------
    page
        Markdown.

    Returns
    -------
    list of str
        Each begins with its heading.

    Examples
    --------
    >>> sections("# Page\\n\\n<!-- made part: begin -->\\n\\n## One\\n\\na\\n\\n## Two\\n\\n### b\\n")
    ['## One\\n\\na', '## Two\\n\\n### b']
    """
    made = page.partition("<!-- made part: begin -->")[2].partition("<!-- made part: end -->")[0]
    return [part.strip() for part in re.split(r"(?m)^(?=## )", made)[1:]]


def _answer(item: Item, output: Path) -> list[str]:
    """Write a figure's heading, what the paper shows, and what the experiment's page says."""
    head = [f"## {item.title}", item.said]
    if not item.page:
        return head
    page = output / f"{item.page}.md"
    text = page.read_text() if page.exists() else ""
    made = re.search(r"Made at commit `.*?` by `.*?`\.", text)
    found = [re.sub(r"(?m)^##", "###", part) for part in sections(text) if item.found in part]
    if made is None or not found:
        return [*head, f"Not measured yet: `sparsedepth reproduce {item.page}` measures it."]
    return [*head, f"Ours, from [its page]({item.page}.md): {made[0]}", *found]


def _is_made(page: Path, name: str, quick: bool, now: str) -> bool:
    """Test whether a page was made at this very commit, with nothing changed since."""
    line = f"Made at commit `{now}` by `sparsedepth reproduce {name}{' --quick' * quick}`."
    return not now.endswith(("unknown", "-dirty")) and page.exists() and line in page.read_text()


def _within(progress: Progress, name: str, done: int, total: int) -> Callable[[str, int, int], None]:
    """Show the progress of one experiment as a part of all; a thousand steps each."""

    def show(what: str, step: int, steps: int) -> None:
        progress(f"{name}: {what}", 1000 * done + 1000 * step // max(steps, 1), 1000 * total)

    return show

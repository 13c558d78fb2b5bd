"""The README's Python runs as it stands, its commands exist, and its numbers are those of the pages it links."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from sparsedepth import Origin
from sparsedepth_experiments._zoo import DEVELOPMENT, SIZE
from sparsedepth_experiments.denoising import FRESH

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.slow
@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL))
def test_python_in_the_readme_runs(block):
    names: dict[str, Any] = {}
    exec(compile(block, str(README), "exec"), names)
    if "result" in names:
        origin = names["result"].origin
        assert (origin[10, 20], origin[30, 31]) == (Origin.CORRECTED, Origin.FILLED)


@pytest.mark.parametrize("line", re.findall(r"^sparsedepth .*$", README.read_text(), flags=re.MULTILINE))
def test_commands_in_the_readme_have_options_that_exist(line, command):
    words = shlex.split(line, comments=True)
    shown = command(words[1], "--help").out
    assert all(word in shown for word in words if word.startswith("--"))


@pytest.fixture
def made(monkeypatch):
    """The script that writes the README's tables."""
    monkeypatch.syspath_prepend(README.parent / "docs")
    return importlib.import_module("_readme")


def test_its_tables_are_those_of_the_pages(made):
    assert made.renewed(README.read_text()) == README.read_text(), "the results have changed: run `make readme`"


def test_its_tables_name_the_best_filter_and_ours(made):
    head = "| error (of raw; parameter) |" + "|".join(made.CAMERAS) + "|"
    rows = [
        "|raw|1|1|1|1|",
        "|median|2 (0.9; 3)|2 (0.8; 3)|2 (0.7; 3)|2 (0.6; 3)|",
        "|TV|1 (0.5)|1 (0.9)|1 (0.9)|1 (0.9)|",
    ]
    ours = ["|ours, blind|1 (0.4)|1 (0.3)|1 (0.2)|1 (0.1)|", "|ours, preset|1 (0)|1 (0)|-|1 (0)|"]
    variance = ["| |mode|ratio|within two std|", *(f"|{name}|blind|1.5|95%|" for name in made.CAMERAS)]
    page = [("## Error left", [head, *rows, *ours]), ("## Variance and holes", variance)]
    text = "\n".join(f"{title}\n{lines[0]}\n| --- |\n" + "\n".join(lines[1:]) + "\n" for title, lines in page)
    table = made.rows_below(made.cameras(text), "")
    assert [row[1:] for row in table[1:3]] == [["0.50", "0.80", "0.70", "0.60"], ["0.40", "0.30", "0.20", "0.10"]]
    assert [row[1:] for row in table[3:]] == [["1.5"] * 4, ["95%"] * 4]


def results(name: str) -> str:
    return (README.parent / "docs" / "results" / f"{name}.md").read_text()


def places(name: str) -> set[tuple[str, int, int]]:
    """The maps that a page names with their first row and column."""
    found = re.findall(r"(\w+) \((\d+), (\d{2,})\)", results(name))
    return {(scene, int(top), int(left)) for scene, top, left in found}


def test_its_maps_are_fresh_and_are_called_so():
    """No map of the comparison overlaps one of those on which failures were looked at."""
    fresh, developed = places("denoising"), places("restoration")
    assert len(fresh) == 10
    for scene, top, left in fresh:
        near = [(s, t, c) for s, t, c in developed if s == scene and abs(t - top) < SIZE and abs(c - left) < SIZE]
        assert not near, (scene, top, left)
    assert "beside development maps" in " ".join(README.read_text().split())
    assert FRESH in results("denoising"), "the page says what its next run would say"
    assert DEVELOPMENT in results("restoration"), "the page says what its next run would say"


@pytest.mark.parametrize("picture", re.findall(r"!\[[^]]*\]\(([^)]*)\)", README.read_text()))
def test_its_pictures_are_there(picture):
    assert (README.parent / picture).read_bytes().startswith(b"\x89PNG")

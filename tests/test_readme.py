"""The README's Python runs as it stands, its commands exist, and its numbers are those of the pages it links."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path

import pytest

from sparsedepth import Origin

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL))
def test_python_in_the_readme_runs(block):
    names: dict[str, object] = {}
    exec(compile(block, str(README), "exec"), names)
    if "result" in names:
        origin = names["result"].origin  # type: ignore[attr-defined]
        assert (origin[10, 20], origin[30, 31]) == (Origin.CORRECTED, Origin.FILLED)


@pytest.mark.parametrize("line", re.findall(r"^sparsedepth .*$", README.read_text(), flags=re.MULTILINE))
def test_commands_in_the_readme_have_options_that_exist(line, command):
    words = shlex.split(line, comments=True)
    shown = command(words[1], "--help").out
    assert all(word in shown for word in words if word.startswith("--"))


def test_numbers_are_those_of_the_pages(monkeypatch):
    monkeypatch.syspath_prepend(README.parent / "docs")
    made = importlib.import_module("_readme")
    page = (README.parent / "docs" / "results" / "denoising.md").read_text()
    assert made.renewed(README.read_text(), page) == README.read_text(), "the results have changed: run `make readme`"
    for kind, heading in {"laser": "## Laser: mean", "disparity": "## Disparity: mean"}.items():
        head, *rows = made.rows_below(page, heading)
        ours = float(rows[-1][head.index("5%")])
        assert rows[-1][0].startswith("denoise")
        assert f"**{ours:.1f}**" in README.read_text(), kind


def test_what_it_says_of_holes_is_what_was_measured():
    page = (README.parent / "docs" / "results" / "holes.md").read_text()
    assert "makes three of\n  scikit-image's filters return nothing but NaN" in README.read_text()
    assert len(re.findall(r"^\| skimage .*4096 of 4096", page, flags=re.MULTILINE)) == 3


def test_one_screen_sells():
    """The picture comes first, and the two commands, the Python and the table before the fold."""
    lines = README.read_text().splitlines()
    assert lines[2].startswith("![")
    assert (README.parent / lines[2].split("](")[1].rstrip(")")).read_bytes().startswith(b"\x89PNG")
    table = next(index for index, line in enumerate(lines) if line.startswith("| 5%"))
    assert all(any(line.startswith(word) for line in lines[:table]) for word in ("make demo", "make test", "result ="))
    assert table < 50
    assert len(lines) < 120

"""The README's Python runs as it stands, its commands exist, and its numbers are those of the pages it links."""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from sparsedepth import Origin
from sparsedepth_experiments._zoo import DEVELOPMENT

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.slow
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


@pytest.fixture
def made(monkeypatch):
    """The script that writes the README's table."""
    monkeypatch.syspath_prepend(README.parent / "docs")
    return importlib.import_module("_readme")


def test_numbers_are_those_of_the_pages(made):
    page = results("denoising")
    assert made.renewed(README.read_text(), page) == README.read_text(), "the results have changed: run `make readme`"
    for kind, heading in {"laser": "## Laser: mean", "disparity": "## Disparity: mean"}.items():
        head, *rows = made.rows_below(page, heading)
        ours = float(rows[-1][head.index("5%")])
        assert rows[-1][0].startswith("denoise")
        assert f"**{ours:.1f}**" in README.read_text(), kind


def results(name: str) -> str:
    return (README.parent / "docs" / "results" / f"{name}.md").read_text()


def said(pattern: str) -> tuple[str, ...]:
    """The groups of a pattern in the README, wherever its lines break."""
    found = re.search(pattern, " ".join(README.read_text().split()))
    assert found, pattern
    return found.groups()


def numbers(table: list[list[str]], row: str, columns: Sequence[str]) -> list[float]:
    """Some cells of a table whose first row is its head."""
    head, *rows = table
    (found,) = (cells for cells in rows if cells[0] == row)
    return [float(found[head.index(column)]) for column in columns]


def test_the_filters_that_a_hole_breaks_are_as_many_as_were_measured():
    (count,) = said(r"makes (\w+) of scikit-image's filters return nothing but NaN")
    broken = re.findall(r"^\| skimage .*4096 of 4096", results("holes"), flags=re.MULTILINE)
    assert {"two": 2, "three": 3, "four": 4}[count] == len(broken)


@pytest.mark.parametrize(
    ("method", "pattern"),
    [
        ("sparsedepth match", r"\(`match`\): ([\d.]+), ([\d.]+), ([\d.]+) and ([\d.]+) %"),
        ("OpenCV SGBM + WLS", r"SGBM \+ WLS leaves ([\d.]+), ([\d.]+), ([\d.]+) and ([\d.]+):"),
    ],
)
def test_the_errors_of_stereo_are_those_of_the_page(made, method, pattern):
    scenes = said(r"of the pixels of (\w+), (\w+), (\w+) and (\w+) are more than 1 px wrong")
    table = made.rows_below(results("stereo"), "## `match` beside OpenCV")
    measured = numbers(table, method, [f"{scene} all" for scene in scenes])
    np.testing.assert_allclose([float(number) for number in said(pattern)], measured, atol=0.051)


def test_time_of_flight_is_as_far_below_total_variation_as_on_the_page(made):
    table = made.rows_below(results("natural_noise"), "## Simulated time-of-flight noise")
    ours, theirs = (np.array(numbers(table, name, ["1/2", "1/4", "1/16"])) for name in (made.OURS, "TV-L2"))
    half, quarter = said(r"RMSE (\d+) and (\d+) % below TV-L2 .* at 1/2 and 1/4 of the size, level with it at 1/16")
    np.testing.assert_allclose([int(half), int(quarter), 0], 100 * (1 - ours / theirs), atol=1)


def test_the_maps_made_worse_are_as_many_as_on_the_page():
    below, maps = said(r"the (\d+) of (\d+) noisy maps on which `denoise` is worse than its input")
    assert f"below on {below} of {maps};" in results("restoration")


def test_its_maps_are_development_maps_and_are_called_so():
    """Every map of the comparison is one of those on which failures were looked at."""
    maps = {name: set(re.findall(r"\w+ \(\d+, \d{2,}\)", results(name))) for name in ("denoising", "restoration")}
    assert len(maps["denoising"]) == 10
    assert maps["denoising"] < maps["restoration"]
    assert "development maps" in README.read_text()
    assert all(DEVELOPMENT in results(name) for name in maps), "a page says what its next run would say"


def test_the_picture_is_there():
    (picture,) = said(r"!\[[^]]*\]\(([^)]*)\)")
    assert "real frame" in README.read_text().lower()
    assert (README.parent / picture).read_bytes().startswith(b"\x89PNG")

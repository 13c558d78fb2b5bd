"""The documentation: what it shows runs as it stands, and what it points at is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import sparsedepth

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
RESULTS = sorted((ROOT / "docs" / "results").glob("*.md"))
WITH_EXAMPLES = [page for page in PAGES if re.search(r"^```(python|sh)$", page.read_text(), flags=re.MULTILINE)]


def test_the_guide_is_there():
    assert {page.stem for page in WITH_EXAMPLES} >= {"start", "cameras", "own_dictionary", "variance", "extending"}


def pictures_of(page: Path) -> list[str]:
    """Names of the pictures that a page shows, without its own name and suffix."""
    return re.findall(rf"\]\(pictures/{page.stem}-([\w-]+)\.png\)", page.read_text())


@pytest.mark.parametrize("name", ["cameras", "gis", "lidar", "researchers", "stereo"])
def test_a_page_for_users_begins_with_a_file_and_ends_with_a_picture(name):
    page = ROOT / "docs" / f"{name}.md"
    text = page.read_text()
    assert re.search(r"^This (makes|saves)|begin by writing a small file", text, re.MULTILINE)
    assert text.rstrip().splitlines()[-1].startswith("![")
    assert pictures_of(page)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.stem)
def test_examples_of_a_page_run_in_their_order(page, command, tmp_path, monkeypatch):
    """Python in one namespace, commands of sparsedepth as a user would type them, all in one empty folder."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    for language, block in re.findall(r"^```(python|sh)\n(.*?)^```$", page.read_text(), flags=re.DOTALL | re.MULTILINE):
        if language == "python":
            exec(compile(block, f"{page.name}: {block[:40]}", "exec", dont_inherit=True), names)
            continue
        for line in block.splitlines():
            program, *words = shlex.split(line, comments=True)
            assert program == "sparsedepth", line
            ended = command(*words)
            assert ended.code == 0, f"{line}\n{ended.err}"
    for name in pictures_of(page):
        assert (tmp_path / f"{name}.png").exists(), "what the page shows is what its blocks draw"


@pytest.mark.parametrize(
    "page", [*ROOT.glob("*.md"), *PAGES, *RESULTS], ids=lambda page: f"{page.parent.name}/{page.stem}"
)
def test_links_lead_somewhere(page):
    """Files that are linked exist, or are made on building: the gallery from examples, the commands' page by itself."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if target.startswith("https://") or target == "commands.md":
            continue
        place = page.parent / target
        example = re.fullmatch(r"auto_examples/(plot_\w+|index)", target)
        if example is None:
            assert place.exists(), target
        elif example[1] != "index":
            assert (ROOT / "examples" / f"{example[1]}.py").exists(), target


def test_every_public_name_is_in_the_reference():
    reference = (ROOT / "docs" / "reference.md").read_text()
    missing = [name for name in sparsedepth.__all__ if not re.search(rf"auto\w+:: {name}$", reference, re.MULTILINE)]
    assert not missing


def test_every_page_says_what_it_is():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        if "_build" not in page.parts and "auto_examples" not in page.parts:
            assert page.read_text().startswith("# "), page
            assert not re.search(r"^(<<<<<<<|>>>>>>>)", page.read_text(), flags=re.MULTILINE), page

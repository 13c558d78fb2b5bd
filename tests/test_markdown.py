"""Result pages keep what was written by hand."""

from __future__ import annotations

import subprocess

import pytest

from sparsedepth.markdown import commit, table, write_made_part


def test_the_made_part_is_replaced_and_the_rest_stays(tmp_path):
    page = tmp_path / "page.md"
    write_made_part(page, "Title", "make it", ["first \\1 result"])
    page.write_text(page.read_text().replace("# Title\n", "# Title\n\nAn opinion.\n") + "\nA footnote.\n")
    write_made_part(page, "Title", "make it", ["second result"])
    text = page.read_text()
    assert text.startswith("# Title\n\nAn opinion.\n")
    assert text.endswith("\nA footnote.\n")
    assert "first" not in text
    assert text.count("second result") == text.count("`make it`") == 1


def test_parts_with_names_are_replaced_one_by_one(tmp_path):
    page = tmp_path / "page.md"
    write_made_part(page, "Title", "make one", ["first"], "one")
    page.write_text(page.read_text() + "<!-- two: begin --><!-- two: end -->\n")
    write_made_part(page, "Title", "make two", ["second"], "two")
    text = page.read_text()
    assert text.index("first") < text.index("one: end") < text.index("`make two`") < text.index("second")


def test_table():
    assert table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


@pytest.fixture
def repository(tmp_path):
    """A repository with one commit."""
    for name in ("code.py", "docs/results/page.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("before")
    who = ["-c", "user.name=A", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "all"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def test_a_page_of_results_does_not_make_a_commit_dirty_and_code_does(repository):
    clean = commit(repository)
    (repository / "docs" / "results" / "page.md").write_text("after")
    (repository / "notes.txt").write_text("git does not know it")
    assert commit(repository) == commit(repository / "docs") == clean
    (repository / "code.py").write_text("after")
    assert commit(repository) == commit(repository / "docs") == f"{clean}-dirty"

"""Records of decisions name code and tests that exist, and stay short."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "sparsedepth"
PAGE = (ROOT / "docs" / "decisions.md").read_text()
RECORDS = {
    text.split(".")[0]: text
    for text in re.split(r"^### ", re.sub(r"^## .*$", "", PAGE, flags=re.MULTILINE), flags=re.M)[1:]
}
MAX_WORDS = 150


@cache
def test_names() -> frozenset[str]:
    """Return the names of all tests."""
    texts = (path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    return frozenset(name for text in texts for name in re.findall(r"def (test_\w+)", text))


test_names.__test__ = False  # type: ignore[attr-defined]


def exists(name: str) -> bool:
    """Return whether a dotted name is a module of the package, or defined in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        place = PACKAGE.joinpath(*parts[:length])
        file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if file.exists():
            return is_defined(parsed(file), parts[length:])
    return False


@cache
def parsed(file: Path) -> ast.Module:
    """Return the tree of a module."""
    return ast.parse(file.read_text())


def is_defined(tree: ast.Module | ast.ClassDef, parts: list[str]) -> bool:
    """Return whether a chain of names is defined in a module or a class."""
    if not parts:
        return True
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == parts[0]:
            return is_defined(node, parts[1:])
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        if parts[0] in names | {getattr(node, "name", "")}:
            return len(parts) == 1
    return False


def field(record: str, name: str) -> list[str]:
    """Return the names in backquotes of a field of a record."""
    found = re.search(rf"\*{name}\*:(.*?)(?=\*\w+\*:|\Z)", record, flags=re.DOTALL)
    return re.findall(r"`([^`]+)`", found[1]) if found else []


def test_there_are_records():
    assert len(RECORDS) == len(re.findall(r"^### ", PAGE, flags=re.MULTILINE)), "two records have the same number"
    assert len(RECORDS) > 50


@pytest.mark.parametrize("number", RECORDS)
def test_a_record_names_what_exists(number):
    record = RECORDS[number]
    assert field(record, "Code")
    assert [name for name in field(record, "Code") if not exists(name)] == []
    assert field(record, "Tests")
    assert [name for name in field(record, "Tests") if name not in test_names()] == []


@pytest.mark.parametrize("number", RECORDS)
def test_a_record_is_short_and_has_a_status(number):
    record = RECORDS[number]
    assert re.search(r"\*Status\*:\s+(holds|measured\s+again|missed)", record)
    assert len(re.findall(r"\w[\w.%/'-]*", record)) <= MAX_WORDS


def test_a_name_that_does_not_exist_is_found():
    assert exists("restore.pipeline.ARTEFACTS")
    assert exists("restore.settings.OutlierSettings.min_score")
    assert not exists("restore.settings.OutlierSettings.no_such_field")
    assert not exists("restore.no_such_module.fit")

"""What a release says of itself: one version, a citation, workflows that run what developers run."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest

import sparsedepth

ROOT = Path(__file__).parents[1]


def test_the_package_has_one_version():
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited is not None
    assert cited[1] == sparsedepth.__version__
    assert "version =" not in (ROOT / "pyproject.toml").read_text().split("[project.optional-dependencies]")[0]


def test_the_installed_version_is_that_of_the_package():
    assert version("sparsedepth") == sparsedepth.__version__


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.stem)
def test_workflows_call_targets_that_exist(path):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = set(re.findall(r"run: make ([a-z-]+)", path.read_text()))
    assert called
    assert called <= targets


def test_commits_are_checked_by_the_linter_that_development_installs():
    pinned = re.search(r"ruff-pre-commit\n +rev: v([\d.]+)", (ROOT / ".pre-commit-config.yaml").read_text())
    wanted = re.search(r'"ruff>=([\d.]+),<', (ROOT / "pyproject.toml").read_text())
    assert pinned
    assert wanted
    assert pinned[1].startswith(f"{wanted[1]}.")

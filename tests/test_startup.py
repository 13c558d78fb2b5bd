"""What is imported when: a public name when it is used, a command when it is called, nothing before."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import sparsedepth
from sparsedepth.cli.application import load
from sparsedepth.cli.commands import COMMANDS

pytestmark = pytest.mark.slow

PLOTS = {"matplotlib", "plotly"}
BASELINES = {"skimage", "pywt"}
SERVICE = {"fastapi", "uvicorn", "starlette"}
OTHERS = {"cv2", "ortools", "sklearn", "dask", "distributed", "markdown_it", "rosbags", "OpenEXR"}
NUMBERS = {"numpy", "scipy"}
HEAVY = PLOTS | BASELINES | SERVICE | OTHERS


def imported_by(code: str) -> set[str]:
    """Run code in a new interpreter; return the names of all modules that it has imported at its end."""
    asked = f"import sys, atexit\natexit.register(lambda: sys.stderr.write('\\n' + ' '.join(sys.modules)))\n{code}"
    run = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    return set(run.stderr.splitlines()[-1].split())


def imported_by_command(*words: str) -> set[str]:
    return imported_by(f"from sparsedepth.cli import main\nmain({list(words)!r})")


def rooms(modules: set[str]) -> set[str]:
    """Parts of the package among modules."""
    return {name.split(".")[1] for name in modules if name.startswith("sparsedepth.")}


def test_importing_the_package_imports_nothing_else():
    found = imported_by("import sparsedepth; dir(sparsedepth)")
    assert not rooms(found)
    assert not found & (HEAVY | NUMBERS)


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--version"]], ids=" ".join)
def test_help_imports_no_implementation(words):
    found = imported_by_command(*words)
    assert rooms(found) == {"cli"}
    assert {name for name in found if name.startswith("sparsedepth.cli.")} == {
        "sparsedepth.cli.application",
        "sparsedepth.cli.commands",
    }
    assert not found & (NUMBERS | (HEAVY - {"markdown_it"}))  # typer draws help with rich, which imports that


def test_public_names_need_no_extra():
    found = imported_by("import sparsedepth\nfor name in sparsedepth.__all__: getattr(sparsedepth, name)")
    assert not found & (HEAVY | {"typer", "rich"})


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="'sparsedepth' has no attribute 'denoize'"):
        sparsedepth.denoize  # noqa: B018 (it raises)


def test_all_names_can_be_imported_at_once():
    names: dict[str, object] = {}
    exec("from sparsedepth import *", names)
    assert set(sparsedepth.__all__) <= names.keys() & set(dir(sparsedepth))


def test_type_checkers_see_the_same_names_from_the_same_modules():
    """The block for type checkers, the table of homes and `__all__` state one thing."""
    tree = ast.parse(Path(sparsedepth.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    homes = {name: f"sparsedepth.{home}" for name, home in sparsedepth._HOMES.items() if home}
    assert seen == homes
    assert sorted(sparsedepth.__all__) == sorted(homes)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_of_itself(name):
    first = (load(name).help or "").split("\n\n")[0]
    assert " ".join(first.split()) == COMMANDS[name].help


@pytest.mark.parametrize(
    ("name", "unwanted"),
    [
        ("denoise", HEAVY),
        ("match", HEAVY),
        ("learn", HEAVY),
        ("stream", HEAVY - PLOTS),
        ("show", HEAVY - PLOTS),
        ("serve", HEAVY | {"scipy"}),
    ],
)
def test_a_command_imports_what_it_needs(name, unwanted):
    assert not imported_by_command(name, "--help") & (unwanted - {"markdown_it"})

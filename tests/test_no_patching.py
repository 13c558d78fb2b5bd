"""Nothing is patched at run time: what should differ is a parameter or a setting."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(
    path for room in ("src", "experiments", "tests", "training", "benchmarks") for path in (ROOT / room).rglob("*.py")
)
PACKAGES = {"sparsedepth", "sparsedepth_experiments"}
OUTSIDE_CALLS = {"os.replace", "os.fsync", "os.posix_fallocate", "importlib.util.find_spec"}
"""Calls beyond the package that a test may let fail: a full disk, or a library that is not installed."""
OUTSIDE_TABLES = {"sys.modules", "os.environ"}
LEFT = {
    "benchmarks/scale.py": (2, "measures the tasks of a cluster within its workers, which get them by their names"),
}
"""File -> how often it still patches, and why. Entries may be removed or lowered, never added or raised."""


def patches(tree: ast.Module) -> Iterator[ast.AST]:
    """Find what changes an attribute or an entry of something imported from the package, or may do so."""
    ours = imported_from_the_package(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and is_patching_call(node, ours):
            yield node
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
            yield from (each for target in targets for each in flat(target) if is_part_of(each, ours))
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
            if names & {"mock", "unittest.mock", "pytest_mock"}:
                yield node


def imported_from_the_package(tree: ast.Module) -> set[str]:
    """Return the names under which a module knows modules, classes and values of the package."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            ours = (alias for alias in node.names if alias.name.split(".")[0] in PACKAGES)
            names |= {alias.asname or alias.name.split(".")[0] for alias in ours}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def is_patching_call(call: ast.Call, ours: set[str]) -> bool:
    """Tell whether a call sets an attribute of anything but self, or patches by a fixture."""
    first = ast.unparse(call.args[0]) if call.args else ""
    if isinstance(call.func, ast.Name) and call.func.id in ("setattr", "delattr"):
        return first != "self"
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr in ("setattr", "delattr"):
        attribute = call.args[1].value if len(call.args) > 1 and isinstance(call.args[1], ast.Constant) else ""
        return f"{first}.{attribute}" not in OUTSIDE_CALLS
    if call.func.attr in ("setitem", "delitem"):
        return first not in OUTSIDE_TABLES
    changes = call.func.attr in ("update", "clear", "pop", "setdefault", "append", "extend", "insert", "remove")
    return changes and (is_part_of(call.func.value, ours) or is_whole(call.func.value, ours))


def flat(target: ast.expr) -> Iterator[ast.expr]:
    """Split the target of an assignment into single ones."""
    if isinstance(target, ast.Tuple | ast.List):
        for each in target.elts:
            yield from flat(each)
    else:
        yield target


def is_part_of(node: ast.expr, ours: set[str]) -> bool:
    """Tell whether an expression is an attribute or an entry of one of these names."""
    inner = node
    while isinstance(inner, ast.Attribute | ast.Subscript):
        inner = inner.value
    return inner is not node and is_whole(inner, ours)


def is_whole(node: ast.expr, ours: set[str]) -> bool:
    """Tell whether an expression is one of these names, or its table of variables."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars" and node.args:
        node = node.args[0]
    return isinstance(node, ast.Name) and node.id in ours


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_is_patched(path):
    found = [f"line {node.lineno}: {ast.unparse(node)}" for node in patches(ast.parse(path.read_text()))]  # type: ignore[attr-defined]
    allowed, reason = LEFT.get(path.relative_to(ROOT).as_posix(), (0, "make it a parameter or a setting"))
    assert len(found) == allowed, f"{reason}: {found}"


def test_files_that_still_patch_exist():
    assert set(LEFT) <= {path.relative_to(ROOT).as_posix() for path in FILES}


PATCHES = [
    "setattr(module, 'TILE', 3)",
    "from sparsedepth.restore import tiling\ntiling.TILE = 3",
    "from sparsedepth.restore import tiling\nx, tiling.TILE = 1, 3",
    "from sparsedepth.restore import tiling as t\nt.TILE += 3",
    "import sparsedepth.cluster\nsparsedepth.cluster.PATIENCE = 3",
    "from sparsedepth import Restorer\nRestorer.__call__ = None",
    "from sparsedepth.restore import METHODS\nMETHODS['mine'] = None",
    "from sparsedepth.restore import METHODS\nMETHODS.update(mine=None)",
    "from sparsedepth import restore\nrestore.METHODS.pop('paper')",
    "from sparsedepth import restore\nvars(restore)['METHODS'] = {}",
    "from sparsedepth import restore\ndel restore.METHODS",
    "monkeypatch.setattr('sparsedepth.cluster.PATIENCE', 0.5)",
    "monkeypatch.setattr(tiling, 'TILE', 3)",
    "monkeypatch.setattr(os, 'listdir', None)",
    "monkeypatch.setitem(METHODS, 'mine', None)",
    "from unittest.mock import patch",
    "from unittest import mock",
]
HARMLESS = [
    "setattr(self, name, 3)",
    "self.tile = 3",
    "import numpy as np\nnp.random.seed = 3",
    "from sparsedepth import denoise\nresult = denoise(depth)\nresult.depth[0] = 3",
    "monkeypatch.setenv('SPARSEDEPTH_CACHE', 'x')",
    "monkeypatch.setattr(os, 'replace', fail)",
    "monkeypatch.setitem(sys.modules, 'distributed', None)",
    "from sparsedepth import restore\nfound = []\nfound.append(restore)",
]


@pytest.mark.parametrize("text", PATCHES)
def test_a_patch_is_found(text):
    assert list(patches(ast.parse(text)))


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_patch_is_not_found(text):
    assert not list(patches(ast.parse(text)))

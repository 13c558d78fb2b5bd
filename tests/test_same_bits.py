"""The comparison of two revisions: it sees a single bit, and a revision is the same as itself."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
TOOL = ROOT / "tools" / "same_bits.py"


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(TOOL.parent)
    return importlib.import_module("same_bits")


@pytest.fixture
def checkout() -> None:
    """Skip where this tree is not the top of a git checkout, as in an unpacked source distribution."""
    found = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--show-toplevel"], capture_output=True, text=True)
    if found.returncode or Path(found.stdout.strip()).resolve() != ROOT.resolve():
        pytest.skip("this tree is not a git checkout")


def worktrees() -> str:
    return subprocess.run(["git", "-C", str(ROOT), "worktree", "list"], capture_output=True, text=True).stdout


def test_one_bit_is_found(tool):
    depth = np.linspace(1, 2, 12, dtype=np.float32).reshape(3, 4)
    changed = depth.copy()
    changed.view(np.uint32)[1, 2] ^= 1
    same, other = {"depth": depth, "variance": depth}, {"depth": changed, "variance": depth}
    assert tool.differences(same, {name: array.copy() for name, array in same.items()}) == []
    (said,) = tool.differences(same, other)
    assert said.startswith("depth differs at 1 of 12 pixels, by at most 1.19e-07")


def test_equal_numbers_with_other_bits_are_found(tool):
    assert tool.differences({"a": np.zeros(3)}, {"a": -np.zeros(3)}) == ["a differs at 3 of 3 pixels, by at most 0"]
    missing = np.array([np.nan, 1.0])
    assert tool.differences({"a": missing}, {"a": missing.copy()}) == []
    assert tool.differences({"a": missing}, {"a": np.array([0.0, 1.0])}) == [
        "a differs at 1 of 2 pixels, by at most nan"
    ]


@pytest.mark.parametrize("other", [np.zeros(4), np.zeros((2, 2), np.float32)], ids=["shape", "type"])
def test_other_shapes_and_types_are_found(tool, other):
    (said,) = tool.differences({"a": np.zeros((2, 2))}, {"a": other})
    assert said == f"a was float64 (2, 2) and is {other.dtype} {other.shape}"


def test_arrays_of_one_side_are_found(tool):
    assert tool.differences({"a": np.zeros(1)}, {"b": np.zeros(1)}) == [
        "a is only in the old result",
        "b is only in the new result",
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("checkout")
def test_a_revision_is_the_same_as_itself(tmp_path):
    """Two checkouts of HEAD, so that a tree with changes that are not committed passes as well."""
    words = [sys.executable, str(TOOL), "HEAD", "HEAD", "--only", "denoise-fast"]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stdout.split()[:2]) == (0, ["denoise-fast", "same"]), done.stdout + done.stderr
    assert not list(tmp_path.iterdir())
    assert str(tmp_path) not in worktrees()


@pytest.mark.slow
@pytest.mark.usefixtures("checkout")
def test_an_interrupted_run_leaves_no_worktree(tool, tmp_path):
    with pytest.raises(KeyboardInterrupt), tool.checked_out("HEAD", tmp_path):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())
    assert str(tmp_path) not in worktrees()

"""What killed runs have left goes, what others are at work on stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from sparsedepth.atomic_files import TEMPORARY_PREFIX, atomic_file, remove_abandoned, write_atomically

KILLED = """
import os, signal, sys
from sparsedepth.atomic_files import atomic_file
with atomic_file(sys.argv[1]) as temporary:
    temporary.write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks on Windows, and nothing is swept")
def test_the_next_run_removes_what_a_killed_one_left(tmp_path):
    code = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "x")], check=False).returncode
    assert code == -signal.SIGKILL
    (left,) = names(tmp_path)
    assert left.startswith(TEMPORARY_PREFIX)
    write_atomically(tmp_path / "y", b"whole")
    assert names(tmp_path) == ["y"]


def test_what_is_being_written_is_not_swept_away(tmp_path):
    with atomic_file(tmp_path / "x") as temporary:
        temporary.write_bytes(b"whole")
        remove_abandoned(tmp_path)
        assert temporary.exists()
    assert names(tmp_path) == ["x"]
    assert (tmp_path / "x").read_bytes() == b"whole"


def test_nothing_but_our_own_temporary_files_is_swept_away(tmp_path):
    others = [".sparsedepth-0123456789abcdef.tmp", f"{TEMPORARY_PREFIX}0.png", "x.tmp"]
    for name in others:
        (tmp_path / name).touch()
    (tmp_path / "precious").write_bytes(b"kept")
    os.symlink(tmp_path / "precious", tmp_path / f"{TEMPORARY_PREFIX}1.tmp")
    remove_abandoned(tmp_path)
    assert names(tmp_path) == sorted([*others, f"{TEMPORARY_PREFIX}1.tmp", "precious"])

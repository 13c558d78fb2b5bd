"""Killed at any moment, beside another run, on a full disk: a few rounds of each; ``tests/kills.py`` does many."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROUNDS = 1
DONE = {"writers_killed": "kills", "denoise_killed": "kills", "learn_killed": "kills", "two_runs_at_once": "pairs"}
DONE["full_and_read_only_disks"] = "runs"


@pytest.fixture(scope="module")
def counts():
    """What each scenario counted; its laws are its own assertions."""
    command = [sys.executable, str(Path(__file__).with_name("kills.py")), str(ROUNDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return {told["scenario"]: told for told in map(json.loads, done.stdout.splitlines())}


@pytest.mark.skipif(sys.platform != "linux", reason="runs are forked, and disks mounted, as Linux does")
@pytest.mark.parametrize("name", DONE)
def test_nothing_half_is_left(name, counts):
    done = counts[name][DONE[name]]
    if name == "full_and_read_only_disks" and done == 0:
        pytest.skip("a disk may be mounted by the root user only")
    assert done > 0

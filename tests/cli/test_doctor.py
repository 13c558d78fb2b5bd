"""The command doctor: what it says is so, and what is broken is found."""

from __future__ import annotations

import json
import platform

import numpy as np

import sparsedepth
from sparsedepth.cli.doctor import run_test
from sparsedepth.kernels.library import load


def test_all_is_well(command):
    ended = command("doctor", "--json")
    facts = json.loads(ended.out)
    assert ended.code == 0
    assert set(facts["tests"]) == {"restore", "stream", "match", "files"}
    assert all(found["error"] is None for found in facts["tests"].values())
    expected = {"sparsedepth": sparsedepth.__version__, "Python": platform.python_version(), "numpy": np.__version__}
    assert facts["versions"].items() >= expected.items()
    assert f"/{facts['kernels']}." in load()._name


def test_the_same_in_words(command):
    ended = command("doctor")
    assert ended.code == 0
    assert "test restore: passed" in ended.out
    assert "kernels: " in ended.out


def test_a_test_that_fails_says_why():
    def fails() -> None:
        raise ValueError("depths are wrong")

    assert run_test(fails)["error"] == "ValueError: depths are wrong"
    assert run_test(lambda: None)["error"] is None

"""The application as a whole: help, version, completion, words that it does not know."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from sparsedepth.cli.commands import COMMANDS


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_short_and_long_help_are_the_same(name, command):
    words = [name] if name else []
    short, long = command(*words, "-h"), command(*words, "--help")
    assert short.code == long.code == 0
    assert short == long
    assert "Usage: sparsedepth" in short.out


def test_a_command_that_is_not_known_is_refused_with_the_nearest(command):
    ended = command("denoize", "x.png")
    assert ended.code == 2
    assert "denoise" in ended.err


def completed(words: str, shell: str = "bash") -> list[str]:
    """Ask as a shell does what may follow the last of these words."""
    asked = {
        "_SPARSEDEPTH_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    run = subprocess.run(
        [sys.executable, "-m", "sparsedepth"], capture_output=True, text=True, env=os.environ | asked, check=False
    )
    return run.stdout.split()


@pytest.mark.slow
def test_a_shell_completes_commands_and_options():
    assert completed("sparsedepth de") == ["denoise", "demo"]
    assert set(completed("sparsedepth denoise --o")) == {
        "--output",
        "--output-profile",
        "--output-scale",
        "--origin-out",
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("denoise --sensor kin", ["kinect_v1"]),
        ("denoise --profile tu", ["tum"]),
        ("inpaint --fill b", ["background"]),
        ("stream --quality b", ["best"]),
        ("match --solver semi", ["semi_global"]),
        ("cloud --profile 7", ["7-scenes"]),
    ],
)
def test_a_shell_completes_what_options_take(words, wanted):
    assert completed(f"sparsedepth {words}") == wanted

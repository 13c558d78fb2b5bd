"""The README's Python runs as it stands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from sparsedepth import Origin

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL))
def test_python_in_the_readme_runs(block):
    names: dict[str, object] = {}
    exec(compile(block, str(README), "exec"), names)
    if "code" in names:
        assert names["code"].codes.shape == (1000, 256)  # type: ignore[attr-defined]
    if "result" in names:
        origin = names["result"].origin  # type: ignore[attr-defined]
        assert (origin[10, 20], origin[30, 31]) == (Origin.CORRECTED, Origin.FILLED)


@pytest.mark.parametrize("line", re.findall(r"^sparsedepth .*$", README.read_text(), flags=re.MULTILINE))
def test_commands_in_the_readme_have_options_that_exist(line, command):
    words = shlex.split(line, comments=True)
    shown = command(words[1], "--help").out
    assert all(word in shown for word in words if word.startswith("--"))

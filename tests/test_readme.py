"""The README's Python runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL))
def test_python_in_the_readme_runs(block):
    names: dict[str, object] = {}
    exec(compile(block, str(README), "exec"), names)
    code = names["code"]
    assert code.codes.shape == (1000, 256)  # type: ignore[attr-defined]

"""Result pages in Markdown: generated parts between hand-written ones, with the commit and the command."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sparsedepth.atomic_files import write_atomically

RESULTS = ":(top,exclude)docs/results"
"""Git's name for all but the pages of results."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def machine() -> str:
    return f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, NumPy {np.__version__}."


def write_made_part(path: Path, title: str, command: str, parts: Sequence[str], name: str = "made part") -> str:
    """Replace the generated part of a page, or start the page; hand-written text around it stays.

    A page with several made parts gives each a name.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    made = "\n\n".join([begin, f"Made at commit `{commit()}` by `{command}`.", *parts, end])
    page = path.read_text() if path.exists() else f"# {title}\n\n{begin}{end}\n"
    page = re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _: made, page, flags=re.DOTALL)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, page.encode())
    return made


def commit(folder: Path = Path()) -> str:
    """Describe the commit that a folder of a repository is at; "unknown" where it is part of none.

    A changed file makes it "-dirty", unless it is one of the pages of results: a run that writes them stays itself.
    """
    if shutil.which("git") is None or not _git(folder, "ls-files"):
        return "unknown"
    at = _git(folder, "describe", "--always", "--exclude=*") or "unknown"
    return at + "-dirty" * bool(_git(folder, "status", "--porcelain", "--untracked-files=no", "--", ":/", RESULTS))


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False).stdout.strip()

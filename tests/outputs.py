"""What a command left behind."""

from __future__ import annotations

from pathlib import Path

from sparsedepth.cli.batch import journal


def files_below(folder: Path) -> list[str]:
    """All files below a folder, relative to it, but for the record of the run."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != journal.NAME)
    return sorted(str(path.relative_to(folder)) for path in found)

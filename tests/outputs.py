"""What a command left behind."""

from __future__ import annotations

from pathlib import Path

from sparsedepth.cli.batch import journal


def files_below(folder: Path) -> list[str]:
    """All files below a folder, relative to it, but for the record of the run."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != journal.NAME)
    return sorted(str(path.relative_to(folder)) for path in found)


def versions(folder: Path) -> dict[str, tuple[int, int]]:
    """Inode and time of every file below a folder: a file that is written again has others."""
    found = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    return {str(path): (each.st_ino, each.st_mtime_ns) for path, each in found.items()}

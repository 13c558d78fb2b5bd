"""Atomic writing of files: they appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import platform
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sparsedepth.vocabulary import InputError

if sys.platform != "win32":
    import fcntl

DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
TEMPORARY_PREFIX = f".sparsedepth-{hashlib.sha256(platform.node().encode()).hexdigest()[:8]}-"
"""The start of the names of this machine's temporary files; locks do not work between machines."""
_unfinished: set[Path] = set()
_cleaned_folders: set[Path] = set()


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write a file so that readers see the old content or the new one, never a part.

    The content goes to a temporary file in the same folder, then to the disk; then that file is renamed.
    """
    with atomic_file(path) as temporary:
        temporary.write_bytes(content)


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Give a temporary file to write to, which takes the name at the end; after an error it is removed."""
    path = Path(path)
    if os.path.exists(path) and not os.path.isfile(path):  # renaming would put a file in the place of a device
        raise InputError(f"cannot write {path}: it is no regular file; name another one")
    if path.parent not in _cleaned_folders:
        _cleaned_folders.add(path.parent)
        remove_abandoned(path.parent)
    try:
        with _held_temporary(path.parent) as temporary:
            yield temporary
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)
    except OSError as error:
        full = error.errno in DISK_FULL_ERRORS
        advice = "make room, or choose another disk" if full else "check the folder and its rights"
        raise InputError(f"cannot write {path}: {error.strerror}; {advice}") from None


@contextmanager
def _held_temporary(folder: Path) -> Iterator[Path]:
    """Create a file that is locked while it is written to, and removed at the end unless it has been renamed."""
    temporary = folder / f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}.tmp"  # short, however long the file's own name is
    _unfinished.add(temporary)
    held = -1
    try:
        while True:
            held = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            if _lock(held, wait=True):
                break
            os.close(held)  # another process removed it before it was locked
        if sys.platform == "win32":  # where an open file cannot be renamed
            os.close(held)
            held = -1
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if held >= 0:
            os.close(held)
        _unfinished.discard(temporary)


def remove_abandoned(folder: Path) -> None:
    """Remove the temporary files of processes of this machine that were killed: nobody holds their locks."""
    with contextlib.suppress(OSError):
        for abandoned in [path for path in os.scandir(folder) if _is_temporary(path.name)]:
            with contextlib.suppress(OSError):
                file = os.open(abandoned.path, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0))
                try:
                    if _lock(file, wait=False):
                        os.unlink(abandoned.path)
                finally:
                    os.close(file)


def _is_temporary(name: str) -> bool:
    return name.startswith(TEMPORARY_PREFIX) and name.endswith(".tmp")


def _lock(file: int, *, wait: bool) -> bool:
    """Lock an open file; return False if another process holds the lock, or the file has been removed."""
    if sys.platform == "win32":
        return wait
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # another process's; or a disk without locks, where nothing is removed
        return wait
    return os.fstat(file).st_nlink > 0


def discard_unfinished() -> None:
    """Remove the temporary files of this process, which is about to end."""
    for temporary in list(_unfinished):
        temporary.unlink(missing_ok=True)

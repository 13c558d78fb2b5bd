"""Files that appear whole or not at all."""

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

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
OURS = f".sparsedepth-{hashlib.sha256(platform.node().encode()).hexdigest()[:8]}-"
"""How the names of this machine's temporary files begin: locks tell nothing of those of another machine."""
_unfinished: set[Path] = set()
_swept: set[Path] = set()


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write to a temporary neighbour, force it to disk, and rename: a reader sees the old file or the new one."""
    with finished(path) as temporary:
        temporary.write_bytes(content)


@contextmanager
def finished(path: str | Path) -> Iterator[Path]:
    """A temporary neighbour to write to: at a good end it goes to the disk and takes the name, at a bad one it goes."""
    path = Path(path)
    if os.path.exists(path) and not os.path.isfile(path):  # renaming would put a file in the place of a device
        raise InputError(f"cannot write {path}: it is no regular file; name another one")
    if path.parent not in _swept:
        _swept.add(path.parent)
        sweep(path.parent)
    try:
        with _held_temporary(path.parent) as temporary:
            yield temporary
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)
    except OSError as error:
        advice = "make room, or choose another disk" if error.errno in NO_ROOM else "check the folder and its rights"
        raise InputError(f"cannot write {path}: {error.strerror}; {advice}") from None


@contextmanager
def _held_temporary(folder: Path) -> Iterator[Path]:
    """A new file, locked as long as somebody works on it; it goes at the end, unless it has got another name."""
    temporary = folder / f"{OURS}{secrets.token_hex(8)}.tmp"  # short, however long the file's own name is
    _unfinished.add(temporary)
    held = -1
    try:
        while True:
            held = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            if _locked(held, wait=True):
                break
            os.close(held)  # another run swept it away before it was locked
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


def sweep(folder: Path) -> None:
    """Remove what runs of this machine that were killed have left: nobody holds its lock any more."""
    with contextlib.suppress(OSError):
        for left in [path for path in os.scandir(folder) if path.name.startswith(OURS) and path.name.endswith(".tmp")]:
            with contextlib.suppress(OSError):
                file = os.open(left.path, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0))
                try:
                    if _locked(file, wait=False):
                        os.unlink(left.path)
                finally:
                    os.close(file)


def _locked(file: int, *, wait: bool) -> bool:
    """Lock an open file against our other runs; False if it is theirs, or has no name any more."""
    if sys.platform == "win32":
        return wait
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # another run's; or a disk without locks, where nothing can be told and nothing is swept
        return wait
    return os.fstat(file).st_nlink > 0


def discard_unfinished() -> None:
    """Remove what is being written, for a process that is about to end."""
    for temporary in list(_unfinished):
        temporary.unlink(missing_ok=True)

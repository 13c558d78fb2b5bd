"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sparsedepth.vocabulary import InputError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_unfinished: set[Path] = set()


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
    temporary = path.with_name(f".sparsedepth-{secrets.token_hex(8)}.tmp")  # short, however long the file's own name is
    _unfinished.add(temporary)
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        advice = "make room, or choose another disk" if error.errno in NO_ROOM else "check the folder and its rights"
        raise InputError(f"cannot write {path}: {error.strerror}; {advice}") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary)


def discard_unfinished() -> None:
    """Remove what is being written, for a process that is about to end."""
    for temporary in list(_unfinished):
        temporary.unlink(missing_ok=True)

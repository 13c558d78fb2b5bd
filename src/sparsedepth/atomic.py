"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from sparsedepth.vocabulary import InputError


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write to a temporary neighbour, force it to disk, and rename: a reader sees the old file or the new one."""
    path = Path(path)
    if os.path.exists(path) and not os.path.isfile(path):  # renaming would put a file in the place of a device
        raise InputError(f"cannot write {path}: it is no regular file; name another one")
    temporary = path.with_name(f".sparsedepth-{secrets.token_hex(8)}.tmp")  # short, however long the file's own name is
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; check the folder and its rights") from None
    finally:
        temporary.unlink(missing_ok=True)

"""The journal of a run in its output folder, with which a later run knows what is done and can check it.

A line says that a result is about to be written. Another one says that it is there, with the SHA-256 of its inputs and
of each of its files. A run that was killed leaves at most one torn line, which is ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

NAME = ".sparsedepth-journal"
CHUNK_BYTES = 1 << 20


class Journal:
    """The journal of one folder, for one way of making its results; many threads may write to it at once."""

    def __init__(self, folder: Path, fingerprint: dict[str, Any]) -> None:
        self._path, self._lock = folder / NAME, Lock()
        self._fingerprint = json.dumps(fingerprint, sort_keys=True, default=str)
        self._lines = _read(self._path)
        self._folder = folder

    def contains(self, output: Path) -> bool:
        """Return whether one of our runs began this result, so that it may be made again."""
        return self._key(output) in self._lines

    def is_valid(self, inputs: Sequence[Path], outputs: Sequence[Path]) -> bool:
        """Return whether the result, named by its last output, was made of these inputs and is unchanged."""
        line = self._lines.get(self._key(outputs[-1]))
        if line is None or "files" not in line or len(line["files"]) != len(outputs):
            return False
        try:
            return [_digest(path) for path in outputs] == line["files"] and self._digest_of(inputs) == line["from"]
        except OSError:
            return False

    def begin(self, output: Path) -> None:
        """Record that a result will be written now."""
        self._write({"output": self._key(output)})

    def end(self, inputs: Sequence[Path], outputs: Sequence[Path]) -> None:
        """Record that a result is there, whole."""
        files = [_digest(path) for path in outputs]
        self._write({"output": self._key(outputs[-1]), "from": self._digest_of(inputs), "files": files})

    def _key(self, output: Path) -> str:
        return os.fsencode(output.relative_to(self._folder)).decode(errors="backslashreplace")

    def _digest_of(self, inputs: Sequence[Path]) -> str:
        made = hashlib.sha256(self._fingerprint.encode())
        for path in inputs:
            made.update(_digest(path).encode())
        return made.hexdigest()

    def _write(self, line: dict[str, Any]) -> None:
        """Write a whole line at once, so that two runs do not mix; it begins a new line, after a torn one."""
        with self._lock:
            self._lines[line["output"]] = line
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
            try:
                os.write(file, f"\n{json.dumps(line)}".encode())
            finally:
                os.close(file)


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """Read the last line on each result; broken lines are left out."""
    found: dict[str, dict[str, Any]] = {}
    if not path.is_file():
        return found
    with open(path, errors="replace") as file:  # line by line: a folder that is made again and again has a long record
        for text in file:
            try:
                line = json.loads(text)
                found[str(line["output"])] = line
            except (ValueError, TypeError, KeyError, RecursionError):
                continue
    return found


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()

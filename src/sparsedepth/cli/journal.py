"""The record that a run keeps in its output folder, so that a later one knows what is done and can check it.

A line says that a result is about to be written, another one that it is there: what it was made from and the SHA-256 of
each of its files. A run that was killed leaves at most one torn line, which counts for nothing.
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
PIECE = 1 << 20


class Journal:
    """The record of one folder, for one way of making its results; many threads may write to it at once."""

    def __init__(self, folder: Path, making: dict[str, Any]) -> None:
        self._path, self._lock = folder / NAME, Lock()
        self._making = json.dumps(making, sort_keys=True, default=str)
        self._lines = _read(self._path)
        self._folder = folder

    def mentions(self, output: Path) -> bool:
        """Whether this result was begun by one of our runs, so that it may be made again."""
        return self._key(output) in self._lines

    def vouches(self, inputs: Sequence[Path], outputs: Sequence[Path]) -> bool:
        """Whether the result, whose name is the last output's, was made of these inputs and is as it was written."""
        line = self._lines.get(self._key(outputs[-1]))
        if line is None or "files" not in line or len(line["files"]) != len(outputs):
            return False
        try:
            return [_digest(path) for path in outputs] == line["files"] and self._origin(inputs) == line["from"]
        except OSError:
            return False

    def begin(self, output: Path) -> None:
        """A result will be written now."""
        self._write({"output": self._key(output)})

    def end(self, inputs: Sequence[Path], outputs: Sequence[Path]) -> None:
        """It is there, whole."""
        files = [_digest(path) for path in outputs]
        self._write({"output": self._key(outputs[-1]), "from": self._origin(inputs), "files": files})

    def _key(self, output: Path) -> str:
        return os.fsencode(output.relative_to(self._folder)).decode(errors="backslashreplace")

    def _origin(self, inputs: Sequence[Path]) -> str:
        made = hashlib.sha256(self._making.encode())
        for path in inputs:
            made.update(_digest(path).encode())
        return made.hexdigest()

    def _write(self, line: dict[str, Any]) -> None:
        """One write of a whole line, so that those of two runs do not mix; it begins a new line, after a torn one."""
        with self._lock:
            self._lines[line["output"]] = line
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
            try:
                os.write(file, f"\n{json.dumps(line)}".encode())
            finally:
                os.close(file)


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """The last word on each result; lines that make no sense are left out."""
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
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()

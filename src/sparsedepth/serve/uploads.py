"""A multipart upload, taken in piece by piece: every limit holds before the next piece is read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect

from sparsedepth.serve.limits import Limits, Refusal, size

MOST_PARTS = 24
MOST_TEXT = 1000
FRAME = 16 << 10
"""Bytes that boundaries and headers may add to the files."""


@dataclass
class Upload:
    """The texts and files of a form; a file lies in the folder as its field's name and its own suffix."""

    texts: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """Field -> name in the folder."""
    shown: dict[str, str] = field(default_factory=dict)
    """Name in the folder -> name that the user knows it by."""


async def receive(request: Request, folder: Path, limits: Limits, kinds: Mapping[str, frozenset[str]]) -> Upload:
    """Take a form into the folder; ``kinds`` are the fields that are files, each with the suffixes it may have."""
    kind, options = parse_options_header(request.headers.get("content-type"))
    if kind != b"multipart/form-data" or b"boundary" not in options:
        raise Refusal(415, "send a form as multipart/form-data, as curl -F does")
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > limits.bytes + FRAME:
        raise _too_long(limits)
    taking = _Form(folder, kinds)
    try:
        parser = MultipartParser(options[b"boundary"], taking.callbacks())  # pyright: ignore[reportArgumentType]
        taken = 0
        async for piece in _pieces(request, limits):
            taken += len(piece)
            if taken > limits.bytes + FRAME:
                raise _too_long(limits)
            parser.write(piece)
    except FormParserError:
        raise Refusal(422, "the form is broken; send it as multipart/form-data, as curl -F does") from None
    finally:
        taking.close()
    if not taking.complete:
        raise Refusal(422, "the form ends before its last boundary; send it again")
    return taking.upload


def _too_long(limits: Limits) -> Refusal:
    return Refusal(413, f"the upload is longer than {size(limits.bytes)}; send a smaller file")


async def _pieces(request: Request, limits: Limits) -> AsyncIterator[bytes]:
    """The body as it arrives; one that is too slow or breaks off is given up."""
    clock = asyncio.get_running_loop()
    end = clock.time() + limits.upload_seconds
    stream = request.stream()
    while True:
        try:
            piece = await asyncio.wait_for(anext(stream), min(limits.idle_seconds, end - clock.time()))
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise Refusal(408, "the upload is too slow; send it again") from None
        except ClientDisconnect:
            raise Refusal(400, "the upload broke off; send it again") from None
        yield piece


class _Form:
    """What the parser finds, part by part."""

    def __init__(self, folder: Path, kinds: Mapping[str, frozenset[str]]) -> None:
        self.upload, self.complete = Upload(), False
        self._folder, self._kinds = folder, kinds
        self._parts = 0
        self._start()

    def _start(self) -> None:
        self._headers: dict[bytes, bytes] = {}
        self._header, self._value, self._text = b"", b"", b""
        self._name = ""
        self._file: BinaryIO | None = None

    def callbacks(self) -> dict[str, object]:
        names = (
            "part_begin", "header_field", "header_value", "header_end", "headers_finished", "part_data", "part_end",
            "end",
        )  # fmt: skip
        return {f"on_{name}": getattr(self, f"_{name}") for name in names}

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _part_begin(self) -> None:
        self._start()
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise Refusal(422, f"the form has more than {MOST_PARTS} parts")

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        self._headers[self._header.lower()] = self._value
        self._header, self._value = b"", b""

    def _headers_finished(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition"))
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        if not self._name or self._name in self.upload.texts or self._name in self.upload.files:
            raise Refusal(422, f"the form has a part without a name, or {self._name[:50]!r} twice; each comes once")
        if self._name in self._kinds:
            self._open(options.get(b"filename", b"").decode("utf-8", "replace"))

    def _open(self, filename: str) -> None:
        known = self._kinds[self._name]
        suffix = PurePosixPath(filename.replace("\\", "/")).suffix.lower()
        if not filename:
            raise Refusal(422, f"{self._name} must be a file, with its name (curl -F {self._name}=@scan.png)")
        if suffix not in known:
            raise Refusal(415, f"files ending in {suffix[:20]!r} are not known; use one of {', '.join(sorted(known))}")
        stored = self._name + suffix
        self.upload.files[self._name] = stored
        self.upload.shown[stored] = _plain(filename)
        self._file = open(self._folder / stored, "wb")  # noqa: SIM115 (closed at the part's end, or with the form)

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file.write(data[start:end])
            return
        self._text += data[start:end]
        if len(self._text) > MOST_TEXT:
            raise Refusal(422, f"{self._name[:50]!r} is longer than {MOST_TEXT} bytes; that is no option")

    def _part_end(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        else:
            self.upload.texts[self._name] = self._text.decode("utf-8", "replace")

    def _end(self) -> None:
        self.complete = True


def _plain(filename: str) -> str:
    """The last part of a file's name, without anything that could be markup or control, and not endless."""
    last = PurePosixPath(filename.replace("\\", "/")).name
    return re.sub(r"[^\w .()+,-]", "_", last)[-80:]

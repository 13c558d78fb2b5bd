"""Receive a multipart upload in pieces: every limit is checked before the next piece is read."""

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

from sparsedepth.serve.limits import HTTPError, Limits, size

MAX_PARTS = 24
"""Parts of a form, besides the frames of a stream."""
MAX_TEXT_BYTES = 1000
MAX_RECORD_BYTES = 20000
"""Length of a text, and of one that holds the record of a sensor."""
FRAMES = "frames"
"""Field that may come more than once."""
OVERHEAD_BYTES = 16 << 10
"""Bytes that boundaries and headers may add to the files."""


@dataclass
class Upload:
    """The texts and files of a form; a file lies in the folder as its field's name and its own suffix."""

    texts: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """Field -> name in the folder."""
    frames: list[str] = field(default_factory=list)
    """Names in the folder of the frames of a stream, in their order: the one field that may come often."""
    shown: dict[str, str] = field(default_factory=dict)
    """Name in the folder -> name that the user knows it by."""


async def receive(request: Request, folder: Path, limits: Limits, kinds: Mapping[str, frozenset[str]]) -> Upload:
    """Receive a form into the folder; ``kinds`` are the fields that are files, each with its allowed suffixes."""
    kind, options = parse_options_header(request.headers.get("content-type"))
    if kind != b"multipart/form-data" or b"boundary" not in options:
        raise HTTPError(415, "send a form as multipart/form-data, as curl -F does")
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > limits.bytes + OVERHEAD_BYTES:
        raise _too_long(limits)
    form = _Form(folder, kinds, limits.frames)
    try:
        parser = MultipartParser(options[b"boundary"], form.callbacks())  # pyright: ignore[reportArgumentType]
        received = 0
        async for piece in _pieces(request, limits):
            received += len(piece)
            if received > limits.bytes + OVERHEAD_BYTES:
                raise _too_long(limits)
            parser.write(piece)
    except FormParserError:
        raise HTTPError(422, "the form is broken; send it as multipart/form-data, as curl -F does") from None
    finally:
        form.close()
    if not form.complete:
        raise HTTPError(422, "the form ends before its last boundary; send it again")
    return form.upload


def _too_long(limits: Limits) -> HTTPError:
    return HTTPError(413, f"the upload is longer than {size(limits.bytes)}; send a smaller file")


async def _pieces(request: Request, limits: Limits) -> AsyncIterator[bytes]:
    """Yield the body as it arrives; one that is too slow or breaks off is refused."""
    clock = asyncio.get_running_loop()
    end = clock.time() + limits.upload_seconds
    stream = request.stream()
    while True:
        try:
            piece = await asyncio.wait_for(anext(stream), min(limits.idle_seconds, end - clock.time()))
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise HTTPError(408, "the upload is too slow; send it again") from None
        except ClientDisconnect:
            raise HTTPError(400, "the upload broke off; send it again") from None
        yield piece


class _Form:
    """The callbacks of the parser, which fill an `Upload` part by part."""

    def __init__(self, folder: Path, kinds: Mapping[str, frozenset[str]], max_frames: int) -> None:
        self.upload, self.complete = Upload(), False
        self._folder, self._kinds, self._max_frames = folder, kinds, max_frames
        self._parts = 0
        self._start()

    def _start(self) -> None:
        self._headers: dict[bytes, bytes] = {}
        self._header, self._value, self._text = b"", b"", b""
        self._name = ""
        self._file: BinaryIO | None = None

    def callbacks(self) -> dict[str, object]:
        """Return the callbacks by the parser's names."""
        names = (
            "part_begin", "header_field", "header_value", "header_end", "headers_finished", "part_data", "part_end",
            "end",
        )  # fmt: skip
        return {f"on_{name}": getattr(self, f"_{name}") for name in names}

    def close(self) -> None:
        """Close the file that is being received."""
        if self._file is not None:
            self._file.close()

    def _part_begin(self) -> None:
        self._start()
        self._parts += 1
        if self._parts - len(self.upload.frames) > MAX_PARTS:
            raise HTTPError(422, f"the form has more than {MAX_PARTS} parts")

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
            raise HTTPError(422, f"the form has a part without a name, or {self._name[:50]!r} twice; each comes once")
        if self._name in self._kinds:
            self._open(options.get(b"filename", b"").decode("utf-8", "replace"))

    def _open(self, filename: str) -> None:
        known = self._kinds[self._name]
        suffix = PurePosixPath(filename.replace("\\", "/")).suffix.lower()
        if not filename:
            raise HTTPError(422, f"{self._name} must be a file, with its name (curl -F {self._name}=@scan.png)")
        if suffix not in known:
            raise HTTPError(
                415, f"files ending in {suffix[:20]!r} are not known; use one of {', '.join(sorted(known))}"
            )
        stored = self._name + suffix
        if self._name == FRAMES:
            stored = f"{FRAMES}-{len(self.upload.frames):05d}{suffix}"
            self._add_frame(stored)
        else:
            self.upload.files[self._name] = stored
        self.upload.shown[stored] = _plain(filename)
        self._file = open(self._folder / stored, "wb")  # noqa: SIM115 (closed at the part's end, or with the form)

    def _add_frame(self, stored: str) -> None:
        if len(self.upload.frames) >= self._max_frames:
            raise HTTPError(413, f"a stream has at most {self._max_frames} frames here; send fewer")
        self.upload.frames.append(stored)

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file.write(data[start:end])
            return
        self._text += data[start:end]
        longest = MAX_RECORD_BYTES if self._name == "sensor" else MAX_TEXT_BYTES
        if len(self._text) > longest:
            raise HTTPError(422, f"{self._name[:50]!r} is longer than {longest} bytes; that is no option")

    def _part_end(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        else:
            self.upload.texts[self._name] = self._text.decode("utf-8", "replace")

    def _end(self) -> None:
        self.complete = True


def _plain(filename: str) -> str:
    """Return the last part of a file's name, without markup and control characters, at most 80 letters."""
    last = PurePosixPath(filename.replace("\\", "/")).name
    return re.sub(r"[^\w .()+,-]", "_", last)[-80:]

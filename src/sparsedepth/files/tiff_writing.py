"""Encode TIFF files of one page with exactly the tags that are asked for, little-endian, of 32 or 64 bits.

A library adds tags of its own, such as a resolution of one pixel, which other programs then take for the file's.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsedepth.files.stored import Pixels

SHORT, LONG, ASCII, LONG8 = 3, 4, 2, 16
TYPE_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8}
"""Size of the types of tags that every TIFF may hold."""
STRIP_BYTES = 1 << 18
STRIP_OFFSETS, STRIP_SIZES = 273, 279
MAX_CLASSIC_BYTES = (1 << 32) - (1 << 20)
"""Larger files are BigTIFF."""
DEFLATE_LEVEL = 6
SAMPLE_FORMATS = {"u": 1, "i": 2, "f": 3}


@dataclass(frozen=True)
class Tag:
    """A tag of a TIFF: its number, the type and count of its values, and these as little-endian bytes."""

    code: int
    type: int
    count: int
    content: bytes


def text_tag(code: int, text: str) -> Tag:
    """Return a tag that holds a text."""
    content = text.encode() + b"\0"
    return Tag(code, ASCII, len(content), content)


def encode(pixels: Pixels, tags: Sequence[Tag]) -> bytes:
    """Encode a page of deflated strips."""
    rows = max(1, STRIP_BYTES // max(1, pixels.shape[1] * pixels.dtype.itemsize))
    plain = np.ascontiguousarray(pixels, pixels.dtype.newbyteorder("<"))
    strips = [zlib.compress(plain[top : top + rows].tobytes(), DEFLATE_LEVEL) for top in range(0, len(plain), rows)]
    sizes = [len(strip) for strip in strips]
    head, _ = _head(pixels.shape, pixels.dtype, tags, sizes, rows, compression=8)
    return b"".join([head, *strips])


def one_strip(content: bytes, shape: tuple[int, int], compression: int) -> bytes:
    """Return a page of bytes whose only strip was compressed by somebody else."""
    head, _ = _head(shape, np.dtype(np.uint8), [], [len(content)], shape[0], compression)
    return head + content


def start_plain(shape: tuple[int, int], dtype: np.dtype[Any], tags: Sequence[Tag]) -> tuple[bytes, int]:
    """Return the beginning of an uncompressed file, and where its pixels begin."""
    size = shape[0] * shape[1] * dtype.itemsize
    return _head(shape, dtype, tags, [size], shape[0], compression=1)


def _head(
    shape: tuple[int, ...], dtype: np.dtype[Any], tags: Sequence[Tag], sizes: list[int], rows: int, compression: int
) -> tuple[bytes, int]:
    """Return all that comes before the strips, and its length."""
    big = sum(sizes) > MAX_CLASSIC_BYTES
    own = [
        _numbers(256, LONG, shape[1]),
        _numbers(257, LONG, shape[0]),
        _numbers(258, SHORT, 8 * dtype.itemsize),
        _numbers(259, SHORT, compression),
        _numbers(262, SHORT, 1),
        _numbers(STRIP_OFFSETS, LONG8 if big else LONG, *([0] * len(sizes))),
        _numbers(277, SHORT, 1),
        _numbers(278, LONG, rows),
        _numbers(STRIP_SIZES, LONG8 if big else LONG, *sizes),
        _numbers(284, SHORT, 1),
        _numbers(339, SHORT, SAMPLE_FORMATS[dtype.kind]),
    ]
    taken = {tag.code for tag in own}
    chosen = {tag.code: tag for tag in [*own, *(tag for tag in tags if tag.code not in taken)]}
    length = len(_directory(chosen, big))
    offsets = np.cumsum([length, *sizes[:-1]]).tolist()
    chosen[STRIP_OFFSETS] = _numbers(STRIP_OFFSETS, LONG8 if big else LONG, *offsets)
    return _directory(chosen, big), length


def _numbers(code: int, kind: int, *numbers: int) -> Tag:
    letter = {SHORT: "H", LONG: "I", LONG8: "Q"}[kind]
    return Tag(code, kind, len(numbers), struct.pack(f"<{len(numbers)}{letter}", *numbers))


def _directory(tags: dict[int, Tag], big: bool) -> bytes:
    """Return header, directory and values; what does not fit an entry lies behind the directory."""
    header = b"II+\0\x08\0\0\0" + struct.pack("<Q", 16) if big else b"II*\0\x08\0\0\0"
    count, entry, room, place = ("<Q", "<HHQ", 8, "<Q") if big else ("<H", "<HHI", 4, "<I")
    width = struct.calcsize(entry) + room
    behind = len(header) + struct.calcsize(count) + width * len(tags) + room
    entries, values = b"", b""
    for tag in sorted(tags.values(), key=lambda tag: tag.code):
        content = tag.content
        if len(content) > room:
            values += bytes(-(behind + len(values)) % 8)
            content, values = struct.pack(place, behind + len(values)), values + content
        entries += struct.pack(entry, tag.code, tag.type, tag.count) + content.ljust(room, b"\0")
    body = header + struct.pack(count, len(tags)) + entries + bytes(room) + values
    return body + bytes(-len(body) % 16)

"""Changes to files that keep their outer form right, so that what lies within is reached: checksums, lengths."""

from __future__ import annotations

import io
import random
import struct
import zipfile
import zlib
from collections.abc import Callable

Change = Callable[[bytes], bytes]
Mutator = Callable[[bytes, Change, random.Random], bytes]


def mutator_of(name: str) -> Mutator:
    """The mutator for a kind of file; it may raise anything on files that have lost their form."""
    return {
        "png": png,
        "photo": photo,
        "npz": npz,
        "npy": npy,
        "tiff": tiff,
        "exr": exr,
        "dictionary": safetensors,
    }.get(name, plain)


def plain(content: bytes, change: Change, rng: random.Random) -> bytes:
    return change(content)


def png(content: bytes, change: Change, rng: random.Random) -> bytes:
    """One chunk changed, doubled, moved or removed; what is deflated is changed inside, and checksums are right."""
    chunks, at = [], 8
    while at + 12 <= len(content):
        size = int.from_bytes(content[at : at + 4])
        chunks.append((content[at + 4 : at + 8], content[at + 8 : at + 8 + size]))
        at += 12 + size
    index = rng.randrange(len(chunks))
    kind, body = chunks[index]
    what = rng.random()
    if what < 0.1:
        chunks.insert(rng.randrange(len(chunks) + 1), (kind, body))
    elif what < 0.15:
        del chunks[index]
    elif what < 0.2:
        chunks[index] = (rng.choice([b"zTXt", b"iTXt", b"tEXt", b"iCCP", b"eXIf", b"acTL", b"fcTL", b"gAMA"]), body)
    else:
        chunks[index] = (kind, _deflated_within(body, change) if rng.random() < 0.5 else change(body))
    return content[:8] + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


def photo(content: bytes, change: Change, rng: random.Random) -> bytes:
    if content.startswith(b"\x89PNG"):
        return png(content, change, rng)
    return tiff(content, change, rng) if content[:2] in (b"II", b"MM") else change(content)


def _deflated_within(body: bytes, change: Change) -> bytes:
    at = max(body.find(b"\x78"), 0)
    return body[:at] + zlib.compress(change(zlib.decompressobj().decompress(body[at:], 1 << 20)))


def npz(content: bytes, change: Change, rng: random.Random) -> bytes:
    """One array changed inside its archive, or its name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(info.filename, archive.read(info)[: 1 << 20]) for info in archive.infolist()]
    index = rng.randrange(len(members))
    name, body = members[index]
    if rng.random() < 0.15:
        name = rng.choice(["depth", "disparity", "unit", "kind", "scale", "invalid", "values", "x_mm", "../x"]) + ".npy"
    else:
        body = npy(body, change, rng) if rng.random() < 0.5 else change(body)
    members[index] = (name, body)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for name, body in members:
            archive.writestr(zipfile.ZipInfo(name), body)
    return packed.getvalue()


def npy(content: bytes, change: Change, rng: random.Random) -> bytes:
    """The header's text changed, and its length right."""
    size = int.from_bytes(content[8:10], "little")
    text = change(content[10 : 10 + size])[:60_000]
    return content[:8] + len(text).to_bytes(2, "little") + text + content[10 + size :]


def tiff(content: bytes, change: Change, rng: random.Random) -> bytes:
    """One entry of the first directory given another type, count or value."""
    order = "<" if content[:2] == b"II" else ">"
    (start,) = struct.unpack_from(order + "I", content, 4)
    (entries,) = struct.unpack_from(order + "H", content, start)
    at = start + 2 + 12 * rng.randrange(entries)
    tag, kind, count, value = struct.unpack_from(order + "HHII", content, at)
    numbers = [0, 1, 2, 3, 4, 5, 8, 16, 32, 64, 255, 32773, 32946, 0xFFFF, 0x10000, 0xFFFFFFFF, len(content), start]
    what = rng.randrange(5)
    if what == 0:
        kind = rng.randrange(20)
    elif what == 1:
        count = rng.choice(numbers)
    elif what == 2:
        value = rng.choice(numbers)
    elif what == 3:
        tag = rng.choice([256, 257, 258, 259, 262, 270, 273, 274, 277, 278, 279, 284, 317, 322, 324, 339, 42113, 34665])
    else:
        return change(content)
    return content[:at] + struct.pack(order + "HHII", tag, kind, count, value) + content[at + 12 :]


def exr(content: bytes, change: Change, rng: random.Random) -> bytes:
    """The value of one attribute changed and its length right, or a part of the pixels changed."""
    places, at = [], 8
    while content[at]:
        name_end = content.index(0, at)
        type_end = content.index(0, name_end + 1)
        (size,) = struct.unpack_from("<I", content, type_end + 1)
        places.append((type_end + 1, size))
        at = type_end + 5 + size
    if rng.random() < 0.3:
        return content[:at] + change(content[at:])
    at, size = rng.choice(places)
    value = change(content[at + 4 : at + 4 + size])
    if rng.random() < 0.7:
        value = value[:size].ljust(size, b"\0")
    return content[:at] + struct.pack("<I", len(value)) + value + content[at + 4 + size :]


def safetensors(content: bytes, change: Change, rng: random.Random) -> bytes:
    """The JSON at the beginning changed, and its length right."""
    size = int.from_bytes(content[:8], "little")
    text = change(content[8 : 8 + size])
    return len(text).to_bytes(8, "little") + text + content[8 + size :]

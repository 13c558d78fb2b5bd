"""Read and write grey PNG pictures of 8 or 16 bits, by Pillow."""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngImageFile, PngInfo

from sparsedepth.files.profiles import as_text, from_text
from sparsedepth.files.stored import Budget, Pixels, Stored
from sparsedepth.vocabulary import InputError, Profile

KEYWORD = "sparsedepth"


def read(path: Path, budget: Budget) -> Stored:
    """Read the pixels; the header is checked first, hence Pillow's own limit on pictures does not matter."""
    with open(path, "rb") as file:
        size, dtype = _check_header(file.read(29), budget)
    if os.path.getsize(path) > 2 * budget.bytes:
        raise InputError(f"the file is larger than twice the budget of {budget.bytes} bytes (most_bytes)")
    return _stored(path, size, dtype)


def decode(content: bytes, budget: Budget) -> Pixels:
    """Decode the bytes of a PNG file, such as a message holds; the header is checked first."""
    size, dtype = _check_header(content[:29], budget)
    return _stored(io.BytesIO(content), size, dtype).pixels


def _stored(source: Path | io.BytesIO, size: tuple[int, int], dtype: np.dtype) -> Stored:
    with PngImageFile(source) as picture:
        if picture.size != size:
            raise InputError("it has a second header that contradicts the first; it is broken")
        declared = from_text(picture.info.get(KEYWORD))
        return Stored(np.asarray(picture).astype(dtype, copy=False), declared)


def _check_header(head: bytes, budget: Budget) -> tuple[tuple[int, int], np.dtype]:
    """Return width and height, and the type of the pixels, if they are a map within the budget."""
    if head[:8] != b"\x89PNG\r\n\x1a\n" or head[12:16] != b"IHDR" or len(head) < 29:
        raise InputError("it is no PNG file")
    width, height, bits, colour, _, _, interlaced = struct.unpack(">IIBBBBB", head[16:29])
    if colour != 0:
        what = {2: "colour", 3: "palette", 4: "grey with alpha", 6: "colour with alpha"}.get(colour, "unknown")
        raise InputError(f"it is a {what} picture; a map is one grey channel: find the numbers it was painted from")
    if bits not in (8, 16):
        raise InputError(f"it has {bits} bits a pixel; a map has 8 or 16")
    if interlaced:
        raise InputError("it is interlaced; save it without interlacing")
    dtype = np.dtype(f"u{bits // 8}")
    budget.allow((height, width), dtype)
    return (width, height), dtype


def write(pixels: Pixels, profile: Profile | None) -> bytes:
    """Encode a PNG file that also says what its numbers mean."""
    text = PngInfo()
    if profile is not None:
        text.add_text(KEYWORD, as_text(profile))
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "PNG", pnginfo=text)
    return content.getvalue()

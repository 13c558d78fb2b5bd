"""Read strips and tiles of any type of number: libtiff (by Pillow) expands their bytes, and predictors are undone here.

Pillow knows few types of numbers. As bytes it expands all of them, in every compression without loss.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL.TiffImagePlugin import TiffImageFile

from sparsedepth.files.stored import Pixels
from sparsedepth.files.tiff_writing import one_strip
from sparsedepth.vocabulary import InputError

LOSSLESS = (5, 8, 32773, 32946, 34925, 50000)
"""LZW, deflate, packed bits, deflate by its old number, LZMA, Zstandard."""
DIFFERENCES, FLOAT_DIFFERENCES = 2, 3
"""Predictors besides 1 = none: of whole numbers, and of the bytes of floats."""


def can_expand(page: tifffile.TiffPage) -> bool:
    """Tell whether `expand` knows the compression and the predictor of a page."""
    kind = np.dtype(page.dtype).kind
    return page.compression in LOSSLESS and (
        page.predictor in (1, DIFFERENCES) or (page.predictor == 3 and kind == "f")
    )


def expand(page: tifffile.TiffPage) -> Pixels:
    """Return the pixels of a page, in native order; parts that a sparse file leaves out hold its code."""
    dtype = np.dtype(page.dtype)
    pixels = np.full((page.imagelength, page.imagewidth), page.nodata, dtype)
    for place, shape, content in _segments(page):
        part = _numbers(_expanded(content, shape, dtype.itemsize, page.compression), page.predictor, _order(page))
        window = pixels[place]
        window[...] = part.reshape(-1).view(dtype).reshape(shape)[: window.shape[0], : window.shape[1]]
    return pixels


def _order(page: tifffile.TiffPage) -> str:
    return str(page.parent.byteorder)


def _segments(page: tifffile.TiffPage) -> Iterator[tuple[tuple[slice, slice], tuple[int, int], bytes]]:
    """Yield the place of each strip or tile in the map, its shape and its compressed bytes; empty ones are left out."""
    height, width = page.imagelength, page.imagewidth
    rows = page.tilelength if page.is_tiled else min(page.rowsperstrip, height)
    columns = page.tilewidth if page.is_tiled else width
    across = -(-width // max(columns, 1))
    if rows < 1 or columns < 1 or len(page.dataoffsets) != across * -(-height // rows):
        raise InputError(f"it lists {len(page.dataoffsets)} parts, which do not hold all its pixels; it is broken")
    for number, (offset, count) in enumerate(zip(page.dataoffsets, page.databytecounts, strict=True)):
        top, left = number // across * rows, number % across * columns
        if count:
            page.parent.filehandle.seek(offset)
            tall = rows if page.is_tiled else min(rows, height - top)
            place = slice(top, top + rows), slice(left, left + columns)
            yield place, (tall, columns), page.parent.filehandle.read(count)


def _expanded(content: bytes, shape: tuple[int, int], itemsize: int, compression: int) -> NDArray[np.uint8]:
    """Expand a segment to bytes, (rows, columns, bytes of a number)."""
    file = one_strip(content, (shape[0], shape[1] * itemsize), compression)
    with TiffImageFile(io.BytesIO(file)) as picture:
        return np.asarray(picture).reshape(*shape, itemsize)


def _numbers(content: NDArray[np.uint8], predictor: int, order: str) -> NDArray[Any]:
    """Undo the predictor; return whole numbers of the same bits in native order, (rows, columns)."""
    rows, columns, itemsize = content.shape
    if predictor == FLOAT_DIFFERENCES:  # the highest bytes of all numbers of a row come first
        flat = np.cumsum(content.reshape(rows, -1), axis=1, dtype=np.uint8)
        content, order = flat.reshape(rows, itemsize, columns).transpose(0, 2, 1), ">"
    stored = np.ascontiguousarray(content).view(f"{order}u{itemsize}")[..., 0].astype(f"u{itemsize}")
    return np.cumsum(stored, axis=1, dtype=stored.dtype) if predictor == DIFFERENCES else stored

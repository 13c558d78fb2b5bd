"""Read and write one-channel TIFF: tifffile reads headers and plain pixels, libtiff (by Pillow) compressed ones."""

from __future__ import annotations

import logging
import math
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray
from PIL.TiffImagePlugin import COMPRESSION_INFO, TiffImageFile

from sparsedepth.files.stored import CHUNK_BYTES, Budget, Pixels, Stored, preallocate
from sparsedepth.files.tiff_segments import can_expand, expand
from sparsedepth.files.tiff_tags import carried_tags, declared_code, heights, own_profile, tags_to_write
from sparsedepth.files.tiff_writing import encode, start_plain
from sparsedepth.vocabulary import InputError, Metadata, Profile

ORIENTATION = 274
DEFLATE = (8, 32946)
MAX_PAGES = 100
WIDE_TYPES = ("float64", "int32", "uint32")
"""Types of numbers that float32 may not hold, and that a result keeps."""


def read(path: Path, budget: Budget) -> Stored:
    """Read the only full-size page, with the code for unknown pixels that GeoTIFF files declare."""
    with _opened(path, budget) as page:
        pixels = _pixels(path, page)
        if pixels.shape != page.shape:
            raise InputError(f"it holds {pixels.shape} pixels but declares {page.shape}")
        return _with_exact_numbers(_masked(_stored(pixels, page), page))


def _with_exact_numbers(stored: Stored) -> Stored:
    """Keep the numbers of the file for the file that is written, where float32 does not hold them."""
    if stored.metadata is None or stored.pixels.dtype.name not in WIDE_TYPES:
        return stored
    with np.errstate(over="ignore"):
        held = np.array_equal(stored.pixels.astype(np.float32).astype(np.float64), stored.pixels, equal_nan=True)
    return stored if held else replace(stored, metadata=replace(stored.metadata, exact=stored.pixels))


def _masked(stored: Stored, page: tifffile.TiffPage) -> Stored:
    """Give the pixels that a mask of the file hides the code for unknown ones, which a file without one gets here."""
    hidden = _hidden(page)
    if hidden is None:
        return stored
    codes = stored.invalid or (_free_code(stored.pixels),)
    pixels = np.where(hidden, np.array(codes[0]).astype(stored.pixels.dtype), stored.pixels)
    likely = None if stored.likely is None else replace(stored.likely, invalid=codes)
    metadata = None if stored.metadata is None else replace(stored.metadata, code=codes[0])
    return replace(stored, pixels=pixels, invalid=codes, likely=likely, metadata=metadata)


def _free_code(pixels: Pixels) -> float:
    """Return a number that stands for no pixel: NaN, or the smallest or largest whole number that is free."""
    if pixels.dtype.kind == "f":
        return float("nan")
    limits = np.iinfo(pixels.dtype)
    free = [code for code in (int(limits.min), int(limits.max)) if not (pixels == code).any()]
    if not free:
        raise InputError("its mask hides pixels, and no number is left for them; save it with a code (GDAL_NODATA)")
    return float(free[0])


def has_mask(page: tifffile.TiffPage) -> bool:
    """Tell whether the file has a mask of its map."""
    return bool(_masks(page))


def _masks(page: tifffile.TiffPage) -> list[tifffile.TiffPage]:
    """Return the masks of the map, those of overviews left out."""
    masks = [other for other in _other_pages(page.parent) if other.is_mask and not other.is_reduced]
    return [mask for mask in masks if mask.shape == page.shape and mask.bitspersample in (1, 8)]


def _hidden(page: tifffile.TiffPage) -> NDArray[np.bool_] | None:
    """Return the pixels that the mask of the map hides; None = it has no mask."""
    masks = _masks(page)
    if not masks:
        return None
    if masks[0].compression in DEFLATE:
        _check_segments(masks[0], masks[0].bitspersample / 8)
    return masks[0].asarray() == 0


def memory_mapped(path: Path) -> Stored:
    """Map an uncompressed page; tiles are laid out by rows in a temporary file."""
    size = path.stat().st_size
    with _opened(path, Budget(size, size)) as page:
        dtype = np.dtype(page.dtype).newbyteorder(page.parent.byteorder)
        if page.is_memmappable:
            return _stored(np.memmap(path, dtype, "r", page.dataoffsets[0], page.shape), page)
        with tempfile.TemporaryFile() as file:
            preallocate(file, page.imagelength * page.imagewidth * dtype.itemsize)
            pixels = np.memmap(file, np.dtype(page.dtype), "r+", 0, page.shape)
        for part, (_, _, top, left, _), shape in page.segments():
            if part is not None:
                rows, columns = min(shape[1], page.imagelength - top), min(shape[2], page.imagewidth - left)
                pixels[top : top + rows, left : left + columns] = part[0, :rows, :columns, 0]
        return _stored(pixels, page)


@contextmanager
def _opened(path: Path, budget: Budget) -> Iterator[tifffile.TiffPage]:
    """Open the only full-size page of a file, within the budget."""
    logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # what is broken is reported once, as our error
    with tifffile.TiffFile(path) as file:
        page = file.pages.first
        _check_header(page, budget)
        if any(not (other.is_reduced or other.is_mask) for other in _other_pages(file)):
            raise InputError("it holds several pages; a map is one: save the page you mean")
        yield page


def _other_pages(file: tifffile.TiffFile) -> list[tifffile.TiffPage]:
    """Return the first pages after the map: overviews and masks, or maps of their own."""
    return [page for page in islice(file.pages, 1, MAX_PAGES) if isinstance(page, tifffile.TiffPage)]


def _check_header(page: tifffile.TiffPage, budget: Budget) -> None:
    if page.dtype is None:
        raise InputError(f"it has {page.bitspersample} bits a pixel; a map has 8, 16, 32 or 64")
    if page.photometric != 1:
        colours = getattr(page.photometric, "name", page.photometric)
        raise InputError(f"its colours are {colours}; a map is grey with black = 0 (MINISBLACK)")
    orientation = page.tags.get(ORIENTATION)
    if orientation is not None and orientation.value != 1:
        raise InputError("its orientation tag turns or flips it; save it upright")
    budget.allow(page.shape, page.dtype)
    if page.is_tiled:
        budget.allow_amount(page.tilewidth, page.tilelength, page.dtype.itemsize)


def _pixels(path: Path, page: tifffile.TiffPage) -> Pixels:
    dtype = np.dtype(page.dtype)
    if page.compression == 1:
        return page.asarray()
    if page.compression in DEFLATE and page.predictor in (1, 2):
        _check_segments(page, dtype.itemsize)
        return page.asarray()
    swapped = dtype in (np.int16, np.float32) and page.parent.byteorder == ">"  # Pillow turns these once more
    known = page.compression in COMPRESSION_INFO and 0 not in page.databytecounts  # 0 = a part that is left out
    if known and dtype in (np.uint8, np.uint16, np.int16, np.float32) and not swapped:
        with TiffImageFile(path) as picture:  # opened directly: the budget that counts is ours
            return np.asarray(picture).astype(dtype, copy=False)
    if can_expand(page):
        return expand(page)
    by = getattr(page.compression, "name", page.compression)
    raise InputError(f"its {dtype} numbers are compressed by {by} in a way that is not read; save it by plain deflate")


def _check_segments(page: tifffile.TiffPage, itemsize: float) -> None:
    """Refuse a compressed segment that inflates to more than it may hold, before it fills the memory."""
    rows = page.tilelength if page.is_tiled else min(page.rowsperstrip, page.imagelength)
    columns = page.tilewidth if page.is_tiled else page.imagewidth
    allowed = rows * math.ceil(columns * itemsize)
    most = -(-page.imagelength // max(rows, 1)) * -(-page.imagewidth // max(columns, 1))
    if len(page.dataoffsets) > most:  # each would be inflated, and all may lie in the same place
        raise InputError(f"it lists {len(page.dataoffsets)} parts where {most} hold all its pixels; it is broken")
    for offset, count in zip(page.dataoffsets, page.databytecounts, strict=True):
        page.parent.filehandle.seek(offset)
        inflate, left = zlib.decompressobj(), page.parent.filehandle.read(count)
        size = 0
        while left and not inflate.eof:
            size += len(inflate.decompress(left, CHUNK_BYTES))
            left = inflate.unconsumed_tail
            if size > allowed:
                raise InputError(f"a compressed part of it holds more than the {allowed} bytes it may; it is broken")


def _stored(pixels: Pixels, page: tifffile.TiffPage) -> Stored:
    """Return pixels with all that the page says of them."""
    metadata, code = carried_tags(page), declared_code(page)
    codes = None if code is None else (code,)
    return Stored(pixels, own_profile(page), codes, likely=heights(metadata, code), metadata=metadata)


def write(pixels: Pixels, profile: Profile | None, metadata: Metadata | None = None) -> bytes:
    """Encode deflated TIFF that says what its numbers mean, with GeoTIFF's code for unknown pixels."""
    return encode(pixels, tags_to_write(profile, metadata))


def new_file(
    path: Path,
    shape: tuple[int, int],
    dtype: np.dtype[Any],
    profile: Profile | None,
    metadata: Metadata | None = None,
) -> int:
    """Create an uncompressed TIFF to be filled later; return where its pixels begin."""
    head, begin = start_plain(shape, dtype, tags_to_write(profile, metadata))
    path.write_bytes(head)
    return begin

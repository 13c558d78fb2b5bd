"""Depth and disparity maps in the files that cameras and data sets write: suffix -> reader.

In memory a map is float32 with NaN where nothing is known. Integer files hold 0 there, PFM files infinity. Headers are
read before pixels: a file that promises more than the budget is refused before memory is taken. Nothing is unpickled.
"""

from __future__ import annotations

import logging
import math
import os
import struct
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.lib.format as npy
import tifffile
from PIL import Image

from sparsedepth.vocabulary import DepthMap, Floats, InputError

MOST_PIXELS = 1 << 28


def read_map(path: str | Path, *, scale: float = 1.0, most_pixels: int = MOST_PIXELS) -> DepthMap:
    """A map as float32, values divided by ``scale`` (Middlebury's 3, TUM's 5000, ...), NaN = unknown.

    Integer files: 0 is unknown. Float files: NaN and infinities are.
    """
    path = Path(path)
    reader = FORMATS.get(path.suffix.lower())
    if reader is None:
        raise InputError(
            f"{path}: files ending in {path.suffix!r} are not read; use one of {', '.join(sorted(FORMATS))}"
        )
    if not os.path.isfile(path):
        raise InputError(f"there is no file {path}")
    if not (math.isfinite(scale) and scale > 0):
        raise InputError(f"the scale is {scale!r}; it must be a positive number")
    try:
        values = reader(path, most_pixels)
    except InputError:
        raise
    except Exception as error:  # decoders fail in many ways on broken or hostile files; all mean the same to the user
        raise InputError(f"{path} cannot be read as {path.suffix}: {error or type(error).__name__}") from None
    if values.ndim != 2 or values.dtype.kind not in "fiu":
        raise InputError(f"{path} holds {values.dtype} of shape {values.shape}; a map has one real number a pixel")
    known = values != 0 if values.dtype.kind in "iu" else np.isfinite(values)
    depth = np.where(known, values, np.nan) / scale
    if np.nanmax(np.abs(depth), initial=0) > np.finfo(np.float32).max:
        raise InputError(f"{path} holds values beyond the range of float32; give a larger scale")
    return depth.astype(np.float32)


def _within(budget: int, shape: tuple[int, ...], path: Path) -> None:
    if math.prod(shape) > budget:
        raise InputError(f"{path} promises {' x '.join(map(str, shape))} pixels; the budget is {budget} (most_pixels)")


def _read_picture(path: Path, budget: int) -> Floats:
    with open(path, "rb") as file:
        head = file.read(25)
    if head[:8] == b"\x89PNG\r\n\x1a\n" and len(head) == 25:
        width, height = struct.unpack(">II", head[16:24])
        _within(budget, (width, height), path)
        if head[24] not in (8, 16):
            raise InputError(f"{path} has {head[24]} bits a pixel; a map has 8 or 16")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the budget has been checked
        with Image.open(path, formats=("PNG",)) as picture:
            if picture.mode not in ("L", "I;16", "I;16B", "I"):
                raise InputError(f"{path} has colour mode {picture.mode}; a map is grey, 8 or 16 bits")
            return np.asarray(picture)


def _read_pgm(path: Path, budget: int) -> Floats:
    """Binary PGM with its values as they are, whatever the largest one the header allows."""
    with open(path, "rb") as file:
        words: list[bytes] = []
        while len(words) < 4:
            line = file.readline(256)
            if not line:
                raise InputError(f"{path} is no PGM file")
            words += line.split(b"#")[0].split()
        if words[0] != b"P5" or len(words) != 4:
            raise InputError(f"{path} is no binary PGM file (P5)")
        width, height, largest = (int(word) for word in words[1:])
        _within(budget, (width, height), path)
        return _pixels(file, ">u2" if largest > 255 else "u1", width, height, path)


def _pixels(file: BinaryIO, kind: str | np.dtype[Any], width: int, height: int, path: Path) -> Floats:
    """The rest of a file as a map, if it is all there."""
    if width <= 0 or height <= 0:
        raise InputError(f"{path} promises {width} x {height} pixels")
    pixels = np.fromfile(file, kind, count=width * height)
    if pixels.size != width * height:
        raise InputError(f"{path} ends after {pixels.size} of {width * height} pixels; copy it again")
    return pixels.reshape(height, width)


def _read_tiff(path: Path, budget: int) -> Floats:
    logging.getLogger("tifffile").setLevel(logging.CRITICAL)  # what is broken is said once, as our error
    with tifffile.TiffFile(path) as file:
        _within(budget, file.pages[0].shape, path)
        return file.pages[0].asarray()


def _read_npy(path: Path, budget: int) -> Floats:
    with open(path, "rb") as file:
        version = npy.read_magic(file)
        header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, transposed, kind = header(file)
        if kind.hasobject or len(shape) != 2:
            raise InputError(f"{path} holds {kind} of shape {shape}; a map has one real number a pixel")
        _within(budget, shape, path)
        height, width = reversed(shape) if transposed else shape
        values = _pixels(file, kind, width, height, path)
        return values.T if transposed else values


def _read_pfm(path: Path, budget: int) -> Floats:
    with open(path, "rb") as file:
        kind, size, scale = (file.readline(64).split() for _ in range(3))
        if kind != [b"Pf"] or len(size) != 2 or len(scale) != 1:
            raise InputError(f"{path} is no one-channel PFM file")
        width, height = (int(n) for n in size)
        _within(budget, (width, height), path)
        return _pixels(file, "<f4" if float(scale[0]) < 0 else ">f4", width, height, path)[::-1]


FORMATS: dict[str, Callable[[Path, int], Floats]] = {
    ".png": _read_picture,
    ".pgm": _read_pgm,
    ".tif": _read_tiff,
    ".tiff": _read_tiff,
    ".npy": _read_npy,
    ".pfm": _read_pfm,
}

"""Depth and disparity maps in the files that cameras and data sets write: suffix -> reader.

In memory a map is float32 with NaN where nothing is known. Integer files hold 0 there, PFM files infinity. Headers are
read before pixels: a file that promises more than the budget is refused before memory is taken. Nothing is unpickled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tifffile
from PIL import Image, UnidentifiedImageError

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
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    if not (math.isfinite(scale) and scale > 0):
        raise InputError(f"the scale is {scale!r}; it must be a positive number")
    try:
        values = reader(path, most_pixels)
    except InputError:
        raise
    except (OSError, ValueError, KeyError, EOFError, tifffile.TiffFileError, UnidentifiedImageError) as error:
        raise InputError(f"{path} cannot be read as {path.suffix}: {error}") from None
    if values.ndim != 2 or values.dtype.kind not in "fiu":
        raise InputError(f"{path} holds {values.dtype} of shape {values.shape}; a map has one real number a pixel")
    depth = values.astype(np.float32) / np.float32(scale)
    unknown = values == 0 if values.dtype.kind in "iu" else ~np.isfinite(values)
    return np.where(unknown, np.float32(np.nan), depth)


def _within(budget: int, shape: tuple[int, ...], path: Path) -> None:
    if math.prod(shape) > budget:
        raise InputError(f"{path} promises {' x '.join(map(str, shape))} pixels; the budget is {budget} (most_pixels)")


def _read_picture(path: Path, budget: int) -> Floats:
    with Image.open(path, formats=("PNG", "PPM")) as picture:
        _within(budget, picture.size, path)
        if picture.mode not in ("L", "I;16", "I;16B", "I"):
            raise InputError(f"{path} has colour mode {picture.mode}; a map is grey, 8 or 16 bits")
        return np.asarray(picture)


def _read_tiff(path: Path, budget: int) -> Floats:
    with tifffile.TiffFile(path) as file:
        _within(budget, file.pages[0].shape, path)
        return file.pages[0].asarray()


def _read_npy(path: Path, budget: int) -> Floats:
    values = np.load(path, mmap_mode="r", allow_pickle=False)
    _within(budget, values.shape, path)
    return np.asarray(values)


def _read_pfm(path: Path, budget: int) -> Floats:
    with open(path, "rb") as file:
        kind, size, scale = (file.readline(64).split() for _ in range(3))
        if kind != [b"Pf"] or len(size) != 2 or len(scale) != 1:
            raise InputError(f"{path} is no one-channel PFM file")
        width, height = (int(n) for n in size)
        if width <= 0 or height <= 0:
            raise InputError(f"{path} promises {width} x {height} pixels")
        _within(budget, (width, height), path)
        pixels = np.fromfile(file, "<f4" if float(scale[0]) < 0 else ">f4", count=width * height)
    if pixels.size != width * height:
        raise InputError(f"{path} ends after {pixels.size} of {width * height} pixels; copy it again")
    return pixels.reshape(height, width)[::-1].astype(np.float32)


FORMATS: dict[str, Callable[[Path, int], Floats]] = {
    ".png": _read_picture,
    ".pgm": _read_picture,
    ".tif": _read_tiff,
    ".tiff": _read_tiff,
    ".npy": _read_npy,
    ".pfm": _read_pfm,
}

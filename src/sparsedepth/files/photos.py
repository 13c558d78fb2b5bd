"""Read photographs, grey or in colour, by Pillow: the views of a stereo pair or a guide, not maps."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from sparsedepth.files.errors import describe_errors
from sparsedepth.files.stored import Pixels
from sparsedepth.vocabulary import InputError, TooLargeError

PICTURE_KINDS = ("PNG", "JPEG", "PPM", "TIFF", "BMP", "WEBP")
PHOTO_SUFFIXES = (".png", ".jpg", ".jpeg", ".ppm", ".pgm", ".tif", ".tiff", ".bmp", ".webp")
MOST_PIXELS = 1 << 27


def read_photo(path: str | Path, *, most_pixels: int = MOST_PIXELS) -> Pixels:
    """Read the pixels of a photograph, without transparency.

    Parameters
    ----------
    path
        PNG, JPEG, PPM, TIFF, BMP or WebP.
    most_pixels
        A picture of more pixels, by its header, is refused before it is decoded.

    Returns
    -------
    (height, width) or (height, width, 3). Bytes are uint8 and 16-bit grey is uint16. Pillow gives but the upper byte of
    16-bit colours.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "photo.png"
    >>> Image.new("RGB", (4, 3)).save(path)
    >>> read_photo(path).shape
    (3, 4, 3)
    """
    path = Path(path)
    if not os.path.isfile(path):
        raise InputError(f"there is no file {path}")
    with describe_errors(path):
        return _photo(path, most_pixels)


def _photo(path: Path, most_pixels: int) -> Pixels:
    try:
        with Image.open(path, formats=PICTURE_KINDS) as picture:
            if picture.width * picture.height > most_pixels:
                declared = f"it declares {picture.width} x {picture.height} pixels"
                raise TooLargeError(f"{declared}; the budget is {most_pixels} pixels (most_pixels)")
            return _pixels(picture)
    except UnidentifiedImageError:
        raise InputError(f"it is no photograph of a known kind; use one of {', '.join(PICTURE_KINDS)}") from None
    except Image.DecompressionBombError:
        raise TooLargeError("it declares more pixels than a photograph should have; cut it into parts") from None


def _pixels(picture: Image.Image) -> Pixels:
    if picture.mode in ("L", "RGB", "F"):
        return np.asarray(picture)
    if picture.mode.startswith("I"):
        return _as_16_bits(np.asarray(picture))
    return np.asarray(picture.convert("L" if picture.mode in ("1", "LA", "La") else "RGB"))


def _as_16_bits(pixels: Pixels) -> Pixels:
    if pixels.min() < 0 or pixels.max() > 65535:
        raise InputError(f"it holds numbers from {pixels.min()} to {pixels.max()}; a photograph has 8 or 16 bits")
    return pixels.astype(np.uint16)

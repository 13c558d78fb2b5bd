"""Photographs, grey or in colour, through Pillow: the views of a stereo pair, not maps."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from sparsedepth.files.stored import Pixels
from sparsedepth.vocabulary import InputError

KINDS = ("PNG", "JPEG", "PPM", "TIFF", "BMP", "WEBP")


def read_photo(path: str | Path) -> Pixels:
    """The pixels of a photograph, (height, width) or (height, width, 3); transparency is left out.

    Bytes are uint8 and 16-bit grey is uint16. Pillow gives but the upper byte of 16-bit colours.
    """
    path = Path(path)
    if not os.path.isfile(path):
        raise InputError(f"there is no file {path}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=KINDS) as picture:
                return _pixels(picture)
    except UnidentifiedImageError:
        raise InputError(f"{path} is no photograph of a known kind; use one of {', '.join(KINDS)}") from None
    except (Image.DecompressionBombWarning, Image.DecompressionBombError):
        raise InputError(f"{path} promises more pixels than a photograph should have; cut it into parts") from None
    except MemoryError:
        raise
    except Exception as error:  # decoders fail in many ways on broken or hostile files; all mean the same to the user
        raise InputError(f"{path} cannot be read: {str(error) or type(error).__name__}; is it whole?") from None


def _pixels(picture: Image.Image) -> Pixels:
    if picture.mode in ("L", "RGB", "F"):
        return np.asarray(picture)
    if picture.mode.startswith("I"):
        return np.asarray(picture).astype(np.uint16)
    return np.asarray(picture.convert("L" if picture.mode in ("1", "LA", "La") else "RGB"))

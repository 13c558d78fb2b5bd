"""Formats by suffix: how to read and write each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sparsedepth.files import colmap, exr, netpbm, numpy_arrays, png, record3d, tiff
from sparsedepth.files.bags import BAG_SUFFIXES
from sparsedepth.files.stored import Budget, Pixels, Stored
from sparsedepth.vocabulary import InputError, Metadata, Profile


@dataclass(frozen=True)
class Format:
    """A reader of files and an encoder of their bytes.

    Parameters
    ----------
    read
        (path, budget) -> `Stored`: the pixels, and what the file says of them.
    write
        (pixels, profile) -> the bytes of a file.
    integers
        Whether it holds uint8 and uint16; others hold float32.
    unknown
        What float files hold where nothing is known.
    says_meaning
        Whether the file carries its profile.
    carries
        Name of the `Metadata` that the format holds; its encoder takes them as a third argument.

    Examples
    --------
    >>> FORMATS[".png"].integers, FORMATS[".tiff"].carries
    (True, 'tiff')
    """

    read: Callable[[Path, Budget], Stored]
    write: Callable[..., bytes]
    integers: bool = False
    unknown: float = math.nan
    says_meaning: bool = False
    carries: str = ""

    def encode(self, pixels: Pixels, profile: Profile | None, metadata: Metadata | None = None) -> bytes:
        """Encode a file with its metadata, if the format holds them."""
        if metadata is not None and metadata.format == self.carries:
            return self.write(pixels, profile, metadata)
        return self.write(pixels, profile)


_TIFF = Format(tiff.read, tiff.write, says_meaning=True, carries="tiff")

FORMATS: dict[str, Format] = {
    ".png": Format(png.read, png.write, integers=True, says_meaning=True),
    ".pgm": Format(netpbm.read_pgm, netpbm.write_pgm, integers=True),
    ".pfm": Format(netpbm.read_pfm, netpbm.write_pfm, unknown=math.inf),
    ".bin": Format(colmap.read, colmap.write, unknown=colmap.UNKNOWN),
    ".tif": _TIFF,
    ".tiff": _TIFF,
    ".npy": Format(numpy_arrays.read_npy, numpy_arrays.write_npy),
    ".npz": Format(numpy_arrays.read_npz, numpy_arrays.write_npz, says_meaning=True),
    ".exr": Format(exr.read, exr.write, says_meaning=True, carries="exr"),
}


def format_of(path: Path) -> Format:
    """Return the format that a file's suffix names."""
    if path.suffix.lower() in (*BAG_SUFFIXES, record3d.SUFFIX, ".zip"):
        raise InputError(
            f"{path} holds several frames; use sparsedepth stream, or sparsedepth.files.frames.read_frames"
        )
    if path.suffix.lower() not in FORMATS:
        known = ", ".join(sorted(FORMATS))
        raise InputError(f"{path}: files ending in {path.suffix!r} are not known; use one of {known}")
    return FORMATS[path.suffix.lower()]

"""Read and write one channel of an OpenEXR picture: Z, or the only one. Needs the extra ``sparsedepth[exr]``."""

from __future__ import annotations

import contextlib
import io
import tempfile
from copy import deepcopy
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from sparsedepth.files.profiles import as_text, from_text
from sparsedepth.files.stored import Budget, Pixels, Stored
from sparsedepth.vocabulary import InputError, Metadata, Profile

ATTRIBUTE = "sparsedepth"
FORMAT = "exr"
STRUCTURE = frozenset(
    ("channels", "compression", "type", "lineOrder", "tiles", "name", "view", "version", "chunkCount", "preview")
) | {ATTRIBUTE, "dwaCompressionLevel", "maxSamplesPerPixel"}
"""Attributes that belong to the layout of a file, which each writer chooses."""
DEPTH_LAYERS = {"depth", "zdepth"}
"""Parts of the names of channels of depth, as in ViewLayer.Depth.Z of Blender."""
_REDIRECTING = Lock()
"""Standard output belongs to the process: two threads that redirect it at once would not restore it."""


def _library() -> Any:
    try:
        import OpenEXR
    except ImportError:
        raise InputError("EXR files need the package OpenEXR; install it: pip install 'sparsedepth[exr]'") from None
    return OpenEXR


def read(path: Path, budget: Budget) -> Stored:
    """Read the pixels of the data window; all channels count against the budget, since they are all decoded."""
    library = _library()
    with open(path, "rb") as start:
        magic = start.read(4)
    if magic != b"v/1\x01":
        raise InputError("it is no EXR file")
    with library.File(str(path), separate_channels=True, header_only=True) as file:
        if len(file.parts) != 1:
            raise InputError(f"it has {len(file.parts)} parts; a map is one: save the part you mean")
        header = file.header()  # empty once the file is closed
        channel, declared = _check_header(header, library, budget), from_text(header.get(ATTRIBUTE))
        metadata = _attributes(header)
    return Stored(_pixels(path, channel, library), declared, metadata=metadata)


def _attributes(header: dict[str, Any]) -> Metadata | None:
    """Return the attributes that a file has beyond those of its structure: windows, camera, dates, names."""
    kept = [name for name, value in header.items() if name not in STRUCTURE and _is_plain(value)]
    return Metadata(FORMAT, tuple((name, deepcopy(header[name])) for name in kept)) if kept else None


def _is_plain(value: Any) -> bool:
    """Tell whether an attribute is a text, numbers, or several of them; others belong to the library."""
    if isinstance(value, tuple | list):
        return all(_is_plain(each) for each in value)
    return isinstance(value, str | int | float | np.ndarray)


def _fits(name: str, value: Any, shape: tuple[int, ...]) -> bool:
    """Tell whether an attribute still holds: the window of a map that was cut does not."""
    if name != "dataWindow":
        return True
    first, last = value
    return (int(last[1]) - int(first[1]) + 1, int(last[0]) - int(first[0]) + 1) == shape


def _pixels(path: Path, channel: str, library: Any) -> Pixels:
    """Read the pixels of a channel; the library prints what it could not decode, and goes on."""
    printed = io.StringIO()
    with _REDIRECTING, contextlib.redirect_stdout(printed), library.File(str(path), separate_channels=True) as file:
        if printed.getvalue():
            raise InputError("its pixels cannot be decoded; copy it again")
        return np.array(file.channels()[channel].pixels)


def _check_header(header: dict[str, Any], library: Any, budget: Budget) -> str:
    """Return the name of the channel to read, if the picture is flat and within the budget."""
    if header.get("type") in (library.deepscanline, library.deeptile):
        raise InputError("it is a deep picture; flatten it to one depth a pixel")
    channels = {channel.name: channel for channel in header["channels"]}
    names = list(channels)
    name = _depth_among(names)
    if (channels[name].xSampling, channels[name].ySampling) != (1, 1):
        raise InputError(f"its channel {name} leaves out pixels (sub-sampling); save it whole")
    first, last = header["dataWindow"]
    width, height = (int(b) - int(a) + 1 for a, b in zip(first, last, strict=True))
    budget.allow((height, width), np.dtype(np.float32))
    budget.allow_amount(width, height, 4 * len(names))
    return name


def _depth_among(names: list[str]) -> str:
    """Return the name of the channel that holds depths: Z, the only one, or the only one of a layer of depths."""
    if "Z" in names or len(names) == 1:
        return "Z" if "Z" in names else names[0]
    named = [name for name in names if DEPTH_LAYERS & set(name.lower().split("."))]
    if len(named) != 1:
        shown = ", ".join(names[:20])
        raise InputError(f"it has the channels {shown}; a map is the channel Z, the only one, or the one of depth")
    return named[0]


def write(pixels: Pixels, profile: Profile | None, metadata: Metadata | None = None) -> bytes:
    """Encode channel Z, without loss, what its numbers mean, and the attributes that came with them."""
    library = _library()
    entries = () if metadata is None else metadata.entries
    header: dict[str, Any] = {name: value for name, value in entries if _fits(name, value, pixels.shape)}
    header |= {"compression": library.ZIP_COMPRESSION, "type": library.scanlineimage}
    if profile is not None:
        header[ATTRIBUTE] = as_text(profile)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "map.exr"
        with library.File(header, {"Z": np.ascontiguousarray(pixels, np.float32)}) as file:
            file.write(str(path))
        return path.read_bytes()

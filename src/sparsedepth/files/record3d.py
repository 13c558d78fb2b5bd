"""Read recordings of Record3D (iPhone, iPad), zips of depths and confidences; needs ``sparsedepth[phone]``."""

from __future__ import annotations

import ctypes
import json
import math
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsedepth.files.errors import describe_errors
from sparsedepth.files.stored import Budget
from sparsedepth.vocabulary import DepthImage, InputError, TooLargeError

SUFFIX = ".r3d"
MAX_MEMBERS = 200_000
"""Files of a recording that are looked at; a frame has three."""
MAX_METADATA_BYTES = 1 << 24
MAX_OVERHEAD_BYTES = 1 << 12
"""Of compressed numbers that could not be made shorter."""
KNOWN_SIZES = ((256, 192), (640, 480))
"""Long and short side of the depths of older recordings, which do not say it: LiDAR, TrueDepth."""
LOW = 0
"""The lowest confidence; such a depth is as good as missing (see `confidence_variance`)."""
_DEPTH = re.compile(r"rgbd/(\d{1,9})\.depth")


@dataclass(frozen=True)
class Recording:
    """What a recording holds.

    Parameters
    ----------
    frames
        Number of frames with depths.
    shape
        Height and width of a depth map, in pixels.
    intrinsics
        (fx, fy, cx, cy) of the depths in pixels; None = the recording does not say them.
    """

    frames: int
    shape: tuple[int, int]
    intrinsics: tuple[float, float, float, float] | None


@dataclass(frozen=True, eq=False)
class PhoneFrame:
    """A frame of a recording: its number, its depths in metres, and its confidences.

    ``confidence`` is (height, width) uint8: 0 low, 1 medium, 2 high; None = there is none.
    """

    name: str
    image: DepthImage
    confidence: NDArray[np.uint8] | None


def describe_recording(path: str | Path) -> Recording:
    """Find the number of frames of a recording, their size and the intrinsics of their camera.

    Parameters
    ----------
    path
        A file of Record3D, .r3d.

    Returns
    -------
    Recording

    Raises
    ------
    InputError
        If it cannot be read as one.
    """
    found = _existing(path)
    with describe_errors(found), zipfile.ZipFile(found) as archive:
        return _described(archive)[0]


def read_recording(path: str | Path, *, most_pixels: int = 1 << 28, most_bytes: int = 1 << 31) -> Iterator[PhoneFrame]:
    """Read the frames of a recording one after the other.

    Parameters
    ----------
    path
        A file of Record3D, .r3d.
    most_pixels, most_bytes
        Limits of one frame; more is refused before memory is allocated.

    Yields
    ------
    PhoneFrame
        0 and NaN are missing.

    Raises
    ------
    InputError
        If it cannot be read as a recording.
    """
    found, budget = _existing(path), Budget(most_pixels, most_bytes)
    with describe_errors(found):
        archive = zipfile.ZipFile(found)
    with archive:
        with describe_errors(found):
            recording, names = _described(archive)
            budget.allow(recording.shape, np.dtype("<f4"))
        for name in names:
            with describe_errors(found):
                frame = _frame(archive, name, recording.shape)
            yield frame


def without_low_confidence(frame: PhoneFrame) -> DepthImage:
    """Return the depths of a frame whose confidence is not low; the others are missing."""
    if frame.confidence is None:
        return frame.image
    values = np.where(frame.confidence == LOW, np.float32(np.nan), frame.image.values)
    return DepthImage(values, frame.image.unit, frame.image.kind)


def _existing(path: str | Path) -> Path:
    if not Path(path).is_file():
        raise InputError(f"there is no file {path}")
    return Path(path)


def _described(archive: zipfile.ZipFile) -> tuple[Recording, list[str]]:
    """Return what the metadata say, and the names of the depths in the order of their numbers."""
    members = archive.namelist()
    if len(members) > MAX_MEMBERS:
        raise TooLargeError(f"it holds {len(members)} files; at most {MAX_MEMBERS} are looked at")
    names = sorted(filter(_DEPTH.fullmatch, members), key=_number)
    if "metadata" not in members or not names:
        raise InputError("it holds no metadata or no depths; export it from Record3D as r3d")
    facts = json.loads(_content(archive, "metadata", MAX_METADATA_BYTES))
    if not isinstance(facts, dict):
        raise InputError("its metadata are no record of names and values; export it again")
    shape = _shape(facts) or _likely_shape(archive, names[0], facts)
    return Recording(len(names), shape, _intrinsics(facts, shape)), names


def _number(name: str) -> int:
    return int(name.removeprefix("rgbd/").partition(".")[0])


def _content(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    """Return the bytes of a member, if there are not more of them than allowed."""
    member = archive.getinfo(name)
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # the others inflate without a limit
        raise InputError(f"{name} in it is compressed in an unusual way; export it again")
    with archive.open(member) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise TooLargeError(f"{name} in it is longer than {most} bytes")
    return content


def _shape(facts: dict[str, Any]) -> tuple[int, int] | None:
    """Return height and width of the depths that the metadata declare; older recordings do not."""
    height, width = facts.get("dh"), facts.get("dw")
    if not (isinstance(height, int) and isinstance(width, int)):
        return None
    if min(height, width) <= 0:
        raise InputError(f"its metadata declare {width} x {height} depths; a map has at least one")
    return height, width


def _likely_shape(archive: zipfile.ZipFile, name: str, facts: dict[str, Any]) -> tuple[int, int]:
    """Return the shape that the first depths fit, upright if the photographs are."""
    most = 4 * max(math.prod(sides) for sides in KNOWN_SIZES)
    length = len(_inflate(_content(archive, name, most + MAX_OVERHEAD_BYTES), most))
    for long, short in KNOWN_SIZES:
        if length == 4 * long * short:
            return (long, short) if _positive(facts, "h") > _positive(facts, "w") else (short, long)
    raise InputError(f"its depths have {length} bytes and its metadata no dw and dh; export it with a newer Record3D")


def _positive(facts: dict[str, Any], name: str) -> float:
    value = facts.get(name)
    return float(value) if isinstance(value, int | float) and value > 0 else math.nan


def _intrinsics(facts: dict[str, Any], shape: tuple[int, int]) -> tuple[float, float, float, float] | None:
    """Return the intrinsics of the depths: those of the photographs (K, by columns), at the depths' size."""
    matrix, width, height = facts.get("K"), _positive(facts, "w"), _positive(facts, "h")
    if not isinstance(matrix, list) or len(matrix) != 9 or not all(isinstance(n, int | float) for n in matrix):
        return None
    across, down = shape[1] / width, shape[0] / height
    fx, fy = matrix[0] * across, matrix[4] * down
    cx, cy = (matrix[6] + 0.5) * across - 0.5, (matrix[7] + 0.5) * down - 0.5
    found = np.array([fx, fy, cx, cy], np.float64)
    return (fx, fy, cx, cy) if np.isfinite(found).all() and min(fx, fy) > 0 else None


def _frame(archive: zipfile.ZipFile, name: str, shape: tuple[int, int]) -> PhoneFrame:
    depth = _pixels(archive, name, shape, "<f4")
    partner = name.replace(".depth", ".conf")
    confidence = _pixels(archive, partner, shape, "u1") if partner in archive.NameToInfo else None
    if confidence is not None and confidence.max() > 2:
        raise InputError(f"{partner} in it holds {confidence.max()}; confidences are 0, 1 and 2")
    image = DepthImage(np.where(depth > 0, depth, np.float32(np.nan)), "m")
    return PhoneFrame(f"{_number(name):06d}", image, confidence)


def _pixels(archive: zipfile.ZipFile, name: str, shape: tuple[int, int], dtype: str) -> NDArray[Any]:
    wanted = math.prod(shape) * np.dtype(dtype).itemsize
    content = _inflate(_content(archive, name, wanted + MAX_OVERHEAD_BYTES), wanted)
    if len(content) != wanted:
        raise InputError(f"{name} in it has {len(content)} bytes where {shape[1]} x {shape[0]} pixels have {wanted}")
    return np.frombuffer(content, dtype).reshape(shape)


def _inflate(content: bytes, most: int) -> bytes:
    """Decompress LZFSE into a buffer of fixed size."""
    room = ctypes.create_string_buffer(most + 1)
    length = _decoder()(room, most + 1, content, len(content), None)
    if length == 0 or length > most:
        raise InputError(f"a part of it is broken, or has more than the {most} bytes that it may; copy it again")
    return room.raw[:length]


@cache
def _decoder() -> Any:
    """Return the decoder of the package's library: its Python function allocates as much as a file asks for."""
    try:
        import liblzfse

        decode = ctypes.CDLL(liblzfse.__file__).lzfse_decode_buffer
    except (ImportError, OSError, AttributeError):
        raise InputError(
            "an .r3d file needs the package pyliblzfse (not on Windows); install it: pip install 'sparsedepth[phone]'"
        ) from None
    decode.restype = ctypes.c_size_t
    decode.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]
    return decode

"""Read the frames of a stream from one file: a zip of maps, a stack of arrays, a bag, or a phone's recording."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from sparsedepth.files import numpy_arrays, record3d
from sparsedepth.files.bags import BAG_SUFFIXES, is_bag, read_bag
from sparsedepth.files.codec import decode
from sparsedepth.files.errors import describe_errors
from sparsedepth.files.formats import FORMATS
from sparsedepth.files.profiles import InvalidCodes, resolve_profile
from sparsedepth.files.reading import MOST_BYTES, MOST_PIXELS, read
from sparsedepth.files.stored import CHUNK_BYTES, Budget
from sparsedepth.vocabulary import DepthImage, InputError, Profile, TooLargeError

SUFFIXES = frozenset((".zip", record3d.SUFFIX, *BAG_SUFFIXES, *FORMATS))
"""Of files that can hold the frames of a stream."""
MAX_MEMBERS = 10000
"""Files of an archive that are looked at."""

NamedImage = tuple[str, DepthImage]


def holds_frames(path: str | Path) -> bool:
    """Tell whether a file holds several frames: a zip, a bag, a phone's recording, or a stack of arrays."""
    found = Path(path)
    stack = found.suffix.lower() in (".npy", ".npz") and numpy_arrays.holds_stack(found)
    return found.suffix.lower() in (".zip", record3d.SUFFIX) or is_bag(found) or stack


def read_frames(
    path: str | Path,
    profile: str | Profile = "auto",
    *,
    scale: float | None = None,
    invalid: InvalidCodes = None,
    most_pixels: int = MOST_PIXELS,
    most_bytes: int = MOST_BYTES,
    folder: str | Path | None = None,
) -> Iterator[NamedImage]:
    """Read the frames of a file one after the other.

    Parameters
    ----------
    path
        A zip of maps (in the order of their names), an npy or npz of (frames, height, width), a bag, a recording of
        Record3D (.r3d; depths of low confidence are missing), or one map.
    profile, scale, invalid
        How the numbers are held, as `sparsedepth.files.read` takes them; a bag or a recording knows that itself.
    most_pixels, most_bytes
        Limits of one frame.
    folder
        Where frames of a zip are extracted to, one at a time; None = the system's folder of temporary files.

    Yields
    ------
    Name and map of each frame.

    Examples
    --------
    >>> import numpy as np
    >>> path = Path(tempfile.mkdtemp()) / "stack.npy"
    >>> np.save(path, np.full((2, 4, 5), 1500, np.uint16))
    >>> [(name, image.unit) for name, image in read_frames(path)]
    [('000000', 'mm'), ('000001', 'mm')]
    """
    found, budget = Path(path), Budget(most_pixels, most_bytes)
    if not found.exists():
        raise InputError(f"there is no file {found}")
    if is_bag(found):
        yield from ((f"{stamp:019d}", image) for stamp, image in read_bag(found))
    elif found.suffix.lower() == record3d.SUFFIX:
        for frame in record3d.read_recording(found, most_pixels=most_pixels, most_bytes=most_bytes):
            yield frame.name, record3d.without_low_confidence(frame)
    elif found.suffix.lower() == ".zip":
        yield from _described(found, _zipped(found, profile, scale, invalid, budget, folder))
    elif holds_frames(found):
        yield from _described(found, _stacked(found, profile, scale, invalid, budget))
    else:
        limits = {"most_pixels": most_pixels, "most_bytes": most_bytes}
        yield found.stem, read(found, profile, scale=scale, invalid=invalid, **limits)


def _described(path: Path, frames: Iterator[NamedImage]) -> Iterator[NamedImage]:
    """Turn whatever goes wrong between two frames into a sentence about the file."""
    while True:
        with describe_errors(path):
            found = next(frames, None)
        if found is None:
            return
        yield found


def _stacked(
    path: Path, profile: str | Profile, scale: float | None, invalid: InvalidCodes, budget: Budget
) -> Iterator[NamedImage]:
    for number, stored in enumerate(numpy_arrays.read_stack(path, budget)):
        chosen, assumed = resolve_profile(stored, path, profile, scale, invalid)
        image = DepthImage(decode(stored.pixels, chosen), chosen.unit, chosen.kind, chosen, assumed)
        yield f"{number:06d}", image


def _zipped(
    path: Path,
    profile: str | Profile,
    scale: float | None,
    invalid: InvalidCodes,
    budget: Budget,
    folder: str | Path | None,
) -> Iterator[NamedImage]:
    limits = {"most_pixels": budget.pixels, "most_bytes": budget.bytes}
    with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory(dir=folder) as place:
        for member in _maps(archive):
            name = PurePosixPath(member.filename)
            copy = Path(place) / f"frame{name.suffix.lower()}"
            _extract(archive, member, copy, 2 * budget.bytes)
            try:
                yield name.stem, read(copy, profile, scale=scale, invalid=invalid, **limits)
            except InputError as error:
                raise type(error)(str(error).replace(str(copy), name.name)) from None


def _maps(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """Return the maps of an archive in the order of their names; hidden files are left out."""
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise TooLargeError(f"it holds {len(members)} files; at most {MAX_MEMBERS} are looked at")
    names = [PurePosixPath(member.filename) for member in members]
    wanted = [m for m, n in zip(members, names, strict=True) if n.suffix.lower() in FORMATS and n.name[0] not in "._"]
    if not wanted:
        raise InputError(f"it holds no maps; put files of one of {', '.join(sorted(FORMATS))} into it")
    return sorted(wanted, key=lambda member: member.filename)


def _extract(archive: zipfile.ZipFile, member: zipfile.ZipInfo, target: Path, most_bytes: int) -> None:
    """Extract a file in chunks, and stop where it becomes too long."""
    left = most_bytes
    with archive.open(member) as source, open(target, "wb") as copy:
        while chunk := source.read(CHUNK_BYTES):
            left -= len(chunk)
            if left < 0:
                raise TooLargeError(f"{member.filename} in it is longer than {most_bytes} bytes")
            copy.write(chunk)

"""Read and write npy and npz arrays: the header first, then as many bytes as it declares; nothing is unpickled."""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import numpy.lib.format as npy

from sparsedepth.files.stored import Budget, Pixels, Stored, read_pixels
from sparsedepth.vocabulary import InputError, Profile

MAP_NAMES = (
    *("depth", "disparity", "inverse_depth", "height", "range", "range_mm", "values", "arr_0"),
    *("depth_map", "depthmap", "depth_mm", "depth_m", "pred_depth", "depth_pred", "metric_depth", "disp", "z"),
)
"""Names of the map in an npz file that holds other arrays too."""

MAX_ARRAYS = 1000
MAX_TEXT_BYTES = 1 << 14
"""Largest text in an npz file; a letter has four bytes."""


class Header(NamedTuple):
    """The header of an npy array."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]


def read_npy(path: Path, budget: Budget) -> Stored:
    """Read the array of an npy file."""
    with open(path, "rb") as file:
        return Stored(_array(file, budget))


def read_npz(path: Path, budget: Budget) -> Stored:
    """Read the only two-dimensional array of an npz file, or the one with a known name."""
    with zipfile.ZipFile(path) as archive:
        members = _members(archive)
        name = _map_name({name: _peek(archive, member) for name, member in members.items()})
        return Stored(_extract(archive, members[name], budget), _profile(archive, members), name=name)


def read_named(path: Path, budget: Budget, name: str) -> Pixels:
    """Read one array of an npz file by its name."""
    with zipfile.ZipFile(path) as archive:
        members = _members(archive)
        if name not in members:
            raise InputError(f"it has no array {name!r}; it holds {', '.join(members) or 'none'}")
        return _extract(archive, members[name], budget)


def read_stack(path: Path, budget: Budget) -> Iterator[Stored]:
    """Read the maps of a three-dimensional array, (maps, height, width), one after the other."""
    if path.suffix.lower() == ".npy":
        with open(path, "rb") as file:
            yield from _slices(file, budget, None, "")
        return
    with zipfile.ZipFile(path) as archive:
        members = _members(archive)
        headers = {name: _peek(archive, member) for name, member in members.items()}
        stacks = {name: Header(header.shape[1:], *header[1:]) for name, header in headers.items() if is_stack(header)}
        name = _map_name(stacks)
        with _open(archive, members[name]) as file:
            yield from _slices(file, budget, _profile(archive, members), name)


def is_stack(header: Header) -> bool:
    """Tell whether an array holds several maps."""
    return len(header.shape) == 3 and header.dtype.kind in "fiu"


def holds_stack(path: Path) -> bool:
    """Tell whether a file holds maps in an array of three dimensions, and none of two; broken files hold none."""
    try:
        if path.suffix.lower() == ".npy":
            with open(path, "rb") as file:
                return is_stack(read_header(file))
        with zipfile.ZipFile(path) as archive:
            headers = [_peek(archive, member) for member in _members(archive).values()]
    except Exception:  # whatever is broken is said when the file is read
        return False
    flat = any(len(header.shape) == 2 and header.dtype.kind in "fiu" for header in headers)
    return any(map(is_stack, headers)) and not flat


def _slices(file: BinaryIO, budget: Budget, declared: Profile | None, name: str) -> Iterator[Stored]:
    header = read_header(file)
    if not is_stack(header) or header.fortran:
        raise InputError(f"it holds {header.dtype} of shape {header.shape}; a stack has (maps, height, width), by rows")
    count, height, width = header.shape
    budget.allow((height, width), header.dtype)
    for _ in range(count):
        yield Stored(read_pixels(file, (height, width), header.dtype), declared, name=name)


def array_names(path: Path) -> tuple[str, ...]:
    """Return the names of the arrays of an npz file; none where it is no such file."""
    try:
        with zipfile.ZipFile(path) as archive:
            return tuple(_members(archive))
    except (OSError, zipfile.BadZipFile):
        return ()


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    found = [member for member in archive.infolist() if member.filename.endswith(".npy")]
    if len(found) > MAX_ARRAYS:
        raise InputError(f"it holds {len(found)} arrays; at most {MAX_ARRAYS} are looked at")
    return {member.filename.removesuffix(".npy"): member for member in found}


def _open(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> BinaryIO:
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # the others inflate without a limit
        raise InputError(f"its array {member.filename} is compressed in an unusual way; save it with numpy.savez")
    return cast(BinaryIO, archive.open(member))


def _peek(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Header:
    with _open(archive, member) as file:
        return read_header(file)


def _extract(archive: zipfile.ZipFile, member: zipfile.ZipInfo, budget: Budget) -> Pixels:
    with _open(archive, member) as file:
        return _array(file, budget)


def _map_name(headers: Mapping[str, Header]) -> str:
    flat = [name for name, header in headers.items() if len(_flat(header.shape)) == 2 and header.dtype.kind in "fiu"]
    named = [name for name in MAP_NAMES if name in flat]
    if len(flat) == 1:
        return flat[0]
    if len(named) == 1:
        return named[0]
    held = ", ".join(f"{name} {header.dtype} {header.shape}" for name, header in list(headers.items())[:20])
    raise InputError(
        f"which array is the map? It holds {held or 'no arrays'}; save one two-dimensional array, or call one of them "
        f"{', '.join(MAP_NAMES)}"
    )


def _profile(archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo]) -> Profile | None:
    """Read the profile from small arrays: unit and kind, and where they matter scale and invalid codes."""
    small = {name: _small(archive, members[name]) for name in ("unit", "kind", "scale", "invalid") if name in members}
    if "unit" not in small or "kind" not in small:
        return None
    try:
        unit, kind = (cast(Any, str(small[name])) for name in ("unit", "kind"))
        scale, codes = float(small.get("scale", np.array(1.0))), np.atleast_1d(small.get("invalid", np.array([])))
        return Profile("", unit, kind, scale, tuple(float(code) for code in codes))
    except (InputError, TypeError, ValueError):
        return None


def _small(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Pixels:
    """Read a text or a few numbers; empty where the array is anything else."""
    with _open(archive, member) as file:
        header = read_header(file)
        size = math.prod(header.shape) * header.dtype.itemsize
        if header.dtype.kind not in "Ufiu" or size > MAX_TEXT_BYTES:
            return np.array("")
        return np.frombuffer(file.read(size), header.dtype).reshape(header.shape)


def small_text(archive: zipfile.ZipFile, name: str) -> str:
    """Read a text of an archive by its name, "" = there is none."""
    members = _members(archive)
    return str(_small(archive, members[name])) if name in members else ""


def text_of(about: Mapping[str, str]) -> Pixels:
    """Return a few words as an array, at most as many as `read_about` reads."""
    text = json.dumps(about)
    if len(text) * 4 > MAX_TEXT_BYTES:
        raise InputError(f"about has {len(text)} letters; at most {MAX_TEXT_BYTES // 4} go into a file")
    return np.array(text)


def read_about(path: str | Path) -> dict[str, str]:
    """Read how an npz file was made.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    A few words by their names; empty where the file does not say so in a form that is known.

    Examples
    --------
    >>> import tempfile
    >>> from sparsedepth.files import write
    >>> path = Path(tempfile.mkdtemp()) / "scan.npz"
    >>> write(path, [[1.5]], about={"made by": "hand"})
    >>> read_about(path)
    {'made by': 'hand'}
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(archive)
            about = json.loads(str(_small(archive, members["about"]))) if "about" in members else {}
        return {str(name): str(value) for name, value in about.items()}
    except Exception:  # a broken or hostile archive fails in many ways; all mean that nothing is known
        return {}


def read_header(file: BinaryIO) -> Header:
    """Read the header of an array, never more than a few thousand bytes of it."""
    start = file.read(12)
    if start[:6] != b"\x93NUMPY" or len(start) < 12:
        raise InputError("it is no npy array; save it with numpy.save")
    long = start[6] > 1
    length = int.from_bytes(start[8 : 12 if long else 10], "little")
    if length > 10_000:
        raise InputError(f"its header has {length} bytes; that of a map has about a hundred")
    rest = io.BytesIO(start[8:] + file.read(length if long else length - 2))
    return Header(*(npy.read_array_header_2_0(rest) if long else npy.read_array_header_1_0(rest)))


def _array(file: BinaryIO, budget: Budget) -> Pixels:
    header = read_header(file)
    shape = _flat(header.shape)
    budget.allow(shape, header.dtype)
    height, width = shape
    if header.fortran:
        return read_pixels(file, (width, height), header.dtype).T
    return read_pixels(file, (height, width), header.dtype)


def _flat(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a single map without its axis of length 1: networks write (1, height, width)."""
    if len(shape) == 3 and shape[0] == 1:
        return shape[1:]
    return shape[:2] if len(shape) == 3 and shape[2] == 1 else shape


def write_npy(pixels: Pixels, profile: Profile | None) -> bytes:
    """Encode an npy file."""
    content = io.BytesIO()
    npy.write_array(content, np.ascontiguousarray(pixels), allow_pickle=False)
    return content.getvalue()


def write_npz(pixels: Pixels, profile: Profile | None, /, **more: Pixels) -> bytes:
    """Encode an npz file: the map under the name of its kind, its unit and kind as text, and more arrays."""
    arrays: dict[str, Any] = {"values": pixels}
    if profile is not None:
        arrays = {
            profile.kind.replace(" ", "_"): pixels,
            "unit": np.array(profile.unit),
            "kind": np.array(profile.kind),
        }
        if profile.scale != 1:
            arrays["scale"] = np.array(profile.scale)
        if profile.invalid:
            arrays["invalid"] = np.array(profile.invalid)
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays, **more)
    return content.getvalue()

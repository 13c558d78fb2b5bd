"""Write maps: nothing overflows, no unit changes unasked, and a file appears whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparsedepth.atomic_files import write_atomically
from sparsedepth.files import numpy_arrays
from sparsedepth.files.codec import decode, encode_floats, encode_integers
from sparsedepth.files.formats import Format, format_of
from sparsedepth.files.profiles import InvalidCodes, for_dtype, profile_named, with_options
from sparsedepth.files.stored import Pixels
from sparsedepth.vocabulary import (
    DepthImage,
    InputError,
    Match,
    Metadata,
    Profile,
    Restoration,
    Unit,
    as_array,
    unit_factor,
)


@dataclass(frozen=True, eq=False)
class EncodedFile:
    """The content of a map's file that is not written yet; ``variance`` is in squared units of the file."""

    path: Path
    content: bytes
    unit: Unit
    variance: Pixels | None

    def save(self) -> None:
        """Write the file, whole or not at all."""
        write_atomically(self.path, self.content)


def write(
    path: str | Path,
    image: DepthImage | Restoration | Match | ArrayLike,
    *,
    profile: str | Profile | None = None,
    scale: float | None = None,
    invalid: InvalidCodes = None,
    variance: ArrayLike | None = None,
    origin: ArrayLike | None = None,
    about: Mapping[str, str] | None = None,
) -> None:
    """Write a map, or a result with its map; integer files round to the nearest code, float files hold float32.

    Without a profile an integer file is encoded as the image was read, and a float file holds its values as they are.
    A TIFF has the type of the TIFF that was read. Its integers are rounded; where they cannot hold the result, it has
    float32. With a profile, metres and millimetres convert as it asks, and a plain array is taken to be in its unit.
    Where a value would round to the code for unknown pixels, the nearest other code is written.

    Parameters
    ----------
    path
        The file; its suffix chooses the format.
    image
        A map (height, width), NaN = unknown, or what `denoise`, `inpaint` or `match` return. An npz file of a result
        also holds its variance and origin; other files hold its map.
    profile
        How the file holds numbers: the name of a profile, or a `Profile`.
    scale
        Stored number per unit, instead of the profile's own.
    invalid
        Stored numbers that mean unknown, instead of the profile's own.
    variance, origin
        Arrays (height, width) that go into an npz file with the map; the variance is in squared units of ``image``.
    about
        A few words on how the map was made, for npz files.

    Examples
    --------
    >>> import tempfile
    >>> from sparsedepth import inpaint
    >>> from sparsedepth.files import read
    >>> folder = Path(tempfile.mkdtemp())
    >>> write(folder / "scan.png", np.add.outer(np.zeros(24), np.linspace(1.0, 2.0, 24)), profile="tum")
    >>> write(folder / "filled.png", inpaint(read(folder / "scan.png"), quality="fast"))
    >>> read(folder / "filled.png").unit
    'm'
    """
    file = encode_file(
        path,
        image,
        profile=profile,
        scale=scale,
        invalid=invalid,
        variance=variance,
        origin=origin,
        about=about,
    )
    file.save()


def encode_file(
    path: str | Path,
    image: DepthImage | Restoration | Match | ArrayLike,
    *,
    profile: str | Profile | None = None,
    scale: float | None = None,
    invalid: InvalidCodes = None,
    variance: ArrayLike | None = None,
    origin: ArrayLike | None = None,
    about: Mapping[str, str] | None = None,
) -> EncodedFile:
    """Encode a map as `write` does, without writing it."""
    path = Path(path)
    file_format, inside = format_of(path), path.suffix.lower() == ".npz"
    try:
        source = _map_of(image)
        stored, encoding = _encoding(source, file_format, profile, scale, invalid)
        carried = _carried(source, file_format)
        kept = None if profile is not None or scale is not None else _integer_profile(source, carried, invalid)
        if carried is not None and carried.code is not None and invalid is None:
            encoding, invalid = replace(encoding, invalid=(carried.code,)), carried.code
        found = None if kept is None or carried is None else _as_they_came(stored, kept, carried)
        if kept is not None and found is not None:
            pixels, encoding = found, kept
        else:
            wide = carried is not None and carried.dtype == "float64" and profile is None
            pixels = _pixels(stored, encoding, file_format, coded=invalid is not None, wide=wide)
        pixels = _unchanged_exactly(pixels, source, carried, encoding)
        converted = _converted(image.variance if isinstance(image, Restoration | Match) else None, source, stored)
        extra = _extra(stored, path, variance=_converted(variance, source, stored), origin=origin)
        if inside and isinstance(image, Restoration | Match):
            extra = _extra(stored, path, variance=converted, origin=image.origin) | extra
        if inside and about:
            extra["about"] = numpy_arrays.text_of(about)
        if extra:
            content = numpy_arrays.write_npz(pixels, encoding, **extra)
        else:
            content = file_format.encode(pixels, encoding, carried)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return EncodedFile(path, content, stored.unit, converted)


def _map_of(image: DepthImage | Restoration | Match | ArrayLike) -> DepthImage | ArrayLike:
    """Return the map of a result; one of which nothing is known is a plain array."""
    if isinstance(image, Restoration) and not (image.profile or image.metadata or image.unit or image.kind != "depth"):
        return image.depth
    return image.image if isinstance(image, Restoration | Match) else image


def _carried(source: DepthImage | ArrayLike, file_format: Format) -> Metadata | None:
    """Return the metadata of an image that the format can hold."""
    found = source.metadata if isinstance(source, DepthImage) else None
    return found if found is not None and found.format == file_format.carries else None


def _integer_profile(source: DepthImage | ArrayLike, carried: Metadata | None, invalid: InvalidCodes) -> Profile | None:
    """Return how a file of integers held the image; None = it did not, or the image has another unit now."""
    if carried is None or np.dtype(carried.dtype).kind == "f" or not isinstance(source, DepthImage):
        return None
    came = source.profile
    if came is None or (came.unit, came.kind) != (source.unit, source.kind):
        return None
    codes = invalid if invalid is not None or carried.code is None else carried.code
    return with_options(came, None, codes)


def _as_they_came(image: DepthImage, profile: Profile, carried: Metadata) -> Pixels | None:
    """Return integers of the type that the file held; None = they cannot hold the image."""
    try:
        return encode_integers(image.values, profile, np.dtype(carried.dtype))
    except InputError:
        return None


def _unchanged_exactly(
    pixels: Pixels, source: DepthImage | ArrayLike, carried: Metadata | None, encoding: Profile
) -> Pixels:
    """Return the numbers to write, those of the file where a pixel is still what was read from it."""
    if carried is None or carried.exact is None or not isinstance(source, DepthImage) or source.profile is None:
        return pixels
    same_shape = carried.exact.shape == pixels.shape and carried.exact.dtype == pixels.dtype
    if not same_shape or (source.profile.scale, source.profile.unit) != (encoding.scale, encoding.unit):
        return pixels
    return np.where(decode(carried.exact, source.profile) == source.values, carried.exact, pixels)


def _converted(variance: ArrayLike | None, source: DepthImage | ArrayLike, stored: DepthImage) -> Any:
    """Convert variances in squared units of the source to those of the file."""
    if variance is None or not isinstance(source, DepthImage) or source.unit == stored.unit:
        return variance
    return as_array("variance", variance) * unit_factor(source.unit, source.kind, stored.unit) ** 2


def write_array(path: str | Path, array: ArrayLike, *, metadata: Metadata | None = None) -> None:
    """Write numbers that are no depth, as they are, whole or not at all.

    Parameters
    ----------
    path
        The file; its suffix chooses the format: floats for a variance (inf stays inf), PNG for origins.
    array
        (height, width).
    metadata
        Of the map: it goes into a file of its format, so that a variance lies on the ground where its map does.

    Examples
    --------
    >>> import tempfile
    >>> write_array(Path(tempfile.mkdtemp()) / "origin.png", np.zeros((2, 3), np.uint8))
    """
    path = Path(path)
    file_format = format_of(path)
    numbers = _unmasked(as_array("what is to be written", array))
    wanted = ("uint8", "uint16") if file_format.integers else ("float32",)
    if not file_format.integers and numbers.dtype.kind == "f":
        numbers = _as_float32(numbers, path)
    elif path.suffix.lower() in (".npy", ".npz") and numbers.dtype.name in ("uint8", "uint16"):
        wanted = (numbers.dtype.name,)
    if numbers.ndim != 2 or numbers.size == 0 or numbers.dtype.name not in wanted:
        came = f"{numbers.dtype} of shape {numbers.shape}"
        raise InputError(
            f"{path} holds {' or '.join(wanted)} in 2-D and {came} came; convert it, or use another suffix"
        )
    write_atomically(path, file_format.encode(numbers, None, metadata))


def _unmasked(array: Any) -> Pixels:
    """Return the numbers, NaN where they are masked; masked integers are refused."""
    if np.ma.is_masked(array) and array.dtype.kind != "f":
        raise InputError(f"some of the {array.dtype} numbers are masked, which integers cannot say; fill them first")
    return np.ma.filled(array, np.nan) if np.ma.is_masked(array) else np.asarray(array)


def _as_float32(numbers: Pixels, path: Path) -> Pixels:
    with np.errstate(over="ignore"):
        short = numbers.astype(np.float32)
    if (np.isinf(short) & np.isfinite(numbers)).any():
        raise InputError(f"{path} holds float32 and the numbers are beyond its range; scale them")
    return short


def _encoding(
    image: DepthImage | ArrayLike,
    file_format: Format,
    profile: str | Profile | None,
    scale: float | None,
    invalid: InvalidCodes,
) -> tuple[DepthImage, Profile]:
    """Return the image in the unit to be written, and the profile to write it with."""
    if profile is None:
        image = image if isinstance(image, DepthImage) else DepthImage(as_array("the map", image))
        return image, with_options(_own_profile(image, file_format, scale), scale, invalid)
    chosen = for_dtype(profile_named(profile), np.dtype(np.uint16 if file_format.integers else np.float32))
    if not isinstance(image, DepthImage):
        image = DepthImage(as_array("the map", image), chosen.unit, chosen.kind)
    if image.kind != chosen.kind:
        raise InputError(
            f"the map is {image.kind} and the profile {chosen.name} is for {chosen.kind}; convert it first"
        )
    if scale is None and chosen.scale is None and image.profile is not None and image.profile.name == chosen.name:
        scale = image.profile.scale
    chosen = with_options(chosen, scale, invalid)
    if file_format.integers:
        chosen = _for_integers(chosen, scale, invalid)
    return image.to(chosen.unit), chosen


def _own_profile(image: DepthImage, file_format: Format, scale: float | None) -> Profile:
    plain = Profile("", image.unit, image.kind)
    if not file_format.integers:
        return plain
    came = image.profile
    if came is not None and came.dtype != "float32" and (came.unit, came.kind) == (image.unit, image.kind):
        return came
    return _for_integers(plain, scale, None)


def _for_integers(profile: Profile, scale: float | None, invalid: InvalidCodes) -> Profile:
    """Return the profile, or one with the user's scale, 16 bits and 0 for unknown pixels."""
    if profile.dtype != "float32":
        return profile
    if scale is None:
        raise InputError(
            f"integer files round {profile.kind} in {profile.unit or 'an unknown unit'} to whole numbers; say how: "
            "give a profile (mm, tum, kitti, kitti-disparity) or a scale (stored number per unit), or use .tiff"
        )
    return replace(profile, dtype="uint16", invalid=profile.invalid if invalid is not None else (0.0,))


def _pixels(image: DepthImage, encoding: Profile, file_format: Format, *, coded: bool, wide: bool) -> Pixels:
    if file_format.integers:
        return encode_integers(image.values, encoding, np.dtype(encoding.dtype))
    unknown = encoding.invalid[0] if coded and encoding.invalid else file_format.unknown
    return encode_floats(image.values, encoding, unknown, np.dtype(np.float64 if wide else np.float32))


def _extra(image: DepthImage, path: Path, **arrays: ArrayLike | None) -> dict[str, Pixels]:
    """Return the arrays that go into an npz file with the map, each a number a pixel."""
    given: dict[str, Any] = {
        name: _unmasked(as_array(name, array)) for name, array in arrays.items() if array is not None
    }
    if given and path.suffix.lower() != ".npz":
        raise InputError(f"only .npz holds {' and '.join(given)} with the map; use write_array for a file of their own")
    for name, array in given.items():
        if array.shape != image.values.shape or array.ndim != 2:
            raise InputError(f"{name} is {array.dtype} of shape {array.shape}; the map has shape {image.values.shape}")
    return given

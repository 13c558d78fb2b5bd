"""Tags of TIFF files that say more than the pixels: GeoTIFF's place on the ground, GDAL's words, dates and names.

They are carried from the file that was read to the file that is written, byte by byte.
"""

from __future__ import annotations

import re
import struct

import numpy as np
import tifffile

from sparsedepth.files.profiles import as_text, from_text
from sparsedepth.files.tiff_writing import TYPE_BYTES, Tag, text_tag
from sparsedepth.vocabulary import InputError, Metadata, Profile, Unit

FORMAT = "tiff"
DESCRIPTION, GDAL_METADATA, GDAL_NODATA, GEO_KEYS = 270, 42112, 42113, 34735
OWN_TAG = 65042
"""Of the private range: our profile, where the description is somebody else's."""
CARRIED = {
    DESCRIPTION: "description", 269: "document name", 271: "make", 272: "model", 285: "page name", 305: "software",
    306: "date", 315: "artist", 316: "host computer", 33432: "copyright", 700: "XMP", 33723: "IPTC", 282: "resolution",
    283: "resolution", 296: "resolution unit", 33550: "pixel scale", 33922: "tie points", 34264: "transformation",
    GEO_KEYS: "geo keys", 34736: "geo numbers", 34737: "geo texts", 50844: "rational polynomial coefficients",
    GDAL_METADATA: "GDAL metadata", GDAL_NODATA: "code of unknown pixels",
}  # fmt: skip
"""Numbers of the tags that are carried, and what they hold."""
KEPT_TYPES = ("uint8", "uint16", "uint32", "int8", "int16", "int32", "float64")
"""Types of numbers that a result has if its input had them; others become float32."""
MAX_BYTES = 1 << 20
"""Most bytes of all carried tags of a file; tags beyond it are left out."""
VERTICAL_UNIT_KEY, METRE_CODE = 4099, 9001
SCALE_ROLES, VALUE_ROLES = ("scale", "offset"), ("scale", "offset", "unittype")
"""Roles of the items of GDAL's metadata that say how to read stored numbers, and what their values are."""
_ITEM = re.compile(r'<Item\b[^>]{0,200}\brole="(scale|offset|unittype)"[^>]{0,200}>([^<]{0,100})</Item>\s{0,9}')
_METRES = re.compile(r'role="unittype"[^>]{0,40}>\s*(m|metre|meter|metres|meters)\s*<', re.IGNORECASE)


def carried_tags(page: tifffile.TiffPage) -> Metadata | None:
    """Return the tags of a page that are to be carried, and the type of its numbers; None = nothing is unusual."""
    left, found = MAX_BYTES, []
    for tag in page.tags:
        size = TYPE_BYTES.get(int(tag.dtype), 0) * tag.count
        own = tag.code == DESCRIPTION and from_text(page.description) is not None
        if tag.code in CARRIED and 0 < size <= left and not own:
            left -= size
            found.append(_read(page, tag, size))
    dtype = str(page.dtype) if str(page.dtype) in KEPT_TYPES else "float32"
    return Metadata(FORMAT, tuple(found), declared_code(page), dtype) if found or dtype != "float32" else None


def _read(page: tifffile.TiffPage, tag: tifffile.TiffTag, size: int) -> Tag:
    """Read the bytes of a tag as they stand, in little-endian order."""
    file = page.parent.filehandle
    file.seek(tag.valueoffset)
    content = file.read(size)
    width = TYPE_BYTES[int(tag.dtype)]
    unit = 4 if int(tag.dtype) in (5, 10) else width
    if page.parent.byteorder == ">" and unit > 1 and len(content) % unit == 0:
        content = np.frombuffer(content, f">u{unit}").astype(f"<u{unit}").tobytes()
    return Tag(tag.code, int(tag.dtype), len(content) // width, content[: len(content) // width * width])


def declared_code(page: tifffile.TiffPage) -> float | None:
    """Return the code for unknown pixels that a file declares, if any."""
    tag = page.tags.get(GDAL_NODATA)
    try:
        return None if tag is None else float(str(tag.value).strip("\0 "))
    except ValueError:
        return None


def own_profile(page: tifffile.TiffPage) -> Profile | None:
    """Return the profile that a file of ours carries."""
    tag = page.tags.get(OWN_TAG)
    text = tag.value if tag is not None and tag.count < 2000 else page.description
    return from_text(text)


def heights(metadata: Metadata | None, code: float | None) -> Profile | None:
    """Return what a map of the ground holds: heights of any sign, where 0 is the sea; None = it is no such map."""
    if metadata is None or GEO_KEYS not in {tag.code for tag in metadata.entries}:
        return None
    scale = 1 / declared_scale(metadata)
    return Profile("", _unit(metadata), "height", scale, invalid=() if code is None else (code,))


def declared_scale(metadata: Metadata) -> float:
    """Return the value of a stored 1 that GDAL's metadata declare, 1 = nothing; an offset is refused."""
    found = {role: _number(text) for role, text in _ITEM.findall(_words(metadata)) if role in SCALE_ROLES}
    if found.get("offset", 0.0) != 0:
        raise InputError(
            f"its numbers have an offset of {found['offset']:g}; write the values themselves first, "
            "such as by: gdal_translate -unscale -ot Float32"
        )
    scale = found.get("scale", 1.0)
    return scale if np.isfinite(scale) and scale > 0 else 1.0


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _words(metadata: Metadata) -> str:
    """Return GDAL's metadata as the text that they are, "" = there are none."""
    return next((tag.content.decode(errors="replace") for tag in metadata.entries if tag.code == GDAL_METADATA), "")


def _unit(metadata: Metadata) -> Unit:
    """Return metres where the file declares them, by GDAL's unit or by the vertical unit of the geo keys."""
    tags: dict[int, Tag] = {tag.code: tag for tag in metadata.entries}
    words, content = _words(metadata), tags[GEO_KEYS].content
    keys = struct.unpack(f"<{len(content) // 2}H", content[: len(content) // 2 * 2])
    entries = [keys[at : at + 4] for at in range(4, len(keys) - 3, 4)]
    vertical = any(entry[0] == VERTICAL_UNIT_KEY and entry[3] == METRE_CODE for entry in entries)
    return "m" if vertical or _METRES.search(words) else ""


def tags_to_write(profile: Profile | None, metadata: Metadata | None) -> list[Tag]:
    """Return the tags of a file: those that are carried, our profile, and the code for unknown pixels."""
    carried = [] if metadata is None else _still_true(profile, metadata)
    codes = () if profile is None else profile.invalid
    if metadata is not None and (metadata.code is None or codes != (metadata.code,)) and not _both_nan(metadata, codes):
        carried = [tag for tag in carried if tag.code != GDAL_NODATA]
    there = {tag.code for tag in carried}
    if profile is not None:
        carried.append(text_tag(OWN_TAG if carried else DESCRIPTION, as_text(profile)))
    if codes and GDAL_NODATA not in there:
        carried.append(text_tag(GDAL_NODATA, f"{codes[0]:.9g}"))
    return carried


def _still_true(profile: Profile | None, metadata: Metadata) -> list[Tag]:
    """Return the tags without GDAL's scale where the numbers have another one; those of no map have no unit either."""
    if profile is None:
        roles = VALUE_ROLES
    else:
        scale = profile.scale or 1.0
        roles = () if np.isclose(scale * _scale_or_one(metadata), 1, rtol=1e-12, atol=0) else SCALE_ROLES
    kept = [_without(tag, roles) if tag.code == GDAL_METADATA and roles else tag for tag in metadata.entries]
    return [tag for tag in kept if tag is not None]


def _scale_or_one(metadata: Metadata) -> float:
    try:
        return declared_scale(metadata)
    except InputError:
        return np.nan


def _without(tag: Tag, roles: tuple[str, ...]) -> Tag | None:
    """Return GDAL's metadata without the items of some roles; None = nothing is left."""
    text = tag.content.decode(errors="surrogateescape")
    kept = _ITEM.sub(lambda item: "" if item[1] in roles else item[0], text)
    content = kept.encode(errors="surrogateescape")
    return Tag(tag.code, tag.type, len(content), content) if "<Item" in kept else None


def _both_nan(metadata: Metadata, codes: tuple[float, ...]) -> bool:
    return metadata.code is not None and len(codes) == 1 and np.isnan(metadata.code) and np.isnan(codes[0])

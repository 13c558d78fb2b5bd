"""The files that fuzzing starts from: tiny ones by our own writers, and those of other programs that we should read."""

from __future__ import annotations

import io
import json
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tifffile
from PIL import Image
from safetensors.numpy import save

from sparsedepth.coding.learn import LearningState
from sparsedepth.dictionary import DICTIONARY_KIND
from sparsedepth.files import FORMATS, PROFILES
from sparsedepth.vocabulary import Profile

DEPTH = np.array([[1.0, 2.5, np.nan], [4.0, 5.0, 60.0]], np.float32)
CODES = np.array([[1, 2, 0], [400, 500, 65535]], np.uint16)
CODED = Profile("", "m", "depth", 2.0, (-1.0,))


def seeds(name: str) -> Iterator[bytes]:
    """The first files of a kind: a suffix of maps without its dot, ``photo`` or ``dictionary``."""
    if name == "photo":
        yield from _photos()
    elif name == "dictionary":
        yield from _dictionaries()
    else:
        yield from _maps(f".{name}")


def _maps(suffix: str) -> Iterator[bytes]:
    chosen = FORMATS[suffix]
    profiles = (None, PROFILES["tum"], PROFILES["kitti-disparity"]) if chosen.integers else (None, PROFILES["m"], CODED)
    for profile in profiles:
        yield chosen.write(CODES if chosen.integers else DEPTH, profile)
    if chosen.integers:
        yield chosen.write(CODES.astype(np.uint8), None)
    yield from {".tiff": _tiffs, ".npy": _npys, ".npz": _npzs, ".pfm": _pfms, ".pgm": _pgms}.get(suffix, list)()


def _tiffs() -> Iterator[bytes]:
    for dtype, order, options in (
        ("uint8", "<", {}),
        ("uint16", ">", {"compression": "zlib", "predictor": True}),
        ("float32", "<", {"tile": (16, 16)}),
        ("float64", ">", {"compression": "zlib", "rowsperstrip": 1}),
        ("int32", "<", {"bigtiff": True}),
    ):
        content = io.BytesIO()
        tifffile.imwrite(content, np.ones((3, 4), dtype), byteorder=order, photometric="minisblack", **options)
        yield content.getvalue()
    place = [(34735, 3, 8, (1, 1, 0, 1, 4099, 0, 1, 9001), True), (33550, 12, 3, (1.0, 1.0, 0.0), True)]
    words = [(42112, 2, 0, "<GDALMetadata></GDALMetadata>", True), (42113, 2, 0, "-9999", True)]
    for order in "<>":
        content = io.BytesIO()
        tifffile.imwrite(content, np.ones((3, 4), np.float32), byteorder=order, extratags=place + words, metadata=None)
        yield content.getvalue()
    for mode, compression in (("L", "tiff_lzw"), ("I;16", "packbits"), ("F", "tiff_lzw")):
        yield _picture(Image.new(mode, (4, 3), 7), "TIFF", compression=compression)


def _npys() -> Iterator[bytes]:
    for array in (CODES, DEPTH.astype(">f8"), np.asfortranarray(DEPTH), CODES.astype(np.int64), DEPTH.astype("f2")):
        content = io.BytesIO()
        np.save(content, array)
        yield content.getvalue()


def _npzs() -> Iterator[bytes]:
    for arrays in ({"disparity": DEPTH, "x": DEPTH[0]}, {"range_mm": CODES}, {"depth": DEPTH, "variance": DEPTH}):
        content = io.BytesIO()
        np.savez(content, **arrays)
        yield content.getvalue()


def _pfms() -> Iterator[bytes]:
    yield b"Pf\n# a remark\n3 2\n1.0\n" + DEPTH.astype(">f4").tobytes()


def _pgms() -> Iterator[bytes]:
    yield b"P5 3 2 1000\n" + CODES.astype(">u2").tobytes()


def _photos() -> Iterator[bytes]:
    colours = Image.fromarray(np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3))
    for kind in ("PNG", "JPEG", "PPM", "TIFF", "BMP", "WEBP"):
        yield _picture(colours, kind)
        yield _picture(colours.convert("L"), kind)
    for mode in ("I;16", "1", "P", "LA", "RGBA"):
        yield _picture(Image.new(mode, (5, 4)), "PNG")
    yield _picture(colours, "TIFF", compression="jpeg")
    yield _picture(colours.convert("CMYK"), "JPEG")
    yield _picture(Image.new("F", (5, 4)), "TIFF")
    yield _picture(Image.new("I", (5, 4), 70_000), "TIFF")


def _picture(picture: Image.Image, kind: str, **options: str) -> bytes:
    content = io.BytesIO()
    picture.save(content, kind, **options)
    return content.getvalue()


def _dictionaries() -> Iterator[bytes]:
    atoms = np.eye(4, dtype=np.float32)
    header = {"kind": DICTIONARY_KIND, "patch_shape": "[2, 2]", "noise": "none"}
    yield save({"atoms": atoms}, metadata=header)
    yield save({"atoms": atoms.astype(np.float64)}, metadata=header)
    yield save({"weights": atoms})
    with tempfile.TemporaryDirectory() as folder:
        LearningState(3, atoms, np.ones(4, np.float32), {"pull": atoms}).save(Path(folder) / "x", {})
        yield (Path(folder) / "x").read_bytes()
    text = json.dumps({"__metadata__": header, "atoms": {"dtype": "BF16", "shape": [1, 4], "data_offsets": [0, 8]}})
    yield struct.pack("<Q", len(text)) + text.encode() + bytes(8)

"""Maps from files: values, unknown pixels, and what is refused."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
import tifffile
from PIL import Image

from sparsedepth import InputError
from sparsedepth.files import read_map

DEPTH = np.array([[1.0, 2.5, np.nan], [4.0, 5.0, 60.0]], np.float32)


def _integer(path, dtype, scale):
    Image.fromarray(np.nan_to_num(DEPTH * scale, nan=0).astype(dtype)).save(path)


def _pfm(path, order):
    pixels = np.where(np.isnan(DEPTH), np.inf, DEPTH)[::-1].astype(f"{order}f4").tobytes()
    path.write_bytes(b"Pf\n3 2\n" + (b"-1.0\n" if order == "<" else b"1.0\n") + pixels)


WRITERS = {
    "8-bit.png": (lambda p: _integer(p, np.uint8, 4), 4.0),
    "16-bit.png": (lambda p: _integer(p, np.uint16, 1000), 1000.0),
    "8-bit.pgm": (lambda p: _integer(p, np.uint8, 4), 4.0),
    "little.pfm": (lambda p: _pfm(p, "<"), 1.0),
    "big.pfm": (lambda p: _pfm(p, ">"), 1.0),
    "float.tiff": (lambda p: tifffile.imwrite(p, DEPTH), 1.0),
    "plain.npy": (lambda p: np.save(p, DEPTH.astype(np.float64)), 1.0),
}


@pytest.mark.parametrize("name", WRITERS)
def test_values_and_unknown_pixels(name, tmp_path):
    write, scale = WRITERS[name]
    write(tmp_path / name)
    depth = read_map(tmp_path / name, scale=scale)
    assert depth.dtype == np.float32
    np.testing.assert_allclose(depth, DEPTH, rtol=1e-6)


@pytest.mark.parametrize("name", WRITERS)
def test_the_budget_is_checked_before_pixels_are_read(name, tmp_path):
    write, _ = WRITERS[name]
    write(tmp_path / name)
    with pytest.raises(InputError, match="budget"):
        read_map(tmp_path / name, most_pixels=5)


def test_bombs_are_refused_by_their_headers(tmp_path):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 100_000, 100_000, 16, 0, 0, 0, 0))
    png = tmp_path / "bomb.png"
    png.write_bytes(b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b""))
    pfm = tmp_path / "bomb.pfm"
    pfm.write_bytes(b"Pf\n1000000 1000000\n-1.0\n")
    npy = tmp_path / "bomb.npy"
    with npy.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)})
    for path in (png, pfm, npy):
        with pytest.raises(InputError):
            read_map(path)


@pytest.mark.parametrize("suffix", [".png", ".pgm", ".tif", ".tiff", ".npy", ".pfm"])
@pytest.mark.parametrize("content", [b"", b"not a picture", bytes(100)], ids=["empty", "text", "zeros"])
def test_broken_files_are_one_sentence(suffix, content, tmp_path):
    path = tmp_path / f"broken{suffix}"
    path.write_bytes(content)
    with pytest.raises(InputError, match="broken"):
        read_map(path)


def test_pickles_are_not_opened(tmp_path):
    path = tmp_path / "objects.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError):
        read_map(path)


def test_colour_pictures_and_stacks_are_no_maps(tmp_path):
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(tmp_path / "colour.png")
    np.save(tmp_path / "stack.npy", np.zeros((3, 4, 4)))
    np.save(tmp_path / "complex.npy", np.zeros((4, 4), complex))
    for name in ("colour.png", "stack.npy", "complex.npy"):
        with pytest.raises(InputError, match="map"):
            read_map(tmp_path / name)


def test_truncated_pfm_is_said(tmp_path):
    (tmp_path / "short.pfm").write_bytes(b"Pf\n3 2\n-1.0\n" + bytes(8))
    with pytest.raises(InputError, match="ends after 2 of 6"):
        read_map(tmp_path / "short.pfm")


@pytest.mark.parametrize(("largest", "kind"), [(100, "u1"), (255, "u1"), (4095, ">u2"), (65535, ">u2")])
def test_pgm_values_are_taken_as_they_are(largest, kind, tmp_path):
    values = np.array([[1, 2, 0], [largest // 2, largest - 1, largest]])
    (tmp_path / "x.pgm").write_bytes(f"P5 # a comment\n3 2\n{largest}\n".encode() + values.astype(kind).tobytes())
    np.testing.assert_array_equal(read_map(tmp_path / "x.pgm"), np.where(values == 0, np.nan, values))


def test_sub_byte_pictures_and_float_overflow_are_refused(tmp_path):
    Image.fromarray(np.eye(4, dtype=bool)).save(tmp_path / "bits.png")
    with pytest.raises(InputError, match="1 bits"):
        read_map(tmp_path / "bits.png")
    np.save(tmp_path / "far.npy", np.array([[1e300, 1.0]]))
    with pytest.raises(InputError, match="float32"):
        read_map(tmp_path / "far.npy")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pages.tiff", b"II*\0\0\0\0\0"),
        ("zip.npy", b"PK\x03\x04" + bytes(60)),
        ("header.npy", b"\x93NUMPY\x01\0\x04\0{'a("),
    ],
)
def test_hostile_headers_are_one_sentence(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=r"cannot be read|holds|no npy"):
        read_map(tmp_path / name)


def test_unknown_suffix_missing_file_and_bad_scale(tmp_path):
    with pytest.raises(InputError, match=r"not read; use one of.*\.pfm"):
        read_map(tmp_path / "x.jpg")
    with pytest.raises(InputError, match="no file"):
        read_map(tmp_path / "x.png")
    np.save(tmp_path / "x.npy", DEPTH)
    with pytest.raises(InputError, match="scale"):
        read_map(tmp_path / "x.npy", scale=0)

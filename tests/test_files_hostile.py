"""Files that lie, explode or are broken: each is one sentence, and none takes the memory it asks for."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import json
import struct
import subprocess
import sys
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tifffile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from sparsedepth import InputError
from sparsedepth.files import FORMATS, DepthImage, read, read_array, read_map, write, write_array

HAS_EXR = importlib.util.find_spec("OpenEXR") is not None
SUFFIXES = [suffix for suffix in FORMATS if suffix != ".exr" or HAS_EXR]
ZEROS = bytes(1 << 20)
N_ZEROS = 150
"""Bombs inflate to this many megabytes."""


@functools.cache
def zeros() -> bytes:
    deflate = zlib.compressobj(1)
    return b"".join([*(deflate.compress(ZEROS) for _ in range(N_ZEROS)), deflate.flush()])


def png(width, height, *chunks, bits=16, colour=0, interlaced=0):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = (b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*c) for c in (header, *chunks, (b"IEND", b"")))


def npy_header(shape, dtype="<f4"):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue()


def npz(start, n_zeros=0, compression=zipfile.ZIP_DEFLATED):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression, compresslevel=1) as archive, archive.open("depth.npy", "w") as file:
        file.write(start)
        for _ in range(n_zeros):
            file.write(ZEROS)
    return content.getvalue()


def tiff(tags, data=b""):
    """A little-endian TIFF with one page; ``data`` lies at byte 1000. Tags are (number, type, count, value)."""
    entries = b"".join(struct.pack("<HHII", *tag) for tag in sorted(tags))
    page = b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags)) + entries + bytes(4)
    return page.ljust(1000, b"\0") + data


def tiff_tags(width, height, more=None, *, bits=32, sample=3, compression=1, size=0):
    tags = {
        256: (4, 1, width),
        257: (4, 1, height),
        258: (3, 1, bits),
        259: (3, 1, compression),
        262: (3, 1, 1),
        273: (4, 1, 1000),
        277: (3, 1, 1),
        278: (4, 1, height),
        279: (4, 1, size),
        339: (3, 1, sample),
    }
    return [(number, *rest) for number, rest in (tags | (more or {})).items()]


def exr(width, height):
    content = FORMATS[".exr"].write(np.ones((5, 7), np.float32), None)
    for name in (b"dataWindow\0box2i\0", b"displayWindow\0box2i\0"):
        at = content.index(name) + len(name) + 4
        content = content[:at] + struct.pack("<4i", 0, 0, width - 1, height - 1) + content[at + 16 :]
    return content


def lying_directory():
    """An npz whose directory promises 4 GB of zeros that are not there."""
    content = bytearray(npz(npy_header((16_000, 16_000)) + bytes(64)))
    for magic, at in ((b"PK\1\2", 24), (b"PK\3\4", 22)):
        start = content.index(magic) + at
        content[start : start + 4] = struct.pack("<I", 0xFFFFFFF0)
    return bytes(content)


def repeated_parts(n=10_000):
    """A TIFF of 1 GB whose compressed parts, far too many, all lie in the same place."""
    part = zlib.compress(ZEROS, 1)
    offsets = struct.pack("<I", 1000 + 8 * n) * n + struct.pack("<I", len(part)) * n
    more = {273: (4, n, 1000), 279: (4, n, 1000 + 4 * n)}
    return tiff(tiff_tags(16_000, 16_000, more, compression=8), offsets + part)


TINY = (b"IDAT", zlib.compress(bytes(33 * 16)))
TILE = {322: (4, 1, 1 << 18), 323: (4, 1, 1 << 18), 324: (4, 1, 1000), 325: (4, 1, 64)}
BOMBS = {
    "header.png": lambda: png(100_000, 100_000, TINY),
    "second header.png": lambda: png(
        16, 16, (b"IHDR", struct.pack(">IIBBBBB", 16_000, 16_000, 16, 0, 0, 0, 0)), (b"IDAT", zeros())
    ),
    "text.png": lambda: png(16, 16, (b"zTXt", b"Comment\0\0" + zeros()), TINY),
    "unicode.png": lambda: png(16, 16, (b"iTXt", b"Comment\0\1\0\0\0" + zeros()), TINY),
    "profile.png": lambda: png(16, 16, (b"iCCP", b"sRGB\0\0" + zeros()), TINY),
    "fine, rows beyond the last.png": lambda: png(16, 16, (b"IDAT", zeros())),
    "header.tiff": lambda: tiff(tiff_tags(200_000, 200_000, size=64), bytes(64)),
    "within the budget but short.tiff": lambda: tiff(tiff_tags(16_000, 16_000, size=64), bytes(64)),
    "deflated float32.tiff": lambda: tiff(tiff_tags(16, 16, compression=8, size=len(zeros())), zeros()),
    "deflated float64.tiff": lambda: tiff(tiff_tags(16, 16, bits=64, compression=8, size=len(zeros())), zeros()),
    "fine, predicted.tiff": lambda: tiff(
        tiff_tags(16, 16, {317: (3, 1, 3)}, compression=8, size=len(zeros())), zeros()
    ),
    "tiles.tiff": lambda: tiff(tiff_tags(16, 16, TILE), bytes(64)),
    "deflated tiles.tiff": lambda: tiff(tiff_tags(16, 16, TILE, compression=8), zeros()),
    "fine, tag.tiff": lambda: tiff(tiff_tags(16, 16, {270: (2, 0xFFFFFFF0, 1000)}, size=64), bytes(1024)),
    "repeated parts.tiff": repeated_parts,
    "offsets.tiff": lambda: tiff(tiff_tags(16, 16, {273: (4, 0x3FFFFFF0, 1000)}, size=64), bytes(1024)),
    "header.npz": lambda: npz(npy_header((40_000, 40_000))),
    "fine, longer than its header.npz": lambda: npz(npy_header((16, 16)), N_ZEROS),
    "honest.npz": lambda: npz(npy_header((40_000, 40_000), "u1"), N_ZEROS),
    "long header.npz": lambda: npz(b"\x93NUMPY\2\0\xf0\xff\xff\xff", N_ZEROS),
    "short.npz": lambda: npz(npy_header((16_000, 16_000)) + bytes(64)),
    "directory.npz": lying_directory,
    "bzip2.npz": lambda: npz(npy_header((16, 16)), 60, zipfile.ZIP_BZIP2),
    "header.npy": lambda: npy_header((100_000, 100_000)),
    "long header.npy": lambda: b"\x93NUMPY\2\0\xf0\xff\xff\xff",
    "short.npy": lambda: npy_header((16_000, 16_000)) + bytes(64),
    "header.pfm": lambda: b"Pf\n200000 200000\n-1.0\n" + bytes(64),
    "short.pfm": lambda: b"Pf\n16000 16000\n-1.0\n" + bytes(64),
    "header.bin": lambda: b"200000&200000&1&" + bytes(64),
    "short.bin": lambda: b"16000&16000&1&" + bytes(64),
    "header.pgm": lambda: b"P5\n200000 200000\n65535\n" + bytes(64),
}
if HAS_EXR:
    BOMBS |= {"header.exr": lambda: exr(200_000, 200_000), "short.exr": lambda: exr(16_000, 16_000)}


# Peak memory only grows: what a file takes beyond the peak so far is charged to it.
READ_THEM = """
import json, re, resource, sys
from pathlib import Path
from sparsedepth import InputError
from sparsedepth.files import read
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024
for path in sys.argv[1:]:
    before, shape, sentence = peak(), None, ""
    try:
        shape = read(path).values.shape
    except InputError as error:
        sentence = str(error)
    print(json.dumps({"shape": shape, "sentence": sentence, "megabytes": peak() - before}))
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bombs")
    for name, content in BOMBS.items():
        (folder / name).write_bytes(content())
    command = [sys.executable, "-c", READ_THEM, *(str(folder / name) for name in BOMBS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    return dict(zip(BOMBS, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is measured as Linux counts it")
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_no_memory(name, outcomes):
    outcome = outcomes[name]
    assert outcome["megabytes"] < 40, outcome
    if name.startswith("fine"):
        assert outcome["shape"] == [16, 16], outcome
    else:
        assert name in outcome["sentence"]
        assert "\n" not in outcome["sentence"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_budget_counts_pixels_and_bytes(suffix, tmp_path):
    path = tmp_path / f"x{suffix}"
    write(path, DepthImage(np.ones((2, 3)), "mm"), profile="mm")
    read(path, most_pixels=6, most_bytes=8192)
    for reader in (read, read_map, read_array):
        with pytest.raises(InputError, match=r"3 x 2 pixels; the budget is 5 pixels \(most_pixels\)"):
            reader(path, most_pixels=5)
    with pytest.raises(InputError, match=r"3 x 2 pixels of . bytes; the budget is 11 bytes \(most_bytes\)"):
        read(path, most_bytes=11)


# --- what is no map, in one sentence --------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("content", [b"", b"not a picture", bytes(100)], ids=["empty", "text", "zeros"])
def test_broken_files_are_one_sentence(suffix, content, tmp_path):
    path = tmp_path / f"broken{suffix}"
    path.write_bytes(content)
    with pytest.raises(InputError, match="broken") as caught:
        read(path)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
@given(data=st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_files_are_read_or_refused_but_never_crash(suffix, data, tmp_path):
    path = tmp_path / f"x{suffix}"
    write(path, np.arange(1.0, 13).reshape(3, 4), profile="mm")
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(len(content) // 2, len(content)))])
    with contextlib.suppress(InputError):
        assert read(path, most_pixels=10_000, most_bytes=100_000).values.ndim == 2


COLOURS = {
    "RGB": "colour picture",
    "RGBA": "colour with alpha",
    "P": "palette",
    "LA": "grey with alpha",
    "1": "1 bits",
}


@pytest.mark.parametrize("mode", COLOURS)
def test_painted_depth_is_a_picture(mode, tmp_path):
    Image.new(mode, (4, 4)).save(tmp_path / "x.png")
    with pytest.raises(InputError, match=COLOURS[mode]):
        read(tmp_path / "x.png")


def test_interlaced_pictures_and_other_tiff_colours_are_refused(tmp_path):
    (tmp_path / "x.png").write_bytes(png(4, 4, (b"IDAT", zlib.compress(bytes(60))), interlaced=1))
    with pytest.raises(InputError, match="interlaced"):
        read(tmp_path / "x.png")
    for photometric in ("rgb", "miniswhite"):
        shape = (4, 4, 3) if photometric == "rgb" else (4, 4)
        tifffile.imwrite(tmp_path / "x.tiff", np.zeros(shape, np.uint8), photometric=photometric)
        with pytest.raises(InputError, match="a map is grey"):
            read(tmp_path / "x.tiff")
    (tmp_path / "x.tiff").write_bytes(tiff(tiff_tags(4, 4, {274: (3, 1, 3)}, size=64), bytes(64)))
    with pytest.raises(InputError, match="orientation"):
        read(tmp_path / "x.tiff")


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((3, 4, 4)),
        np.zeros(4),
        np.zeros((4, 4), complex),
        np.zeros((4, 4), bool),
        np.zeros((4, 4), "datetime64[s]"),
        np.zeros((2, 2), [("x", "f4")]),
        np.zeros((0, 4)),
    ],
    ids=lambda array: f"{array.dtype} {array.shape}",
)
def test_arrays_that_are_no_map(array, tmp_path):
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(InputError, match="map has"):
        read(tmp_path / "x.npy")
    np.savez(tmp_path / "x.npz", depth=array)
    with pytest.raises(InputError, match=r"map has|which array is the map"):
        read(tmp_path / "x.npz")


def test_pickles_are_not_opened(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[{"a": 1}]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "x.npz", depth=np.array([[{"a": 1}]], dtype=object), allow_pickle=True)
    for name in ("x.npy", "x.npz"):
        with pytest.raises(InputError, match=r"holds|Python objects"):
            read(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.pfm", b"PF\n3 2\n-1.0\n" + bytes(72), "a PFM in colour"),
        ("x.pfm", b"Pf\n3 2\n0\n" + bytes(24), "scale is 0"),
        ("x.pfm", b"Pf\n3 2\n-1e999\n" + bytes(24), "scale is -inf"),
        ("x.pfm", b"Pf\n3 2\n-e\n" + bytes(24), "cannot be read"),
        ("x.pfm", b"Pf\n3 2\n-1.0\n" + bytes(8), "ends after 2 of 6"),
        ("x.pfm", b"Pf\n0 2\n-1.0\n" + bytes(8), "0 x 2 pixels"),
        ("x.pfm", b"Pf\n-3 2\n-1.0\n" + bytes(24), "something else"),
        ("x.pgm", b"P2\n3 2\n255\n1 2 3 4 5 6", "decimal text"),
        ("x.pgm", b"P6\n3 2\n255\n" + bytes(18), "colour"),
        ("x.pgm", b"P5\n3 2\n70000\n" + bytes(18), "largest value is 70000"),
        ("x.pgm", b"P5\n3 2\n255\n" + bytes(5), "ends after 5 of 6"),
        ("x.bin", b"3&2&3&" + bytes(72), "holds normals"),
        ("x.bin", b"3&2&1&" + bytes(8), "ends after 2 of 6"),
        ("x.bin", b"1" * 60 + b"&2&1&", "does not begin"),
        ("x.tiff", b"II*\0\0\0\0\0", "cannot be read"),
        ("x.npy", b"PK\x03\x04" + bytes(60), "no npy"),
        ("x.npy", b"\x93NUMPY\x01\0\x04\0{'a(", "cannot be read"),
        ("x.npz", b"PK\x03\x04" + bytes(60), "cannot be read"),
        ("x.exr", b"v/1\x01" + bytes(60), "EXR|cannot be read"),
    ],
)
def test_headers_that_make_no_sense(name, content, sentence, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        read(tmp_path / name)


def test_values_beyond_float32_are_said(tmp_path):
    np.save(tmp_path / "far.npy", np.array([[1e300, 1.0]]))
    with pytest.raises(InputError, match="float32"):
        read(tmp_path / "far.npy")
    np.save(tmp_path / "near.npy", np.array([[1e30, 1.0]], np.float32))
    with pytest.raises(InputError, match="float32"):
        read(tmp_path / "near.npy", "m", scale=1e-20)
    with pytest.raises(InputError, match="float32"):
        write(tmp_path / "x.tiff", np.array([[1e30]]), profile="m", scale=1e20)


@pytest.mark.parametrize("text", ["{}", "[1", '{"unit": "m"}', '{"unit": "inch", "kind": "depth"}', "[" * 900, "null"])
def test_a_false_text_about_the_meaning_is_ignored(text, tmp_path):
    write_array(tmp_path / "x.tiff", np.ones((2, 2), np.float32))
    tifffile.imwrite(
        tmp_path / "x.tiff", np.ones((2, 2), np.float32), description='{"sparsedepth": ' + text + "}", metadata=None
    )
    assert "unknown unit" in read(tmp_path / "x.tiff").assumed


def test_folders_and_pipes_are_no_files(tmp_path):
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(InputError, match="no file"):
        read(tmp_path / "folder.png")
    with pytest.raises(InputError, match="cannot write"):
        write(tmp_path / "folder.png", np.ones((2, 2)), profile="mm")


@pytest.mark.skipif(not HAS_EXR, reason="EXR needs the package OpenEXR")
def test_standard_output_is_given_back_by_threads_that_read_exr(tmp_path):
    write(tmp_path / "x.exr", np.ones((2, 3)), profile="m")
    before = sys.stdout
    with ThreadPoolExecutor(8) as pool:
        assert all(image.values.shape == (2, 3) for image in pool.map(read, [tmp_path / "x.exr"] * 64))
    assert sys.stdout is before

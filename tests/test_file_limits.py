"""Limits and codes of files hold at their edges: what is just allowed is read, and one more is refused."""

from __future__ import annotations

import io
import os
import struct
from types import SimpleNamespace

import numpy as np
import pytest
import tifffile
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image

from sparsedepth import InputError
from sparsedepth.files import colmap, exr, netpbm
from sparsedepth.files.bag_images import Message, decode_depth, is_depth
from sparsedepth.files.codec import decode, encode_floats, encode_integers
from sparsedepth.files.confidence import confidence_variance
from sparsedepth.files.memmap import new_file, scratch, should_map
from sparsedepth.files.photos import read_photo
from sparsedepth.files.stored import Budget, read_pixels
from sparsedepth.files.tiff_writing import MAX_CLASSIC_BYTES, STRIP_BYTES, encode, start_plain
from sparsedepth.vocabulary import Profile, TooLargeError

FLOAT, WIDE = np.dtype(np.float32), np.dtype(np.float64)


def test_a_budget_is_the_most_that_is_allowed():
    Budget(35, 140).allow((5, 7), FLOAT)
    for budget, dtype in ((Budget(34, 10**6), FLOAT), (Budget(35, 139), FLOAT), (Budget(35, 279), WIDE)):
        with pytest.raises(TooLargeError):
            budget.allow((5, 7), dtype)
    Budget(35, 280).allow((5, 7), WIDE)
    for shape in ((5,), (5, 7, 1), (0, 7), (5, 0)):
        with pytest.raises(InputError):
            Budget(100, 1000).allow(shape, FLOAT)


@pytest.mark.parametrize("missing", [0, 1, 5])
def test_pixels_that_are_missing_are_counted(missing):
    content = np.arange(12, dtype="<u2").tobytes()[: 24 - missing]
    if not missing:
        assert_array_equal(read_pixels(io.BytesIO(content), (3, 4), np.dtype("<u2")), np.arange(12).reshape(3, 4))
        return
    with pytest.raises(InputError, match=f"after {(24 - missing) // 2} of 12"):
        read_pixels(io.BytesIO(content), (3, 4), np.dtype("<u2"))


def coded(value: float, codes: tuple[int, ...], scale: float = 10.0, dtype: type = np.uint8) -> int:
    profile = Profile("", "m", "depth", scale, tuple(map(float, codes)), "uint8")
    return int(encode_integers(np.array([[value, np.nan if codes else value]]), profile, np.dtype(dtype))[0, 0])


@pytest.mark.parametrize(
    ("value", "codes", "stored"),
    [
        (0.04, (0,), 1),
        (1.02, (10,), 11),
        (0.98, (10,), 9),
        (1.0, (10,), 9),
        (1.02, (10, 11), 9),
        (1.02, (10, 11, 12, 13), 9),
        (0.98, (10, 9, 8), 11),
        (25.5, (255,), 254),
        (25.46, (255, 254), 253),
        (0.0, (0, 1), 2),
        (25.5, (0,), 255),
        (1.04, (), 10),
    ],
)
def test_a_known_pixel_takes_the_nearest_code_that_means_a_number(value, codes, stored):
    assert coded(value, codes) == stored


@pytest.mark.parametrize("value", [25.6, -0.1])
def test_integers_end_where_their_type_does(value):
    with pytest.raises(InputError):
        coded(value, (0,))
    assert coded(-12.8, (), dtype=np.int8) == -128
    assert coded(12.7, (), dtype=np.int8) == 127
    with pytest.raises(InputError):
        coded(-12.9, (), dtype=np.int8)


def test_the_code_of_unknown_pixels_fits_their_type():
    values = np.array([[1.0, np.nan]])
    for code, fits in ((0.0, True), (255.0, True), (256.0, False), (-1.0, False), (0.5, False)):
        profile = Profile("", "m", "depth", 1.0, (code,), "uint8")
        if fits:
            assert encode_integers(values, profile, np.dtype(np.uint8))[0, 1] == code
        else:
            with pytest.raises(InputError, match="code"):
                encode_integers(values, profile, np.dtype(np.uint8))


def test_floats_are_multiplied_and_divided_by_their_scale():
    profile = Profile("", "m", "depth", 8.0, (-1.0,))
    stored = encode_floats(np.array([[0.5, np.nan, 3.0]], np.float32), profile, -1.0)
    assert_array_equal(stored, [[4, -1, 24]])
    assert_array_equal(decode(stored, profile), [[0.5, np.nan, 3]])
    with pytest.raises(InputError, match="code"):
        encode_floats(np.array([[-0.125]], np.float32), profile, -1.0)
    for value, fits in ((4.2e37, True), (4.3e37, False)):
        if fits:
            assert np.isfinite(encode_floats(np.array([[value]]), profile, -1.0)).all()
        else:
            with pytest.raises(InputError, match="scale"):
                encode_floats(np.array([[value]]), profile, -1.0)


@pytest.mark.parametrize(("largest", "itemsize"), [(1, 1), (255, 1), (256, 2), (65535, 2)])
def test_pgm_has_two_bytes_a_pixel_from_256_on(tmp_path, largest, itemsize):
    path = tmp_path / "x.pgm"
    path.write_bytes(b"P5 2 1 %d\n" % largest + bytes(range(2 * itemsize)))
    found = netpbm.read_pgm(path, Budget(10, 100)).pixels
    assert_array_equal(found, [[0, 1]] if itemsize == 1 else [[1, 0x0203]])
    path.write_bytes(netpbm.write_pgm(found, None))
    assert_array_equal(netpbm.read_pgm(path, Budget(10, 100)).pixels, found)


@pytest.mark.parametrize("width", [1, STRIP_BYTES // 4 - 1, STRIP_BYTES // 4, STRIP_BYTES // 4 + 1])
def test_strips_hold_as_many_rows_as_fit(tmp_path, width):
    pixels = np.arange(3 * width, dtype=np.float32).reshape(3, width)
    path = tmp_path / "x.tif"
    path.write_bytes(encode(pixels, []))
    with tifffile.TiffFile(path) as file:
        page = file.pages.first
        assert page.rowsperstrip * width * 4 <= max(STRIP_BYTES, 4 * width)
        assert page.rowsperstrip == min(3, max(1, STRIP_BYTES // (4 * width)))
        assert all(each % 16 == 0 for each in page.dataoffsets[:1])
    assert_array_equal(tifffile.imread(path), pixels)


@pytest.mark.parametrize("more", [0, 1])
def test_files_beyond_four_gigabytes_have_wide_offsets(more):
    head, begin = start_plain((1, MAX_CLASSIC_BYTES + more), np.dtype(np.uint8), [])
    assert head[:4] == (b"II+\0" if more else b"II*\0")
    assert len(head) == begin
    assert begin % 16 == 0
    count, entry, width = ("<Q", 20, "<Q") if more else ("<H", 12, "<I")
    where = struct.unpack_from(width, head, 8 if more else 4)[0]
    (tags,) = struct.unpack_from(count, head, where)
    found = {}
    for number in range(tags):
        at = where + struct.calcsize(count) + number * entry
        code, _, values = struct.unpack_from("<HH" + width[1:], head, at)
        found[code] = struct.unpack_from(width, head, at + 4 + struct.calcsize(width))[0] if values == 1 else None
    assert found[273] == begin
    assert found[279] == MAX_CLASSIC_BYTES + more
    assert struct.unpack_from(width, head, where + struct.calcsize(count) + tags * entry) == (0,)


@pytest.mark.parametrize("suffix", [".npy", ".tif"])
def test_maps_are_mapped_that_are_larger_than_a_limit(tmp_path, suffix):
    path, pixels = tmp_path / f"x{suffix}", np.zeros((30, 40), np.float32)
    if suffix == ".npy":
        np.save(path, pixels)
    else:
        tifffile.imwrite(path, pixels)
    assert should_map(path, 1199)
    assert not should_map(path, 1200)


def plain_image(rows, encoding, order, padding=0, **more):
    kind = np.dtype({"16UC1": "u2", "32FC1": "f4"}[encoding]).newbyteorder(order)
    content = b"".join(np.array(row, kind).tobytes() + bytes(padding) for row in rows)
    step = len(rows[0]) * kind.itemsize + padding
    given = {"height": len(rows), "width": len(rows[0]), "step": step, "is_bigendian": order == ">"}
    data = np.frombuffer(content, np.uint8)
    return Message(SimpleNamespace(encoding=encoding, data=data, **(given | more)))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("padding", [0, 6])
def test_images_of_bags_may_have_padded_rows_of_either_order(order, padding):
    rows = [[0, 1000, 2], [65535, 5, 1]]
    found = decode_depth(plain_image(rows, "16UC1", order, padding), "bag", 0.001)
    assert_array_equal(found.values, [[np.nan, 1000, 2], [65535, 5, 1]])
    tenths = decode_depth(plain_image(rows, "16UC1", order, padding), "bag", 0.0001)
    assert_allclose(tenths.values, [[np.nan, 100, 0.2], [6553.5, 0.5, 0.1]], rtol=1e-6)
    assert tenths.unit == "mm"
    assert tenths.profile is not None
    assert tenths.profile.scale == pytest.approx(10)
    floats = decode_depth(plain_image([[1.5, -2.0, np.inf]], "32FC1", order, padding), "bag", 0.001)
    assert_array_equal(floats.values, [[1.5, np.nan, np.nan]])
    assert floats.unit == "m"


def test_images_of_bags_fit_their_data():
    rows = [[1, 2, 3], [4, 5, 6]]
    assert decode_depth(plain_image(rows, "16UC1", "<", step=0), "bag", 0.001).values.shape == (2, 3)
    for wrong in ({"height": 3}, {"step": 5}, {"step": 7}, {"height": 0}):
        with pytest.raises(InputError, match="fit"):
            decode_depth(plain_image(rows, "16UC1", "<", **wrong), "bag", 0.001)


def test_compressed_floats_are_quantised_inverse_depths():
    codes = np.array([[0, 100, 2000]], np.uint16)
    content = io.BytesIO()
    Image.fromarray(codes).save(content, "png")
    data = np.frombuffer(b"\0\0\0\0" + struct.pack("<ff", 5000.0, -50.0) + content.getvalue(), np.uint8)
    message = Message(SimpleNamespace(format="32FC1; compressedDepth", data=data))
    assert is_depth(message)
    found = decode_depth(message, "bag", 0.001)
    assert_allclose(found.values, [[np.nan, 5000 / 150, 5000 / 2050]], rtol=1e-6)


def test_confidences_are_variances_of_relative_errors():
    depth = np.array([[1.0, 2.0, -4.0, 0.0, np.nan]])
    found = confidence_variance(depth, np.array([[2, 1, 2, 2, 2]]), (np.inf, 0.1, 0.02))
    assert_allclose(found, [[0.0004, 0.04, 0.0064, np.inf, np.inf]])
    for level in (-1, 3):
        with pytest.raises(InputError, match="from 0 to 2"):
            confidence_variance(depth, np.full((1, 5), level), (np.inf, 0.1, 0.02))


@pytest.mark.parametrize("missing", [0, 1, 4000])
def test_a_map_that_ends_early_is_not_mapped(tmp_path, missing):
    np.save(tmp_path / "x.npy", np.zeros((30, 40), np.float32))
    content = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(content[: len(content) - missing])
    assert should_map(tmp_path / "x.npy", 600) == (missing == 0)


@pytest.mark.parametrize("suffix", [".npy", ".tif"])
def test_a_new_file_has_the_space_of_all_its_pixels(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    pixels = new_file(path, (300, 400), np.dtype(np.float32), None, kind=suffix)
    assert 4 * 300 * 400 < path.stat().st_size < 4 * 300 * 400 + 1024
    if hasattr(os, "posix_fallocate"):
        assert path.stat().st_blocks * 512 >= 4 * 300 * 400
    assert isinstance(pixels, np.memmap)
    pixels[:] = np.arange(120_000).reshape(300, 400)
    pixels.flush()
    found = np.load(path) if suffix == ".npy" else tifffile.imread(path)
    assert_array_equal(found, pixels)
    assert_array_equal(scratch((3, 5), np.dtype(np.int16), tmp_path), np.zeros((3, 5), np.int16))


def test_every_byte_of_a_dense_map_counts(tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(b"5&7&1&" + bytes(4 * 35))
    assert colmap.read(path, Budget(35, 140)).pixels.shape == (7, 5)
    with pytest.raises(InputError, match="139 bytes"):
        colmap.read(path, Budget(35, 139))


@pytest.mark.parametrize("others", [0, 3])
def test_all_channels_of_an_exr_file_count(tmp_path, others):
    """Its library decodes them all, whichever is the map."""
    openexr = pytest.importorskip("OpenEXR", reason="EXR needs the package OpenEXR")
    depth, path = np.ones((7, 5), np.float32), tmp_path / "x.exr"
    channels = dict.fromkeys(["Z", "A", "B", "C"][: 1 + others], depth)
    openexr.File({"type": openexr.scanlineimage}, channels).write(str(path))
    size = 140 * (1 + others)
    assert exr.read(path, Budget(35, size)).pixels.shape == (7, 5)
    with pytest.raises(InputError, match=f"{size - 1} bytes"):
        exr.read(path, Budget(35, size - 1))


def test_a_photograph_may_have_as_many_pixels_as_are_allowed(tmp_path):
    Image.fromarray(np.zeros((7, 5), np.uint8)).save(tmp_path / "x.png")
    assert read_photo(tmp_path / "x.png", most_pixels=35).shape[:2] == (7, 5)
    with pytest.raises(TooLargeError, match="34 pixels"):
        read_photo(tmp_path / "x.png", most_pixels=34)

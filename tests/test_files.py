"""Maps and files: what is written is read again, units and codes are said, and nothing changes unasked."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tifffile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from PIL import Image

from sparsedepth import InputError, Match, Restoration, Restorer, believe, denoise, inpaint
from sparsedepth.files import (
    FORMATS,
    PROFILES,
    DepthImage,
    Profile,
    read,
    read_array,
    read_map,
    write,
    write_array,
)
from sparsedepth.files.writing import encode_file

NAN = np.nan
DEPTH = np.array([[1.0, 2.5, NAN], [4.0, 5.0, 60.0]], np.float32)
few = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
without_exr = pytest.mark.skipif(importlib.util.find_spec("OpenEXR") is None, reason="EXR needs the package OpenEXR")
SUFFIXES = [pytest.param(s, marks=without_exr) if s == ".exr" else s for s in FORMATS]
FLOAT_SUFFIXES = [pytest.param(s, marks=without_exr) if s == ".exr" else s for s in FORMATS if not FORMATS[s].integers]
INTEGER_SUFFIXES = [s for s in FORMATS if FORMATS[s].integers]
INTEGER_PROFILES = [replace(p, scale=p.scale or 3.0) for p in PROFILES.values() if p.dtype != "float32"]

depths = st.floats(0, 200, width=32)
maps = arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=5), elements=depths | st.just(NAN))


# --- what is written is read again, over every format ---------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
@given(values=maps)
@few
def test_read_of_write_is_the_map(suffix, values, tmp_path):
    path = tmp_path / f"map{suffix}"
    integers = FORMATS[suffix].integers
    values = np.where(values == FORMATS[suffix].unknown, 1, values)  # what only unknown pixels can hold
    write(path, DepthImage(values, "m"), profile="kitti" if integers else None)
    again = read(path, "kitti" if integers else "m")
    assert again.values.dtype == np.float32
    assert (again.unit, again.kind) == ("m", "depth")
    if integers:
        np.testing.assert_array_equal(np.isnan(again.values), np.isnan(values))
        step = np.where(np.rint(values * 256) == 0, 1, 0.5) / 256
        assert np.all(np.isnan(values) | (np.abs(again.values - values) <= step))
    else:
        np.testing.assert_array_equal(again.values, values)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("unit", "kind"), [("m", "depth"), ("px", "disparity"), ("1/m", "inverse depth"), ("m", "height"), ("", "depth")]
)
def test_a_file_that_can_say_its_meaning_leaves_nothing_to_assume(suffix, unit, kind, tmp_path):
    write(tmp_path / f"map{suffix}", DepthImage(DEPTH, unit, kind), scale=2.0)
    again = read(tmp_path / f"map{suffix}")
    if FORMATS[suffix].says_meaning:
        assert (again.unit, again.kind, again.assumed) == (unit, kind, "")
        np.testing.assert_array_equal(again.values, DEPTH)
    else:
        assert again.assumed.startswith(f"map{suffix}: took its")
        assert "give the profile (" in again.assumed


@pytest.mark.slow
@pytest.mark.parametrize("profile", INTEGER_PROFILES, ids=lambda p: p.name)
@pytest.mark.parametrize("suffix", INTEGER_SUFFIXES)
@given(data=st.data())
@few
def test_an_integer_file_survives_reading_and_writing(profile, suffix, data, tmp_path):
    dtype = np.dtype(profile.dtype)
    codes = data.draw(arrays(dtype, (3, 4), elements=st.integers(0, np.iinfo(dtype).max)))
    codes[np.isin(codes, profile.invalid[1:])] = profile.invalid[0]  # all unknown pixels are written by one code
    write_array(tmp_path / f"a{suffix}", codes)
    write(tmp_path / f"b{suffix}", read(tmp_path / f"a{suffix}", profile))
    np.testing.assert_array_equal(read_array(tmp_path / f"b{suffix}"), codes)


@pytest.mark.parametrize("suffix", FLOAT_SUFFIXES)
def test_a_declared_code_stands_for_unknown_pixels_in_float_files(suffix, tmp_path):
    path = tmp_path / f"map{suffix}"
    write(path, DepthImage(DEPTH, "m"), invalid=-9999)
    assert read_array(path)[0, 2] == -9999
    np.testing.assert_array_equal(read(path, "m", invalid=-9999).values, DEPTH)
    if FORMATS[suffix].says_meaning:
        np.testing.assert_array_equal(read(path).values, DEPTH)
    with pytest.raises(InputError, match=r"known pixel holds 2\.5"):
        write(path, DepthImage(DEPTH, "m"), invalid=2.5)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_unknown_everywhere_and_one_pixel(suffix, tmp_path):
    for values in (np.full((2, 3), NAN), np.full((1, 1), 7.0), np.full((1, 1), NAN), np.ones((1, 9)), np.ones((9, 1))):
        write(tmp_path / f"map{suffix}", DepthImage(values, "mm"), profile="mm")
        np.testing.assert_array_equal(read(tmp_path / f"map{suffix}", "mm").values, values)


ARRAYS = {
    "float16": lambda: DEPTH.astype(np.float16),
    "float64": lambda: DEPTH.astype(np.float64),
    "big-endian": lambda: DEPTH.astype(">f4"),
    "fortran": lambda: np.asfortranarray(DEPTH),
    "reversed": lambda: DEPTH[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda: np.frombuffer(DEPTH.tobytes(), np.float32).reshape(DEPTH.shape),
    "masked": lambda: np.ma.masked_array(np.nan_to_num(DEPTH, nan=-5), np.isnan(DEPTH)),
    "masked integers": lambda: np.ma.masked_array(np.nan_to_num(DEPTH * 2, nan=-5).astype(int), np.isnan(DEPTH)),
    "infinite": lambda: np.where(np.isnan(DEPTH), -np.inf, DEPTH),
    "list": lambda: DEPTH.tolist(),
}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", ARRAYS)
def test_any_real_array_is_written(name, suffix, tmp_path):
    path = tmp_path / f"map{suffix}"
    write(path, ARRAYS[name](), profile="m", scale=2.0)
    expected = DEPTH * 2 if name == "masked integers" else DEPTH
    np.testing.assert_array_equal(read(path, "m", scale=2.0, invalid=0).values, expected)


def test_memory_mapped_arrays_and_arrays_in_npy_of_any_order(tmp_path):
    np.save(tmp_path / "a.npy", DEPTH)
    write(tmp_path / "b.tiff", DepthImage(np.load(tmp_path / "a.npy", mmap_mode="r"), "m"))
    np.testing.assert_array_equal(read(tmp_path / "b.tiff").values, DEPTH)
    for name in ("float16", "float64", "big-endian", "fortran"):
        np.save(tmp_path / "c.npy", ARRAYS[name]())
        np.testing.assert_array_equal(read(tmp_path / "c.npy").values, DEPTH)
        np.savez(tmp_path / "d.npz", depth=ARRAYS[name](), other=np.ones(3))
        np.testing.assert_array_equal(read(tmp_path / "d.npz").values, DEPTH)


# --- the writer never overflows, never loses a pixel, never changes a unit unasked ----------------------------------


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([[70000.0]], "largest value 70000 mm does not fit uint16.*use .tiff, or a smaller scale"),
        ([[-3.0]], "smallest value -3 mm is negative"),
        ([[65535.2]], "does not fit"),
    ],
)
@pytest.mark.parametrize("suffix", INTEGER_SUFFIXES)
def test_integers_do_not_wrap(values, sentence, suffix, tmp_path):
    with pytest.raises(InputError, match=sentence):
        write(tmp_path / f"x{suffix}", values, profile="mm")
    assert not list(tmp_path.iterdir())


@given(values=arrays(np.float64, (20,), elements=st.floats(0, 65535)), code=st.sampled_from([0, 1, 700, 65535]))
@few
def test_a_known_pixel_stays_known_within_one_step(values, code, tmp_path):
    values = np.concatenate([values, [0, 0.4, code, abs(code - 0.3)]]).reshape(4, 6)
    write(tmp_path / "x.png", values, profile="mm", invalid=code)
    stored = read_array(tmp_path / "x.png")
    assert not np.any(stored == code)
    error = np.abs(stored - values.astype(np.float32))
    assert error.max() <= 1
    assert np.all((error <= 0.5) | (np.rint(values) == code))


def test_unknown_pixels_need_a_code_that_fits(tmp_path):
    bare = Profile("bare", "mm", dtype="uint16")
    with pytest.raises(InputError, match="1 pixels are unknown and no code"):
        write(tmp_path / "x.png", DEPTH, profile=bare)
    with pytest.raises(InputError, match="code -1 for unknown pixels does not fit uint16"):
        write(tmp_path / "x.png", DEPTH, profile="mm", invalid=-1)
    with pytest.raises(InputError, match="code nan for unknown pixels does not fit uint16"):
        write(tmp_path / "x.png", DEPTH, profile="mm", invalid=NAN)
    write(tmp_path / "x.png", DEPTH, profile="mm", invalid=65535)
    assert read_array(tmp_path / "x.png")[0, 2] == 65535
    assert np.isnan(read(tmp_path / "x.png").values[0, 2])


def test_units_change_only_when_a_profile_asks(tmp_path):
    metres = DepthImage(DEPTH, "m")
    write(tmp_path / "mm.png", metres, profile="mm")
    assert read_array(tmp_path / "mm.png")[0, 1] == 2500
    write(tmp_path / "m.tiff", metres)
    assert read(tmp_path / "m.tiff").unit == "m"
    write(tmp_path / "ros.png", metres, profile="ros")
    write(tmp_path / "ros.tiff", DepthImage(DEPTH, "mm"), profile="ros")
    assert (read(tmp_path / "ros.png", "ros").unit, read_array(tmp_path / "ros.png")[0, 1]) == ("mm", 2500)
    np.testing.assert_allclose(read(tmp_path / "ros.tiff", "ros").to("mm").values, DEPTH, rtol=1e-6)
    with pytest.raises(InputError, match="say how"):
        write(tmp_path / "x.png", metres)
    with pytest.raises(InputError, match="unknown unit cannot become 'mm'"):
        write(tmp_path / "x.png", DepthImage(DEPTH), profile="mm")
    with pytest.raises(InputError, match="is disparity and the profile mm is for depth"):
        write(tmp_path / "x.png", DepthImage(DEPTH, "px", "disparity"), profile="mm")


def test_middlebury_keeps_the_scale_it_was_read_with(tmp_path):
    write_array(tmp_path / "disp.png", np.array([[0, 3, 255]], np.uint8))
    image = read(tmp_path / "disp.png", "middlebury", scale=3)
    np.testing.assert_array_equal(image.values, np.array([[NAN, 1, 85]], np.float32))
    write(tmp_path / "again.png", image)
    write(tmp_path / "named.png", image, profile="middlebury")
    for name in ("again.png", "named.png"):
        np.testing.assert_array_equal(read_array(tmp_path / name), [[0, 3, 255]])
    with pytest.raises(InputError, match="middlebury needs the scale"):
        read(tmp_path / "disp.png", "middlebury")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "x.png"
    write(path, DEPTH, profile="mm")
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(InputError, match="No space left"):
        write(path, DEPTH + 1, profile="mm")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InputError, match="cannot write"):
        write(tmp_path / "nowhere" / "x.png", DEPTH, profile="mm")


def test_threads_that_write_the_same_file_leave_one_whole_file(tmp_path):
    path = tmp_path / "x.npy"
    maps = [np.full((50, 50), n, np.float32) for n in range(8)]
    threads = [threading.Thread(target=write, args=(path, values)) for values in maps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.unique(read(path).values).size == 1
    assert list(tmp_path.iterdir()) == [path]


# --- variances, origins and npz files -------------------------------------------------------------------------------


def test_variance_and_origin_beside_the_map(tmp_path):
    variance, origin = np.where(np.isnan(DEPTH), np.inf, DEPTH**2), np.arange(6, dtype=np.uint8).reshape(2, 3)
    write(tmp_path / "x.npz", DepthImage(DEPTH, "m"), variance=variance, origin=origin)
    assert (read(tmp_path / "x.npz").unit, read(tmp_path / "x.npz").assumed) == ("m", "")
    np.testing.assert_array_equal(read(tmp_path / "x.npz").values, DEPTH)
    np.testing.assert_array_equal(read_array(tmp_path / "x.npz", name="variance"), variance)
    np.testing.assert_array_equal(read_array(tmp_path / "x.npz", name="origin"), origin)
    with np.load(tmp_path / "x.npz") as plain:
        assert (str(plain["unit"]), str(plain["kind"])) == ("m", "depth")
    with pytest.raises(InputError, match="no array 'sigma'; it holds depth, unit, kind, variance, origin"):
        read_array(tmp_path / "x.npz", name="sigma")
    with pytest.raises(InputError, match=r"only \.npz holds variance"):
        write(tmp_path / "x.tiff", DepthImage(DEPTH, "m"), variance=variance)
    with pytest.raises(InputError, match=r"variance is float64 of shape \(3, 3\)"):
        write(tmp_path / "x.npz", DepthImage(DEPTH, "m"), variance=np.ones((3, 3)))


@pytest.mark.parametrize("suffix", FLOAT_SUFFIXES)
def test_variances_keep_their_infinities(suffix, tmp_path):
    variance = np.array([[0.0, 1e-9, np.inf], [1e20, 3.0, 2.0]])
    write_array(tmp_path / f"v{suffix}", variance)
    np.testing.assert_array_equal(read_array(tmp_path / f"v{suffix}"), variance.astype(np.float32))
    with pytest.raises(InputError, match="beyond"):
        write_array(tmp_path / f"v{suffix}", variance * 1e30)


@pytest.mark.parametrize("suffix", [*INTEGER_SUFFIXES, ".npy", ".npz"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_origin_maps_are_kept_as_they_are(suffix, dtype, tmp_path):
    origin = np.array([[0, 1, 2], [3, 0, 255]], dtype)
    write_array(tmp_path / f"o{suffix}", origin)
    again = read_array(tmp_path / f"o{suffix}")
    np.testing.assert_array_equal(again, origin)
    assert again.dtype.itemsize == origin.dtype.itemsize


@pytest.mark.parametrize(("name", "array"), [("x.png", DEPTH), ("x.tiff", np.ones((2, 2), int)), ("x.npy", np.ones(3))])
def test_write_array_converts_nothing(name, array, tmp_path):
    with pytest.raises(InputError, match="came; convert it, or use another suffix"):
        write_array(tmp_path / name, array)


def test_foreign_npz(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, range_mm=np.array([[0, 70000]], np.uint32))
    image = read(path)
    assert image.unit == "mm"
    assert "uint32 numbers as depth in mm, 0 = unknown" in image.assumed
    np.testing.assert_array_equal(image.values, [[NAN, 70000]])
    np.testing.assert_array_equal(read_map(path, scale=1000), np.array([[NAN, 70]], np.float32))
    np.savez(path, anything=DEPTH, label=np.arange(3))
    np.testing.assert_array_equal(read(path).values, DEPTH)
    np.savez(path, disparity=DEPTH, mask=DEPTH > 1, confidence=DEPTH)
    assert read(path).kind == "disparity"
    for ambiguous in (
        {"a": DEPTH, "b": DEPTH},
        {"depth": DEPTH, "disparity": DEPTH},
        {"stack": np.ones((2, 2, 2))},
        {},
    ):
        np.savez(path, allow_pickle=False, **ambiguous)
        with pytest.raises(InputError, match=f"which array is the map.*{next(iter(ambiguous), 'no arrays')}"):
            read(path)
    np.savez(path, depth=DEPTH, unit=np.array("furlong"), kind=np.array("depth"))
    assert read(path).assumed


def test_laser_scans_are_millimetres(real_data):
    for path in sorted((real_data / "laser").glob("*/range_mm.*")):
        image = read(path)
        assert image.unit == "mm"
        assert 0.5 < np.isfinite(image.values).mean() < 1
        assert 1e3 < np.nanmedian(image.values) < 1e5


# --- reading: profiles, codes and what auto assumes -----------------------------------------------------------------


def _save(path, array):
    path = Path(path)
    tifffile.imwrite(path, array) if path.suffix == ".tiff" else Image.fromarray(array).save(path)
    return path


@pytest.mark.parametrize(
    ("profile", "expected", "unit", "kind"),
    [
        ("mm", 1280, "mm", "depth"),
        ("tum", 0.256, "m", "depth"),
        ("kitti", 5, "m", "depth"),
        ("kitti-disparity", 5, "px", "disparity"),
        ("ros", 1280, "mm", "depth"),
    ],
)
def test_profiles_of_16_bits(profile, expected, unit, kind, tmp_path):
    image = read(_save(tmp_path / "x.png", np.array([[0, 1280]], np.uint16)), profile)
    np.testing.assert_array_equal(image.values, np.array([[NAN, expected]], np.float32))
    assert (image.unit, image.kind, image.assumed) == (unit, kind, "")


@pytest.mark.parametrize(
    ("name", "array", "unit", "kind"),
    [
        ("x.png", np.array([[0, 9]], np.uint16), "mm", "depth"),
        ("x.png", np.array([[0, 9]], np.uint8), "px", "disparity"),
        ("x.pgm", np.array([[0, 9]], np.uint8), "px", "disparity"),
        ("x.tiff", np.array([[NAN, 9]], np.float32), "", "depth"),
        ("x.tiff", np.array([[0, 9]], np.uint16), "mm", "depth"),
        ("x.tiff", np.array([[0, 9]], np.int32), "", "depth"),
    ],
)
def test_auto_says_what_it_assumed(name, array, unit, kind, tmp_path):
    image = read(_save(tmp_path / name, array))
    assert (image.unit, image.kind) == (unit, kind)
    np.testing.assert_array_equal(image.values, [[NAN, 9]])
    assert f"{name}: took its {array.dtype} numbers as {kind} in {unit or 'an unknown unit'}" in image.assumed
    assert "give the profile (mm, tum, kitti" in image.assumed


def test_auto_with_a_scale_does_not_claim_millimetres(tmp_path):
    assert read(_save(tmp_path / "x.png", np.array([[0, 9]], np.uint16)), scale=5000).unit == ""


@pytest.mark.parametrize(
    ("array", "invalid"),
    [
        (np.array([[65535, 7, 0]], np.uint16), (65535, 0)),
        (np.array([[-1, 7, -1]], np.int16), -1),
        (np.array([[1e10, 7, np.inf]], np.float32), 1e10),
        (np.array([[-9999, 7, NAN]], np.float32), -9999),
        (np.array([[-32767, 7, -9999]], np.float64), np.array([-32767, -9999])),
        (np.array([[0, 7, 0]], np.float32), np.float32(0)),
    ],
)
def test_codes_for_unknown_pixels(array, invalid, tmp_path):
    for path in (tmp_path / "x.tiff", tmp_path / "x.npy"):
        tifffile.imwrite(path, array) if path.suffix == ".tiff" else np.save(path, array)
        np.testing.assert_array_equal(read(path, "m", invalid=invalid).values, [[NAN, 7, NAN]])


def test_negative_values_and_zero_are_numbers_in_float_files(tmp_path):
    values = np.array([[-3.5, 0.0, 1e-40]], np.float32)
    write(tmp_path / "x.pfm", DepthImage(values, "px", "disparity"))
    np.testing.assert_array_equal(read(tmp_path / "x.pfm").values, values)


@pytest.mark.parametrize("order", "<>")
def test_pfm_is_bottom_up_and_either_endian(order, tmp_path):
    pixels = np.where(np.isnan(DEPTH), np.inf, DEPTH)[::-1].astype(f"{order}f4").tobytes()
    scale = b"-1.0" if order == "<" else b"0.5"
    for end in (b"\n", b"\r\n"):
        (tmp_path / "x.pfm").write_bytes(end.join([b"Pf", b"3 2", scale, pixels]))
        np.testing.assert_array_equal(read(tmp_path / "x.pfm").values, DEPTH)
    assert (read(tmp_path / "x.pfm").unit, read(tmp_path / "x.pfm").kind) == ("px", "disparity")


@pytest.mark.parametrize(("largest", "kind"), [(100, "u1"), (255, "u1"), (4095, ">u2"), (65535, ">u2")])
@pytest.mark.parametrize("head", ["P5 # a comment\n3 2\n{}\n", "P5\n3\n2\n#c\n{}\n", "P5 3 2 {} "])
def test_pgm_values_are_taken_as_they_are(largest, kind, head, tmp_path):
    values = np.array([[35, 2, 0], [largest // 2, largest - 1, largest]])
    (tmp_path / "x.pgm").write_bytes(head.format(largest).encode() + values.astype(kind).tobytes())
    np.testing.assert_array_equal(read_map(tmp_path / "x.pgm"), np.where(values == 0, NAN, values))


@pytest.mark.parametrize("compression", [None, "zlib"])
@pytest.mark.parametrize("tile", [None, (16, 16)])
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "u4", "f2", "f4", "f8"])
def test_tiff_layouts(dtype, order, tile, compression, tmp_path):
    values = np.arange(1, 1 + 40 * 23).reshape(40, 23) % 250 + 1
    path = tmp_path / "x.tiff"
    tifffile.imwrite(path, values.astype(dtype), byteorder=order, tile=tile, compression=compression)
    np.testing.assert_array_equal(read(path, "m").values, values)


@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_adobe_deflate", "packbits"])
@pytest.mark.parametrize("dtype", ["u1", "u2", "f4"])
def test_tiff_of_other_compressions(compression, dtype, tmp_path):
    values = (np.arange(40 * 23).reshape(40, 23) % 250 + 1).astype(dtype)
    Image.fromarray(values).save(tmp_path / "x.tiff", compression=compression)
    np.testing.assert_array_equal(read_map(tmp_path / "x.tiff"), values)


def test_geotiff_codes_and_overviews(tmp_path):
    path = tmp_path / "x.tif"
    with tifffile.TiffWriter(path) as file:
        nodata = [(42113, "s", 0, "-9999", True)]
        file.write(np.where(np.isnan(DEPTH), -9999, DEPTH), photometric="minisblack", extratags=nodata, metadata=None)
        file.write(DEPTH[::2, ::2], photometric="minisblack", subfiletype=1, metadata=None)
    np.testing.assert_array_equal(read(path).values, DEPTH)
    np.testing.assert_array_equal(read_map(path), DEPTH)
    assert "-9999 = unknown" in read(path).assumed
    np.testing.assert_array_equal(read(path, "m").values, DEPTH)
    assert read(path, "m", invalid=()).values[0, 2] == -9999
    tifffile.imwrite(path, np.ones((3, 4, 5), np.float32), photometric="minisblack")
    with pytest.raises(InputError, match="several pages"):
        read(path)


@without_exr
def test_exr_channels(tmp_path):
    import OpenEXR

    def save(channels):
        header = {"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage}
        with OpenEXR.File(header, channels) as file:
            file.write(str(tmp_path / "x.exr"))
        return tmp_path / "x.exr"

    far = np.where(np.isnan(DEPTH), np.float32(1e10), DEPTH)
    for channels in ({"Z": far, "A": DEPTH * 0}, {"depth": far}, {"Z": DEPTH.astype(np.float16)}):
        image = read(save(channels))
        np.testing.assert_array_equal(image.values, DEPTH)
        assert "unknown unit, 1e+10 = unknown" in image.assumed
    for name in ("ViewLayer.Depth.Z", "depth", "zdepth.V"):
        np.testing.assert_array_equal(read(save({name: far, "Normal.Z": DEPTH * 0, "R": DEPTH * 0})).values, DEPTH)
    with pytest.raises(InputError, match="channels A, B; a map is the channel Z"):
        read(save({"A": DEPTH, "B": DEPTH}))
    with pytest.raises(InputError, match=r"channels Left\.Depth\.Z, Right\.Depth\.Z; a map is"):
        read(save({"Left.Depth.Z": DEPTH, "Right.Depth.Z": DEPTH}))


def test_exr_without_its_package_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "OpenEXR", None)
    (tmp_path / "x.exr").write_bytes(b"v/1\x01")
    with pytest.raises(InputError, match=r"pip install 'sparsedepth\[exr\]'"):
        read(tmp_path / "x.exr")
    with pytest.raises(InputError, match=r"sparsedepth\[exr\]"):
        write(tmp_path / "y.exr", DEPTH)


def test_read_map_divides_and_keeps_codes(tmp_path):
    write_array(tmp_path / "x.png", np.array([[0, 6]], np.uint8))
    np.testing.assert_array_equal(read_map(tmp_path / "x.png", scale=3), [[NAN, 2]])
    write(tmp_path / "x.png", [[NAN, 6]], profile="mm", invalid=65535)
    np.testing.assert_array_equal(read_map(tmp_path / "x.png"), [[NAN, 6]])


# --- the records ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values", [np.ones(3), np.ones((0, 4)), np.ones((2, 2), complex), [["a"]], np.ones((2, 2), bool)]
)
def test_a_map_is_real_and_flat(values):
    with pytest.raises(InputError, match="real number"):
        DepthImage(values)


def test_records_refuse_what_they_cannot_mean():
    with pytest.raises(InputError, match="unit is 'cm'"):
        DepthImage(DEPTH, "cm")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="kind is 'distance'"):
        DepthImage(DEPTH, "m", "distance")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="beyond the range of float32"):
        DepthImage(np.array([[1e300]]))
    with pytest.raises(InputError, match="uint32"):
        Profile("x", "m", dtype="uint32")  # pyright: ignore[reportArgumentType]
    for scale in (0, -1, NAN, np.inf):
        with pytest.raises(InputError, match="scale"):
            Profile("x", "m", scale=scale)
    with pytest.raises(InputError, match="disparity in px cannot become"):
        DepthImage(DEPTH, "px", "disparity").to("m")


def test_unknown_names_missing_file_and_bad_scale(tmp_path):
    with pytest.raises(InputError, match=r"not known; use one of.*\.pfm"):
        read_map(tmp_path / "x.jpg")
    with pytest.raises(InputError, match="not known"):
        write(tmp_path / "x", DEPTH)
    with pytest.raises(InputError, match="no file"):
        read_map(tmp_path / "x.png")
    np.save(tmp_path / "x.npy", DEPTH)
    with pytest.raises(InputError, match="scale"):
        read_map(tmp_path / "x.npy", scale=0)
    with pytest.raises(InputError, match="no profile 'kinect'; use one of mm, tum"):
        read(tmp_path / "x.npy", "kinect")
    for codes in ("none", [1, [2]], {}):
        with pytest.raises(InputError, match="give a number or several"):
            read(tmp_path / "x.npy", "m", invalid=codes)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"only \.npz files do"):
        read_array(tmp_path / "x.npy", name="depth")


# --- what goes in comes out -----------------------------------------------------------------------------------------


def wavy(shape=(24, 30)) -> np.ndarray:
    """Metres, with a hole that is filled and one pixel that is wrong."""
    depth = np.add.outer(np.zeros(shape[0]), np.linspace(1.0, 2.0, shape[1]))
    depth[5:7, 5:8], depth[15, 15] = np.nan, 4.0
    return depth


@pytest.mark.slow
@pytest.mark.parametrize(
    "restore", [denoise, inpaint, Restorer(quality="fast")], ids=["denoise", "inpaint", "Restorer"]
)
def test_a_map_that_was_read_is_restored_and_written_as_it_came(tmp_path, restore):
    write(tmp_path / "in.png", wavy(), profile="tum")
    image = read(tmp_path / "in.png")
    result, plain = restore(image), restore(image.values)
    assert (result.unit, result.kind, result.profile) == ("m", "depth", image.profile)
    assert (plain.unit, plain.kind, plain.profile) == ("", "depth", None)
    for name in ("depth", "variance", "origin"):
        np.testing.assert_array_equal(getattr(result, name), getattr(plain, name))
    write(tmp_path / "out.png", result)
    assert read(tmp_path / "out.png").profile == image.profile
    np.testing.assert_allclose(read(tmp_path / "out.png").values, result.depth, atol=0.5 / 5000 + 1e-6)
    write(tmp_path / "out.npz", result)
    np.testing.assert_array_equal(read(tmp_path / "out.npz").values, result.depth)
    assert read(tmp_path / "out.npz").unit == "m"
    for name in ("variance", "origin"):
        np.testing.assert_array_equal(read_array(tmp_path / "out.npz", name=name), getattr(result, name))


@pytest.mark.slow
def test_processes_take_images_too():
    image = DepthImage(wavy(), "m")
    restorer = Restorer(quality="fast")
    (there,) = restorer.each([image], processes=1)
    assert there.unit == "m"
    np.testing.assert_array_equal(there.depth, restorer(image).depth)


def test_a_belief_takes_an_image():
    image = DepthImage(wavy(), "m")
    np.testing.assert_array_equal(believe(image, stride=4).mean, believe(image.values, stride=4).mean)


def test_variances_follow_the_unit_of_their_file(tmp_path):
    image = DepthImage(wavy(), "m")
    variance = np.full(image.values.shape, 0.25, np.float32)
    origin = np.zeros(image.values.shape, np.uint8)
    result = Restoration(image.values, variance, origin, "m")
    write(tmp_path / "one.npz", result, profile="mm")
    write(tmp_path / "two.npz", image, profile="mm", variance=variance, origin=origin)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    np.testing.assert_array_equal(read_array(tmp_path / "one.npz", name="variance"), 0.25e6)
    assert encode_file(tmp_path / "x.tiff", result, profile="mm").unit == "mm"
    assert not (tmp_path / "x.tiff").exists()


def test_the_result_of_an_array_is_in_the_unit_of_its_profile(tmp_path):
    millimetres = np.nan_to_num(1000 * wavy()).astype(np.uint16)
    write(tmp_path / "x.png", inpaint(millimetres, quality="fast"), profile="ros")
    known = millimetres > 0
    np.testing.assert_array_equal(read_array(tmp_path / "x.png")[known], millimetres[known])


def test_a_match_is_written_with_its_variance(tmp_path):
    found = Match(np.full((4, 5), 2.5, np.float32), np.ones((4, 5), np.float32), np.zeros((4, 5), np.uint8))
    write(tmp_path / "x.npz", found)
    assert (read(tmp_path / "x.npz").unit, read(tmp_path / "x.npz").kind) == ("px", "disparity")
    np.testing.assert_array_equal(read_array(tmp_path / "x.npz", name="variance"), found.variance)
    write(tmp_path / "x.png", found, profile="kitti-disparity")
    assert (read_array(tmp_path / "x.png") == 640).all()

"""GeoTIFF: elevation models keep their place, their tags and their code for unknown pixels; zero is a height."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from numpy.typing import NDArray

from sparsedepth import InputError, Restorer, denoise, inpaint
from sparsedepth.cli.batch.spec import RestoreSpec
from sparsedepth.cli.options import MapReader
from sparsedepth.files import DepthImage, memmap, read, write, write_array
from sparsedepth.files.tiff_tags import CARRIED, MAX_BYTES

rasterio = pytest.importorskip("rasterio")
Affine = pytest.importorskip("rasterio.transform").Affine
pytestmark = pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")

Y, X = np.mgrid[:40, :56]
HEIGHTS = np.round(8 * np.sin(X / 9) - 0.4 * Y, 2)  # from -24 to 8 m: a valley below the sea
VOID = (abs(X - 30) < 3) & (abs(Y - 20) < 4)
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"dtype": "float32", "nodata": -9999.0},
    "tiled, LZW": {"dtype": "float32", "nodata": -9999.0, "compress": "lzw", "tiled": True, "blockxsize": 16,
                   "blockysize": 16},
    "floating predictor": {"dtype": "float32", "nodata": -32767.0, "compress": "deflate", "predictor": 3},
    "ESRI": {"dtype": "float32", "nodata": -3.4028234663852886e38},
    "NaN": {"dtype": "float32", "nodata": float("nan")},
    "SRTM": {"dtype": "int16", "nodata": -32768, "compress": "deflate"},
    "SRTM, LZW": {"dtype": "int16", "nodata": -32768, "compress": "lzw"},
    "32 bits": {"dtype": "int32", "nodata": -99999},
    "double": {"dtype": "float64", "nodata": -9999.0, "compress": "deflate"},
    "double, LZW": {"dtype": "float64", "nodata": -9999.0, "compress": "lzw", "predictor": 3},
    "big-endian": {"dtype": "float32", "nodata": -9999.0, "ENDIANNESS": "BIG"},
    "BigTIFF": {"dtype": "float32", "nodata": -9999.0, "BIGTIFF": "YES"},
    "zero is unknown": {"dtype": "float32", "nodata": 0.0},
    "no code": {"dtype": "int16", "nodata": None},
}  # fmt: skip
"""How programs write elevation models."""


def model(path: Path, name: str) -> NDArray[Any]:
    """Write an elevation model as rasterio does, with a void where there is a code for one; return its pixels."""
    options = KINDS[name]
    values = HEIGHTS.astype(options["dtype"])
    if options["nodata"] is not None:
        values[VOID] = options["nodata"]
    transform = Affine(0.5, 0.1, 500_000, 0.1, -0.5, 4_649_776) if name == "plain" else Affine(2, 0, 7, 0, -2, 9)
    common = {"driver": "GTiff", "height": 40, "width": 56, "count": 1, "crs": "EPSG:32633", "transform": transform}
    with rasterio.open(path, "w", **common, **options) as file:
        file.write(values, 1)
        file.update_tags(project="dam, süd", TIFFTAG_DATETIME="2024:05:01 10:00:00", AREA_OR_POINT="Point")
        file.update_tags(1, sensor="lidar")
        file.units, file.descriptions = ("metre",), ("surface",)
    return values


def facts(path: Path) -> dict[str, Any]:
    """Return all that rasterio says of a file besides its pixels and their layout."""
    with rasterio.open(path) as file:
        return {
            "tags": file.tags(), "band": file.tags(1), "crs": file.crs, "transform": tuple(file.transform),
            "nodata": str(file.nodata), "units": file.units, "descriptions": file.descriptions, "gcps": file.gcps,
            "scales": file.scales, "offsets": file.offsets, "types": file.dtypes,
        }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_a_filled_model_has_equal_tags_and_measured_heights(name, tmp_path):
    values = model(tmp_path / "before.tif", name)
    image = read(tmp_path / "before.tif")
    assert (image.kind, image.unit) == ("height", "m")
    unknown = VOID if KINDS[name]["nodata"] is not None else np.zeros_like(VOID)
    if name == "zero is unknown":
        unknown = unknown | (values == 0)
    np.testing.assert_array_equal(np.isnan(image.values), unknown, "zero and what is below it are heights")
    np.testing.assert_array_equal(image.values[~unknown], values[~unknown].astype(np.float32))
    write(tmp_path / "copy.tif", image)
    write(tmp_path / "after.tif", inpaint(image, quality="fast"))
    expected = facts(tmp_path / "before.tif")
    assert facts(tmp_path / "copy.tif") == expected
    assert facts(tmp_path / "after.tif") == expected
    with rasterio.open(tmp_path / "copy.tif") as file:
        np.testing.assert_array_equal(file.read(1, masked=True).mask & unknown, unknown)
        np.testing.assert_array_equal(file.read(1)[~unknown], values[~unknown])
    with rasterio.open(tmp_path / "after.tif") as file:
        filled = file.read(1)
    np.testing.assert_array_equal(filled[~unknown], values[~unknown])
    rounding = 0.5 if filled.dtype.kind == "i" else 0.0
    assert np.abs(filled[unknown] - HEIGHTS[unknown]).max(initial=0) < 1 + rounding


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "int8", "int16", "int32", "float64"])
@pytest.mark.parametrize("profile", ["auto", "tum", "height"])
def test_a_plain_file_keeps_its_type_and_its_numbers(dtype, profile, tmp_path):
    """Numbers are those of the file again, bit by bit, whatever their profile makes of them."""
    top = 1 << 22 if np.dtype(dtype).itemsize > 2 else np.iinfo(dtype).max  # float32 holds 24 bits, scaled about 22
    low = max(-top, np.iinfo(dtype).min) if np.dtype(dtype).kind == "i" else 0
    numbers = np.array([[low, 0, 1], [7, top - 1, top]]).astype(dtype)
    tifffile.imwrite(tmp_path / "a.tif", numbers, metadata=None)
    write(tmp_path / "b.tif", read(tmp_path / "a.tif", profile))
    with tifffile.TiffFile(tmp_path / "b.tif") as file:
        again = file.pages.first.asarray()
    assert again.dtype == dtype
    if dtype == "float64" and profile == "tum":
        known = read(tmp_path / "a.tif", profile).values
        np.testing.assert_array_equal(again, np.where(np.isnan(known), np.nan, known.astype(np.float64)))
    else:
        np.testing.assert_array_equal(again, numbers)


@pytest.mark.parametrize("depth", [70000.0, -1.0], ids=["too large", "negative"])
def test_integers_that_cannot_hold_a_result_become_floats(depth, tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", np.array([[1, 2]], np.uint16), metadata=None)
    image = read(tmp_path / "a.tif")
    write(tmp_path / "b.tif", replace(image, values=np.array([[1.5, depth]])))
    assert tifffile.imread(tmp_path / "b.tif").tolist() == [[1.5, depth]]


def test_a_profile_or_another_unit_asks_for_floats(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", np.array([[1500, 2500]], np.uint16), metadata=None)
    image = read(tmp_path / "a.tif")
    write(tmp_path / "profile.tif", image, profile="m")
    write(tmp_path / "unit.tif", image.to("m"))
    for name in ("profile", "unit"):
        again = tifffile.imread(tmp_path / f"{name}.tif")
        np.testing.assert_array_equal(again, np.array([[1.5, 2.5]], np.float32), strict=True)


def test_what_is_written_is_read_again_with_its_meaning(tmp_path):
    model(tmp_path / "before.tif", "plain")
    write(tmp_path / "after.tif", denoise(read(tmp_path / "before.tif"), quality="fast"))
    again = read(tmp_path / "after.tif")
    assert (again.kind, again.unit, again.assumed) == ("height", "m", "")
    write(tmp_path / "third.tif", again)
    assert (tmp_path / "third.tif").read_bytes() == (tmp_path / "after.tif").read_bytes()


def test_the_command_line_keeps_tags(command, tmp_path):
    model(tmp_path / "before.tif", "plain")
    words = ("--fill", "none", "--quality", "fast", "--variance-out", tmp_path / "variance.tif")
    ended = command("inpaint", tmp_path / "before.tif", "-o", tmp_path / "after.tif", *words)
    assert ended.code == 0, ended.err
    expected = facts(tmp_path / "before.tif")
    assert facts(tmp_path / "after.tif") == expected
    spread = facts(tmp_path / "variance.tif")
    assert (spread["transform"], spread["crs"], spread["nodata"]) == (expected["transform"], expected["crs"], "None")
    with rasterio.open(tmp_path / "after.tif") as file:
        assert (file.read(1)[VOID] == -9999).all(), "what was not filled is the file's own unknown"


def test_a_code_of_ones_own_replaces_the_tag(tmp_path):
    model(tmp_path / "before.tif", "plain")
    write(tmp_path / "after.tif", read(tmp_path / "before.tif"), invalid=-1e6)
    with rasterio.open(tmp_path / "after.tif") as file:
        assert file.nodata == -1e6
        assert (file.read(1)[VOID] == -1e6).all()


def test_depths_with_geo_tags_can_be_read_as_depths(tmp_path):
    model(tmp_path / "x.tif", "plain")
    assert (read(tmp_path / "x.tif", "m").kind, read(tmp_path / "x.tif", "m").unit) == ("depth", "m")
    assert read(tmp_path / "x.tif", "height").to("mm").unit == "mm"


def test_other_formats_and_arrays_carry_nothing(tmp_path):
    model(tmp_path / "x.tif", "plain")
    image = read(tmp_path / "x.tif")
    write(tmp_path / "x.npz", image)
    assert read(tmp_path / "x.npz").metadata is None
    np.testing.assert_array_equal(read(tmp_path / "x.npz").values, image.values)
    write(tmp_path / "plain.tif", DepthImage(image.values, "m"))
    assert read(tmp_path / "plain.tif").metadata is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["plain", "SRTM, LZW", "big-endian", "ESRI"])
def test_a_model_that_stays_in_its_file_has_equal_tags(name, run_spec, tmp_path):
    (tmp_path / "in").mkdir()
    model(tmp_path / "in" / "x.tif", name)
    restorer = Restorer(quality="fast", correct=False, fill="none")
    spec = RestoreSpec(restorer, {}, MapReader("auto", None, None), None, None, None)
    for way, pixels in (("mapped", 100), ("read", 1 << 30)):
        ended = run_spec(replace(spec, mapped_pixels=pixels), tmp_path / "in", tmp_path / way)
        assert ended.code == 0, ended.err
        assert facts(tmp_path / way / "x.tif") == facts(tmp_path / "in" / "x.tif")
    with rasterio.open(tmp_path / "mapped" / "x.tif") as one, rasterio.open(tmp_path / "read" / "x.tif") as other:
        np.testing.assert_array_equal(one.read(1), other.read(1))
        assert (one.read(1, masked=True).mask == VOID).all()


# --- numbers that float32 does not hold -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint32"])
def test_what_is_not_changed_is_written_as_it_was(dtype, tmp_path):
    """Also numbers of more digits than float32 has; what is changed has those of float32."""
    numbers = (2_000_000_001 + 1000 * np.arange(12).reshape(3, 4) / 7).astype(dtype)
    save_plain(tmp_path / "a.tif", numbers)
    image = read(tmp_path / "a.tif")
    assert (image.values.astype(np.float64) != numbers).any()
    changed = image.values.copy()
    changed[1, 2] -= 70_000
    write(tmp_path / "b.tif", replace(image, values=changed))
    with rasterio.open(tmp_path / "b.tif") as file:
        again = file.read(1)
    assert again.dtype == dtype
    expected = numbers.copy()
    expected[1, 2] = changed[1, 2]
    np.testing.assert_array_equal(again, expected)


def test_numbers_of_another_unit_or_size_are_not_those_of_the_file(tmp_path):
    save_plain(tmp_path / "a.tif", 1 + np.arange(12.0).reshape(3, 4) / 7, units="metre")
    image = read(tmp_path / "a.tif")
    write(tmp_path / "mm.tif", image.to("mm"))
    write(tmp_path / "part.tif", replace(image, values=image.values[:2]))
    np.testing.assert_array_equal(rasterio.open(tmp_path / "mm.tif").read(1), image.to("mm").values)
    np.testing.assert_array_equal(rasterio.open(tmp_path / "part.tif").read(1), image.values[:2])


def save_plain(path: Path, values: NDArray[Any], units: str = "", **options: Any) -> None:
    """Write a model without voids, in a place on the ground."""
    height, width = values.shape
    shape = {"driver": "GTiff", "height": height, "width": width, "count": 1, "dtype": values.dtype.name}
    with rasterio.open(path, "w", **shape, crs="EPSG:32633", transform=Affine(2, 0, 7, 0, -2, 9), **options) as file:
        file.write(values, 1)
        file.units = (units,)


# --- GDAL's scale and masks -----------------------------------------------------------------------------------------


def scaled(path: Path, dtype: str, scale: float, offset: float = 0.0) -> NDArray[Any]:
    stored = np.round(HEIGHTS / 0.01).astype(dtype)
    stored[VOID] = -32768
    save_plain(path, stored, "m", nodata=-32768)
    with rasterio.open(path, "r+") as file:
        file.scales, file.offsets = (scale,), (offset,)
    return stored


@pytest.mark.parametrize("profile", ["auto", "height"])
def test_heights_have_the_scale_that_the_file_declares(profile, tmp_path):
    stored = scaled(tmp_path / "a.tif", "int16", 0.01)
    image = read(tmp_path / "a.tif", profile)
    np.testing.assert_allclose(image.values, np.where(VOID, np.nan, HEIGHTS), atol=1e-5)
    assert profile != "auto" or "height in m, 100 stored for each" in image.assumed
    write(tmp_path / "b.tif", inpaint(image, quality="fast", fill="none"))
    assert facts(tmp_path / "b.tif") == facts(tmp_path / "a.tif")
    with rasterio.open(tmp_path / "b.tif") as file:
        np.testing.assert_array_equal(file.read(1), stored)


def test_a_result_of_another_scale_does_not_claim_that_of_its_input(tmp_path, command):
    scaled(tmp_path / "a.tif", "int16", 0.01)
    scaled(tmp_path / "f.tif", "float32", 0.01)
    image = read(tmp_path / "a.tif")
    write(tmp_path / "profile.tif", image, profile="height")
    write(tmp_path / "float.tif", read(tmp_path / "f.tif"))
    write(tmp_path / "as stored.tif", read(tmp_path / "a.tif", "height", scale=1))
    ended = command("inpaint", tmp_path / "a.tif", "-o", tmp_path / "b.tif", "--variance-out", tmp_path / "v.tif")
    assert ended.code == 0, ended.err
    for name, factor in (("profile.tif", 1), ("float.tif", 1), ("as stored.tif", 100)):
        found = facts(tmp_path / name)
        assert (found["scales"], found["offsets"], found["units"]) == ((1.0,), (0.0,), ("m",))
        with rasterio.open(tmp_path / name) as file:
            np.testing.assert_allclose(file.read(1)[~VOID], factor * HEIGHTS[~VOID], rtol=1e-6, atol=1e-6)
    assert facts(tmp_path / "b.tif")["scales"] == (0.01,)
    variance = facts(tmp_path / "v.tif")
    assert (variance["scales"], variance["units"]) == ((1.0,), (None,)), "squared metres are no stored heights"


def test_an_offset_is_refused_with_what_to_do(tmp_path):
    scaled(tmp_path / "a.tif", "int16", 0.01, offset=100.0)
    with pytest.raises(InputError, match=r"offset of 100; .*gdal_translate -unscale"):
        read(tmp_path / "a.tif")


@pytest.mark.parametrize("scale", [float("inf"), -1.0])
def test_a_scale_that_makes_no_sense_is_none(scale, tmp_path):
    scaled(tmp_path / "a.tif", "int16", scale)
    assert np.nanmax(read(tmp_path / "a.tif").values) == np.round(HEIGHTS[~VOID] / 0.01).max()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "uint16", "uint8"])
@pytest.mark.parametrize("code", [None, 0])
def test_what_a_mask_hides_is_unknown(dtype, code, tmp_path):
    values = np.round(HEIGHTS + 60).astype(dtype)
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        save_plain(tmp_path / "a.tif", values, nodata=code)
        with rasterio.open(tmp_path / "a.tif", "r+") as file:
            file.write_mask(~VOID)
    image = read(tmp_path / "a.tif")
    np.testing.assert_array_equal(image.values, np.where(VOID, np.nan, values))
    write(tmp_path / "b.tif", image)
    with rasterio.open(tmp_path / "b.tif") as file:
        found = file.read(1, masked=True)
    np.testing.assert_array_equal(np.ma.getmaskarray(found) | (found.data != found.data), VOID)
    np.testing.assert_array_equal(found.data[~VOID], values[~VOID], strict=True)
    assert not memmap.should_map(tmp_path / "a.tif", 10), "a mapped file would show what is hidden"


def test_a_mask_needs_a_number_that_is_free(tmp_path):
    values = np.arange(256, dtype=np.uint8).reshape(16, 16)
    with rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True):
        save_plain(tmp_path / "a.tif", values)
        with rasterio.open(tmp_path / "a.tif", "r+") as file:
            file.write_mask(values > 7)
    with pytest.raises(InputError, match="no number is left"):
        read(tmp_path / "a.tif")


# --- our own encoder against readers of others, and hostile tags ----------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (1, 70_000), (300, 1000)])
def test_others_read_what_we_encode(dtype, shape, tmp_path):
    values = np.random.default_rng(0).uniform(0, 255, shape).astype(dtype)
    if dtype == "float32":
        write_array(tmp_path / "x.tif", values)
    else:
        (tmp_path / "x.tif").write_bytes(_encoded(values))
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "x.tif"), values)
    with rasterio.open(tmp_path / "x.tif") as file:
        np.testing.assert_array_equal(file.read(1), values)


def _encoded(values):
    from sparsedepth.files import tiff

    return tiff.write(values, None)


def tags_of(path: Path) -> dict[int, tuple[Any, ...]]:
    with tifffile.TiffFile(path) as file:
        return {tag.code: (tag.dtype, tag.count, tag.value) for tag in file.pages.first.tags if tag.code in CARRIED}


@pytest.mark.parametrize("order", ["<", ">"])
def test_every_carried_tag_survives(order, tmp_path):
    """Byte by byte, whatever its type and the byte order of its file."""
    extra = [
        (269, 2, 0, "map.tif", True), (315, 2, 0, "me", True), (700, 1, 5, b"<x/>\n", True),
        (33550, 12, 3, (0.5, 0.5, 0.0), True), (33922, 12, 6, (0.0, 0.0, 0.0, 5e5, 4e6, 0.0), True),
        (34735, 3, 8, (1, 1, 0, 1, 1024, 0, 1, 1), True), (34736, 12, 1, (6378137.0,), True),
        (34737, 2, 0, "WGS 84|", True), (50844, 12, 2, (1.5, 2.5), True),
    ]  # fmt: skip
    tifffile.imwrite(
        tmp_path / "a.tif", HEIGHTS.astype(np.float32), byteorder=order, extratags=extra, resolution=(72.5, 300),
        description="a valley", software="mapper 3", metadata=None,
    )  # fmt: skip
    write(tmp_path / "b.tif", read(tmp_path / "a.tif"))
    assert len(tags_of(tmp_path / "a.tif")) == 14
    assert tags_of(tmp_path / "b.tif") == tags_of(tmp_path / "a.tif")


def test_tags_beyond_their_budget_are_left_out(tmp_path):
    extra = [(42112, 2, 0, "x" * (MAX_BYTES + 1), True), (315, 2, 0, "me", True)]
    tifffile.imwrite(tmp_path / "a.tif", np.ones((4, 4), np.float32), extratags=extra, metadata=None)
    image = read(tmp_path / "a.tif")
    assert image.metadata is not None
    assert 42112 not in {tag.code for tag in image.metadata.entries}
    assert 315 in {tag.code for tag in image.metadata.entries}


@pytest.mark.parametrize("content", [b"", b"\xff", struct.pack("<5H", 1, 1, 0, 9, 4099)], ids=["none", "odd", "short"])
def test_geo_keys_that_make_no_sense_are_carried_and_not_believed(content, tmp_path):
    extra = [(34735, 7, len(content) or 1, content or b"\0", True)]
    tifffile.imwrite(tmp_path / "a.tif", np.ones((4, 4), np.float32), extratags=extra, metadata=None)
    assert read(tmp_path / "a.tif").unit == ""

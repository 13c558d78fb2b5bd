"""TIFF of every type of number in every compression without loss, as GDAL writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsedepth import InputError
from sparsedepth.files import read, read_array

rasterio = pytest.importorskip("rasterio")
pytestmark = pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")

TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64")
TILES = {"tiled": True, "blockxsize": 32, "blockysize": 16}


def numbers(dtype: str) -> np.ndarray:
    """Numbers that fill their type, of a map that no part divides."""
    rng = np.random.default_rng(7)
    if dtype.startswith("float"):
        return rng.normal(100, 30, (45, 83)).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, (45, 83), dtype, endpoint=True)


def save(path: Path, values: np.ndarray, **options: Any) -> Path:
    height, width = values.shape
    shape = {"driver": "GTiff", "height": height, "width": width, "count": 1, "dtype": values.dtype.name}
    with rasterio.open(path, "w", **shape, **options) as file:
        file.write(values, 1)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("layout", [{}, TILES], ids=["strips", "tiles"])
@pytest.mark.parametrize("order", ["LITTLE", "BIG"])
@pytest.mark.parametrize("compression", ["lzw", "deflate", "zstd", "lzma", "packbits"])
@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_are_those_that_were_written(dtype, compression, order, layout, tmp_path):
    predictors = (1,) if compression == "packbits" else (1, 2, 3) if dtype.startswith("float") else (1, 2)
    for predictor in predictors:
        options = {"compress": compression, "predictor": predictor, "endianness": order, **layout}
        path = save(tmp_path / "x.tif", numbers(dtype), **options)
        again = read_array(path)
        assert again.dtype.newbyteorder("=") == dtype
        np.testing.assert_array_equal(again, numbers(dtype), f"predictor {predictor}")


@pytest.mark.parametrize("compression", ["lzw", "deflate", None])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
@pytest.mark.parametrize("code", [-9999, None])
def test_parts_that_a_sparse_file_leaves_out_hold_its_code(code, dtype, compression, tmp_path):
    options = {"driver": "GTiff", "height": 90, "width": 90, "count": 1, "dtype": dtype, "sparse_ok": True, **TILES}
    options |= {} if compression is None else {"compress": compression}
    with rasterio.open(tmp_path / "x.tif", "w", **options, nodata=code) as file:
        file.write(np.ones((16, 32), dtype), 1, window=rasterio.windows.Window(0, 0, 32, 16))
    with rasterio.open(tmp_path / "x.tif") as file:
        expected = file.read(1).astype(np.float32)
    expected[expected == -9999] = np.nan
    np.testing.assert_array_equal(read(tmp_path / "x.tif", "height").values, expected)


@pytest.mark.parametrize("end", [0.5, 0.9])
def test_a_file_that_was_cut_is_one_sentence(end, tmp_path):
    path = save(tmp_path / "x.tif", numbers("float64"), compress="zstd", predictor=3)
    path.write_bytes(path.read_bytes()[: int(end * path.stat().st_size)])
    with pytest.raises(InputError, match=r"x\.tif.*is it whole"):
        read(path)


def test_a_compression_that_loses_numbers_is_refused(tmp_path):
    path = save(tmp_path / "x.tif", numbers("float32"), compress="lerc")
    with pytest.raises(InputError, match=r"compressed by LERC .*save it by plain deflate"):
        read(path)

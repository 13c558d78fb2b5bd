"""Maps that stay in their files: the same results as of maps that are read, written whole or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tifffile

from conftest import Ended
from outputs import files_below
from sparsedepth import Restorer
from sparsedepth.cli.batch.spec import RestoreSpec
from sparsedepth.cli.options import MapReader
from sparsedepth.files import memmap, read, read_array
from sparsedepth.restore.settings import Settings
from sparsedepth.tiling import TilingSettings

SMALL = 4000
"""Pixels above which maps are mapped and restored in tiles here."""


def task(method: str = "paper", profile: str = "mm", mapped_pixels: int = SMALL) -> RestoreSpec:
    """Denoise in tiles of 48 pixels, and map small files."""
    settings = replace(Settings(), tiling=TilingSettings(max_untiled_pixels=SMALL, tile_px=48))
    restorer = Restorer(quality="fast", method=method, settings=settings)
    plain = RestoreSpec(
        restorer, {"quality": "fast", "method": method}, MapReader(profile, None, None), None, None, None
    )
    return replace(plain, mapped_pixels=mapped_pixels, release_seconds=0.01)


def scene() -> np.ndarray:
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:90, :120]
    depth = 1500 + 4 * x + 2 * y + 600.0 * (x + 0.4 * y > 70)
    depth += np.where(rng.random(depth.shape) < 0.02, rng.normal(0, 400, depth.shape), 0)
    depth[rng.random(depth.shape) < 0.03] = np.nan
    depth[30:45, 60:80] = np.nan
    return depth.astype(np.float32)


def rounded(depth: np.ndarray) -> np.ndarray:
    return np.nan_to_num(np.rint(depth)).astype(np.uint16)


FILES = {
    "plain.npy": lambda path: np.save(path, scene()),
    "double, other bytes.npy": lambda path: np.save(path, scene().astype(">f8")),
    "millimetres.npy": lambda path: np.save(path, rounded(scene())),
    "strips.tiff": lambda path: tifffile.imwrite(path, scene(), rowsperstrip=7),
    "tiles.tif": lambda path: tifffile.imwrite(path, scene(), tile=(32, 64)),
    "tiles, other bytes.tiff": lambda path: tifffile.imwrite(path, rounded(scene()), tile=(32, 32), byteorder=">"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "method"), [*((name, "paper") for name in FILES), ("tiles.tif", "calibrated")])
def test_a_mapped_map_has_the_result_of_one_that_is_read(run_spec: Callable[..., Ended], tmp_path, name, method):
    (tmp_path / "in").mkdir()
    FILES[name](tmp_path / "in" / name)
    assert memmap.should_map(tmp_path / "in" / name, SMALL)
    for way, pixels in (("mapped", SMALL), ("read", 1 << 30)):
        folders = {what: tmp_path / f"{way}-{what}" for what in ("out", "variance", "origin")}
        ended = run_spec(task(method, mapped_pixels=pixels), tmp_path / "in", *folders.values())
        assert ended.code == 0, ended.err
        assert all(len(files_below(folder)) == 1 for folder in folders.values()), "no temporary file is left"
    ours, theirs = read(tmp_path / "mapped-out" / name), read(tmp_path / "read-out" / name)
    whole_numbers = name == "tiles, other bytes.tiff"  # a TIFF that is written piece by piece is float32
    np.testing.assert_array_equal(np.rint(ours.values) if whole_numbers else ours.values, theirs.values)
    assert ours.unit == theirs.unit
    stem = Path(name).stem
    for what, suffix in (("variance", "tiff"), ("origin", "png")):
        one, other = (read_array(tmp_path / f"{way}-{what}" / f"{stem}.{suffix}") for way in ("mapped", "read"))
        np.testing.assert_array_equal(one, other)
    if name.endswith(".npy"):
        one, other = ((tmp_path / f"{way}-out" / name).read_bytes() for way in ("mapped", "read"))
        assert one == other


def test_a_map_stays_in_its_file_from_a_size_on(tmp_path):
    np.save(tmp_path / "map.npy", scene())
    assert memmap.should_map(tmp_path / "map.npy", scene().size - 1)
    assert not memmap.should_map(tmp_path / "map.npy", scene().size)
    assert not memmap.should_map(tmp_path / "map.npy")


def test_a_scale_is_taken_out_of_values_and_variances(run_spec: Callable[..., Ended], tmp_path):
    np.save(tmp_path / "in.npy", rounded(scene()))
    for profile, name in (("mm", "mm"), ("tum", "m")):
        out, variance = tmp_path / f"{name}.tiff", tmp_path / f"{name}-v.npy"
        assert run_spec(task(profile=profile), tmp_path / "in.npy", out, variance).code == 0
    metres, stored = read(tmp_path / "m.tiff"), read(tmp_path / "mm.tiff")
    assert (metres.unit, stored.unit) == ("m", "mm")
    np.testing.assert_allclose(metres.values * 5000, stored.values, rtol=1e-6)
    one, other = read_array(tmp_path / "m-v.npy"), read_array(tmp_path / "mm-v.npy")
    np.testing.assert_allclose(one * 5000.0**2, other, rtol=1e-6)


def test_a_full_disk_is_a_sentence_and_leaves_nothing(run_spec: Callable[..., Ended], tmp_path, monkeypatch):
    np.save(tmp_path / "in.npy", scene())
    (tmp_path / "out").mkdir()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    ended = run_spec(task("calibrated"), tmp_path / "in.npy", tmp_path / "out/a.npy")
    assert ended.code == 1
    assert "No space left" in ended.err
    assert files_below(tmp_path / "out") == []


@pytest.mark.parametrize(
    "harm", [lambda c: c[:-5000], lambda c: c[:100], lambda c: b"x" * len(c)], ids=["short", "stub", "noise"]
)
@pytest.mark.parametrize("name", ["plain.npy", "strips.tiff", "tiles.tif"])
def test_a_broken_file_is_named_and_leaves_nothing(run_spec: Callable[..., Ended], tmp_path, name, harm):
    FILES[name](tmp_path / name)
    (tmp_path / name).write_bytes(harm((tmp_path / name).read_bytes()))
    ended = run_spec(task(profile="auto"), tmp_path / name, tmp_path / "out.npy")
    assert ended.code == 1
    assert name in ended.err
    assert not (tmp_path / "out.npy").exists()

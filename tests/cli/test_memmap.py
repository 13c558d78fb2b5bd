"""Maps that stay in their files: the same results as of maps that are read, written whole or not at all."""

from __future__ import annotations

import errno
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import tifffile

from outputs import files_below
from sparsedepth.files import memmap, read, read_array
from sparsedepth.restore import tiling


@pytest.fixture
def small_is_huge(monkeypatch):
    """Tiles of 48 pixels, and maps that are mapped from 4,000 pixels on."""
    monkeypatch.setattr(memmap, "MIN_PIXELS", 4000)
    monkeypatch.setattr(tiling, "MOST_PIXELS", 4000)
    monkeypatch.setattr(tiling, "TILE", 48)
    monkeypatch.setattr(memmap, "RELEASE_SECONDS", 0.01)


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


@pytest.mark.parametrize(("name", "options"), [*((name, ("--method", "paper")) for name in FILES), ("tiles.tif", ())])
def test_a_mapped_map_becomes_what_a_read_one_does(command, tmp_path, monkeypatch, small_is_huge, name, options):
    (tmp_path / "in").mkdir()
    FILES[name](tmp_path / "in" / name)
    assert memmap.should_map(tmp_path / "in" / name)
    for way in ("mapped", "read"):
        if way == "read":
            monkeypatch.setattr(memmap, "MIN_PIXELS", 1 << 30)
        folders = {what: tmp_path / f"{way}-{what}" for what in ("out", "variance", "origin")}
        ended = command(
            *("denoise", tmp_path / "in", "-o", folders["out"], "--profile", "mm", "--quality", "fast", *options),
            *("--variance-out", folders["variance"], "--origin-out", folders["origin"]),
        )
        assert ended.code == 0, ended.err
        assert all(len(files_below(folder)) == 1 for folder in folders.values()), "no temporary file is left"
    ours, theirs = read(tmp_path / "mapped-out" / name), read(tmp_path / "read-out" / name)
    np.testing.assert_array_equal(ours.values, theirs.values)
    assert ours.unit == theirs.unit
    stem = Path(name).stem
    for what, suffix in (("variance", "tiff"), ("origin", "png")):
        one, other = (read_array(tmp_path / f"{way}-{what}" / f"{stem}.{suffix}") for way in ("mapped", "read"))
        np.testing.assert_array_equal(one, other)
    if name.endswith(".npy"):
        one, other = ((tmp_path / f"{way}-out" / name).read_bytes() for way in ("mapped", "read"))
        assert one == other


def test_a_scale_is_taken_out_of_values_and_variances(command, tmp_path, small_is_huge):
    np.save(tmp_path / "in.npy", rounded(scene()))
    common = ("denoise", tmp_path / "in.npy", "--method", "paper", "--quality", "fast")
    for unit, name in (("mm", "mm"), ("tum", "m")):
        out, variance = tmp_path / f"{name}.tiff", tmp_path / f"{name}-v.npy"
        assert command(*common, "--profile", unit, "-o", out, "--variance-out", variance).code == 0
    metres, stored = read(tmp_path / "m.tiff"), read(tmp_path / "mm.tiff")
    assert (metres.unit, stored.unit) == ("m", "mm")
    np.testing.assert_allclose(metres.values * 5000, stored.values, rtol=1e-6)
    one, other = read_array(tmp_path / "m-v.npy"), read_array(tmp_path / "mm-v.npy")
    np.testing.assert_allclose(one * 5000.0**2, other, rtol=1e-6)


def test_a_full_disk_is_a_sentence_and_leaves_nothing(command, tmp_path, monkeypatch, small_is_huge):
    np.save(tmp_path / "in.npy", scene())
    (tmp_path / "out").mkdir()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    ended = command("denoise", tmp_path / "in.npy", "-o", tmp_path / "out/a.npy", "--profile", "mm")
    assert ended.code == 1
    assert "No space left" in ended.err
    assert files_below(tmp_path / "out") == []


@pytest.mark.parametrize(
    "harm", [lambda c: c[:-5000], lambda c: c[:100], lambda c: b"x" * len(c)], ids=["short", "stub", "noise"]
)
@pytest.mark.parametrize("name", ["plain.npy", "strips.tiff", "tiles.tif"])
def test_a_broken_file_is_told_as_always(command, tmp_path, small_is_huge, name, harm):
    FILES[name](tmp_path / name)
    (tmp_path / name).write_bytes(harm((tmp_path / name).read_bytes()))
    ended = command("denoise", tmp_path / name, "-o", tmp_path / "out.npy", "--method", "paper", "--quality", "fast")
    assert ended.code == 1
    assert name in ended.err
    assert not (tmp_path / "out.npy").exists()


def test_a_map_is_measured_in_little_memory(monkeypatch):
    monkeypatch.setattr(tiling, "ENOUGH", 10_000)
    depth = np.random.default_rng(0).random((2000, 500), dtype=np.float32)
    tracemalloc.start()
    try:
        tiling.Work.of(depth, None, (8, 8), None)
        assert tracemalloc.get_traced_memory()[1] < depth.nbytes / 2
    finally:
        tracemalloc.stop()

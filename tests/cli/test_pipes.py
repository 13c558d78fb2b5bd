"""The name - : standard input and output do what files do."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sparsedepth.cli.pipes import BEGINNINGS
from sparsedepth.files import FORMATS, read, write

pytestmark = pytest.mark.slow


def sparsedepth(*words: str, given: bytes = b"", folder: Path) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "sparsedepth", *words]
    return subprocess.run(command, input=given, capture_output=True, cwd=folder, check=False)


@pytest.fixture
def scan(tmp_path) -> Path:
    depth = np.add.outer(np.zeros(32), np.linspace(1.0, 2.0, 48))
    depth[10, 20], depth[20, 30:33] = 5.0, np.nan
    write(tmp_path / "scan.png", depth, profile="tum")
    return tmp_path / "scan.png"


OPTIONS = {
    "denoise": ["--profile", "tum", "--quality", "fast"],
    "inpaint": ["--profile", "tum", "--quality", "fast"],
    "show": ["--profile", "tum", "--title", "a scan"],
    "cloud": ["--profile", "tum", "--intrinsics", "50,50,24,16"],
}


@pytest.mark.parametrize(("name", "suffix"), [("denoise", ".png"), ("show", ".png"), ("cloud", ".ply")])
def test_pipes_give_what_files_give(name, suffix, scan, tmp_path):
    by_name = sparsedepth(name, "scan.png", "-o", f"result{suffix}", *OPTIONS[name], folder=tmp_path)
    assert by_name.returncode == 0, by_name.stderr
    piped = sparsedepth(name, "-", "-o", "-", *OPTIONS[name], given=scan.read_bytes(), folder=tmp_path)
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout == (tmp_path / f"result{suffix}").read_bytes()
    assert b"standard-" not in piped.stderr, "it names a temporary file"


def test_one_end_may_be_a_file(scan, tmp_path):
    out = sparsedepth("inpaint", "scan.png", "-o", "-", "--npz", *OPTIONS["inpaint"], folder=tmp_path)
    with np.load(io.BytesIO(out.stdout)) as arrays:
        assert {"variance", "origin"} <= set(arrays)
    into = sparsedepth("inpaint", "-", "-o", "x.tiff", *OPTIONS["inpaint"], given=scan.read_bytes(), folder=tmp_path)
    assert into.returncode == 0
    assert read(tmp_path / "x.tiff").values.shape == (32, 48)


@pytest.mark.parametrize(
    ("words", "given", "sentence"),
    [
        (["-", "-o", "-"], b"", "no map of a known format"),
        (["-", "-o", "-"], b"GIF89a", "no map of a known format"),
        (["-", "scan.png", "-o", "out/"], b"", "give it alone"),
        (["scan.png", "scan.png", "-o", "-"], b"", "takes one map"),
    ],
)
def test_what_cannot_be_piped_is_refused(words, given, sentence, scan, tmp_path):
    ended = sparsedepth("denoise", *words, given=given, folder=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert sentence in ended.stderr.decode()


def test_a_broken_map_writes_nothing(tmp_path):
    ended = sparsedepth("denoise", "-", "-o", "-", given=b"\x89PNG and no more", folder=tmp_path)
    assert (ended.returncode, ended.stdout) == (1, b"")


@pytest.mark.parametrize("suffix", sorted(set(BEGINNINGS.values())))
def test_formats_are_known_by_their_first_bytes(suffix, tmp_path):
    profile = {".png": "tum", ".pgm": "tum"}.get(suffix, "m")
    write(tmp_path / f"x{suffix}", np.ones((4, 5)), profile=profile)
    first = (tmp_path / f"x{suffix}").read_bytes()
    assert {BEGINNINGS[beginning] for beginning in BEGINNINGS if first.startswith(beginning)} == {suffix}
    assert set(BEGINNINGS.values()) <= set(FORMATS)

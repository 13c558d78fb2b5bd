"""Warnings on the command line: once a file with its name, in --json, and failures with --strict."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from outputs import files_below
from sparsedepth import Restorer
from sparsedepth.cli.batch.spec import RestoreSpec
from sparsedepth.cli.options import MapReader
from sparsedepth.files import DepthImage, write

FAST = ("--quality", "fast")
ROWS, COLUMNS = np.mgrid[:30, :36]
DEPTH = 1000 + 10 * COLUMNS + 3 * ROWS + np.random.default_rng(0).integers(0, 9, (30, 36))
HOLE = (ROWS % 7 == 0) & (COLUMNS % 5 == 0)


def png(path: Path, values: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values.astype(np.uint16)).save(path)


@pytest.fixture
def folder(tmp_path):
    png(tmp_path / "in/coded.png", np.where(HOLE, 65535, DEPTH))
    png(tmp_path / "in/plain.png", np.where(HOLE, 0, DEPTH))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["denoise", "inpaint"])
def test_a_warning_is_said_once_with_the_file(command, folder, verb):
    ended = command(verb, folder / "in", "-o", folder / "out", "--profile", "mm", *FAST)
    assert ended.code == 0, ended.err
    assert ended.err.count("65535, the largest") == 1
    assert f"warning: {folder}/in/coded.png" in ended.err.replace("\n", "")
    assert "plain.png" not in ended.err
    assert files_below(folder / "out") == ["coded.png", "plain.png"]


@pytest.mark.slow
def test_warnings_are_in_json(command, folder):
    ended = command("denoise", folder / "in", "-o", folder / "out", "--profile", "mm", *FAST, "--json")
    coded, plain = json.loads(ended.out)["files"]
    assert "65535" in coded["warnings"][0]
    assert plain["warnings"] == []
    assert coded["error"] is None


@pytest.mark.slow
def test_strict_fails_the_file_and_no_other(command, folder):
    ended = command("denoise", folder / "in", "-o", folder / "out", "--profile", "mm", *FAST, "--strict", "--json")
    assert ended.code == 1
    assert "coded.png" in ended.err
    assert "--strict" in ended.err
    assert files_below(folder / "out") == ["plain.png"]
    coded, plain = json.loads(ended.out)["files"]
    assert "65535" in coded["error"]
    assert plain["error"] is None
    named = ("--invalid", 0, "--invalid", 65535)
    assert (
        command("denoise", folder / "in", "-o", folder / "out2", "--profile", "mm", *FAST, "--strict", *named).code == 0
    )


@pytest.mark.slow
def test_a_batch_over_processes_warns_as_well(command, tmp_path):
    for number in range(33):
        png(tmp_path / f"in/{number:02d}.png", np.where(HOLE, 65535 if number == 5 else 0, DEPTH))
    ended = command("inpaint", tmp_path / "in", "-o", tmp_path / "out", "--profile", "mm", *FAST, "--jobs", 2, "--json")
    assert ended.code == 0, ended.err
    assert [file["input"][-6:] for file in json.loads(ended.out)["files"] if file["warnings"]] == ["05.png"]
    assert ended.err.count("warning:") == 1
    assert "UserWarning" not in ended.err


@pytest.mark.slow
def test_zeros_of_float_files_and_guesses(command, tmp_path):
    write(tmp_path / "zeros.tiff", DepthImage(np.where(HOLE, 0, DEPTH) / 1000, "m"))
    sparse = np.where((ROWS + COLUMNS) % 2 == 0, DEPTH / 1000, np.nan)
    write(tmp_path / "sparse.tiff", DepthImage(sparse, "m"))
    assert "exactly 0" in command("inpaint", tmp_path / "zeros.tiff", "-o", tmp_path / "z.tiff", *FAST).err
    assert "guess" in command("inpaint", tmp_path / "sparse.tiff", "-o", tmp_path / "s.tiff", *FAST).err
    ended = command("inpaint", tmp_path / "zeros.tiff", "-o", tmp_path / "z.tiff", *FAST, "--invalid", 0, "--force")
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize("dtype", [np.float32, np.uint16])
def test_a_map_that_stays_in_its_file_warns(run_spec, tmp_path, dtype):
    code = 0 if dtype is np.float32 else 65535
    np.save(tmp_path / "in.npy", np.where(HOLE, code, DEPTH).astype(dtype))
    reader = MapReader("m" if code == 0 else "mm", None, None)
    spec = RestoreSpec(Restorer(quality="fast"), {"quality": "fast"}, reader, None, None, None, mapped_pixels=100)
    ended = run_spec(spec, tmp_path / "in.npy", tmp_path / "out.npy")
    assert ended.code == 0, ended.err
    assert str(code) in ended.err
    assert "warning:" in ended.err


# --- guides ----------------------------------------------------------------------------------------------------------

PAIRS = {
    "same stem": ("x.png", "x.jpg"),
    "dots": ("x.depth.png", "x.color.png"),
    "underscores": ("x_depth.png", "x_color.jpg"),
    "hyphens": ("x-depth.png", "x-rgb.png"),
    "British": ("x_depth.png", "x_colour.png"),
    "image": ("x_depth.png", "x.image.jpeg"),
    "one word": ("x_depth.png", "x.png"),
    "the other word": ("x.png", "x_rgb.png"),
    "below": ("sub/x_depth.png", "sub/x_color.png"),
}


def picture(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((COLUMNS > 18).astype(np.uint8) * 200).save(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("together", [False, True], ids=["apart", "together"])
def test_guides_are_found_by_name(command, tmp_path, name, together):
    depth, guide = PAIRS[name]
    png(tmp_path / "maps" / depth, np.where(HOLE, 0, DEPTH))
    photos = tmp_path / ("maps" if together else "photos")
    picture(photos / guide)
    source = tmp_path / "maps" / depth if "/" not in depth else f"{tmp_path}/maps/**/*depth.png"
    common = ("inpaint", source, "--profile", "mm", *FAST, "--strict", "--guide", photos)
    assert command(*common, "-o", f"{tmp_path}/out/").code == 0


@pytest.mark.slow
def test_maps_without_a_guide(command, tmp_path):
    for name in "ab":
        png(tmp_path / f"in/{name}_depth.png", np.where(HOLE, 0, DEPTH))
    picture(tmp_path / "photos/a_color.png")
    common = ("inpaint", tmp_path / "in", "--profile", "mm", *FAST, "--guide", tmp_path / "photos")
    ended = command(*common, "-o", tmp_path / "out")
    assert ended.code == 0, ended.err
    assert "no picture for b_depth.png" in ended.err
    assert "a_color.png" in ended.err
    assert files_below(tmp_path / "out") == ["a_depth.png", "b_depth.png"]
    ended = command(*common, "-o", tmp_path / "out2", "--strict")
    assert ended.code == 1
    assert files_below(tmp_path / "out2") == ["a_depth.png"]


def test_a_folder_without_any_guide_is_refused(command, tmp_path):
    png(tmp_path / "in/a_depth.png", DEPTH)
    picture(tmp_path / "photos/z.png")
    common = ("inpaint", tmp_path / "in", "--profile", "mm", *FAST, "--guide", tmp_path / "photos")
    ended = command(*common, "-o", tmp_path / "out")
    assert ended.code == 2
    for words in ("a_depth.png", "a_color.png", "z.png"):
        assert words in ended.err
    assert files_below(tmp_path / "out") == []
    (tmp_path / "photos/z.png").unlink()
    assert "no pictures" in command(*common, "-o", tmp_path / "out").err


def test_whoever_follows_the_advice_is_warned_no_more(command, tmp_path):
    """Codes replace those of the profile, so the advice names them all."""
    png(tmp_path / "a.png", np.where(HOLE, 65535, np.where(ROWS == 9, 0, DEPTH)))
    words = ("inpaint", tmp_path / "a.png", "--profile", "mm", *FAST)
    warned = command(*words, "-o", tmp_path / "b.png")
    (advice,) = re.findall(r"\((--invalid[^)]*)\)", warned.err)
    ended = command(*words, "-o", tmp_path / "c.png", *advice.split())
    assert (ended.code, ended.err) == (0, "")

"""match as a user meets it: two photographs in, disparities out, and what is said of mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sparsedepth.files import read, read_array

SHIFT = 4


@pytest.fixture
def views(tmp_path) -> tuple[Path, Path]:
    """Two views of a flat wall, 4 px apart."""
    wall = np.random.default_rng(0).integers(0, 256, (24, 70, 3), np.uint8)
    return save(tmp_path / "left.png", wall[:, 6:60]), save(tmp_path / "right.png", wall[:, 6 + SHIFT : 60 + SHIFT])


def save(path: Path, pixels: np.ndarray) -> Path:
    Image.fromarray(pixels).save(path)
    return path


def test_everything_that_can_be_written(command, views, tmp_path):
    out = {name: tmp_path / name for name in ("d.pfm", "v.tiff", "o.png", "z.tiff")}
    ended = command(
        *("match", *views, "-o", out["d.pfm"], "--max-disparity", 9, "--variance-out", out["v.tiff"]),
        *("--origin-out", out["o.png"], "--depth-out", out["z.tiff"], "--focal", 100, "--baseline", 0.2),
    )
    assert ended.code == 0, ended.err
    assert ended.err == ""
    assert "filled" in ended.out
    disparity = read(out["d.pfm"], "px").values
    assert np.abs(disparity[:, 10:-6] - SHIFT).max() < 0.5
    depth = read(out["z.tiff"])
    assert (depth.unit, depth.kind) == ("m", "depth")
    np.testing.assert_allclose(depth.values, 20 / disparity, rtol=1e-5)
    assert (read_array(out["v.tiff"]) > 0).all()
    assert set(np.unique(read_array(out["o.png"]))) <= {0, 2}


def test_an_npz_holds_all_three(command, views, tmp_path):
    ended = command("match", *views, "-o", tmp_path / "d.npz", "--max-disparity", 9)
    assert ended.code == 0, ended.err
    shape = read(tmp_path / "d.npz").values.shape
    assert all(read_array(tmp_path / "d.npz", name=name).shape == shape for name in ("variance", "origin"))


def test_json_and_an_integer_file(command, views, tmp_path):
    ended = command("match", *views, "-o", tmp_path / "d.png", "--max-disparity", 9, "--json")
    assert ended.code == 0, ended.err
    facts = json.loads(ended.out)
    assert facts["warnings"] == []
    assert facts["median_disparity"] == pytest.approx(SHIFT, abs=0.3)
    assert read(tmp_path / "d.png").unit == "px"
    again = command("match", *views, "-o", tmp_path / "d.png", "--max-disparity", 9)
    assert again.code == 2
    assert "--force" in again.err
    forced = command("match", *views, "-o", tmp_path / "d.png", "--max-disparity", 9, "--force")
    assert forced.code == 0


def test_what_is_too_far_for_millimetres_is_unknown(command, views, tmp_path):
    for name, focal in (("near.png", 100), ("far.png", 10000)):
        wishes = ("--depth-out", tmp_path / name, "--focal", focal, "--baseline", 0.2, "--force")
        ended = command("match", *views, "-o", tmp_path / "d.pfm", "--max-disparity", 9, *wishes)
        assert ended.code == 0, ended.err
    assert np.nanmedian(read(tmp_path / "near.png").to("m").values) == pytest.approx(100 * 0.2 / SHIFT, rel=0.1)
    assert np.isnan(read(tmp_path / "far.png").values).all()


def test_a_calibration_file_gives_metres_and_their_variance(command, views, tmp_path):
    calib = tmp_path / "calib.txt"
    calib.write_text("cam0=[200 0 50; 0 200 20; 0 0 1]\ndoffs=3\nbaseline=100\nwidth=108\nheight=48\n")
    out = {name: tmp_path / f"{name}.tiff" for name in ("depth", "spread", "spread_px")}
    ended = command(
        *("match", *views, "-o", tmp_path / "d.pfm", "--max-disparity", 9, "--calib", calib),
        *("--depth-out", out["depth"], "--depth-variance-out", out["spread"], "--variance-out", out["spread_px"]),
    )
    assert ended.code == 0, ended.err
    distance = read(tmp_path / "d.pfm", "px").values + 1.5
    depth = read(out["depth"]).values
    np.testing.assert_allclose(depth, 100 * 0.1 / distance, rtol=1e-5)
    relative = read_array(out["spread_px"]) / distance**2
    normal_half = depth**2 * relative / 2 * (1 + 1.5 * relative)
    assert (read_array(out["spread"]) >= normal_half * (1 - 1e-4)).all()
    numbers = ("--focal", 100, "--baseline", 0.1, "--doffs", 1.5, "--depth-out", tmp_path / "same.tiff", "--force")
    assert command("match", *views, "-o", tmp_path / "d.pfm", "--max-disparity", 9, *numbers).code == 0
    np.testing.assert_array_equal(read(tmp_path / "same.tiff").values, depth)


def test_views_that_are_not_rectified_are_named(command, tmp_path):
    wall = np.random.default_rng(1).integers(0, 256, (62, 130, 3), np.uint8)
    wall = (wall // 2 + np.roll(wall, 1, axis=0) // 2).astype(np.uint8)
    views = save(tmp_path / "left.png", wall[1:61, 6:116]), save(tmp_path / "right.png", wall[:60, 10:120])
    ended = command("match", *views, "-o", tmp_path / "d.pfm", "--max-disparity", 9, "--json")
    assert ended.code == 0, ended.err
    assert "rectif" in ended.err
    assert "rectif" in json.loads(ended.out)["warnings"][0]


def test_sixteen_bits_and_transparency(command, views, tmp_path):
    deep = []
    for view in views:
        grey = np.asarray(Image.open(view).convert("L")).astype(np.uint16) * 257
        deep.append(save(tmp_path / f"deep_{view.name}", grey))
        Image.open(view).convert("RGBA").save(tmp_path / f"clear_{view.name}")
    clear = [tmp_path / f"clear_{view.name}" for view in views]
    for number, pair in enumerate((deep, clear)):
        ended = command("match", *pair, "-o", tmp_path / f"{number}.npy", "--max-disparity", 9)
        assert ended.code == 0, ended.err
        assert np.median(np.load(tmp_path / f"{number}.npy")) == pytest.approx(SHIFT, abs=0.3)


MISTAKES = {
    "swapped": (lambda left, right, folder: (right, left), (), "exchange left and right"),
    "a range wider than the views": (lambda left, right, folder: (left, right), ("--max-disparity", 54), "1 to 53"),
    "flat": (
        lambda left, right, folder: (save(folder / "flat.png", np.full((24, 54, 3), 7, np.uint8)), right),
        (),
        "nothing to match",
    ),
    "unequal sizes": (
        lambda left, right, folder: (left, save(folder / "small.png", np.zeros((24, 50, 3), np.uint8))),
        (),
        "equal size",
    ),
    "grey and colour": (
        lambda left, right, folder: (left, save(folder / "grey.png", np.zeros((24, 54), np.uint8))),
        (),
        "both grey or both in colour",
    ),
    "absent": (lambda left, right, folder: (left, folder / "none.png"), (), "there is no file"),
    "no photograph": (lambda left, right, folder: (left, note(folder)), (), "no photograph"),
    "no such solver": (lambda left, right, folder: (left, right), ("--solver", "magic"), "choose one of"),
    "half a camera": (lambda left, right, folder: (left, right), ("--focal", 100), "--baseline"),
    "an offset alone": (lambda left, right, folder: (left, right), ("--doffs", 3), "--baseline"),
    "a calibration without depths": (
        lambda left, right, folder: (left, right),
        ("--calib", "{folder}/left.png"),
        "--depth-out",
    ),
    "no calibration": (
        lambda left, right, folder: (left, right),
        ("--calib", "{folder}/left.png", "--depth-out", "{folder}/z.tiff"),
        "no text",
    ),
    "a variance in integers": (
        lambda left, right, folder: (left, right),
        ("--variance-out", "{folder}/v.png"),
        "holds integers",
    ),
    "an origin in floats": (lambda left, right, folder: (left, right), ("--origin-out", "{folder}/o.tiff"), "origins"),
    "an output on a view": (lambda left, right, folder: (left, right), ("-o", "{folder}/left.png", "--force"), "never"),
}


def note(folder: Path) -> Path:
    (folder / "note.png").write_text("not a picture")
    return folder / "note.png"


@pytest.mark.slow
@pytest.mark.parametrize(("change", "options", "said"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_sentence(command, views, tmp_path, change, options, said):
    pair = change(*views, tmp_path)
    defaults = ("--max-disparity", 9, "-o", tmp_path / "d.pfm")
    options = [str(option).format(folder=tmp_path) for option in options]
    ended = command("match", *pair, *defaults, *options)
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert said in ended.err
    assert not (tmp_path / "d.pfm").exists()


def test_a_broken_photograph_is_named(command, views, tmp_path):
    whole = views[0].read_bytes()
    (tmp_path / "half.png").write_bytes(whole[: len(whole) // 2])
    ended = command("match", tmp_path / "half.png", views[1], "-o", tmp_path / "d.pfm", "--max-disparity", 9)
    assert ended.code == 2
    assert "half.png" in ended.err

"""show and evaluate: pictures that cannot be misread, and numbers that compare like with like."""

from __future__ import annotations

import json

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_rgb
from PIL import Image
from skimage.color import rgb2lab

from sparsedepth.files import DepthImage, write, write_array
from sparsedepth.pictures import UNKNOWN

Y, X = np.mgrid[:20, :30]
DEPTH = (2 + 0.05 * X + 0.02 * Y).astype(np.float32)


def picture(path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def colours_of(path) -> set[tuple[int, ...]]:
    return set(map(tuple, np.unique(picture(path).reshape(-1, 3), axis=0).tolist()))


def unknown_colour() -> tuple[int, ...]:
    return tuple(round(255 * part) for part in to_rgb(UNKNOWN))


@pytest.mark.parametrize("colours", ["viridis", "bone"])
def test_the_colour_of_unknown_pixels_is_far_from_all_others(colours):
    far = rgb2lab(colormaps[colours](np.arange(256))[None, :, :3]) - rgb2lab(np.array(to_rgb(UNKNOWN))[None, None])
    assert np.linalg.norm(far, axis=-1).min() > 40


MAPS = {
    "plain": DEPTH,
    "with holes": np.where(X % 7 == 0, np.nan, DEPTH),
    "flat": np.full((12, 12), 1.5, np.float32),
    "zero": np.zeros((12, 12), np.float32),
    "unknown": np.full((12, 12), np.nan, np.float32),
    "one pixel": np.ones((1, 1), np.float32),
    "one row": DEPTH[:1],
    "one column": DEPTH[:, :1],
    "very long": np.linspace(0, 1, 9000, dtype=np.float32)[None],
    "very high": np.linspace(0, 1, 9000, dtype=np.float32)[:, None],
    "huge numbers": DEPTH * 1e30,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MAPS)
def test_any_map_can_be_shown(command, tmp_path, name):
    write(tmp_path / "x.tiff", DepthImage(MAPS[name], "m"))
    ended = command("show", tmp_path / "x.tiff", "-o", tmp_path / "x.png")
    assert (ended.code, ended.err) == (0, "")
    assert max(picture(tmp_path / "x.png").shape) < 2000
    assert (unknown_colour() in colours_of(tmp_path / "x.png")) == bool(np.isnan(MAPS[name]).any())


@pytest.mark.slow
def test_limits_titles_and_no_overwriting(command, tmp_path):
    for name in ("a$b$^_{.npy", "深度.npy", "x" * 200 + ".npy"):
        np.save(tmp_path / name, DEPTH)
        ended = command("show", tmp_path / name, "-o", tmp_path / "x.png", "--force", "--limits", 0, 10)
        assert ended.code == 0, ended.err
        assert "unknown unit" in ended.err
    np.save(tmp_path / "x.npy", DEPTH)
    for options, sentence in {
        (): "--force",
        ("--limits", 3, 3): "below",
        ("--limits", "nan", 3): "below",
        ("--variance", "--origin"): "one at a time",
    }.items():
        ended = command("show", tmp_path / "x.npy", "-o", tmp_path / "x.png", *options)
        assert ended.code == 2
        assert sentence in ended.err
    assert command("show", tmp_path / "x.npy", "-o", tmp_path / "x.jpg").code == 2


@pytest.mark.slow
def test_variances_and_origins(command, tmp_path):
    variance, origin = np.exp(DEPTH), (X % 4).astype(np.uint8)
    variance[3, 3] = np.inf
    write(tmp_path / "r.npz", DepthImage(DEPTH, "mm"), variance=variance, origin=origin)
    write_array(tmp_path / "v.tiff", variance)
    write_array(tmp_path / "o.png", origin)
    for number, arguments in enumerate(
        [
            ("r.npz", "--variance"),
            ("v.tiff", "--variance", "--profile", "mm"),
            ("r.npz", "--origin"),
            ("o.png", "--origin"),
        ]
    ):
        ended = command("show", tmp_path / arguments[0], *arguments[1:], "-o", tmp_path / f"{number}.png")
        assert (ended.code, ended.err) == (0, "")
        assert unknown_colour() in colours_of(tmp_path / f"{number}.png")
    assert (tmp_path / "2.png").read_bytes() != (tmp_path / "0.png").read_bytes()
    ended = command("show", tmp_path / "v.tiff", "--origin", "-o", tmp_path / "x.png")
    assert ended.code == 2
    assert "holds no origins" in ended.err


def evaluated(command, *arguments):
    ended = command("evaluate", *arguments, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def test_errors_are_measured_where_both_are_known(command, tmp_path):
    truth, result = np.where(X < 3, np.nan, DEPTH), DEPTH + np.float32(0.5)
    result[0, 5], result[1, 5] = np.nan, 9
    write(tmp_path / "t.tiff", DepthImage(truth, "m"))
    write(tmp_path / "r.tiff", DepthImage(result, "m"))
    facts = evaluated(command, tmp_path / "r.tiff", tmp_path / "t.tiff")
    n = 20 * 27
    assert facts["truth_known"] == pytest.approx(0.9)
    assert facts["compared"] == pytest.approx((n - 1) / 600)
    assert facts["bad_pixels"] == pytest.approx(1 / (n - 1))
    assert facts["bad_or_missing"] == pytest.approx(2 / n)
    assert facts["mae"] == pytest.approx(0.5, abs=0.02)
    assert facts["unit"] == "m"
    assert facts["psnr"] > 0
    assert "calibration" not in facts
    assert "PSNR" in command("evaluate", tmp_path / "r.tiff", tmp_path / "t.tiff").out


def test_metres_and_millimetres_compare_and_others_do_not(command, tmp_path):
    for name, image in {
        "m": DepthImage(DEPTH, "m"),
        "mm": DepthImage(DEPTH * 1000, "mm"),
        "px": DepthImage(DEPTH, "px", "disparity"),
        "unknown": DepthImage(DEPTH),
    }.items():
        write(tmp_path / f"{name}.tiff", image)
    for one, other in (("m", "mm"), ("mm", "m")):
        assert evaluated(command, tmp_path / f"{one}.tiff", tmp_path / f"{other}.tiff")["rmse"] < 1e-3
    for one, other in (("m", "px"), ("unknown", "m"), ("mm", "unknown")):
        ended = command("evaluate", tmp_path / f"{one}.tiff", tmp_path / f"{other}.tiff")
        assert ended.code == 2
        assert "--truth-profile" in ended.err
    assert evaluated(command, tmp_path / "m.tiff", tmp_path / "unknown.tiff", "--truth-profile", "m")["psnr"] is None
    assert evaluated(command, tmp_path / "unknown.tiff", tmp_path / "unknown.tiff")["rmse"] == 0


def test_variances_are_held_against_the_errors(command, tmp_path):
    rng = np.random.default_rng(0)
    truth = np.full((80, 80), 2.0) + np.arange(80) / 100
    variance = np.exp(rng.uniform(-8, -4, truth.shape))
    result = truth + np.sqrt(variance) * rng.standard_normal(truth.shape)
    write(tmp_path / "t.tiff", DepthImage(truth * 1000, "mm"))
    write(tmp_path / "r.npz", DepthImage(result, "m"), variance=variance)
    write(tmp_path / "r.tiff", DepthImage(result, "m"))
    write_array(tmp_path / "v.tiff", variance)
    facts = evaluated(command, tmp_path / "r.npz", tmp_path / "t.tiff")
    assert facts["calibration"]["overall"] == pytest.approx(1, abs=0.1)
    assert len(facts["calibration"]["deciles"]) == 10
    assert all(0.7 < tenth["ratio"] < 1.3 for tenth in facts["calibration"]["deciles"])
    apart = evaluated(command, tmp_path / "r.tiff", tmp_path / "t.tiff", "--variance", tmp_path / "v.tiff")
    assert apart["calibration"]["overall"] == pytest.approx(facts["calibration"]["overall"], rel=1e-3)
    assert "calibration: 1" in command("evaluate", tmp_path / "r.npz", tmp_path / "t.tiff").out.replace("0.9", "1")
    swapped = command("evaluate", tmp_path / "t.tiff", tmp_path / "r.npz")
    assert swapped.code == 0
    write(tmp_path / "o.npz", DepthImage(result, "m"), variance=variance, origin=np.zeros((80, 80), np.uint8))
    assert "the order is RESULT TRUTH" in command("evaluate", tmp_path / "t.tiff", tmp_path / "o.npz").err


@pytest.mark.parametrize(
    ("result", "truth", "options", "sentence"),
    [
        (DEPTH[:5], DEPTH, [], "shape"),
        (DEPTH * np.nan, DEPTH, [], "NaN in the estimate"),
        (DEPTH, DEPTH * np.nan, [], "truth is unknown"),
        (DEPTH, DEPTH, ["--peak", -1], "positive"),
        (DEPTH, DEPTH, ["--profile", "inch"], "no profile"),
        (DEPTH, DEPTH, ["--scale", 0], "positive"),
    ],
    ids=["shape", "nothing estimated", "nothing known", "peak", "unit", "scale"],
)
def test_what_cannot_be_compared(command, tmp_path, result, truth, options, sentence):
    write(tmp_path / "r.tiff", DepthImage(result, "m"))
    write(tmp_path / "t.tiff", DepthImage(truth, "m"))
    ended = command("evaluate", tmp_path / "r.tiff", tmp_path / "t.tiff", *options)
    assert ended.code == 2
    assert sentence in ended.err


def test_flat_truth_has_no_range(command, tmp_path):
    write(tmp_path / "t.tiff", DepthImage(np.ones((4, 4)), "m"))
    write(tmp_path / "r.tiff", DepthImage(np.full((4, 4), 1.1), "m"))
    assert evaluated(command, tmp_path / "r.tiff", tmp_path / "t.tiff")["psnr"] is None
    assert evaluated(command, tmp_path / "r.tiff", tmp_path / "t.tiff", "--peak", 1)["psnr"] == pytest.approx(20)
    assert "--peak" in command("evaluate", tmp_path / "r.tiff", tmp_path / "t.tiff").out

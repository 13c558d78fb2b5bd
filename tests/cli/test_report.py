"""report: one page that needs nothing but itself, and says of each map what is known of it."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sparsedepth.cli.batch.plan import Source
from sparsedepth.cli.options import MapReader
from sparsedepth.cli.report import Truths, read_finding
from sparsedepth.cli.reproduce import run_all
from sparsedepth.files import DepthImage, read_about, write
from sparsedepth.metrics import calibration
from sparsedepth.report import markdown_page, write_report
from sparsedepth.vocabulary import InputError
from test_demo import Page

Y, X = np.mgrid[:20, :30]
RESULTS = sorted((Path(__file__).parents[2] / "docs" / "results").glob("*.md"))
TRUTH = (2 + 0.05 * X + 0.02 * Y).astype(np.float32)


@pytest.fixture
def folder(tmp_path):
    """A truth, a result with its variance and origin, and a map without."""
    rng = np.random.default_rng(0)
    variance = rng.uniform(0.01, 0.04, TRUTH.shape)
    depth = TRUTH + np.sqrt(variance) * rng.standard_normal(TRUTH.shape)
    depth[3, 4], variance[3, 4] = np.nan, np.inf
    origin = np.where(np.isnan(depth), 3, 0).astype(np.uint8)
    write(tmp_path / "truth.tiff", DepthImage(TRUTH, "m"))
    about = {"made by": "hand & <b>heart</b>"}
    write(tmp_path / "a.npz", DepthImage(depth, "m"), variance=variance, origin=origin, about=about)
    write(tmp_path / "b.png", DepthImage(1000 * TRUTH, "mm"), profile="mm")
    return tmp_path


def page(path) -> Page:
    text = path.read_text()
    assert not re.search(r"https?://|url\(|@import|<script|<link|<iframe", text)
    found = Page(text)
    for address in found.addresses:
        assert base64.b64decode(address.removeprefix("data:image/png;base64,")).startswith(b"\x89PNG")
    return found


@pytest.mark.slow
def test_a_report_tells_all_and_needs_nothing(command, folder):
    ended = command("report", folder / "a.npz", "--truth", folder / "truth.tiff", "--truth-profile", "m",
                    "-o", folder / "r.html", "--json")  # fmt: skip
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["maps"] == 1
    shown = page(folder / "r.html")
    assert shown.tags.count("img") == 5  # map, variance, origin, error, calibration
    assert "hand & <b>heart</b>" in shown.text
    assert "30 x 20" in shown.text
    assert f"numpy {np.__version__}" in shown.text
    assert str(folder) not in shown.text
    facts = json.loads(
        command("evaluate", folder / "a.npz", folder / "truth.tiff", "--truth-profile", "m", "--json").out
    )
    assert f"{facts['psnr']:.2f} dB" in shown.text
    assert f"{facts['rmse']:.4g} m" in shown.text
    assert f"{facts['calibration']['overall']:.3g}" in shown.text
    assert facts["calibration"]["overall"] == pytest.approx(1, abs=0.2)  # as these variances were made


@pytest.mark.slow
def test_a_report_shows_what_was_restored(command, folder):
    """In the unit of the result, from a file or a folder."""
    (folder / "in").mkdir()
    write(folder / "in/a.png", DepthImage(np.where(X > 20, np.nan, TRUTH), "m"), profile="mm")
    for given in (folder / "in/a.png", folder / "in"):
        ended = command("report", folder / "a.npz", "--input", given, "--input-profile", "mm",
                        "-o", folder / "r.html", "--force", "--json")  # fmt: skip
        assert ended.code == 0, ended.err
        shown = page(folder / "r.html")
        assert shown.tags.count("img") == 4  # input, map, variance, origin
        assert "The input." in shown.text
        assert "70.0%" in shown.text, "known before"
    ended = command("report", folder / "a.npz", "--input", folder / "in/a.png", "--input-profile", "px",
                    "-o", folder / "s.html")  # fmt: skip
    assert ended.code == 2
    write(folder / "small.tiff", DepthImage(TRUTH[:9], "m"))
    ended = command("report", folder / "a.npz", "--input", folder / "small.tiff", "-o", folder / "s.html")
    assert "name what was restored" in " ".join(ended.err.split())


def test_units_are_those_of_the_truth(folder):
    write(folder / "mm.tiff", DepthImage(1000 * TRUTH, "mm"))
    source, reading = Source(folder / "a.npz", Path("a.npz")), MapReader("auto", None, None)
    found = [read_finding(source, reading, Truths(folder / truth, reading, 1.0)) for truth in ("truth.tiff", "mm.tiff")]
    metres, millimetres = found
    assert millimetres.errors["rmse"] == pytest.approx(1000 * metres.errors["rmse"], rel=1e-4)
    honest = [calibration(*finding.held).overall for finding in found if finding.held is not None]
    assert honest[0] == pytest.approx(honest[1], rel=1e-3)


@pytest.mark.slow
def test_several_maps_share_a_table(command, folder):
    ended = command("report", folder, "-o", folder / "r.html", "--title", "All & sundry")
    assert ended.code == 0, ended.err
    shown = page(folder / "r.html")
    assert shown.tags.count("img") == 3 + 1 + 1  # a.npz has three
    assert all(shown.text.count(name) == 2 for name in ("a.npz", "b.png", "truth.tiff"))
    assert "All & sundry" in shown.text


@pytest.mark.slow
def test_truths_may_lie_in_a_folder(command, folder):
    (folder / "truths").mkdir()
    write(folder / "truths" / "a.tiff", DepthImage(TRUTH, "m"))
    ended = command("report", folder / "a.npz", "--truth", folder / "truths", "-o", folder / "r.html")
    assert ended.code == 0, ended.err
    ended = command("report", folder / "b.png", "--truth", folder / "truths", "-o", folder / "s.html")
    assert ended.code == 2
    assert "there is no file" in ended.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["a.npz", "-o", "r.txt"], "must end in .html"),
        (["a.npz", "-o", "old.html"], "--force"),
        (["nothing.npz", "-o", "r.html"], "there is no file"),
        (["a.npz", "-o", "r.html", "--truth", "small.tiff"], "shape"),
        (["*.pgm", "-o", "r.html"], "holds no maps"),
    ],
)
def test_what_cannot_be_is_one_sentence(command, folder, monkeypatch, words, sentence):
    monkeypatch.chdir(folder)
    write("small.tiff", DepthImage(TRUTH[:5], "m"))
    (folder / "old.html").write_text("precious")
    ended = command("report", *words)
    assert ended.code == 2
    assert sentence in ended.err
    assert not (folder / "r.html").exists()
    assert (folder / "old.html").read_text() == "precious"


MAPS = {
    "unknown": (np.full((4, 5), np.nan), np.full((4, 5), np.inf)),
    "flat and sure": (np.ones((4, 5)), np.zeros((4, 5))),
    "one pixel": (np.ones((1, 1)), np.ones((1, 1))),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MAPS)
def test_any_map_can_be_reported(command, tmp_path, name):
    depth, variance = MAPS[name]
    write(tmp_path / "x.npz", DepthImage(depth, "px", "disparity"), variance=variance)
    ended = command("report", tmp_path / "x.npz", "-o", tmp_path / "r.html")
    assert (ended.code, ended.err) == (0, "")
    page(tmp_path / "r.html")


def test_restored_maps_say_how_they_were_made(command, folder):
    ended = command(
        "inpaint", folder / "a.npz", "-o", folder / "out.npz", "--quality", "fast", "--dictionary", "default"
    )
    assert ended.code == 0, ended.err
    about = read_about(folder / "out.npz")
    assert about["quality"] == "fast"
    assert about["dictionary"] == "256 atoms of 8x8 pixels"
    assert about["made by"].endswith("inpaint")


@pytest.mark.parametrize("about", ["no json", "[1]", '{"a": {}}', "x" * 100_000])
def test_a_file_cannot_say_anything_it_likes(tmp_path, about):
    np.savez(tmp_path / "x.npz", depth=np.ones((2, 2)), about=np.array(about))
    assert all(isinstance(word, str) for pair in read_about(tmp_path / "x.npz").items() for word in pair)
    assert len(str(read_about(tmp_path / "x.npz"))) < 100


def test_result_pages_become_one_report(tmp_path, command):
    class Experiment:
        @staticmethod
        def run(output, progress, quick=False):
            write(tmp_path / "x.npy", TRUTH)
            command("show", tmp_path / "x.npy", "-o", output / "x.png", "--force")
            table = "| a | b |\n| --- | --- |\n| 1 | 2 |"
            (output / "denoising.md").write_text(
                f"# T & t\n\n<!-- made -->\n\n{table}\n\n![see](x.png) `code` **9** [out](../a.md) <script>"
            )
            return {"rows": 1}

    facts = run_all({"denoising": Experiment}, tmp_path / "out", quick=False)
    assert facts == {"denoising": {"rows": 1}, "report": str(tmp_path / "out" / "report.html")}
    text = (tmp_path / "out" / "report.html").read_text()
    shown = page(tmp_path / "out" / "report.html")
    assert shown.tags.count("table") == 2
    assert shown.tags.count("img") == 1
    assert "<h2>T &amp; t</h2>" in text
    assert "made" not in shown.text
    assert "<script>" in shown.text


@pytest.mark.slow
def test_pages_of_results_can_all_be_sent(tmp_path):
    write_report(tmp_path / "r.html", "all", *(markdown_page(path) for path in RESULTS))
    shown = Page((tmp_path / "r.html").read_text())
    assert shown.tags.count("img") >= 8
    inside = "data:image/png;base64,", "data:image/webp;base64,"
    assert all(address.startswith((*inside, "https://")) for address in shown.addresses)


def test_a_page_may_show_videos_but_no_other_files(tmp_path):
    (tmp_path / "page.md").write_text("![a video](v.webp)")
    Image.new("RGB", (4, 4)).save(tmp_path / "v.webp", save_all=True, append_images=[Image.new("RGB", (4, 4), "red")])
    assert 'src="data:image/webp;base64,' in markdown_page(tmp_path / "page.md").text
    Image.new("RGB", (4, 4)).save(tmp_path / "v.webp", "BMP")
    with pytest.raises(InputError, match="neither a PNG nor a WebP"):
        markdown_page(tmp_path / "page.md")

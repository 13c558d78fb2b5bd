"""The demo on a real map that needs no download, and the report it writes."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from sparsedepth import InputError
from sparsedepth.demo import PRODUCTS, run
from sparsedepth.files import read, read_array
from sparsedepth.report import heading, paragraph, pictures, table, write_report

pytestmark = pytest.mark.slow


class Page(HTMLParser):
    """Everything a page refers to, and whether its tags close."""

    VOID = ("meta", "img", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder, told = tmp_path_factory.mktemp("demo"), []
    facts = run(folder, lambda *what: told.append(what), quick=True)
    return folder, facts, told


def test_demo_writes_what_it_promises_and_removes_noise(demo):
    folder, facts, told = demo
    names = {p.name for p in folder.iterdir()}
    assert names == set(PRODUCTS)
    assert all((folder / name).read_bytes().startswith(b"\x89PNG") for name in names if name.endswith(".png"))
    assert facts["psnr_db"]["sparsedepth"] > facts["psnr_db"]["noisy"] + 3
    assert sum(facts[origin] for origin in ("measured", "corrected", "filled", "refused")) == pytest.approx(1, abs=1e-3)
    assert told[-1][1] == told[-1][2]
    assert any("tuned on the truth" in what for what, *_ in told)


def test_the_restored_map_says_its_unit_and_its_variance(demo):
    folder, *_ = demo
    image = read(folder / "restored.npz")
    assert (image.unit, image.kind, image.assumed) == ("px", "disparity", "")
    assert (read_array(folder / "restored.npz", name="variance") > 0).all()
    assert read_array(folder / "restored.npz", name="origin").dtype == np.uint8


def test_the_report_needs_nothing_but_itself(demo):
    folder, facts, _ = demo
    text = (folder / "report.html").read_text()
    page = Page(text)
    assert all(address.startswith("data:image/png;base64,") for address in page.addresses)
    assert page.tags.count("img") == len(page.addresses) == 7
    for address in page.addresses:
        assert base64.b64decode(address.partition(",")[2]).startswith(b"\x89PNG")
    assert not re.search(r"https?://|url\(|@import|<script|<link|<iframe", text)
    for name, score in facts["psnr_db"].items():
        assert name in page.text
        assert f"{score:.1f}" in page.text
    assert "tuned on the truth" in page.text
    assert "numpy" in page.text
    assert str(folder) not in text


def test_text_in_a_report_is_text(demo, tmp_path):
    folder, *_ = demo
    nasty = '<script>alert("x")</script> & {body} \udcff'
    path = tmp_path / "report.html"
    parts = heading(nasty), paragraph(nasty), table([nasty], [[nasty, nasty]]), pictures((folder / "psnr.png", nasty))
    write_report(path, nasty, *parts)
    page = Page(path.read_text())
    assert "script" not in page.tags
    assert page.text.count('<script>alert("x")</script> & {body} ?') == 8


def test_a_report_holds_pictures_only(tmp_path):
    (tmp_path / "x.svg").write_text("<svg/>")
    with pytest.raises(InputError, match="neither a PNG nor a WebP"):
        pictures((tmp_path / "x.svg", ""))


def test_demo_does_not_overwrite_unasked(command, tmp_path):
    (tmp_path / "noisy.png").write_bytes(b"precious")
    ended = command("demo", "-o", tmp_path)
    assert ended.code == 2
    assert "--force" in ended.err
    assert (tmp_path / "noisy.png").read_bytes() == b"precious"

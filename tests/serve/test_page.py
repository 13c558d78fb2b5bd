"""The page in a real browser: a map is dropped, looked at from all sides, and taken home."""

from __future__ import annotations

import base64
import io
import json
import math
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from running_service import png, scene
from sparsedepth import Sensor, Stream, denoise
from sparsedepth.files import read

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run")  # fmt: skip
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; install it to test the page"),
]
LAPTOP, PHONE = {"width": 1366, "height": 768}, {"width": 390, "height": 844}
HOLE = (6, 6)
UNKNOWN = [200, 30, 90]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


def opened(browser: Any, url: str, size: dict[str, int], address: str = "#example=") -> Any:
    """A page that keeps what it should not have said or asked for; without an example, unless its address has one."""
    page = browser.new_page(viewport=size)
    page.complaints = []
    page.on("console", lambda said: said.type == "error" and page.complaints.append(said.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    own = (url, "blob:", "data:")
    page.on("request", lambda asked: asked.url.startswith(own) or page.complaints.append(asked.url))
    page.goto(f"{url}/{address}")
    page.wait_for_selector("body[data-state=ready]" if address.endswith("=") else "body[data-state=done]")
    return page


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("page") / "scan.png"
    path.write_bytes(png(scene()))
    return path


@pytest.fixture(scope="module")
def expected() -> Any:
    return denoise(np.where(scene() == 0, np.nan, scene()).astype(np.float32))


@pytest.fixture(scope="module")
def page(browser, plain, file) -> Iterator[Any]:
    """With a map that was chosen, restored and drawn in every way."""
    page = opened(browser, plain.url, LAPTOP)
    page.select_option("#profile", "mm")
    page.set_input_files("#files", file)
    settled(page)
    yield page
    page.close()


def settled(page: Any, plots: bool = True) -> None:
    """Wait until everything of the last job is drawn, and forget that it was."""
    page.wait_for_selector("body[data-state=done]", timeout=60_000)
    if plots:
        page.wait_for_selector("body[data-plots=drawn]", timeout=60_000)
    page.evaluate("document.body.dataset.state = 'seen'; document.body.dataset.plots = 'seen'")


def files_of(frames: list[np.ndarray], names: str = "frame-{:03d}.png") -> list[dict[str, Any]]:
    return [
        {"name": names.format(number), "mimeType": "image/png", "buffer": png(frame)}
        for number, frame in enumerate(frames)
    ]


def reading(page: Any) -> dict[str, Any]:
    said = page.inner_text("#readout")
    place = re.match(r"column (\d+), row (\d+) · before ([\w.]+).* · after ([\d.]+) mm.* · variance ([-\d.e]+)", said)
    assert place, said
    column, row, before, after, variance = place.groups()
    return {"at": (int(row), int(column)), "before": before, "after": float(after), "variance": float(variance),
            "origin": said.split(" · ")[-1]}  # fmt: skip


def colour(page: Any, canvas: str, row: int, column: int) -> list[int]:
    """What a picture shows at a pixel of the map."""
    script = """([id, row, column, height, width]) => {
        const canvas = document.getElementById(id);
        const [x, y] = [(column + 0.5) / width * canvas.width, (row + 0.5) / height * canvas.height];
        return [...canvas.getContext("2d").getImageData(Math.floor(x), Math.floor(y), 1, 1).data].slice(0, 3);
    }"""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page.evaluate(script, [canvas, row, column, 40, 60])


def test_values_under_the_cursor_are_the_librarys(page, expected):
    page.focus("#compare")
    page.click("#zoom-fit")
    page.focus("#compare")
    for keys in (["ArrowRight"], ["Shift+ArrowLeft"] * 3 + ["ArrowDown"], ["Shift+ArrowUp"] * 2 + ["Shift+ArrowLeft"]):
        for key in keys:
            page.keyboard.press(key)
        got = reading(page)
        assert got["after"] == pytest.approx(expected.depth[got["at"]], rel=5e-4)
        assert got["variance"] == pytest.approx(expected.variance[got["at"]], rel=1e-2)
        assert got["origin"] == ["measured", "corrected", "filled", "refused"][expected.origin[got["at"]]]
        before = scene()[got["at"]]
        assert got["before"] == ("unknown" if before == 0 else f"{before:g}")


def test_the_mouse_reads_too_and_both_pictures_zoom_together(page):
    page.click("#zoom-fit")
    boxes = [page.locator(f"#{name}").bounding_box() for name in ("compare", "layers")]
    assert boxes[0]["width"] == pytest.approx(boxes[1]["width"], abs=1)
    places = []
    for zoomed in (False, True):
        for box in boxes:
            page.mouse.move(box["x"] + 0.31 * box["width"], box["y"] + 0.41 * box["height"])
            places.append(reading(page)["at"])
        if not zoomed:
            page.mouse.wheel(0, -600)
    assert places[0] == places[1] == (16, 18)
    assert places[2] == places[3]
    page.mouse.move(boxes[0]["x"] + 0.9 * boxes[0]["width"], boxes[0]["y"] + 0.9 * boxes[0]["height"])
    assert max(np.abs(np.subtract(reading(page)["at"], places[2]))) < 15, "a corner of the picture is near when zoomed"
    page.click("#zoom-fit")


def test_the_slider_moves_from_before_to_after(page):
    page.click("#zoom-fit")
    page.mouse.move(0, 0)
    shown = {}
    for split in ("100", "0"):
        page.fill("#split", split)
        shown[split] = colour(page, "compare", *HOLE)
    assert shown["100"] == UNKNOWN
    assert shown["0"] != UNKNOWN
    page.focus("#split")
    page.keyboard.press("End")
    assert colour(page, "compare", *HOLE) == UNKNOWN, "by keyboard"


def test_layers(page, expected):
    page.click("#zoom-fit")
    seen = {}
    for layer in ("variance", "origin", "residual", "after", "before"):
        page.select_option("#layer", layer)
        seen[layer] = colour(page, "layers", *HOLE), page.inner_text("#layer-scale")
    assert seen["before"][0] == seen["residual"][0] == UNKNOWN
    assert seen["origin"][0] == [111, 191, 115]
    assert f"filled {(expected.origin == 2).mean() * 100:.1f} %" in seen["origin"][1]
    assert "mm², log" in seen["variance"][1]
    assert len({str(shown) for shown, _ in seen.values()}) >= 4


def test_the_map_in_space(page, expected):
    drawn = page.evaluate("(({type, x, y}) => ({type, n: x.length, nearest: Math.min(...y)}))(space.data[0])")
    assert drawn == {"type": "scatter3d", "n": 2400, "nearest": pytest.approx(float(expected.depth.min()))}
    page.select_option("#space-shape", "surface")
    page.select_option("#space-colour", "variance")
    page.wait_for_selector("#space[data-drawn='surface variance']")
    kind, tint = page.evaluate("[space.data[0].type, space.data[0].surfacecolor[0][0]]")
    assert kind == "surface"
    assert tint == pytest.approx(np.log10(expected.variance[0, 0]), rel=1e-4)
    assert page.locator("#space canvas").count() >= 1


def test_the_map_in_space_is_turned_by_keys(page):
    def eye() -> list[float]:
        return page.evaluate("(({ x, y, z }) => [x, y, z])(space._fullLayout.scene.camera.eye)")

    first = eye()
    page.focus("#space")
    page.keyboard.press("ArrowRight")
    right = eye()
    assert math.hypot(right[0], right[1]) == pytest.approx(math.hypot(first[0], first[1]))
    turned = math.atan2(right[1], right[0]) - math.atan2(first[1], first[0])
    assert math.degrees(turned) == pytest.approx(10)
    page.keyboard.press("ArrowUp")
    assert eye()[2] > right[2]
    page.keyboard.press("-")
    assert np.linalg.norm(eye()) == pytest.approx(1.2 * np.linalg.norm(first))
    for _ in range(20):
        page.keyboard.press("ArrowUp")
    assert math.hypot(eye()[0], eye()[1]) > 0.1, "it never stands on its head"
    page.keyboard.press("0")
    assert eye() == pytest.approx(first)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") != "space"


def test_the_histogram_counts_what_moved(page, expected):
    moved = int(page.inner_text("#histogram-note").split()[0])
    known = scene() != 0
    assert moved == np.count_nonzero(expected.depth[known] != scene()[known].astype(np.float32))
    assert page.evaluate("histogram.data[0].y.reduce((sum, count) => sum + count)") == moved


@pytest.mark.parametrize(("name", "apart"), [("result.png", 0.5), ("result.npz", 0), ("result.pfm", 0)])
def test_downloads_are_the_result(page, expected, tmp_path, name, apart):
    with page.expect_download() as coming:
        page.click(f"[data-product='{name}']")
    assert coming.value.suggested_filename == f"scan-{name}"
    path = tmp_path / name
    coming.value.save_as(path)
    np.testing.assert_allclose(read(path).values, expected.depth, atol=apart)


def archive_of(page: Any, path: Path) -> zipfile.ZipFile:
    """What the button for everything gives; every file in it is whole."""
    with page.expect_download(timeout=60_000) as coming:
        page.click("#download-all")
    coming.value.save_as(path)
    archive = zipfile.ZipFile(path)
    assert archive.testzip() is None
    return archive


def test_one_archive_holds_everything(page, plain, file, expected, tmp_path):
    products = page.evaluate("fetch('/v1/about').then((answer) => answer.json())")["products"]
    with archive_of(page, tmp_path / "all.zip") as archive:
        names = {"input/scan.png", "facts.json", *products}
        assert sorted(archive.namelist()) == sorted(f"scan/{name}" for name in names)
        assert archive.read("scan/input/scan.png") == file.read_bytes()
        assert json.loads(archive.read("scan/facts.json"))["unit"] == "mm"
        archive.extract("scan/result.npz", tmp_path)
    np.testing.assert_array_equal(read(tmp_path / "scan" / "result.npz").values, expected.depth)


def test_nothing_was_complained_of_and_nobody_else_was_asked(page):
    assert page.complaints == []


def violations(page: Any) -> list[Any]:
    from axe_core_python.sync_playwright import Axe

    found = Axe().run(page)["violations"]
    return [(each["id"], [node["target"] for node in each["nodes"]]) for each in found]


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_anyone_can_use_it(page, size):
    page.set_viewport_size(size)
    page.wait_for_timeout(200)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "nothing sticks out"
    page.set_viewport_size(LAPTOP)


def test_everything_is_reached_by_the_keyboard(page):
    page.evaluate("document.activeElement.blur(); window.scrollTo(0, 0)")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.dataset.product"))
    wanted = (
        "files example take-example profile scale invalid intrinsics calibration guide quality dictionary sensor "
        "sensor-file fill all-holes again compare split layer layers zoom-in"
    )
    wanted = {*wanted.split(), "space-shape", "space-colour", "result.npz", "curl"}
    assert wanted <= reached


def test_a_dropped_file_that_is_refused_says_why_and_the_next_one_works(browser, plain, file):
    page = opened(browser, plain.url, PHONE)
    drop = """([name, content]) => {
        const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
        const carried = new DataTransfer();
        carried.items.add(new File([bytes], name));
        document.dispatchEvent(new DragEvent("drop", { dataTransfer: carried, bubbles: true, cancelable: true }));
    }"""
    for name, content, words in (
        ("notes.docx", b"hello", "files ending in '.docx' are not known"),
        ("holiday.png", b"no picture", "holiday.png"),
    ):
        page.evaluate(drop, [name, base64.b64encode(content).decode()])
        page.wait_for_selector("body[data-state=failed]")
        assert words in page.inner_text("#error")
        page.evaluate("document.body.dataset.state = 'tried'")
    page.evaluate(drop, ["scan.png", base64.b64encode(file.read_bytes()).decode()])
    page.wait_for_selector("body[data-state=done]")
    assert page.is_hidden("#error")
    assert "took its uint16 numbers as depth in mm" in page.inner_text("#assumed")
    page.close()


def test_the_first_visit_shows_a_result(browser, plain):
    page = opened(browser, plain.url, LAPTOP, "")
    assert page.is_visible("#compare")
    assert "Motorcycle, measured" in page.inner_text("#facts")
    assert "Real depths with their real holes" in page.inner_text("#source"), "the page says what is shown"
    assert page.complaints == []
    page.close()


def test_another_example_by_its_address_says_that_it_is_simulated(browser, plain):
    page = opened(browser, plain.url, PHONE, "#example=garage")
    assert "simulated RealSense D435" in page.inner_text("#source")
    assert page.input_value("#example") == "garage"
    assert "realsense_d435" in page.inner_text("#curl"), "the sensor of the example is named"
    page.close()


def test_the_divider_is_dragged_on_the_picture(page):
    page.click("#zoom-fit")
    page.fill("#split", "50")
    page.evaluate("window.scrollTo(0, 0)")
    box = page.locator("#compare").bounding_box()
    at = {share: box["x"] + share * box["width"] for share in (0.5, 0.2)}
    page.mouse.move(at[0.5], box["y"] + 30)
    page.mouse.down()
    page.mouse.move(at[0.2], box["y"] + 40, steps=3)
    page.mouse.up()
    page.wait_for_timeout(50)
    assert float(page.input_value("#split")) == pytest.approx(20, abs=1)
    page.fill("#split", "50")


def test_the_input_is_in_the_report(page):
    told = page.inner_text("#facts")
    for words in ("scan.png", "60 × 40", "Range before", "profile mm"):
        assert words in told


def test_nothing_is_clipped(page):
    """Selects show their text, and labels of plots lie within them."""
    script = """() => [...document.querySelectorAll("select")].filter((select) => select.offsetParent).map((select) => {
        const probe = document.createElement("canvas").getContext("2d");
        probe.font = getComputedStyle(select).font;
        const words = select.selectedOptions[0].textContent;
        return [select.id, words, select.clientWidth - probe.measureText(words).width];
    }).filter(([, , room]) => room < 36)"""
    assert page.evaluate(script) == []
    script = """() => [...document.querySelectorAll("#histogram text, #histogram .xtitle")].filter((label) => {
        const [inner, outer] = [label.getBoundingClientRect(), histogram.getBoundingClientRect()];
        const beyond = inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.bottom > outer.bottom + 1;
        return inner.width && beyond;
    }).map((label) => label.textContent)"""
    assert page.evaluate(script) == []


def test_a_map_that_did_not_move_shows_how_sure_its_filled_pixels_are(browser, plain, file):
    page = opened(browser, plain.url, LAPTOP)
    page.check("input[value=inpaint]")
    page.set_input_files("#files", file)
    settled(page)
    assert "No pixel that was known moved" in page.inner_text("#histogram-note")
    assert page.inner_text("#histogram-title") == "Filled pixels: how sure they are"
    filled = int(np.count_nonzero(scene() == 0))
    assert page.evaluate("histogram.data[0].y.reduce((sum, count) => sum + count)") == filled
    assert page.evaluate("Math.min(...histogram.data[0].x)") > 0
    page.close()


def test_a_pair_fills_the_page(browser, plain):
    """Where there is no histogram, the map in space is as wide as both."""
    page = opened(browser, plain.url, LAPTOP)
    page.select_option("#example", "motorcycle-pair")
    page.click("#take-example")
    settled(page)
    assert page.is_hidden("#histogram")
    drawn, room = page.evaluate("[space.querySelector('.main-svg').getBoundingClientRect().width, space.clientWidth]")
    assert room > 800
    assert drawn == pytest.approx(room, abs=2)
    page.close()


def test_a_scene_from_near_to_far_is_painted_by_its_logarithm(browser, plain):
    page = opened(browser, plain.url, LAPTOP)
    y, x = np.mgrid[:40, :60]
    far = np.where(x < 50, 1000 + 10 * y, 30000).astype(np.uint16)
    page.select_option("#profile", "mm")
    page.set_input_files("#files", {"name": "far.png", "mimeType": "image/png", "buffer": png(far)})
    settled(page)
    assert "log" in page.inner_text("#compare-scale")
    assert "Nothing beyond" in page.inner_text("#space-note")
    assert page.evaluate("Math.max(...space.data[0].y)") < 10000
    page.close()


def test_a_stream_is_played(browser, plain):
    """Frames with numbers are a stream; time goes by a slider, a button and by keys."""
    rng = np.random.default_rng(0)
    frames = [scene() + rng.normal(0, 5, (40, 60)) * (scene() > 0) for _ in range(6)]
    page = opened(browser, plain.url, LAPTOP)
    page.select_option("#profile", "mm")
    page.set_input_files("#files", files_of(frames))
    settled(page)
    assert page.is_checked("input[value=stream]")
    assert page.inner_text("#frame-name") == "frame 6 of 6"
    assert page.input_value("#layer") == "deviation"
    stream = Stream(unit="mm")
    expected = [stream.push(frame.round().astype(np.uint16)) for frame in frames]
    page.focus("#compare")
    page.keyboard.press("ArrowRight")
    for key, number in ((",", 4), (",", 3), (".", 4)):
        page.keyboard.press(key)
        page.wait_for_selector(f"body[data-frame='{number}']")
        got = reading(page)
        assert got["after"] == pytest.approx(expected[number].depth[got["at"]], rel=5e-4)
    page.focus("#frame")
    page.keyboard.press("Home")
    page.wait_for_selector("body[data-frame='0']")
    page.focus("#compare")
    page.keyboard.press(" ")
    assert page.inner_text("#play") == "Pause"
    page.wait_for_selector("body[data-frame='3']")
    page.keyboard.press(" ")
    assert page.inner_text("#play") == "Play"
    page.wait_for_selector("body[data-plots=drawn]")
    page.fill("#frame", "2")
    page.wait_for_selector("body[data-frame='2']")
    with page.expect_download() as coming:
        page.click("[data-product='result.npz']")
    assert coming.value.suggested_filename == "frame-000-2-result.npz"
    for size in (LAPTOP, PHONE):
        page.set_viewport_size(size)
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "nothing sticks out"
    assert page.complaints == []
    page.close()


def test_a_stack_of_frames_is_a_stream(browser, plain, tmp_path):
    np.savez(tmp_path / "stack.npz", depth=np.stack([scene()] * 2).astype(np.uint16))
    page = opened(browser, plain.url, LAPTOP)
    page.set_input_files("#files", tmp_path / "stack.npz")
    settled(page, plots=False)
    assert page.inner_text("#frame-name") == "frame 2 of 2"
    page.close()


def test_several_maps_are_taken_home_at_once(browser, plain, tmp_path):
    """The second one, which nobody looked at, is restored for it."""
    others = [scene(seed=number) for number in range(2)]
    page = opened(browser, plain.url, LAPTOP)
    page.set_input_files("#files", [*files_of(others[:1], "chair.png"), *files_of(others[1:], "table.png")])
    settled(page, plots=False)
    with archive_of(page, tmp_path / "all.zip") as archive:
        assert {name.split("/")[0] for name in archive.namelist()} == {"chair", "table"}
        for stem, values in zip(("chair", "table"), others, strict=True):
            archive.extract(f"{stem}/result.npz", tmp_path)
            depth = denoise(np.where(values == 0, np.nan, values).astype(np.float32)).depth
            np.testing.assert_array_equal(read(tmp_path / stem / "result.npz").values, depth)
    assert page.complaints == []
    page.close()


def test_several_maps_are_chosen_from(browser, plain):
    others = [scene(seed=number) for number in range(2)]
    page = opened(browser, plain.url, LAPTOP)
    page.set_input_files("#files", [*files_of(others[:1], "chair.png"), *files_of(others[1:], "table.png")])
    settled(page, plots=False)
    first = page.inner_text("#facts")
    assert "chair.png" in first
    page.select_option("#which", "1")
    settled(page, plots=False)
    assert "table.png" in page.inner_text("#facts")
    page.select_option("#which", "0")
    settled(page, plots=False)
    assert page.inner_text("#facts") == first, "it is kept"
    assert page.complaints == []
    page.close()


def test_depth_and_colour_and_calibrations_are_understood(browser, plain):
    colours = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 60, 3), np.uint8)).save(colours, "png")
    picture = {"name": "scan_color.png", "mimeType": "image/png", "buffer": colours.getvalue()}
    camera = b'{"fx": 50.0, "fy": 51.0, "cx": 29.5, "cy": 19.5}'
    calibration = {"name": "camera.json", "mimeType": "application/json", "buffer": camera}
    sensor = Sensor.preset("kinect_v1").to_json().encode()
    record = {"name": "mine.json", "mimeType": "application/json", "buffer": sensor}
    page = opened(browser, plain.url, LAPTOP)
    page.set_input_files("#files", [*files_of([scene()], "scan_depth.png"), picture, calibration, record])
    settled(page, plots=False)
    told = page.inner_text("#facts")
    for words in ("scan_depth.png and scan_color.png and camera.json", "50, 51, 29.5, 19.5", "sensor from a file"):
        assert words in told
    assert page.is_checked("input[value=denoise]")
    page.evaluate("document.getElementById('max-disparity').value = 8")
    page.set_input_files("#files", [picture | {"name": "left.png"}, picture | {"name": "right.png"}])
    page.locator("#before-name", has_text="Left view").wait_for()
    assert page.is_checked("input[value=match]")
    assert page.complaints == []
    page.close()


def picture_of(width: int, height: int) -> dict[str, Any]:
    content = io.BytesIO()
    colours = np.random.default_rng(0).integers(0, 255, (height, width, 3), np.uint8)
    Image.fromarray(colours).save(content, "png")
    return {"name": "color.png", "mimeType": "image/png", "buffer": content.getvalue()}


def test_a_photograph_of_another_size_is_left_out_and_said(browser, plain):
    """Cameras of depth and of colour differ; the depth is restored all the same."""
    page = opened(browser, plain.url, LAPTOP)
    page.set_input_files("#files", [*files_of([scene()], "depth.png"), picture_of(90, 50)])
    settled(page, plots=False)
    assert "color.png has another size than the map and was left out" in page.inner_text("#assumed")
    assert "Input\tdepth.png\n" in page.inner_text("#facts")
    page.set_input_files("#guide", picture_of(90, 50))
    page.click("#again")
    page.wait_for_selector("body[data-state=failed]")
    assert "the guide is" in page.inner_text("#error"), "that of the option was asked for"
    page.close()


def test_equal_variances_are_drawn(browser, plain, tmp_path):
    np.save(tmp_path / "flat.npy", np.full((3, 3), 2.0, np.float32))
    page = opened(browser, plain.url, LAPTOP)
    page.set_input_files("#files", tmp_path / "flat.npy")
    settled(page)
    low, high = re.findall(r"[\d.]+(?:e[-+]\d+)?", page.inner_text("#layer-scale"))[:2]
    assert 0 < float(low) < float(high)
    assert " ," not in page.inner_text("#layer-scale")
    assert re.search(r"Range after\t2\s*\n", page.inner_text("#facts"))
    assert page.complaints == []
    page.close()


def test_heights_are_a_relief_and_wide_voids_say_how_they_are_filled(browser, plain, tmp_path):
    heights = np.add.outer(np.linspace(-9, 9, 40), np.sin(np.arange(60) / 9)).astype(np.float32)
    heights[10:24, 20:40] = np.nan
    np.save(tmp_path / "dsm.npy", heights)
    page = opened(browser, plain.url, LAPTOP)
    page.select_option("#profile", "height")
    page.set_input_files("#files", tmp_path / "dsm.npy")
    settled(page)
    assert "A relief of the heights." in page.inner_text("#space-note")
    assert page.inner_text("#space-colour option:checked") == "height"
    assert "Fill large holes too" in page.inner_text("#facts")
    page.check("#all-holes")
    page.click("#again")
    settled(page)
    assert "Fill large holes too" not in page.inner_text("#facts")
    assert page.complaints == []
    page.close()


def test_a_report_leaves_no_half_of_a_row_empty(browser, expected, command, tmp_path):
    """Three pictures stand in one row; with the input they are two and two."""
    expected.save(tmp_path / "x.npz")
    np.save(tmp_path / "before.npy", scene())
    page = browser.new_page(viewport=LAPTOP)
    for words, rows in (((), [3]), (("--input", tmp_path / "before.npy"), [2, 2])):
        ended = command("report", tmp_path / "x.npz", "-o", tmp_path / "r.html", "--force", *words)
        assert ended.code == 0, ended.err
        page.goto(f"file://{tmp_path / 'r.html'}")
        tops = page.evaluate("[...document.querySelectorAll('figure')].map((each) => each.offsetTop)")
        assert [tops.count(top) for top in sorted(set(tops))] == rows
    page.close()


def test_a_pair_is_matched_from_an_example(browser, plain):
    page = opened(browser, plain.url, LAPTOP)
    page.select_option("#example", "motorcycle-pair")
    page.click("#take-example")
    settled(page, plots=False)
    assert page.is_checked("input[value=match]")
    assert page.inner_text("#before-name") == "Left view"
    assert page.complaints == []
    page.close()


def test_a_job_is_stopped(browser, plain):
    page = opened(browser, plain.url, LAPTOP)
    page.select_option("#quality", "paper")  # lasts
    page.select_option("#example", "motorcycle")
    page.click("#take-example")
    page.wait_for_selector("body[data-state=before]")
    page.click("#stop")
    page.wait_for_selector("body[data-state=stopped]")
    assert page.complaints == []
    page.close()

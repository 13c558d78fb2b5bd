"""The HTTP service as programs meet it: maps in, maps with variances out, and a sentence for everything else."""

from __future__ import annotations

import asyncio
import inspect
import io
import time
from typing import Any

import httpx
import numpy as np
import pytest
import tifffile
from PIL import Image

from running_service import depth_file, scene
from sparsedepth import Restorer, StereoCalibration, denoise, inpaint
from sparsedepth.cli.denoise import denoise_command, inpaint_command
from sparsedepth.data.motorcycle import BASELINE_MM, DOFFS_PX, FOCAL_PX, motorcycle_disparity
from sparsedepth.files import read, read_array
from sparsedepth.serve import examples, forms
from sparsedepth.serve.app import make_app
from sparsedepth.serve.guard import LOOPBACK
from sparsedepth.serve.limits import Limits
from sparsedepth.serve.products import PRODUCTS
from sparsedepth.serve.server import is_loopback

pytestmark = pytest.mark.service


def arrays(content: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return dict(file)


@pytest.mark.parametrize("options", [{}, {"quality": "fast"}], ids=["by default", "fast"])
def test_what_comes_back_is_what_the_library_gives(plain, options):
    answer = plain.post("denoise", depth_file(), answer="npz", profile="mm", **options)
    assert answer.status_code == 200, answer.text
    got, expected = (
        arrays(answer.content),
        denoise(np.where(scene() == 0, np.nan, scene()).astype(np.float32), **options),
    )
    np.testing.assert_array_equal(got["depth"], expected.depth)
    np.testing.assert_array_equal(got["variance"], expected.variance)
    np.testing.assert_array_equal(got["origin"], expected.origin)
    assert str(got["unit"]) == "mm"


@pytest.mark.parametrize("function", [denoise, inpaint, Restorer, denoise_command, inpaint_command])
def test_there_is_one_default_quality(plain, function):
    default = plain.client.get("/v1/about").json()["default_quality"]
    assert all(form.model_fields["quality"].default == default for form in (forms.DenoiseForm, forms.InpaintForm))
    assert str(inspect.signature(function).parameters["quality"].default) == default


def test_inpainting_leaves_what_was_measured(plain):
    got = arrays(plain.post("inpaint", depth_file(), answer="npz", profile="mm").content)["depth"]
    known = scene() != 0
    np.testing.assert_array_equal(got[known], scene()[known])
    assert np.isfinite(got).all()


def test_the_answer_carries_warnings(plain):
    coded = np.where(scene() == 0, 65535, scene())
    told = plain.finished(plain.post("inpaint", depth_file(coded), profile="mm", quality="fast"))
    assert "65535" in told["facts"]["warnings"][0]
    told = plain.finished(plain.post("inpaint", depth_file(), profile="mm", quality="fast"))
    assert told["facts"]["warnings"] == []


def test_a_pair_is_matched(plain):
    wall = np.random.default_rng(0).integers(0, 256, (24, 70, 3), np.uint8)
    views = {}
    for name, shift in (("left", 0), ("right", 4)):
        content = io.BytesIO()
        Image.fromarray(wall[:, 6 + shift : 60 + shift]).save(content, "png")
        views[name] = (f"{name}.png", content.getvalue())
    got = arrays(plain.post("match", views, answer="npz", max_disparity=8).content)
    assert np.median(got["disparity"]).round() == 4
    swapped = {"left": views["right"], "right": views["left"]}
    told = plain.finished(plain.post("match", swapped, max_disparity=8))
    assert told["state"] == "failed"
    assert "swapped" in told["error"]
    answer = plain.post("match", views)
    assert answer.status_code == 422
    assert "max_disparity" in answer.json()["error"]


@pytest.fixture(scope="module")
def done(plain):
    return plain.finished(plain.post("denoise", depth_file(), profile="mm"))


def test_a_job_says_what_it_found(plain, done):
    facts = done["facts"]
    assert (facts["shape"], facts["unit"], facts["kind"]) == ([40, 60], "mm", "depth")
    assert sum(facts[name] for name in ("measured", "corrected", "filled", "refused")) == pytest.approx(1)
    assert facts["known"] == pytest.approx(1 - 9 / 2400)
    assert 0 < done["expires_in"] <= Limits().keep_seconds


@pytest.mark.parametrize("name", PRODUCTS)
def test_every_product_holds_the_result(plain, done, tmp_path, name):
    answer = plain.client.get(done["links"][name])
    assert answer.status_code == 200
    assert answer.headers["content-type"] == PRODUCTS[name].media
    raw = {end: plain.client.get(done["links"][end]).content for end in ("after.f32", "variance.f32", "origin.u8")}
    after, variance = (np.frombuffer(raw[end], "<f4").reshape(40, 60) for end in ("after.f32", "variance.f32"))
    path = tmp_path / name
    path.write_bytes(answer.content)
    if name == "result.ply":
        head, _, body = answer.content.partition(b"end_header\n")
        assert f"element vertex {np.isfinite(after).sum()}".encode() in head
        assert len(body) == np.isfinite(after).sum() * (12 + 12 + 4 + 1 + 3)
        place = np.frombuffer(body[:12], "<f4")
        assert place[2] == after[0, 0]
        assert place[0] < 0, "the first pixel lies to the left"
    elif name == "result.pcd":
        head, _, body = answer.content.partition(b"DATA binary\n")
        assert f"POINTS {np.isfinite(after).sum()}".encode() in head
        assert len(body) == np.isfinite(after).sum() * (12 + 12 + 4 + 1 + 4)
    elif name == "variance.tiff":
        np.testing.assert_array_equal(read_array(path), variance)
    elif name == "origin.png":
        np.testing.assert_array_equal(read_array(path).ravel(), np.frombuffer(raw["origin.u8"], "u1"))
    else:
        np.testing.assert_allclose(read(path, "mm").values, after, atol=0.5 if name == "result.png" else 0)


def test_points_have_the_camera_that_was_given(plain):
    answer = plain.post("inpaint", depth_file(), profile="mm", intrinsics="50,40,29.5,19.5", quality="fast")
    done = plain.finished(answer)
    content = plain.client.get(done["links"]["result.ply"]).content
    x, y, z = np.frombuffer(content.partition(b"end_header\n")[2][:12], "<f4")
    assert (x / z, y / z) == (pytest.approx(-29.5 / 50), pytest.approx(-19.5 / 40))
    for wrong in ("50,40,29.5", "0,40,29.5,19.5", "x"):
        assert plain.post("inpaint", depth_file(), profile="mm", intrinsics=wrong).status_code == 422


def test_the_old_name_of_a_field_still_works(plain):
    old, new = (plain.post("inpaint", depth_file(), answer="npz", **{name: "mm"}) for name in ("unit", "profile"))
    assert old.content == new.content
    both = {"unit": "mm", "profile": "mm"}
    assert plain.post("inpaint", depth_file(), answer="npz", **both).status_code == 422


@pytest.mark.parametrize("unit", ["m", "px", "1/m", "auto"])
def test_floats_become_16_bits_that_say_their_scale(plain, tmp_path, unit):
    content = io.BytesIO()
    values = (scene() / 1000).astype(np.float32)
    values[scene() == 0] = np.nan
    np.save(content, values)
    told = plain.finished(plain.post("inpaint", {"depth": ("a.npy", content.getvalue())}, profile=unit))
    path = tmp_path / "a.png"
    path.write_bytes(plain.client.get(told["links"]["result.png"]).content)
    after = np.frombuffer(plain.client.get(told["links"]["after.f32"]).content, "<f4").reshape(values.shape)
    np.testing.assert_allclose(read(path).to("m").values if unit == "m" else read(path).values, after, atol=1 / 256)


@pytest.mark.parametrize("name", examples.MAPS)
def test_examples_have_holes_and_say_what_is_real(plain, name):
    told = plain.post("denoise", example=name).json()
    assert 0.5 < told["facts"]["known"] < 1
    assert told["facts"]["source"] == examples.SOURCES[name]
    assert plain.client.delete(told["links"]["self"]).status_code == 204
    assert plain.client.get(told["links"]["self"]).status_code == 404


def test_the_measured_example_is_as_it_was_measured():
    image, camera = examples.example_map("measured").to("m"), examples.example_camera("measured")
    disparity = motorcycle_disparity()[::2, ::2]
    assert np.array_equal(np.isnan(image.values), np.isnan(disparity))
    pair = StereoCalibration(FOCAL_PX, BASELINE_MM / 1000, DOFFS_PX)
    assert image.values[9, 7] == pytest.approx(pair.depth_at(disparity[9, 7]), rel=1e-6)
    assert camera is not None
    assert camera[0] == pytest.approx(FOCAL_PX / 2)


REFUSED = {
    "no form": (415, {"content": b"hello"}, "multipart"),
    "no file": (422, {"files": {"profile": (None, "mm")}}, "lacks depth"),
    "a suffix that is no map's": (415, {"files": {"depth": ("a.docx", b"x")}}, ".tiff"),
    "no name": (422, {"files": {"depth": (None, b"x")}}, "must be a file"),
    "broken": (422, {"files": {"depth": ("holiday.png", b"x" * 99)}}, "holiday.png"),
    "cut short": (422, {"files": {"depth": ("a.pfm", b"Pf\n9 9\n-1.0\n1234")}}, "copy it again"),
    "profile": (
        422,
        {"files": {"depth": ("a.png", b"x"), "profile": (None, "ell")}},
        "profile: choose one of auto, mm",
    ),
    "scale": (422, {"files": {"depth": ("a.png", b"x"), "scale": (None, "-1")}}, "scale"),
    "scale, missing": (422, {"files": depth_file() | {"profile": (None, "middlebury")}}, "scale of the scene"),
    "typo": (422, {"files": depth_file() | {"qualtiy": (None, "best")}}, "qualtiy: there is no such field"),
    "sensor": (422, {"files": depth_file() | {"sensor": (None, "kinect")}}, "no sensor 'kinect'; send one of auto"),
    "twice": (422, {"files": [("profile", (None, "mm")), ("profile", (None, "mm"))]}, "'profile' twice"),
    "file and example": (422, {"files": depth_file() | {"example": (None, "room")}}, "not both"),
    "long text": (422, {"files": {"profile": (None, "m" * 2000)}}, "no option"),
    "many parts": (422, {"files": {f"p{i}": (None, "1") for i in range(40)}}, "parts"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_said_in_a_sentence(plain, case):
    status, request, words = REFUSED[case]
    answer = plain.client.post("/v1/denoise", **request)
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]


def test_bombs_are_refused_before_they_go_off(plain):
    content = io.BytesIO()
    np.savez_compressed(content, depth=np.zeros((4000, 4000), np.float32))
    answer = plain.post("denoise", {"depth": ("bomb.npz", content.getvalue())})
    assert answer.status_code == 413
    assert answer.json()["error"].startswith("bomb.npz: it declares 4000 x 4000 pixels; the budget is 8388608")


def test_no_answer_names_a_place_on_the_server(plain, done):
    """Nor does a wrong upload of any kind."""
    for suffix in (".png", ".pgm", ".pfm", ".tiff", ".npy", ".npz", ".exr"):
        for content in (b"", b"\x93NUMPY\x01\x00", b"II*\0" + b"\xff" * 40, b"PK\x03\x04" + b"\0" * 40):
            answer = plain.post("denoise", {"depth": (f"../../etc/x{suffix}", content)})
            assert answer.status_code in (413, 422)
            assert "/" not in answer.json()["error"], answer.text
    for path in (done["links"]["self"], "/v1/jobs/../../etc/passwd", "/page/..%2f..%2fapp.py", "/page/app.py"):
        assert "/tmp" not in plain.client.get(path).text


def test_a_job_that_was_forgotten_while_it_ran_leaves_room_for_the_next(plain):
    long = plain.post("denoise", example="motorcycle", quality="best").json()
    time.sleep(0.3)
    assert plain.client.delete(long["links"]["self"]).status_code == 204
    assert plain.finished(plain.post("denoise", depth_file()))["state"] == "done"


def guarded(**options) -> httpx.AsyncClient:
    app = make_app(Limits(), **options)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")


@pytest.mark.parametrize(
    ("options", "request_", "status"),
    [
        ({"token": "sesame"}, {"url": "/v1/about"}, 401),
        ({"token": "sesame"}, {"url": "/v1/about", "headers": {"authorization": "Bearer guess"}}, 401),
        ({"token": "sesame"}, {"url": "/v1/about", "headers": {"authorization": "Bearer sesame"}}, 200),
        ({"token": "sesame"}, {"url": "/v1/jobs/x"}, 401),
        ({"token": "sesame"}, {"url": "/v1/denoise", "method": "POST"}, 401),
        ({"token": "sesame"}, {"url": "/"}, 200),
        ({"hosts": LOOPBACK}, {"url": "/v1/about", "headers": {"host": "evil.example"}}, 403),
        ({"hosts": LOOPBACK}, {"url": "/v1/about", "headers": {"host": "[::1]:80"}}, 200),
        ({}, {"url": "/v1/denoise", "method": "POST", "headers": {"origin": "http://evil.example"}}, 403),
        ({}, {"url": "/nowhere"}, 404),
        ({}, {"url": "/v1/denoise"}, 405),
    ],
)
def test_who_may_ask(options, request_, status):
    async def ask() -> httpx.Response:
        async with guarded(**options) as client:
            return await client.request(**({"method": "GET"} | request_))

    answer = asyncio.run(ask())
    assert answer.status_code == status
    if status == 405:
        assert answer.json()["error"] == "Method Not Allowed"
    else:
        assert status < 400 or answer.json()["error"].count(" ") > 2
    assert "default-src 'self'" in answer.headers["content-security-policy"]


def test_only_this_machine_is_loopback():
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.1", "example.org", "")))


def test_other_machines_need_a_token(command):
    ended = command("serve", "--host", "0.0.0.0", "--port", "0")
    assert ended.code == 2
    assert "--token" in ended.err


def test_a_geotiff_keeps_its_place_and_its_type(plain, tmp_path):
    """Tags of GeoTIFF and the integers of the upload are those of the product, and its variance lies beside it."""
    scale, place = (33550, 12, 3, (2.0, 2.0, 0.0)), (33922, 12, 6, (0.0, 0.0, 0.0, 5e5, 4.5e6, 0.0))
    keys = (34735, 3, 16, (1, 1, 0, 3, 1024, 0, 1, 1, 3072, 0, 1, 32633, 4099, 0, 1, 9001))
    tags: Any = [(*tag, True) for tag in (scale, place, keys, (42113, 2, 7, "-32768"))]
    heights = np.where(scene() == 0, -32768, scene() // 10).astype(np.int16)
    tifffile.imwrite(tmp_path / "dem.tif", heights, extratags=tags, metadata=None)
    files = {"depth": ("dem.tif", (tmp_path / "dem.tif").read_bytes())}
    told = plain.finished(plain.post("inpaint", files))
    assert told["facts"]["kind"] == "height"
    found = {}
    for name in ("result.tiff", "variance.tiff"):
        with tifffile.TiffFile(io.BytesIO(plain.client.get(told["links"][name]).content)) as file:
            page = file.pages.first
            found[name] = page.asarray()
            for code, *_, value in (scale, place, keys):
                assert tuple(page.tags[code].value) == value, (name, code)
            assert (42113 in page.tags) == (name == "result.tiff")
    assert (found["result.tiff"].dtype, found["variance.tiff"].dtype) == (np.int16, np.float32)
    known = heights != -32768
    np.testing.assert_array_equal(found["result.tiff"][known], heights[known])
    assert (found["result.tiff"] != -32768).any(where=~known), "holes are filled"

"""Streams over HTTP: frames in, frames out, and the limits that hold for them."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import pytest
from PIL import Image

from bags import INTRINSICS, write_plain, write_realsense_1
from running_service import png, scene
from sparsedepth import Sensor, Stream

pytestmark = pytest.mark.service

N_FRAMES, SHAPE = 4, (40, 60)
FRAMES = [
    (scene() + np.random.default_rng(number).normal(0, 4, SHAPE) * (scene() > 0)).round().astype(np.uint16)
    for number in range(N_FRAMES)
]
Parts = list[tuple[str, Any]]


def as_files(frames: list[np.ndarray] = FRAMES) -> Parts:
    return [("frames", (f"{number:03d}.png", png(frame))) for number, frame in enumerate(frames)]


def as_zip() -> Parts:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for number, frame in reversed(list(enumerate(FRAMES))):
            archive.writestr(f"scan/{number:03d}.png", png(frame))
        archive.writestr("scan/.DS_Store", b"")
        archive.writestr("scan/notes.txt", b"hello")
    return [("frames", ("scan.zip", content.getvalue()))]


def as_stack() -> Parts:
    content = io.BytesIO()
    np.savez_compressed(content, depth=np.stack(FRAMES), stamps=np.arange(N_FRAMES))
    return [("frames", ("scan.npz", content.getvalue()))]


@pytest.fixture(scope="module")
def expected() -> list[Any]:
    stream = Stream("kinect_v1", unit="mm")
    return [stream.push(frame) for frame in FRAMES]


def post(running: Any, parts: Parts, answer: str = "links", **fields: str) -> Any:
    texts = [(name, (None, value)) for name, value in fields.items()]
    return running.client.post("/v1/stream", files=[*texts, *parts], params={"answer": answer})


@pytest.mark.parametrize("parts", [as_files, as_zip, as_stack], ids=["files", "zip", "npz"])
def test_what_comes_back_is_what_the_library_gives(plain, expected, parts):
    answer = post(plain, parts(), "npz", profile="mm", sensor="kinect_v1")
    assert answer.status_code == 200, answer.text
    with np.load(io.BytesIO(answer.content), allow_pickle=False) as got:
        for name in ("depth", "variance", "origin"):
            np.testing.assert_array_equal(got[name], np.stack([getattr(result, name) for result in expected]))
        assert str(got["unit"]) == "mm"


@pytest.fixture(scope="module")
def done(plain):
    return plain.finished(post(plain, as_files(), profile="mm", sensor=Sensor.preset("kinect_v1").to_json()))


def test_every_frame_is_had_by_its_number(plain, done, expected):
    assert done["state"] == "done", done["error"]
    facts = done["facts"]
    assert (facts["frames"], facts["input"], facts["state"]) == (N_FRAMES, "stream", "static")
    assert sum(facts[name] for name in ("measured", "smoothed", "remembered", "corrected", "filled", "refused")) == (
        pytest.approx(1)
    )
    for number in (0, N_FRAMES - 1):
        raw = plain.client.get(done["links"]["after.f32"], params={"frame": number}).content
        np.testing.assert_array_equal(np.frombuffer(raw, "<f4").reshape(SHAPE), expected[number].depth)
        before = plain.client.get(done["links"]["before.f32"], params={"frame": number}).content
        assert len(before) == 4 * SHAPE[0] * SHAPE[1]
        product = plain.client.get(done["links"]["result.npz"], params={"frame": number}).content
        with np.load(io.BytesIO(product), allow_pickle=False) as got:
            np.testing.assert_array_equal(got["variance"], expected[number].variance)
    assert len(plain.client.get(done["links"]["after.f32"]).content) == N_FRAMES * 4 * SHAPE[0] * SHAPE[1]
    for wrong, status in ((N_FRAMES, 404), (-1, 422)):
        assert plain.client.get(done["links"]["after.f32"], params={"frame": wrong}).status_code == status


def test_a_video_of_it_can_be_looked_at(plain, done):
    answer = plain.client.get(done["links"]["stream.gif"])
    assert answer.headers["content-type"] == "image/gif"
    with Image.open(io.BytesIO(answer.content)) as video:
        assert video.size == (3 * SHAPE[1], SHAPE[0])


@pytest.mark.parametrize("write", [write_plain, lambda path, frames: write_realsense_1(path, frames, 0.001)])
def test_a_bag_brings_its_camera(plain, tmp_path, write):
    path = tmp_path / ("rec.bag" if write is not write_plain else "rec")
    frames = [np.resize(frame, (48, 64)) for frame in FRAMES]
    write(path, frames)
    file = path if path.suffix else next(path.glob("*.db3"))
    told = plain.finished(post(plain, [("frames", (file.name, file.read_bytes()))]))
    assert told["state"] == "done", told["error"]
    assert told["facts"]["intrinsics"] == list(INTRINSICS)
    assert told["facts"]["frames"] == N_FRAMES


REFUSED = {
    "nothing": ([], 422, "lacks frames"),
    "two sizes": (as_files([FRAMES[0], FRAMES[1][:20]]), 422, "frame 2"),
    "disparities": ([("frames", ("a.pfm", b"Pf\n2 2\n-1.0\n" + bytes(16)))], 422, "disparity"),
    "an empty zip": ([("frames", ("a.zip", b"PK\x05\x06" + bytes(18)))], 422, "no maps"),
    "no zip": ([("frames", ("a.zip", b"hello"))], 422, "a.zip"),
    "no bag": ([("frames", ("a.bag", b"hello"))], 422, "a.bag"),
    "no bag of ROS 2": ([("frames", ("a.db3", b"hello"))], 422, "a.db3"),
    "a letter": ([("frames", ("a.docx", b"hello"))], 415, ".zip"),
    "an example and a file": ([*as_files(), ("example", (None, "ball"))], 422, "not both"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_said_in_a_sentence(plain, case):
    parts, status, words = REFUSED[case]
    answer = post(plain, parts, profile="auto")
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"]
    assert "/" not in answer.json()["error"].replace("1/m", "")


def test_frames_and_pixels_are_limited(strict):
    small = png(np.full((8, 8), 1000))
    answer = post(strict, [("frames", (f"{number}.png", small)) for number in range(21)])
    assert answer.status_code == 413
    assert "20 frames" in answer.json()["error"]
    content = io.BytesIO()
    np.savez_compressed(content, depth=np.full((21, 8, 8), 1000, np.uint16))
    answer = post(strict, [("frames", ("many.npz", content.getvalue()))])
    assert (answer.status_code, "20 frames" in answer.json()["error"]) == (413, True)
    content = io.BytesIO()
    np.savez_compressed(content, depth=np.full((9, 200, 200), 1000, np.uint16))
    answer = post(strict, [("frames", ("large.npz", content.getvalue()))])
    assert (answer.status_code, "pixels" in answer.json()["error"]) == (413, True)


def test_a_guide_and_a_calibration_come_with_a_map(plain):
    picture = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (*SHAPE, 3), np.uint8)).save(picture, "jpeg")
    files = {
        "depth": ("scan.png", png(scene())),
        "guide": ("scan.jpg", picture.getvalue()),
        "calibration": ("cam.json", b'{"fx": 50.0, "fy": 51.0, "cx": 29.5, "cy": 19.5}'),
    }
    told = plain.finished(plain.post("inpaint", files, profile="mm", quality="fast"))
    assert told["state"] == "done", told["error"]
    assert told["facts"]["intrinsics"] == [50.0, 51.0, 29.5, 19.5]
    both = plain.post("inpaint", files, profile="mm", intrinsics="50,50,30,20")
    assert (both.status_code, "one of them" in both.json()["error"]) == (422, True)
    broken = files | {"guide": ("scan.jpg", b"no picture")}
    assert plain.post("inpaint", broken, profile="mm").status_code == 422

"""Recordings of Record3D: depths, confidences and intrinsics are those of the file, and broken ones are refused."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsedepth import Intrinsics
from sparsedepth.files.frames import holds_frames, read_frames
from sparsedepth.files.record3d import MAX_METADATA_BYTES, describe_recording, read_recording
from sparsedepth.vocabulary import InputError, TooLargeError

liblzfse: Any = pytest.importorskip("liblzfse", reason="pyliblzfse is not installed; pip install 'sparsedepth[phone]'")

SHAPE = (24, 32)
COLOUR = {"w": 320, "h": 240, "K": [250.0, 0, 0, 0, 260.0, 0, 159.5, 119.5, 1]}
END_OF_LZFSE = b"bvx$"
RNG = np.random.default_rng(3)
DEPTHS = [np.where(RNG.random(SHAPE) < 0.1, 0, RNG.uniform(0.3, 4, SHAPE)).astype(np.float32) for _ in range(11)]
LEVELS = [RNG.integers(0, 3, SHAPE).astype(np.uint8) for _ in DEPTHS]


def members(**changes: bytes | None) -> dict[str, bytes]:
    """The files of a recording; those that are changed to None are left out."""
    files = {"metadata": json.dumps(COLOUR | {"dw": SHAPE[1], "dh": SHAPE[0], "fps": 30}).encode()}
    for number, (depth, levels) in enumerate(zip(DEPTHS, LEVELS, strict=True)):
        files[f"rgbd/{number}.depth"] = liblzfse.compress(depth.tobytes())
        files[f"rgbd/{number}.conf"] = liblzfse.compress(levels.tobytes())
        files[f"rgbd/{number}.jpg"] = b"not looked at"
    changed: dict[str, bytes | None] = {**files, **changes}
    return {name: content for name, content in changed.items() if content is not None}


def packed(path: Path, files: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def zeros(length: int, block: int = 1 << 18) -> bytes:
    """So many zeros, compressed: blocks follow each other up to the mark of the end."""
    one = liblzfse.compress(bytes(block)).removesuffix(END_OF_LZFSE)
    return one * (length // block) + END_OF_LZFSE


def facts(**changes: Any) -> bytes:
    return json.dumps(COLOUR | {"dw": SHAPE[1], "dh": SHAPE[0]} | changes).encode()


def test_frames_are_those_of_the_file_in_the_order_of_their_numbers(tmp_path):
    path = packed(tmp_path / "walk.r3d", members())
    frames = list(read_recording(path))
    assert [frame.name for frame in frames] == [f"{number:06d}" for number in range(len(DEPTHS))]
    for frame, depth, levels in zip(frames, DEPTHS, LEVELS, strict=True):
        np.testing.assert_array_equal(frame.image.values, np.where(depth > 0, depth, np.nan).astype(np.float32))
        np.testing.assert_array_equal(frame.confidence, levels)
        assert (frame.image.unit, frame.image.kind) == ("m", "depth")


def test_a_stream_of_it_leaves_out_what_is_not_trusted(tmp_path):
    path = packed(tmp_path / "walk.r3d", members(**{"rgbd/1.conf": None}))
    assert holds_frames(path)
    images = [image.values for _, image in read_frames(path)]
    np.testing.assert_array_equal(np.isnan(images[0]), (DEPTHS[0] == 0) | (LEVELS[0] == 0))
    np.testing.assert_array_equal(np.isnan(images[1]), DEPTHS[1] == 0, "it has no confidences")


def test_intrinsics_are_those_of_the_depths(tmp_path):
    """A pixel of depths is ten by ten of the photograph; the centre of both pictures is the same point."""
    told = describe_recording(packed(tmp_path / "walk.r3d", members()))
    assert (told.frames, told.shape) == (len(DEPTHS), SHAPE)
    assert told.intrinsics == pytest.approx((25.0, 26.0, 15.5, 11.5))


def test_a_recording_is_a_calibration_file(tmp_path):
    path = packed(tmp_path / "walk.r3d", members())
    assert astuple(Intrinsics.from_file(path, SHAPE)) == pytest.approx(describe_recording(path).intrinsics)
    for broken in (b"", b"PK", path.read_bytes()[:-30]):
        (tmp_path / "x.r3d").write_bytes(broken)
        with pytest.raises(InputError, match=r"x\.r3d: it is no recording of Record3D"):
            Intrinsics.from_file(tmp_path / "x.r3d")
    for words in (b"{", zeros(1 << 19), facts(K=None)):
        with pytest.raises(InputError, match=r"no JSON|more than|no intrinsics"):
            Intrinsics.from_file(packed(tmp_path / "x.r3d", members(metadata=words)), SHAPE)


@pytest.mark.parametrize("matrix", [None, [1, 2], ["a"] * 9, [0.0] * 9, [float("nan")] * 9])
def test_without_a_matrix_there_are_none(matrix, tmp_path):
    assert describe_recording(packed(tmp_path / "x.r3d", members(metadata=facts(K=matrix)))).intrinsics is None


@pytest.mark.parametrize(("sides", "shape"), [((960, 1280), (256, 192)), ((1280, 960), (192, 256))])
def test_the_size_of_an_older_recording_is_found(sides, shape, tmp_path):
    depth = liblzfse.compress(np.ones(shape, np.float32).tobytes())
    old = {"metadata": json.dumps({"w": sides[0], "h": sides[1]}).encode(), "rgbd/0.depth": depth}
    path = packed(tmp_path / "x.r3d", old, zipfile.ZIP_DEFLATED)
    assert next(read_recording(path)).image.values.shape == shape


def test_the_largest_older_depths_are_found_though_nothing_shortens_them(tmp_path):
    noise = np.random.default_rng(0).bytes(4 * 480 * 640)
    old = {"metadata": json.dumps({"w": 4, "h": 3}).encode(), "rgbd/0.depth": liblzfse.compress(noise)}
    path = packed(tmp_path / "x.r3d", old)
    assert describe_recording(path).shape == (480, 640)
    (frame,) = read_recording(path)
    shown = np.frombuffer(noise, "<f4").reshape(480, 640)
    np.testing.assert_array_equal(frame.image.values, np.where(shown > 0, shown, np.nan))


BROKEN: dict[str, Callable[[], dict[str, bytes]]] = {
    "no metadata": lambda: members(metadata=None),
    "metadata that are no JSON": lambda: members(metadata=b"{"),
    "metadata that are a list": lambda: members(metadata=b"[1]"),
    "metadata that nest": lambda: members(metadata=b"[" * 100_000),
    "no depths": lambda: {"metadata": facts()},
    "depths that are no LZFSE": lambda: members(**{"rgbd/0.depth": b"nothing"}),
    "depths that are cut": lambda: members(**{"rgbd/0.depth": members()["rgbd/0.depth"][:-40]}),
    "no bytes": lambda: members(**{"rgbd/0.depth": b""}),
    "another size": lambda: members(metadata=facts(dw=31)),
    "no size": lambda: members(metadata=facts(dw=0)),
    "an unknown size": lambda: members(metadata=facts(dw=None)),
    "confidences beyond high": lambda: members(**{"rgbd/0.conf": liblzfse.compress(bytes([7]) * 768)}),
    "confidences of another size": lambda: members(**{"rgbd/0.conf": liblzfse.compress(bytes(700))}),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_recordings_are_refused_in_a_sentence(what, tmp_path):
    path = packed(tmp_path / "x.r3d", BROKEN[what]())
    with pytest.raises(InputError, match=r"x\.r3d"):
        list(read_recording(path))


def test_files_that_are_no_archive_or_not_there(tmp_path):
    (tmp_path / "x.r3d").write_bytes(b"PK\x03\x04 and no more")
    for name in ("x.r3d", "y.r3d"):
        with pytest.raises(InputError, match=name):
            list(read_recording(tmp_path / name))


@pytest.mark.slow
@pytest.mark.parametrize(
    "files",
    [
        lambda: members(**{"rgbd/0.depth": zeros(1 << 28)}),
        lambda: members(metadata=b" " * (MAX_METADATA_BYTES + (1 << 26)) + facts()),
        lambda: members(metadata=facts(dw=1 << 20, dh=1 << 20)),
    ],
    ids=["depths that inflate", "long metadata", "a large size"],
)
def test_memory_is_bounded(files, tmp_path):
    """Files of a few kilobytes that would fill hundreds of megabytes."""
    path = packed(tmp_path / "x.r3d", files(), zipfile.ZIP_DEFLATED)
    tracemalloc.start()
    try:
        with pytest.raises((InputError, TooLargeError)):
            list(read_recording(path))
        assert tracemalloc.get_traced_memory()[1] < 3 * MAX_METADATA_BYTES
    finally:
        tracemalloc.stop()


def test_the_zeros_of_these_tests_are_what_they_say():
    assert liblzfse.decompress(zeros(1 << 20)) == bytes(1 << 20)


def test_compressions_without_a_limit_are_refused(tmp_path):
    path = packed(tmp_path / "x.r3d", members(), zipfile.ZIP_LZMA)
    with pytest.raises(InputError, match="unusual way"):
        list(read_recording(path))


def test_the_command_line_restores_it_over_time(rng, command, tmp_path):
    ramp = np.add.outer(np.zeros(24), np.linspace(1, 2, 32))
    files = {"metadata": facts()}
    for number in range(3):
        noisy = (ramp + 0.01 * rng.standard_normal(SHAPE)).astype(np.float32)
        files[f"rgbd/{number}.depth"] = liblzfse.compress(noisy.tobytes())
    path = packed(tmp_path / "walk.r3d", files)
    ended = command("stream", path, "-o", tmp_path / "out")
    assert ended.code == 0, ended.err
    assert len(list((tmp_path / "out").iterdir())) >= 3


def test_a_map_is_asked_for_elsewhere(command, tmp_path):
    path = packed(tmp_path / "walk.r3d", members())
    ended = command("denoise", path, "-o", tmp_path / "out.tiff")
    assert ended.code != 0
    assert "sparsedepth stream" in ended.err

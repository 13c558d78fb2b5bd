"""The frames of one file: zips, stacks and bags hold the same frames, and what is broken or lies is refused."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from bags import write_plain
from sparsedepth.files import read, write
from sparsedepth.files.frames import holds_frames, read_frames
from sparsedepth.vocabulary import InputError

FRAMES = [np.random.default_rng(seed).integers(0, 5000, (12, 16)).astype(np.uint16) for seed in range(3)]


def write_zip(path: Path, frames: list[np.ndarray]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, frame in reversed(list(enumerate(frames))):
            single = path.parent / "single.png"
            write(single, np.where(frame == 0, np.nan, frame), profile="mm")
            archive.write(single, f"walk/{number:04d}.png")
        archive.writestr("walk/._0000.png", b"what a Mac adds")
        archive.writestr("readme.txt", b"hello")


WRITERS = {
    "zip": ("frames.zip", write_zip),
    "npy": ("frames.npy", lambda path, frames: np.save(path, np.stack(frames))),
    "npz": ("frames.npz", lambda path, frames: np.savez_compressed(path, depth=np.stack(frames), stamp=np.arange(3))),
    "bag": ("frames", write_plain),
}


@pytest.mark.parametrize("kind", WRITERS)
def test_every_kind_holds_the_same_frames(tmp_path, kind):
    name, writer = WRITERS[kind]
    writer(tmp_path / name, FRAMES)
    assert holds_frames(tmp_path / name)
    found = list(read_frames(tmp_path / name))
    assert sorted(name for name, _ in found) == [name for name, _ in found]
    for (_, image), frame in zip(found, FRAMES, strict=True):
        assert image.unit == "mm"
        np.testing.assert_array_equal(np.nan_to_num(image.values), frame)


def test_one_map_is_one_frame(tmp_path):
    write(tmp_path / "a.npz", FRAMES[0].astype(np.float32), profile="m")
    assert not holds_frames(tmp_path / "a.npz")
    ((name, image),) = read_frames(tmp_path / "a.npz")
    assert name == "a"
    np.testing.assert_array_equal(image.values, read(tmp_path / "a.npz").values)


def test_a_profile_and_a_scale_hold_for_stacks(tmp_path):
    np.save(tmp_path / "a.npy", np.stack(FRAMES))
    images = [image for _, image in read_frames(tmp_path / "a.npy", "tum")]
    assert {image.unit for image in images} == {"m"}
    np.testing.assert_allclose(np.nanmax(images[0].values), FRAMES[0].max() / 5000)


def npy(shape: tuple[int, ...], data: bytes, fortran: bool = False) -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "<u2", "fortran_order": fortran, "shape": shape})
    return content.getvalue() + data


def bomb() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.pgm", b"P5 4 4 65535\n" + bytes(1 << 20))
    return content.getvalue()


HOSTILE = {
    "a stack that ends early": ("a.npy", npy((3, 4, 4), bytes(40)), "ends after"),
    "a stack that declares too much": ("a.npy", npy((2, 9000, 9000), b""), "budget"),
    "columns first": ("a.npy", npy((3, 4, 4), bytes(96), fortran=True), "by rows"),
    "a bomb": ("a.zip", bomb(), "longer than"),
    "no zip": ("a.zip", b"PK\x03\x04 and so on", "a.zip"),
    "an empty zip": ("a.zip", b"PK\x05\x06" + bytes(18), "no maps"),
    "no bag": ("a.bag", b"#ROSBAG V2.0\n and so on", "bag"),
    "no bag of ROS 2": ("a.mcap", b"\x89MCAP0\r\n", "bag"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_is_broken_or_lies_is_refused(tmp_path, case):
    name, content, words = HOSTILE[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=words):
        list(read_frames(tmp_path / name, most_pixels=10_000, most_bytes=80_000))


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("kind", ["zip", "npz"])
def test_files_cut_short_are_refused(tmp_path, kind, cut):
    name, writer = WRITERS[kind]
    writer(tmp_path / name, FRAMES)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: int(cut * len(content))])
    with pytest.raises(InputError):
        list(read_frames(tmp_path / name))

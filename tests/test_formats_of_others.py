"""Files of other programs: COLMAP, EXR with attributes, arrays of networks, confidences of phones, 7-Scenes."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from sparsedepth import InputError, Restoration, denoise
from sparsedepth.files import (
    DepthImage,
    confidence_variance,
    read,
    read_confidence,
    read_normals,
    write,
    write_normals,
)

DEPTH = np.array([[1.0, 2.5, np.nan], [4.0, 5.0, 60.0]], np.float32)
Y, X = np.mgrid[:24, :32]
SCENE = np.where((X < 4) & (Y < 3), np.nan, 1 + 0.02 * X + 0.01 * Y).astype(np.float32)
with_exr = pytest.mark.skipif(importlib.util.find_spec("OpenEXR") is None, reason="EXR needs the package OpenEXR")


# --- COLMAP ---------------------------------------------------------------------------------------------------------


def test_a_map_of_colmap_is_laid_out_as_its_own_scripts_read_it(tmp_path):
    write(tmp_path / "x.geometric.bin", DepthImage(DEPTH, ""))
    content = (tmp_path / "x.geometric.bin").read_bytes()
    width, height, channels, body = content.split(b"&", 3)
    assert (width, height, channels) == (b"3", b"2", b"1")
    columns = np.frombuffer(body, "<f4").reshape((3, 2), order="F")
    np.testing.assert_array_equal(columns.T, np.nan_to_num(DEPTH))
    again = read(tmp_path / "x.geometric.bin")
    np.testing.assert_array_equal(again.values, DEPTH)
    assert "0 = unknown" in again.assumed
    write(tmp_path / "y.bin", again)
    assert (tmp_path / "y.bin").read_bytes() == content
    with pytest.raises(InputError, match="known pixel holds 0"):
        write(tmp_path / "z.bin", np.zeros((2, 2)))


@given(arrays(np.float32, (3, 4, 3), elements=st.floats(0.125, 1, width=32)))
@settings(max_examples=20)
def test_normals_of_colmap_survive(tmp_path_factory, normals):
    path = tmp_path_factory.mktemp("normals") / "x.bin"
    normals[1, 2] = np.nan
    write_normals(path, normals)
    np.testing.assert_array_equal(read_normals(path), normals)
    content = path.read_bytes()
    width, height, channels, body = content.split(b"&", 3)
    assert (width, height, channels) == (b"4", b"3", b"3")
    theirs = np.frombuffer(body, "<f4").reshape((4, 3, 3), order="F").transpose(1, 0, 2)
    np.testing.assert_array_equal(theirs, np.nan_to_num(normals))
    with pytest.raises(InputError, match="read_normals"):
        read(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "does not begin"),
        (b"3&2&", "does not begin"),
        (b"3&2&2&" + bytes(48), "2 numbers a pixel"),
        (b"3&2&1&" + bytes(24), "not normals"),
        (b"3&2&3&" + bytes(24), "ends after"),
        (b"0&2&3&", "at least one"),
        (b"99999999&99999999&3&", "budget"),
    ],
)
def test_broken_normals_are_one_sentence(content, words, tmp_path):
    (tmp_path / "x.bin").write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_normals(tmp_path / "x.bin")
    with pytest.raises(InputError, match="height, width, 3"):
        write_normals(tmp_path / "y.bin", np.zeros((2, 2)))


# --- EXR ------------------------------------------------------------------------------------------------------------


@with_exr
def test_attributes_of_a_rendering_survive(tmp_path):
    import OpenEXR

    header = {
        "compression": OpenEXR.PIZ_COMPRESSION, "type": OpenEXR.scanlineimage, "owner": "studio", "focal": 35.0,
        "frame": 7, "capDate": "2024:05:01 10:00:00", "worldToCamera": np.eye(4, dtype=np.float32),
        "dataWindow": (np.array([5, 6], np.int32), np.array([36, 29], np.int32)),
        "displayWindow": (np.array([0, 0], np.int32), np.array([99, 79], np.int32)),
    }  # fmt: skip
    with OpenEXR.File(header, {"Z": np.nan_to_num(SCENE, nan=1e10)}) as file:
        file.write(str(tmp_path / "a.exr"))
    write(tmp_path / "b.exr", denoise(read(tmp_path / "a.exr", invalid=1e10), quality="fast", sensor="clean"))
    with OpenEXR.File(str(tmp_path / "a.exr"), header_only=True) as file:
        before = dict(file.header())
    with OpenEXR.File(str(tmp_path / "b.exr"), separate_channels=True) as file:
        after = dict(file.header())
        assert file.channels()["Z"].pixels.shape == SCENE.shape
    for name in ("owner", "focal", "frame", "capDate", "worldToCamera", "dataWindow", "displayWindow"):
        np.testing.assert_array_equal(after[name], before[name])


# --- arrays ---------------------------------------------------------------------------------------------------------

OTHERS = {
    "a network": {"depth": DEPTH[None], "confidence": DEPTH[None], "image": np.zeros((2, 3, 3))},
    "channels last": {"arr_0": DEPTH[..., None]},
    "named otherwise": {"depth_map": DEPTH, "K": np.eye(3), "mask": np.ones((2, 3))},
    "a prediction": {"pred_depth": DEPTH, "gt": DEPTH},
    "metres": {"depth_m": DEPTH, "variance": DEPTH},
}


@pytest.mark.parametrize("name", OTHERS)
def test_arrays_of_others_are_found_by_their_names(name, tmp_path):
    np.savez(tmp_path / "x.npz", **OTHERS[name])
    np.testing.assert_array_equal(read(tmp_path / "x.npz").values, DEPTH)
    assert read(tmp_path / "x.npz").unit == ("m" if name == "metres" else "")
    np.save(tmp_path / "x.npy", DEPTH[None])
    np.testing.assert_array_equal(read(tmp_path / "x.npy").values, DEPTH)


# --- codes and confidences ------------------------------------------------------------------------------------------


def test_7_scenes_has_a_code_of_its_own(tmp_path):
    stored = np.array([[1500, 65535, 0]], np.uint16)
    Image.fromarray(stored).save(tmp_path / "frame.depth.png")
    image = read(tmp_path / "frame.depth.png", "7-scenes")
    np.testing.assert_array_equal(image.values, [[1500, np.nan, np.nan]])
    assert image.unit == "mm"
    write(tmp_path / "again.png", image)
    with Image.open(tmp_path / "again.png") as picture:
        np.testing.assert_array_equal(np.asarray(picture), [[1500, 65535, 65535]])


@pytest.mark.slow
@pytest.mark.parametrize("codes", [(0, 1, 2), (0, 54, 255), (0, 127, 255)])
def test_confidences_become_variances(codes, tmp_path):
    levels = ((X + Y) % 3).astype(np.uint8)
    Image.fromarray(np.array(codes, np.uint8)[levels]).save(tmp_path / "conf.png")
    found = read_confidence(tmp_path / "conf.png")
    np.testing.assert_array_equal(found, levels)
    variance = confidence_variance(SCENE, found)
    known = np.isfinite(SCENE)
    assert np.isinf(variance[(levels == 0) | ~known]).all()
    np.testing.assert_allclose(np.sqrt(variance[known & (levels == 2)]), 0.01 * SCENE[known & (levels == 2)])
    result = denoise(DepthImage(SCENE, "m"), variance=variance, quality="fast")
    assert np.isfinite(result.depth[levels == 0]).mean() > 0.9, "what is not trusted is filled"


def test_confidences_on_the_command_line(command, tmp_path):
    for name in ("depth", "confidence"):
        (tmp_path / name).mkdir()
    levels = np.where(abs(X - 20) < 3, 0, 2).astype(np.uint8)
    Image.fromarray(np.nan_to_num(1000 * SCENE).astype(np.uint16)).save(tmp_path / "depth" / "000.png")
    Image.fromarray(levels).save(tmp_path / "confidence" / "000.png")
    words = ("--profile", "mm", "--quality", "fast", "--confidence", tmp_path / "confidence")
    ended = command("denoise", tmp_path / "depth", "-o", f"{tmp_path / 'out'}/", "--npz", *words)
    assert ended.code == 0, ended.err
    image = read(tmp_path / "depth" / "000.png", "mm")
    expected = denoise(image, variance=confidence_variance(image, levels), quality="fast")
    np.testing.assert_array_equal(Restoration.load(tmp_path / "out" / "000.npz").depth, expected.depth)
    both = ("--sensor-variance", tmp_path / "confidence" / "000.png")
    ended = command("denoise", tmp_path / "depth", "-o", f"{tmp_path / 'two'}/", *words, *both)
    assert ended.code == 2
    assert "twice" in ended.err


def test_what_is_no_confidence_is_a_sentence(tmp_path):
    Image.fromarray((X + Y).astype(np.uint8)).save(tmp_path / "x.png")
    with pytest.raises(InputError, match="confidences are 0, 1 and 2"):
        read_confidence(tmp_path / "x.png")
    with pytest.raises(InputError, match="one for each pixel"):
        confidence_variance(SCENE, np.zeros((2, 2), int))
    with pytest.raises(InputError, match="from 0 to 2"):
        confidence_variance(SCENE, np.full(SCENE.shape, 3))

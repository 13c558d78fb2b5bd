"""Points in space: where they are, which way they face, how sure they are, and the files that hold them."""

from __future__ import annotations

import importlib.util
import sys
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsedepth import DepthImage, InputError, Intrinsics, Match, Origin, PointCloud, Restoration, point_cloud

SHAPE = (24, 32)
CAMERA = Intrinsics(30.0, 28.0, 14.0, 12.5)


def read_ply(content: bytes) -> np.ndarray:
    """Read a binary PLY of vertices, written for these tests after the format's description."""
    head, _, body = content.partition(b"end_header\n")
    lines = head.decode().splitlines()
    assert lines[:2] == ["ply", "format binary_little_endian 1.0"]
    kinds = {"float": "<f4", "uchar": "u1"}
    words = [line.split() for line in lines]
    fields = [(word[2], kinds[word[1]]) for word in words if word[0] == "property"]
    count = next(int(word[2]) for word in words if word[:2] == ["element", "vertex"])
    assert len(body) == count * np.dtype(fields).itemsize
    return np.frombuffer(body, fields)


def read_pcd(content: bytes) -> np.ndarray:
    """Read a binary PCD in the same way."""
    head, _, body = content.partition(b"DATA binary\n")
    words = {line.split()[0]: line.split()[1:] for line in head.decode().splitlines() if not line.startswith("#")}
    sizes = zip(words["FIELDS"], words["TYPE"], words["SIZE"], strict=True)
    fields = [(name, f"<{kind.lower()}{size}") for name, kind, size in sizes]
    assert int(words["WIDTH"][0]) * int(words["HEIGHT"][0]) == int(words["POINTS"][0])
    assert len(body) == int(words["POINTS"][0]) * np.dtype(fields).itemsize
    return np.frombuffer(body, fields)


def plane(normal: np.ndarray, distance: float) -> np.ndarray:
    """Depth of a plane ``normal . point = -distance``, seen from the origin; NaN where it is not seen."""
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    rays = np.stack([(x - CAMERA.cx) / CAMERA.fx, (y - CAMERA.cy) / CAMERA.fy, np.ones(SHAPE)], axis=-1)
    depth = -distance / (rays @ normal)
    return np.where((depth > 0) & (depth < 100 * distance), depth, np.nan)


@given(st.integers(0, 2**32 - 1), st.floats(0, 0.5))
@settings(max_examples=30)
def test_projecting_back_gives_the_pixel_and_the_depth(seed, holes):
    rng = np.random.default_rng(seed)
    depth = rng.uniform(0.3, 9, SHAPE).astype(np.float32)
    depth[rng.random(SHAPE) < holes] = np.nan
    cloud = point_cloud(DepthImage(depth, "m"), CAMERA)
    rows, columns = cloud.pixels.T
    np.testing.assert_array_equal(cloud.pixels, np.argwhere(np.isfinite(depth)), "row by row")
    np.testing.assert_array_equal(cloud.points[:, 2], depth[rows, columns])
    np.testing.assert_allclose(CAMERA.project(cloud.points), np.stack([columns, rows], 1), atol=1e-4)


@given(st.floats(-1.0, 1.0), st.floats(0, 2 * np.pi), st.floats(0.5, 20))
@settings(max_examples=30)
def test_a_tilted_plane_has_its_normal(tilt, turn, distance):
    normal = np.array([np.sin(tilt) * np.cos(turn), np.sin(tilt) * np.sin(turn), -np.cos(tilt)])
    cloud = point_cloud(plane(normal, distance), CAMERA)
    found = cloud.normals[np.isfinite(cloud.normals).all(1)]
    assert len(found) > 0.5 * len(cloud)
    cosines = found @ normal
    assert (cosines > 0.9999).mean() > 0.9, "a few see the plane at a grazing angle"


def test_a_step_has_the_normals_of_its_walls():
    """No normal is a mixture of two surfaces."""
    depth = np.where(np.arange(SHAPE[1]) < 16, 1.0, 3.0) * np.ones(SHAPE)
    cloud = point_cloud(depth, Intrinsics(300.0, 300.0, 16.0, 12.0), variance=np.full(SHAPE, 1e-6))
    np.testing.assert_allclose(cloud.normals, np.tile([0, 0, -1.0], (len(cloud), 1)), atol=1e-6)


def test_lines_of_pixels_have_no_normal():
    depth = np.full(SHAPE, np.nan)
    depth[10], depth[2, 2] = 2.0, 2.0
    assert np.isnan(point_cloud(depth, CAMERA).normals).all()


def test_normals_of_noise_scatter_less_than_differences():
    normal = np.array([0.3, 0.2, -0.93]) / np.linalg.norm([0.3, 0.2, 0.93])
    noisy = plane(normal, 2.0) + 0.01 * np.random.default_rng(0).standard_normal(SHAPE)
    cloud = point_cloud(noisy, CAMERA, variance=np.full(SHAPE, 1e-4))
    angles = np.degrees(np.arccos(np.clip(cloud.normals @ normal, -1, 1)))
    assert np.nanmedian(angles) < 3


@pytest.mark.slow
def test_the_standard_deviation_is_along_the_ray():
    """Depths that vary by so much move points by so much."""
    rng = np.random.default_rng(1)
    mean, std = 2.0, 0.05
    cloud = point_cloud(np.full(SHAPE, mean), CAMERA, variance=np.full(SHAPE, std**2), unit="m")
    drawn = np.stack(
        [point_cloud(mean + std * rng.standard_normal(SHAPE), CAMERA, unit="m").points for _ in range(400)]
    )
    lengths = np.linalg.norm(drawn - drawn.mean(0), axis=2)
    np.testing.assert_allclose(np.sqrt((lengths**2).mean(0)), cloud.std, rtol=0.15)
    corner = cloud.covariance[0]
    np.testing.assert_allclose(np.cov(drawn[:, 0].T), corner, rtol=0.2)
    np.testing.assert_allclose(np.trace(corner), cloud.std[0] ** 2, rtol=1e-5)


def result() -> Restoration:
    rng = np.random.default_rng(2)
    depth = rng.uniform(500, 900, SHAPE).astype(np.float32)
    variance, origin = rng.uniform(1, 9, SHAPE).astype(np.float32), rng.integers(0, 3, SHAPE).astype(np.uint8)
    depth[3, 4:9], variance[3, 4:9], origin[3, 4:9] = np.nan, np.inf, Origin.REFUSED
    return Restoration(depth, variance, origin, unit="mm")


@pytest.mark.parametrize("colour", [None, "grey", "colour", "16 bits", "floats"])
@pytest.mark.parametrize("suffix", [".ply", ".pcd"])
def test_files_hold_every_point(suffix, colour, tmp_path):
    picture = np.random.default_rng(3).integers(0, 256, (*SHAPE, 3)).astype(np.uint8)
    given = {"grey": picture[..., 0], "colour": picture, "16 bits": picture * np.uint16(257), "floats": picture / 255}
    source = result()
    cloud = point_cloud(source, CAMERA, None if colour is None else given[colour])
    cloud.write(tmp_path / f"x{suffix}")
    content = (tmp_path / f"x{suffix}").read_bytes()
    rows = (read_ply if suffix == ".ply" else read_pcd)(content)
    assert b"in mm" in content[:300]
    known = np.isfinite(source.depth)
    np.testing.assert_array_equal(rows["z"], source.depth[known])
    np.testing.assert_array_equal(np.stack([rows[n] for n in "xyz"], 1), cloud.points)
    names = ("nx", "ny", "nz") if suffix == ".ply" else ("normal_x", "normal_y", "normal_z")
    np.testing.assert_array_equal(np.stack([rows[n] for n in names], 1), cloud.normals)
    np.testing.assert_array_equal(rows["std"], cloud.std)
    np.testing.assert_array_equal(rows["origin"], source.origin[known])
    if colour is not None:
        expected = picture[known] if colour != "grey" else np.repeat(picture[known][:, :1], 3, 1)
        if suffix == ".ply":
            found = np.stack([rows[n] for n in ("red", "green", "blue")], 1)
        else:
            packed = rows["rgb"].copy().view("<u4")
            found = np.stack([packed >> 16 & 255, packed >> 8 & 255, packed & 255], 1)
        np.testing.assert_array_equal(found, expected)


def test_uncertain_points_are_left_out():
    whole = point_cloud(result(), CAMERA)
    some = point_cloud(result(), CAMERA, max_std=2.5)
    assert 0 < len(some) < len(whole)
    np.testing.assert_array_equal(some.points, whole.points[whole.std <= 2.5])
    assert len(point_cloud(np.ones(SHAPE), CAMERA, max_std=9)) == 0, "nothing is known of these"


def test_units_convert_and_are_never_guessed():
    cloud = point_cloud(result(), CAMERA)
    metres = cloud.to("m")
    np.testing.assert_allclose(metres.points, cloud.points / 1000, rtol=1e-6)
    np.testing.assert_allclose(metres.std, cloud.std / 1000, rtol=1e-6)
    with pytest.raises(InputError, match="unknown unit"):
        point_cloud(np.ones(SHAPE), CAMERA).to("m")
    with pytest.raises(InputError, match="in mm and unit"):
        point_cloud(result(), CAMERA, unit="m")


def test_inverse_depth_is_turned_into_depth():
    depth = np.random.default_rng(4).uniform(1, 3, SHAPE).astype(np.float32)
    inverse = Restoration(1 / depth, 1e-4 / depth**4, np.zeros(SHAPE, np.uint8), "1/m", "inverse depth")
    cloud = point_cloud(inverse, CAMERA)
    assert cloud.unit == "m"
    np.testing.assert_allclose(cloud.points[:, 2], depth.ravel(), rtol=1e-5)
    np.testing.assert_allclose(cloud.std / np.linalg.norm(cloud.points, axis=1) * depth.ravel(), 0.01, rtol=1e-4)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: point_cloud(Match(np.ones(SHAPE), np.ones(SHAPE), np.zeros(SHAPE, np.uint8)), CAMERA), "disparities"),
        (lambda: point_cloud(DepthImage(np.ones(SHAPE), "px", "disparity"), CAMERA), "disparities"),
        (
            lambda: point_cloud(np.ones(SHAPE), None),  # pyright: ignore[reportArgumentType]
            "needs the intrinsics",
        ),
        (lambda: point_cloud(np.ones(SHAPE), CAMERA, np.zeros((2, 2, 3), np.uint8)), "same view"),
        (lambda: point_cloud(np.ones(SHAPE), CAMERA, np.full(SHAPE, 2.0)), "not within"),
        (lambda: point_cloud(np.ones(SHAPE), CAMERA, variance=np.ones(3)), "one for each pixel"),
        (lambda: point_cloud(np.ones(SHAPE), CAMERA, variance=-np.ones(SHAPE)), "none below 0"),
        (lambda: point_cloud(np.ones(SHAPE), CAMERA).write("x.stl"), r"\.ply or \.pcd"),
    ],
)
def test_what_makes_no_cloud_is_a_sentence(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_open3d_takes_a_cloud(monkeypatch):
    cloud = point_cloud(result(), CAMERA, np.full((*SHAPE, 3), 51, np.uint8))
    if importlib.util.find_spec("open3d") is None:
        with pytest.raises(InputError, match="install"):
            cloud.to_open3d()
        fake = types.SimpleNamespace(
            geometry=types.SimpleNamespace(PointCloud=types.SimpleNamespace),
            utility=types.SimpleNamespace(Vector3dVector=lambda rows: rows),
        )
        monkeypatch.setitem(sys.modules, "open3d", fake)
    made = cloud.to_open3d()
    np.testing.assert_array_equal(np.asarray(made.points), cloud.points.astype(float))
    np.testing.assert_array_equal(np.asarray(made.normals), cloud.normals.astype(float))
    np.testing.assert_array_equal(np.asarray(made.colors), 0.2)


def test_a_cloud_says_what_it_is():
    assert repr(point_cloud(result(), CAMERA)) == "PointCloud(763 points in mm, normals, std)"
    assert isinstance(point_cloud(result(), CAMERA).select(slice(0, 5)), PointCloud)

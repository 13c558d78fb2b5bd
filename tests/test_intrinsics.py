"""Intrinsics from numbers and from the files of cameras; every reader against hostile files."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from sparsedepth import InputError, Intrinsics
from sparsedepth.geometry import intrinsics_from
from sparsedepth.input_warnings import InputWarning

AZURE = {
    "CalibrationInformation": {
        "Cameras": [
            {
                "Location": location,
                "Intrinsics": {"ModelParameters": [*centre_and_focal, 3.13, 2.32, 0.13, 3.46, 3.35, 0.66, 0, 0, 0, 0]},
            }
            for location, centre_and_focal in (
                (
                    "CALIBRATION_CameraLocationD0",
                    (0.5122697949409485, 0.49451231956481934, 0.4921168386936188, 0.4921667277812958),
                ),
                (
                    "CALIBRATION_CameraLocationPV0",
                    (0.4967627227306366, 0.5108628273010254, 0.470907062292099, 0.6274453997612),
                ),
            )
        ]
    }
}
"""A camera whose numbers in pixels, as its own library gives them, are published."""
CAMERA_INFO = """image_width: 640
image_height: 480
camera_name: depth
camera_matrix:
  rows: 3
  cols: 3
  data: [600.0, 0.0, 300.0, 0.0, 610.0, 250.0, 0.0, 0.0, 1.0]
distortion_model: plumb_bob
distortion_coefficients:
  rows: 1
  cols: 5
  data: [0.1, -0.2, 0.0, 0.0, 0.0]
"""
PROJECTION = """projection_matrix:
  rows: 3
  cols: 4
  data: [500.0, 0.0, 320.0, 0.0, 0.0, 510.0, 240.0, 0.0, 0.0, 0.0, 1.0, 0.0]
"""
TOPIC = """header:
  frame_id: camera
height: 480
width: 640
distortion_model: plumb_bob
d:
- 0.0
- 0.0
k:
- 500.0
- 0.0
- 320.0
- 0.0
- 510.0
- 240.0
- 0.0
- 0.0
- 1.0
"""
MATRIX = "500 0 320\n0 510 240\n0 0 1\n"
EXPECTED = (500.0, 510.0, 320.0, 240.0)
FILES = {
    "numbers.txt": "# fx fy cx cy\n500 510 320 240\n",
    "matrix.txt": MATRIX,
    "four.txt": "500 0 320 0\n0 510 240 0\n0 0 1 0\n0 0 0 1\n",
    "camera_info.yaml": CAMERA_INFO + PROJECTION,
    "topic.yaml": TOPIC,
    "echo.yaml": "height: 480\nwidth: 640\nK: [500.0, 0.0, 320.0, 0.0, 510.0, 240.0, 0.0, 0.0, 1.0]\n",
    "opencv.yml": "%YAML:1.0\n---\nK: !!opencv-matrix\n   rows: 3\n   cols: 3\n   dt: d\n"
    "   data: [ 500., 0., 320., 0., 510., 240., 0., 0., 1. ]\n",
    "TUM3.yaml": "%YAML:1.0\nCamera.fx: 500.0\nCamera.fy: 510.0\nCamera.cx: 320.0\nCamera.cy: 240.0\nCamera.k1: 0.0\n",
    "calib.txt": "cam0=[500 0 320; 0 510 240; 0 0 1]\ncam1=[500 0 351; 0 510 240; 0 0 1]\ndoffs=31\nbaseline=193\n"
    "width=640\nheight=480\n",
    "realsense.json": {
        "depth": {"width": 640, "height": 480, "fx": 500.0, "fy": 510.0, "ppx": 320.0, "ppy": 240.0, "coeffs": [0] * 5},
        "color": {"width": 640, "height": 480, "fx": 615.0, "fy": 615.0, "ppx": 320.0, "ppy": 240.0},
    },
    "open3d.json": {"width": 640, "height": 480, "intrinsic_matrix": [500, 0, 0, 0, 510, 0, 320, 240, 1]},
    "rows.json": {"camera_matrix": [[500, 0, 320], [0, 510, 240], [0, 0, 1]]},
    "calib_cam_to_cam.txt": "calib_time: 09-Jan-2012 13:57:47\nK_02: 9.6e+02 0 7.0e+02 0 9.6e+02 2.2e+02 0 0 1\n"
    "P_rect_00: 1.0 0 1 0 0 1 1 0 0 0 1 0\nP_rect_02: 5.0e+02 0 3.2e+02 44.9 0 5.1e+02 2.4e+02 0.2 0 0 1 0.003\n",
    "kitti-object.txt": "P0: 1.0 0 1 0 0 1 1 0 0 0 1 0\nP2: 500 0 320 45 0 510 240 -0.3 0 0 1 0.005\n",
    "cameras.txt": "# Camera list\n1 PINHOLE 640 480 500 510 320.5 240.5\n",
}


def written(folder, name, content):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize("name", FILES)
def test_every_file_gives_the_same_camera(name, tmp_path):
    path = written(tmp_path, name, FILES[name])
    assert Intrinsics.from_file(path) == Intrinsics(*EXPECTED)
    assert intrinsics_from(str(path)) == Intrinsics(*EXPECTED)


@pytest.mark.parametrize("name", [name for name, content in FILES.items() if "480" in str(content)])
def test_a_map_of_half_the_size_has_half_the_focal_length(name, tmp_path):
    half = Intrinsics.from_file(written(tmp_path, name, FILES[name]), shape=(240, 320))
    assert half == Intrinsics(250.0, 255.0, 159.75, 119.75)
    with pytest.raises(InputError, match="cut, not resized"):
        Intrinsics.from_file(tmp_path / name, shape=(480, 320))


def test_resizing_keeps_what_a_pixel_sees():
    """The corners of a picture are seen at the same angles, whatever its resolution."""
    camera = Intrinsics(500.0, 510.0, 300.0, 200.0)
    small = camera.resized((480, 640), (120, 160))
    for corner, other in (((-0.5, -0.5), (-0.5, -0.5)), ((639.5, 479.5), (159.5, 119.5))):
        assert (corner[0] - camera.cx) / camera.fx == pytest.approx((other[0] - small.cx) / small.fx)
        assert (corner[1] - camera.cy) / camera.fy == pytest.approx((other[1] - small.cy) / small.fy)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((576, 640), (503.927643, 503.978729, 332.064270, 325.880615)),
        ((1080, 1920), (904.141541, 903.521362, 953.284424, 555.142456)),
        ((288, 320), (503.927643 / 2, 503.978729 / 2, (332.064270 + 0.5) / 2 - 0.5, (325.880615 + 0.5) / 2 - 0.5)),
    ],
)
def test_the_modes_of_an_azure_kinect(shape, expected, tmp_path):
    path = written(tmp_path, "calibration.json", AZURE)
    with pytest.warns(InputWarning, match="distortion"):
        found = Intrinsics.from_file(path, shape)
    assert (found.fx, found.fy, found.cx, found.cy) == pytest.approx(expected, abs=1e-4)
    for other, words in (((480, 640), "no mode"), (None, "give shape")):
        with pytest.raises(InputError, match=words):
            Intrinsics.from_file(path, other)


def test_distortion_that_is_not_applied_is_said(tmp_path):
    with pytest.warns(InputWarning, match="distortion"):
        assert Intrinsics.from_file(written(tmp_path, "raw.yaml", CAMERA_INFO)).fx == 600


def test_the_focal_length_of_a_photograph(tmp_path):
    exif = Image.Exif()
    exif.get_ifd(0x8769)[41989] = 26
    Image.new("RGB", (400, 300)).save(tmp_path / "x.jpg", exif=exif)
    found = Intrinsics.from_file(tmp_path / "x.jpg")
    assert (found.cx, found.cy) == (199.5, 149.5)
    assert found.fx == found.fy == pytest.approx(26 / 43.267 * 500)
    Image.new("RGB", (400, 300)).save(tmp_path / "none.jpg")
    with pytest.raises(InputError, match="no focal length"):
        Intrinsics.from_file(tmp_path / "none.jpg")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("1,2,3", "four numbers"),
        ("0,2,3,4", "positive focal"),
        ("nowhere.yaml", "no such file"),
        ((1, 2, 3), "Intrinsics"),
        (3.0, "Intrinsics"),
    ],
)
def test_what_is_no_camera_is_a_sentence(given, words):
    with pytest.raises(InputError, match=words):
        intrinsics_from(given)


def test_names_of_data_sets():
    assert intrinsics_from("7-scenes") == Intrinsics(585, 585, 320, 240)
    half = intrinsics_from("tum-fr3", (240, 320))
    assert half is not None
    assert half.fx == 535.4 / 2


def test_a_matrix_and_back():
    camera = Intrinsics(500, 510, 320, 240)
    assert Intrinsics.from_matrix(camera.matrix) == camera
    for wrong in (np.eye(2), np.ones((3, 3)), "x"):
        with pytest.raises(InputError, match="camera matrix"):
            Intrinsics.from_matrix(wrong)


HOSTILE = {
    "several.json": '{"a": {"fx": 1, "fy": 1, "cx": 1, "cy": 1}, "b": {"fx": 2, "fy": 1, "cx": 1, "cy": 1}}',
    "deep.json": "[" * 100_000,
    "nested.json": '{"a":' * 900 + "1" + "}" * 900,
    "long.json": '{"K": [' + "1," * 50_000 + "1]}",
    "texts.json": '{"fx": "1", "fy": true, "cx": null, "cy": 1}',
    "azure.json": '{"CalibrationInformation": [1]}',
    "infinite.json": '{"fx": 1e999, "fy": 1, "cx": 1, "cy": 1}',
    "matrices.yaml": "camera_matrix:\n" * 15_000,
    "digits.yaml": "K: [" + "9" * 200_000,
    "dashes.yaml": "K:\n" + "- 1\n" * 50_000,
    "bomb.yaml": "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n",
    "large.txt": "1 " * 200_000,
    "bytes.txt": "\udcff",
    "empty.txt": "",
    "singular.txt": "0 0 0 0",
    "cameras.txt": "1 PINHOLE 640 480 500",
    "photo.jpg": "no picture",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_one_sentence(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(HOSTILE[name].encode(errors="surrogateescape"))
    with pytest.raises(InputError) as caught:
        Intrinsics.from_file(path, shape=(576, 640))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_files_are_read_or_refused_but_never_crash(name, data, tmp_path):
    content = bytearray(written(tmp_path, name, FILES[name]).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / name).write_bytes(content[: data.draw(st.integers(len(content) // 2, len(content)))])
    with contextlib.suppress(InputError):
        assert Intrinsics.from_file(tmp_path / name).fx > 0

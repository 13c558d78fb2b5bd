"""Read the calibration files of cameras: text, YAML, JSON and EXIF data, without their libraries.

Only what is needed is searched for in a file, which is at most 256 kB of text.
"""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from sparsedepth.geometry.calibration_json import from_json
from sparsedepth.geometry.camera_file import CameraFile, from_matrix
from sparsedepth.vocabulary import InputError

__all__ = ["CameraFile", "NamedNumbers", "read_camera", "read_text"]

MAX_BYTES = 1 << 18
MAX_LIST_LETTERS = 1000
"""Most letters between the name of a matrix and the end of its numbers."""
RECORDING = ".r3d"
PHOTOS = (".jpg", ".jpeg", ".png", ".tif", ".tiff", ".webp")
FILM_DIAGONAL_MM = 43.267
"""Of 35 mm film, which equivalent focal lengths refer to."""
EXIF_IFD, FOCAL_MM, FOCAL_35MM = 0x8769, 37386, 41989
RESOLUTION_X, RESOLUTION_Y, RESOLUTION_UNIT = 41486, 41487, 41488
UNIT_MM = {2: 25.4, 3: 10.0, 4: 1.0, 5: 0.001}
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_LIST = re.compile(r"\s*(\[[^\]]{0,1000}\]|(?:\s*-\s+[-+.\deE]+)+)")


def read_camera(path: Path, shape: tuple[int, int] | None) -> CameraFile:
    """Read the camera of a calibration file; ``shape`` chooses the mode of cameras that have several."""
    if not os.path.isfile(path):
        raise InputError(f"there is no file {path}")
    try:
        if path.suffix.lower() in PHOTOS:
            return _from_exif(path)
        if path.suffix.lower() == RECORDING:
            return from_json(_words_of_recording(path), shape)
        return _from_content(read_text(path), path.suffix.lower(), shape)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _words_of_recording(path: Path) -> str:
    """Return the facts of a recording of Record3D, which begin with its camera."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open("metadata") as file:
            content = file.read(MAX_BYTES + 1)
    except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError, zlib.error, EOFError):
        raise InputError("it is no recording of Record3D, or it is not whole") from None
    if len(content) > MAX_BYTES:
        raise InputError(f"its facts have more than {MAX_BYTES} bytes; they hold no camera")
    return content.decode(errors="replace")


def read_text(path: Path) -> str:
    """Read a calibration file of text; refuse what is too large or no text."""
    if path.stat().st_size > MAX_BYTES:
        raise InputError(f"it has {path.stat().st_size} bytes; a calibration has at most {MAX_BYTES}")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("it is no text; give a calibration file (YAML, JSON, txt) or a photograph") from None


def _from_content(text: str, suffix: str, shape: tuple[int, int] | None) -> CameraFile:
    if suffix == ".json" or text.lstrip().startswith("{"):
        return from_json(text, shape)
    for reader in (_from_middlebury, _from_orb_slam, _from_camera_info, _from_colmap, _from_kitti, _from_numbers):
        found = reader(text)
        if found is not None:
            return found
    raise InputError("it holds no intrinsics in a form that is known; give FX,FY,CX,CY in pixels instead")


@dataclass(frozen=True)
class NamedNumbers:
    """Named numbers of a text: ``name: 1.5`` or ``name=1.5`` at the beginning of lines."""

    text: str

    def number(self, name: str) -> float | None:
        """Return the number of a name; None if there is none."""
        found = re.search(rf"^\s*{re.escape(name)}\s*[:=]\s*({_NUMBER.pattern})\s*$", self.text, re.MULTILINE)
        return None if found is None else float(found[1])

    def shape(self, prefix: str = "") -> tuple[int, int] | None:
        """Return height and width; None if one is missing."""
        sizes = [self.number(f"{prefix}{name}") for name in ("height", "width")]
        found = [int(size) for size in sizes if size is not None and size >= 1]
        return (found[0], found[1]) if len(found) == 2 else None

    def numbers(self, *names: str) -> list[float]:
        """Return the list after the first of these names; an OpenCV matrix lists its own after ``data``."""
        for name in names:
            found = re.search(rf"^\s*{name}\s*:", self.text, re.MULTILINE)
            if found is None:
                continue
            rest = self.text[found.end() : found.end() + MAX_LIST_LETTERS]
            at = rest.find("data:")
            numbers = _LIST.match(rest if _LIST.match(rest) else rest[at + 5 :] if at >= 0 else "")
            if numbers is not None:
                return [float(number) for number in _NUMBER.findall(numbers[1])]
        return []


def _from_middlebury(text: str) -> CameraFile | None:
    """Read calib.txt: ``cam0=[fx 0 cx; 0 fy cy; 0 0 1]``, of the left view."""
    found = re.search(r"^cam0\s*=\s*\[([^\]]{0,200})\]", text, re.MULTILINE)
    if found is None:
        return None
    return from_matrix([float(number) for number in _NUMBER.findall(found[1])], NamedNumbers(text).shape())


def _from_orb_slam(text: str) -> CameraFile | None:
    """Read settings of ORB-SLAM, the way TUM's cameras are often given: ``Camera.fx: 535.4``."""
    values = NamedNumbers(text)
    for prefix in ("Camera.", "Camera1.", ""):
        numbers = [values.number(f"{prefix}{name}") for name in ("fx", "fy", "cx", "cy")]
        fx, fy, cx, cy = numbers
        if fx is not None and fy is not None and cx is not None and cy is not None:
            distorted = any(values.number(f"{prefix}{name}") for name in ("k1", "k2", "p1", "p2", "k3"))
            return CameraFile((fx, fy, cx, cy), values.shape(prefix), distorted)
    return None


def _from_camera_info(text: str) -> CameraFile | None:
    """Read camera_info: the projection of rectified pictures, or the camera matrix where there is none."""
    values = NamedNumbers(text)
    shape = values.shape("image_") or values.shape()
    p = values.numbers("projection_matrix", "P", "p")
    if len(p) == 12 and p[0] > 0:
        return CameraFile((p[0], p[5], p[2], p[6]), shape)
    k = values.numbers("camera_matrix", "K", "k", "cameraMatrix", "intrinsic_matrix")
    if not k:
        return None
    distorted = any(values.numbers("distortion_coefficients", "D", "d", "distCoeffs"))
    return from_matrix(k, shape, distorted)


def _from_colmap(text: str) -> CameraFile | None:
    """Read the first camera of cameras.txt; COLMAP's first pixel has its centre at 0.5."""
    found = re.search(r"^\d+ (SIMPLE_)?(PINHOLE|RADIAL|OPENCV) (\d+) (\d+) ([-+.\deE ]+)$", text, re.MULTILINE)
    if found is None:
        return None
    numbers = [float(number) for number in _NUMBER.findall(found[5])]
    one_focal = found[1] is not None or found[2] == "RADIAL"
    needed = 3 if one_focal else 4
    if len(numbers) < needed:
        raise InputError(f"its camera has {len(numbers)} numbers; {found[2]} has at least {needed}")
    fx, fy, cx, cy = (numbers[0], *numbers[:3]) if one_focal else numbers[:4]
    return CameraFile((fx, fy, cx - 0.5, cy - 0.5), (int(found[4]), int(found[3])), any(numbers[needed:]))


def _from_kitti(text: str) -> CameraFile | None:
    """Read KITTI's projection of the left colour camera, which its depth maps are seen by; or that of camera 0."""
    for name in ("P_rect_02", "P2", "P_rect_00", "P0"):
        found = re.search(rf"^{name}:([-+.\deE ]+)$", text, re.MULTILINE)
        p = _NUMBER.findall(found[1]) if found else []
        if len(p) == 12:
            return CameraFile((float(p[0]), float(p[5]), float(p[2]), float(p[6])))
    return None


def _from_numbers(text: str) -> CameraFile | None:
    """Read fx, fy, cx and cy, or a matrix of three or four rows."""
    plain = re.sub(r"#[^\n]*", "", text)
    if re.search(r"[^-+.\deE,;\s\[\]]", plain):
        return None
    numbers = [float(number) for number in _NUMBER.findall(plain)]
    if len(numbers) == 4:
        return CameraFile((numbers[0], numbers[1], numbers[2], numbers[3]))
    if len(numbers) == 16:
        numbers = [*numbers[:3], *numbers[4:7], *numbers[8:11]]
    return from_matrix(numbers) if len(numbers) == 9 else None


def _from_exif(path: Path) -> CameraFile:
    """Read the focal length of a photograph; its principal point is taken to be the centre."""
    try:
        with Image.open(path) as picture:
            width, height, exif = picture.width, picture.height, dict(picture.getexif().get_ifd(EXIF_IFD))
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, ValueError, SyntaxError):
        raise InputError("it is no photograph that can be read; give FX,FY,CX,CY in pixels instead") from None
    try:
        focal = _focal_px(exif, (height, width))
    except (TypeError, ValueError, ZeroDivisionError):
        focal = None
    if focal is None:
        raise InputError("its EXIF data has no focal length; give FX,FY,CX,CY in pixels instead")
    return CameraFile((*focal, (width - 1) / 2, (height - 1) / 2), (height, width))


def _focal_px(exif: dict[int, object], shape: tuple[int, int]) -> tuple[float, float] | None:
    def number(tag: int) -> float:
        return float(exif.get(tag, 0))  # pyright: ignore[reportArgumentType]

    unit = UNIT_MM.get(int(number(RESOLUTION_UNIT)) or 2)
    if unit is not None and number(FOCAL_MM) > 0 and min(number(RESOLUTION_X), number(RESOLUTION_Y)) > 0:
        return number(FOCAL_MM) * number(RESOLUTION_X) / unit, number(FOCAL_MM) * number(RESOLUTION_Y) / unit
    if number(FOCAL_35MM) > 0:
        focal = number(FOCAL_35MM) / FILM_DIAGONAL_MM * (shape[0] ** 2 + shape[1] ** 2) ** 0.5
        return focal, focal
    return None

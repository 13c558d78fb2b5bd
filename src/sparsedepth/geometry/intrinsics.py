"""Intrinsics of a pinhole camera: focal lengths and principal point."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from math import radians, tan
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from sparsedepth.geometry.calibration_files import CameraFile, read_camera
from sparsedepth.input_warnings import InputWarning
from sparsedepth.vocabulary import Floats, InputError

KNOWN_CAMERAS = {
    "7-scenes": (585.0, 585.0, 320.0, 240.0),
    "kinect": (525.0, 525.0, 319.5, 239.5),
    "tum": (525.0, 525.0, 319.5, 239.5),
    "tum-fr1": (517.3, 516.5, 318.6, 255.3),
    "tum-fr2": (520.9, 521.0, 325.1, 249.7),
    "tum-fr3": (535.4, 539.2, 320.1, 247.6),
}
"""Name -> fx, fy, cx, cy of data sets whose frames come without a calibration file, 640 x 480 pixels."""
KNOWN_SHAPE = (480, 640)
MAX_ASPECT_CHANGE = 0.02
"""Largest relative difference of the scales of rows and columns: a map of half the size has rounded sides."""


@dataclass(frozen=True)
class Intrinsics:
    """Focal lengths and principal point of a pinhole camera, in pixels.

    Parameters
    ----------
    fx, fy
        Focal lengths along rows and columns, positive.
    cx, cy
        Column and row of the principal point; the centre of the first pixel is 0.

    Examples
    --------
    >>> Intrinsics(585.0, 585.0, 320.0, 240.0).fx
    585.0
    """

    fx: float
    fy: float
    cx: float
    cy: float

    def __post_init__(self) -> None:
        numbers = astuple(self)
        if not np.isfinite(numbers).all() or min(self.fx, self.fy) <= 0:
            raise InputError(f"the intrinsics are {numbers}; give positive focal lengths and a principal point in px")

    @classmethod
    def from_file(cls, path: str | Path, shape: tuple[int, int] | None = None) -> Intrinsics:
        """Read the intrinsics of a calibration file.

        Lens distortion is not applied: where the file has some, an `InputWarning` says so.

        Parameters
        ----------
        path
            YAML: camera_info of ROS or OpenCV, settings of ORB-SLAM. JSON: RealSense, Azure Kinect, Open3D or Record3D.
            Text: calib.txt of Middlebury, cameras.txt of COLMAP, four numbers, or a 3 x 3 matrix. Or a photograph with
            EXIF data.
        shape
            Height and width of the map. Intrinsics of another resolution are scaled to it. The raw calibration of an
            Azure Kinect needs it.

        Returns
        -------
        Intrinsics
            In pixels of the map.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "calib.txt"
        >>> _ = path.write_text("cam0=[1000 0 319.5; 0 1000 239.5; 0 0 1]\\nwidth=640\\nheight=480\\n")
        >>> Intrinsics.from_file(path, shape=(240, 320))
        Intrinsics(fx=500.0, fy=500.0, cx=159.5, cy=119.5)
        """
        found = read_camera(Path(path), shape)
        if found.distorted:
            message = f"{path} has lens distortion, which is not applied; undistort the map for exact points"
            warnings.warn(message, InputWarning, stacklevel=2)
        return cls._scaled(found, shape, str(path))

    @classmethod
    def _scaled(cls, found: CameraFile, shape: tuple[int, int] | None, source: str) -> Intrinsics:
        intrinsics = cls(*found.numbers)
        if shape is None or found.shape is None or tuple(shape) == found.shape:
            return intrinsics
        try:
            return intrinsics.resized(found.shape, shape)
        except InputError as error:
            raise InputError(f"{source}: {error}") from None

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Intrinsics:
        """Return the intrinsics of a camera matrix, (3, 3).

        >>> Intrinsics.from_matrix([[500, 0, 319.5], [0, 500, 239.5], [0, 0, 1]]).cy
        239.5
        """
        try:
            k = np.asarray(matrix, float)
        except (TypeError, ValueError):
            k = np.empty(0)
        if k.shape != (3, 3) or k[2, 2] != 1 or np.any(k[[1, 2, 2], [0, 0, 1]]):
            raise InputError(f"the camera matrix has shape {k.shape}; give [[fx, 0, cx], [0, fy, cy], [0, 0, 1]]")
        return cls(float(k[0, 0]), float(k[1, 1]), float(k[0, 2]), float(k[1, 2]))

    @classmethod
    def from_field_of_view(cls, degrees: float, shape: tuple[int, int]) -> Intrinsics:
        """Return the intrinsics of a camera with a horizontal field of view in degrees, with square pixels, centred.

        >>> round(Intrinsics.from_field_of_view(90.0, (480, 640)).fx)
        320
        """
        if not 0 < degrees < 180:
            raise InputError(f"the field of view is {degrees!r} degrees; give a number between 0 and 180")
        focal = shape[1] / 2 / tan(radians(degrees / 2))
        return cls(focal, focal, (shape[1] - 1) / 2, (shape[0] - 1) / 2)

    @property
    def matrix(self) -> Floats:
        """The camera matrix, (3, 3)."""
        return np.array([[self.fx, 0, self.cx], [0, self.fy, self.cy], [0, 0, 1.0]])

    def resized(self, old: tuple[int, int], new: tuple[int, int]) -> Intrinsics:
        """Return the intrinsics after a picture of one (height, width) was resized to another.

        >>> Intrinsics(500, 500, 319.5, 239.5).resized((480, 640), (240, 320))
        Intrinsics(fx=250.0, fy=250.0, cx=159.5, cy=119.5)
        """
        down, across = new[0] / old[0], new[1] / old[1]
        if abs(down / across - 1) > MAX_ASPECT_CHANGE:
            came, wanted = (f"{height} x {width}" for height, width in (old, new))
            raise InputError(
                f"the intrinsics are of pictures of {came} pixels (height x width) and the map has {wanted}, which is "
                "cut, not resized; give fx,fy,cx,cy of the map"
            )
        cx, cy = (self.cx + 0.5) * across - 0.5, (self.cy + 0.5) * down - 0.5
        return Intrinsics(self.fx * across, self.fy * down, cx, cy)

    def rays(self, shape: tuple[int, int]) -> tuple[Floats, Floats]:
        """Return x / z of all columns, (width,), and y / z of all rows, (height, 1)."""
        across = (np.arange(shape[1], dtype=np.float32) - np.float32(self.cx)) / np.float32(self.fx)
        down = (np.arange(shape[0], dtype=np.float32) - np.float32(self.cy)) / np.float32(self.fy)
        return across, down[:, None]

    def project(self, points: ArrayLike) -> Floats:
        """Project points (n, 3) to columns and rows, (n, 2); NaN behind the camera.

        >>> Intrinsics(500, 500, 319.5, 239.5).project([[0.0, 0.0, 2.0], [0.2, 0.0, 2.0]])
        array([[319.5, 239.5],
               [369.5, 239.5]])
        """
        x, y, z = np.moveaxis(np.asarray(points, float), -1, 0)
        z = np.where(z > 0, z, np.nan)
        return np.stack([x / z * self.fx + self.cx, y / z * self.fy + self.cy], axis=-1)


def intrinsics_from(
    given: Intrinsics | str | Path | Sequence[float] | None, shape: tuple[int, int] | None = None
) -> Intrinsics | None:
    """Return intrinsics that came as a record, four numbers, a text of them, a name, a file, or not at all.

    Parameters
    ----------
    given
        `Intrinsics`; fx, fy, cx and cy; a text of these with commas; the name of a data set; a file; or None.
    shape
        (height, width) of the map; those of a file are scaled to it.

    Returns
    -------
    Intrinsics or None
        None if None was given.

    Examples
    --------
    >>> intrinsics_from("585,585,320,240")
    Intrinsics(fx=585.0, fy=585.0, cx=320.0, cy=240.0)
    """
    if given is None or isinstance(given, Intrinsics):
        return given
    if isinstance(given, str | Path):
        return _from_text(str(given), shape)
    try:
        return Intrinsics(*(float(number) for number in given))
    except TypeError:
        raise InputError(f"the intrinsics are {given!r}; give Intrinsics(fx, fy, cx, cy)") from None


def _from_text(text: str, shape: tuple[int, int] | None) -> Intrinsics:
    """Return intrinsics by four numbers with commas, the name of a data set, or a file."""
    if text in KNOWN_CAMERAS:
        return Intrinsics._scaled(CameraFile(KNOWN_CAMERAS[text], KNOWN_SHAPE), shape, text)
    if Path(text).is_file():
        return Intrinsics.from_file(text, shape)
    if not re.fullmatch(r"[-+.\deE,;\s]+", text):
        raise InputError(
            f"the intrinsics are {text!r}, and there is no such file; give FX,FY,CX,CY in pixels, a calibration file, "
            f"or one of {', '.join(KNOWN_CAMERAS)}"
        )
    try:
        fx, fy, cx, cy = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"the intrinsics are {text!r}; give four numbers of pixels: FX,FY,CX,CY") from None
    return Intrinsics(fx, fy, cx, cy)

"""Calibration of a rectified stereo pair: from disparities in pixels to depths in metres."""

from __future__ import annotations

import os
import re
from dataclasses import astuple, dataclass
from pathlib import Path

import numpy as np

from sparsedepth.geometry.calibration_files import NamedNumbers, read_text
from sparsedepth.vocabulary import Floats, InputError, Match, Origin, Restoration

MM = 1000.0
"""Millimetres in a metre: Middlebury's baselines are in millimetres."""
SAME_SURFACE = 1e-8
"""Relative mean square of distances below which a map has one surface: rounding."""


@dataclass(frozen=True)
class DepthErrors:
    """How errors of disparities become errors of depths; chosen on Middlebury 2005 and 2006 in two sizes."""

    gross_share: float = 0.5
    """Of the variance of a disparity, by pixels that were taken for another surface of the map; the rest is normal. Of
    0, 0.25, 0.5, 0.75 and 1, squared error over variance changes least from pixels to metres."""
    least_distance_px: float = 1.0
    """Of disparity + doffs: smaller ones are not told from infinity, and are no surface that others are taken for."""


ERRORS = DepthErrors()


@dataclass(frozen=True)
class StereoCalibration:
    """Focal length, baseline and offset of a rectified pair; depth = focal_px * baseline_m / (disparity + doffs_px).

    Parameters
    ----------
    focal_px
        Focal length of both rectified cameras, in pixels.
    baseline_m
        Distance of the cameras, in metres.
    doffs_px
        Column of the right principal point minus that of the left one, in pixels; 0 in most pairs.

    Examples
    --------
    >>> StereoCalibration(focal_px=1000.0, baseline_m=0.2, doffs_px=10.0).depth_at(90.0)
    2.0
    """

    focal_px: float
    baseline_m: float
    doffs_px: float = 0.0

    def __post_init__(self) -> None:
        if not np.isfinite(astuple(self)).all() or min(self.focal_px, self.baseline_m) <= 0:
            raise InputError(
                f"the calibration is {astuple(self)}; give a positive focal length in pixels and baseline in metres, "
                "and a finite doffs in pixels"
            )

    @classmethod
    def from_file(cls, path: str | Path, shape: tuple[int, int] | None = None) -> StereoCalibration:
        """Read the calibration of a pair.

        Parameters
        ----------
        path
            calib.txt of Middlebury, or camera_info YAML (ROS) of the *right* camera: its projection has the baseline.
        shape
            Height and width of the views. A calibration of another resolution is scaled to their width.

        Returns
        -------
        StereoCalibration
            In pixels of the views.

        Examples
        --------
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "calib.txt"
        >>> text = "cam0=[3979.9 0 1244.8; 0 3979.9 1019.5; 0 0 1]\\ndoffs=124.3\\nbaseline=193.0\\nwidth=2964\\n"
        >>> _ = path.write_text(text + "height=2000\\n")
        >>> StereoCalibration.from_file(path, shape=(500, 741)).focal_px
        994.975
        """
        if not os.path.isfile(path):
            raise InputError(f"there is no file {path}")
        try:
            return _from_text(read_text(Path(path)), shape)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    def depth_at(self, disparity_px: float) -> float:
        """Return the depth at a disparity, in metres; NaN at infinity and beyond."""
        distance = disparity_px + self.doffs_px
        return self.focal_px * self.baseline_m / distance if distance > 0 else float("nan")

    def depth(self, found: Match) -> Restoration:
        """Compute depths in metres with their variances.

        The variance is the mean squared deviation from the depth. Half of the variance of a disparity is that of a
        normal error. Such a half v, with d = disparity + doffs, makes (depth / d)**2 * v * (1 + 3 v / d**2), up to
        second order. The other half is that of a pixel that belongs to another surface of the map, any measured
        pixel's with equal chance. In a map of one surface all of it is normal.

        Parameters
        ----------
        found
            The result of `match`.

        Returns
        -------
        Restoration
            Depth in metres, variance in squared metres, and origins. Where d is not positive, the depth is NaN, the
            variance infinite and the origin `Origin.REFUSED`.

        Examples
        --------
        >>> found = Match(np.full((1, 2), 100.0), np.full((1, 2), 1.0), np.zeros((1, 2), np.uint8))
        >>> metres = StereoCalibration(1000.0, 0.2).depth(found)
        >>> float(metres.depth[0, 0]), round(float(metres.variance[0, 0]), 8)
        (2.0, 0.00040012)
        """
        distance = np.asarray(found.disparity, np.float64) + self.doffs_px
        near = distance > 0
        safe = np.where(near, distance, 1.0)
        depth = self.focal_px * self.baseline_m / safe
        origin = np.asarray(found.origin)
        surfaces = distance[(origin == Origin.MEASURED) & (distance > ERRORS.least_distance_px)]
        variance = depth**2 * _relative_variance(safe, np.asarray(found.variance, np.float64), surfaces)
        return Restoration(
            np.where(near, depth, np.nan).astype(np.float32),
            np.where(near, variance, np.inf).astype(np.float32),
            np.where(near, origin, Origin.REFUSED).astype(np.uint8),
            unit="m",
            warnings=found.warnings,
        )


def _relative_variance(distance: Floats, variance: Floats, surfaces: Floats, errors: DepthErrors = ERRORS) -> Floats:
    """Compute the variance of a depth over the squared depth; surfaces: distances that others may be taken for."""
    normal = variance / distance**2
    if not surfaces.size:
        return _second_order(normal)
    apart = np.mean(surfaces**2) - 2 * np.mean(surfaces) * distance + distance**2
    depths_apart = np.mean(surfaces**-2) * distance**2 - 2 * np.mean(1 / surfaces) * distance + 1
    several = apart > SAME_SURFACE * distance**2
    gross = errors.gross_share * variance * np.maximum(depths_apart, 0) / np.where(several, apart, 1)
    return np.where(several, _second_order((1 - errors.gross_share) * normal) + gross, _second_order(normal))


def _second_order(relative: Floats) -> Floats:
    """Compute the mean square of 1 / (1 + e) - 1 for a normal e of that variance, up to second order."""
    return relative * (1 + 3 * relative)


def _from_text(text: str, shape: tuple[int, int] | None) -> StereoCalibration:
    found = _from_middlebury(text) or _from_camera_info(text)
    if found is None:
        raise InputError(
            "it holds no calibration of a pair; give calib.txt of Middlebury (cam0, doffs, baseline), or camera_info "
            "YAML of the right camera, or --focal, --baseline and --doffs"
        )
    numbers, width = found
    factor = 1.0 if shape is None or width is None else shape[1] / width
    return StereoCalibration(numbers[0] * factor, numbers[1], numbers[2] * factor)


def _from_middlebury(text: str) -> tuple[tuple[float, float, float], float | None] | None:
    """Read calib.txt: ``cam0``, ``doffs`` in pixels (or the principal points), ``baseline`` in millimetres."""
    values = NamedNumbers(text)
    focal, baseline, doffs = _matrix_entry(text, 0, 0), values.number("baseline"), values.number("doffs")
    if focal is None or baseline is None:
        return None
    if doffs is None:
        left, right = (_matrix_entry(text, camera, 2) for camera in (0, 1))
        doffs = 0.0 if left is None or right is None else right - left
    return (focal, baseline / MM, doffs), values.number("width")


def _matrix_entry(text: str, camera: int, entry: int) -> float | None:
    """Return an entry of the first row of ``cam0=[f 0 cx; ...]``."""
    found = re.search(rf"^cam{camera}\s*=\s*\[([^;\]]{{0,100}})", text, re.MULTILINE)
    numbers = found[1].split() if found else []
    try:
        return float(numbers[entry])
    except (IndexError, ValueError):
        return None


def _from_camera_info(text: str) -> tuple[tuple[float, float, float], float | None] | None:
    """Read camera_info of the right camera, whose projection has -focal * baseline as its fourth number."""
    values = NamedNumbers(text)
    p = values.numbers("projection_matrix", "P", "p")
    if len(p) != 12 or p[0] <= 0:
        return None
    if p[3] >= 0:
        raise InputError(
            f"the fourth number of its projection is {p[3]:g}, as of a left camera; give camera_info of the right one"
        )
    return (p[0], -p[3] / p[0], 0.0), values.number("image_width") or values.number("width")

"""Read calibrations in JSON: RealSense, Azure Kinect, Open3D, Record3D, camera_info."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sparsedepth.geometry.camera_file import CameraFile, from_matrix
from sparsedepth.vocabulary import InputError

MAX_LEVELS = 12
AZURE_SENSOR_PX = 1024
AZURE_DEPTH_MODES = {(576, 640): (1, 180, 192), (288, 320): (2, 90, 96), (1024, 1024): (1, 0, 0), (512, 512): (2, 0, 0)}
"""Height and width -> binning, first row and first column of the modes of the depth camera, after binning."""
AZURE_COLOUR_WIDTHS = (1280, 1920, 2048, 2560, 3840, 4096)
_CENTRES = (("ppx", "ppy"), ("cx", "cy"))
_MATRICES = ("intrinsic_matrix", "camera_matrix", "K", "k", "intrinsics", "intrinsic")


def from_json(text: str, shape: tuple[int, int] | None) -> CameraFile:
    """Return the camera of a JSON document; of several, that of depth."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("it is no JSON document; is it whole?") from None
    if isinstance(document, dict) and "CalibrationInformation" in document:
        return _azure(document["CalibrationInformation"], shape)
    found = dict(_cameras(document, ()))
    of_depth = {path: camera for path, camera in found.items() if any("depth" in part.lower() for part in path)}
    chosen = set((of_depth or found).values())
    if len(chosen) == 1:
        return chosen.pop()
    names = ", ".join("/".join(path) or "itself" for path in list(found)[:10])
    raise InputError(
        f"which camera took the map? It holds {names}; save the one of depth alone"
        if found
        else "it holds no intrinsics (fx, fy, ppx, ppy, or a 3 x 3 matrix); give FX,FY,CX,CY in pixels instead"
    )


def _cameras(node: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], CameraFile]]:
    """Yield all cameras of a document with the names on the way to them."""
    if len(path) > MAX_LEVELS:
        return
    if isinstance(node, Mapping):
        camera = _camera(node)
        if camera is not None:
            yield path, camera
            return
        for name, value in node.items():
            yield from _cameras(value, (*path, str(name)))
    elif isinstance(node, list):
        for number, value in enumerate(node[:100]):
            yield from _cameras(value, (*path, str(number)))


def _camera(node: Mapping[str, Any]) -> CameraFile | None:
    """Return the camera that an object holds itself, if any."""
    distorted = any(_numbers(node.get("coeffs") or node.get("D") or node.get("d")))
    for centre in _CENTRES:
        numbers = [_number(node.get(name)) for name in ("fx", "fy", *centre)]
        fx, fy, cx, cy = numbers
        if fx is not None and fy is not None and cx is not None and cy is not None:
            return CameraFile((fx, fy, cx, cy), _shape(node), distorted)
    for name in _MATRICES:
        matrix = _numbers(node.get(name))
        if len(matrix) == 9:
            return from_matrix(matrix, _shape(node), distorted)
    return None


def _shape(node: Mapping[str, Any]) -> tuple[int, int] | None:
    for names in (("height", "width"), ("h", "w"), ("image_height", "image_width")):
        sides = [_number(node.get(name)) for name in names]
        height, width = sides
        if height is not None and width is not None and min(height, width) >= 1:
            return int(height), int(width)
    return None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _numbers(value: Any) -> list[float]:
    """Return the numbers of a list, of nested lists, or of the ``data`` of a matrix."""
    if isinstance(value, Mapping):
        value = value.get("data")
    if not isinstance(value, list) or len(value) > 100:
        return []
    parts = [each for part in value for each in (part if isinstance(part, list) else [part])]
    found = [_number(part) for part in parts]
    return [number for number in found if number is not None] if None not in found else []


def _azure(information: Any, shape: tuple[int, int] | None) -> CameraFile:
    """Return the camera of a mode of an Azure Kinect, from its raw calibration: in parts of the sensor's sides."""
    if shape is None:
        raise InputError("it is the raw calibration of an Azure Kinect, for all its modes; give shape=(height, width)")
    shape = (int(shape[0]), int(shape[1]))
    depth = shape in AZURE_DEPTH_MODES
    wanted = "CALIBRATION_CameraLocationD0" if depth else "CALIBRATION_CameraLocationPV0"
    numbers = _azure_parameters(information, wanted)
    if depth:
        binning, top, left = AZURE_DEPTH_MODES[shape]
        width = height = AZURE_SENSOR_PX // binning
    elif shape[1] in AZURE_COLOUR_WIDTHS and shape[0] in (shape[1] * 9 // 16, shape[1] * 3 // 4):
        width, height = shape[1], shape[1] * 3 // 4
        top, left = (height - shape[0]) // 2, 0
    else:
        modes = ", ".join(f"{rows} x {columns}" for rows, columns in AZURE_DEPTH_MODES)
        raise InputError(f"an Azure Kinect has no mode of {shape[0]} x {shape[1]} pixels; its depths have {modes}")
    cx, cy, fx, fy = numbers[:4]
    centre = cx * width - left - 0.5, cy * height - top - 0.5
    return CameraFile((fx * width, fy * height, *centre), shape, any(numbers[4:14]))


def _azure_parameters(information: Any, location: str) -> Sequence[float]:
    cameras = information.get("Cameras") if isinstance(information, Mapping) else None
    for camera in cameras if isinstance(cameras, list) else []:
        if isinstance(camera, Mapping) and camera.get("Location") == location:
            intrinsics = camera.get("Intrinsics")
            numbers = _numbers(intrinsics.get("ModelParameters")) if isinstance(intrinsics, Mapping) else []
            if len(numbers) >= 4:
                return numbers
    raise InputError(f"it has no parameters of the camera {location}; give FX,FY,CX,CY in pixels instead")

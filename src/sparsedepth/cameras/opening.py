"""Cameras by name."""

from __future__ import annotations

from collections.abc import Callable

from sparsedepth.cameras.openni_device import OpenNICamera
from sparsedepth.cameras.protocol import Camera
from sparsedepth.cameras.realsense import RealSenseCamera
from sparsedepth.cameras.simulated import SimulatedCamera
from sparsedepth.vocabulary import InputError


def _simulated(device: str) -> Camera:
    if device and not device.isdecimal():
        raise InputError(f"the simulated camera {device!r} is unknown; give the number of a scene, such as simulated:3")
    return SimulatedCamera(seed=int(device or 0))


CAMERAS: dict[str, Callable[[str], Camera]] = {
    "realsense": lambda device: RealSenseCamera(device),
    "openni": lambda device: OpenNICamera(device),
    "simulated": _simulated,
}
"""Name -> function of the device: a serial number, a URI, or the number of a scene; "" = any."""


def open_camera(name: str) -> Camera:
    """Return a camera by its name; it streams when it is entered.

    Parameters
    ----------
    name
        "realsense", "openni" or "simulated"; a device may follow after a colon: "realsense:817612070983".

    Returns
    -------
    Camera

    Raises
    ------
    InputError
        If there is no such camera; on entering it also if its driver is not installed or no device is there.

    Examples
    --------
    >>> with open_camera("simulated") as camera:
    ...     frame = next(iter(camera))
    >>> frame.depth.values.shape, frame.depth.unit
    ((240, 320), 'mm')
    """
    kind, _, device = name.partition(":")
    if kind not in CAMERAS:
        raise InputError(f"there is no camera {kind!r}; use one of {', '.join(CAMERAS)}")
    return CAMERAS[kind](device)

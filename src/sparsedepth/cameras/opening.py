"""Cameras by name."""

from __future__ import annotations

from collections.abc import Callable

from sparsedepth.cameras.openni_device import OpenNICamera
from sparsedepth.cameras.protocol import Camera
from sparsedepth.cameras.realsense import RealSenseCamera
from sparsedepth.cameras.simulated import SimulatedCamera
from sparsedepth.vocabulary import InputError


def _simulated(device: str, colour: bool) -> Camera:
    if device and not device.isdecimal():
        raise InputError(f"the simulated camera {device!r} is unknown; give the number of a scene, such as simulated:3")
    return SimulatedCamera(seed=int(device or 0))


CAMERAS: dict[str, Callable[[str, bool], Camera]] = {
    "realsense": lambda device, colour: RealSenseCamera(device, colour=colour),
    "openni": lambda device, colour: OpenNICamera(device),
    "simulated": _simulated,
}
"""Name -> function of a device and of colour; a device is a serial number, a URI or the number of a scene, "" = any."""


def open_camera(name: str, colour: bool = False) -> Camera:
    """Return a camera by its name; it streams when it is entered.

    Parameters
    ----------
    name
        "realsense", "openni" or "simulated"; a device may follow after a colon: "realsense:817612070983".
    colour
        Whether frames come with pictures, from cameras that have them here: "realsense".

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
    return CAMERAS[kind](device, colour)

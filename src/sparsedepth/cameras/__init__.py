"""Depth cameras behind one small protocol: RealSense, OpenNI and a simulated one.

* ``open_camera("realsense")`` returns a `Camera`: a context manager, and an iterable of `CameraFrame`.
* ``NewestFrames(camera)`` reads it in a thread, and returns the newest frame to a slower consumer.
* A driver is imported when its camera is opened; the extra ``sparsedepth[camera]`` installs them.
"""

from sparsedepth.cameras.newest import NewestFrames
from sparsedepth.cameras.opening import CAMERAS, open_camera
from sparsedepth.cameras.protocol import Camera, CameraFrame
from sparsedepth.cameras.simulated import SimulatedCamera

__all__ = ["CAMERAS", "Camera", "CameraFrame", "NewestFrames", "SimulatedCamera", "open_camera"]

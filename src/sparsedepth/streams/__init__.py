"""Streams: a belief over time for every pixel of a depth camera, with a variance, frame by frame.

* ``Stream(sensor, intrinsics).push(depth, pose=...)`` returns the restored frame.
* ``Intrinsics(fx, fy, cx, cy)``: focal lengths and principal point of a camera that moves.
* ``StreamSettings``: all thresholds and rates.
"""

from sparsedepth.geometry import Intrinsics
from sparsedepth.streams.settings import StreamSettings
from sparsedepth.streams.stream import Stream

__all__ = ["Intrinsics", "Stream", "StreamSettings"]

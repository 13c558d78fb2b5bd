"""
Average a depth camera over time
================================

One frame cannot separate all noise from the surface; the frames before it can. `Stream` keeps a mean and a variance for
every pixel. Its error falls from frame to frame, and its variance with it.
"""

from pathlib import Path

import numpy as np

from sparsedepth import Sensor, Stream
from sparsedepth.data.rooms import room
from sparsedepth.pictures import Panel, save_panels
from sparsedepth.sensors.simulate import simulate

output = Path("example-output")
output.mkdir(exist_ok=True)

scene = room(900.0, 3000.0, np.random.default_rng(0), (240, 320))  # mm
frames = simulate(scene, Sensor.preset("kinect_v1"), np.random.default_rng(1), frames=12)

stream = Stream(sensor="kinect_v1", unit="mm")
results = [stream.push(frame) for frame in frames]
for number in (1, 2, 4, 8, 12):
    result = results[number - 1]
    error, deviation = np.abs(result.depth - scene), np.sqrt(result.variance)
    print(
        f"after {number:2} frames: error {np.nanmedian(error):.2f} mm, standard deviation {np.median(deviation):.2f} mm"
    )

panels = [
    Panel("one frame", frames[0]),
    Panel("after 1 frame", results[0].depth),
    Panel("after 12 frames", results[-1].depth),
]
limits = float(scene.min()), float(scene.max())
save_panels(panels, output / "stream.png", limits=limits, unit="depth, mm", columns=3, width=320)

"""
Smooth a frame of a depth camera
================================

The noise of a depth camera is correlated between pixels and grows with depth, so a filter with one strength blurs near
edges or leaves far noise. `denoise` estimates this noise from the frame itself. The frame here is simulated, so that
its error can be measured.
"""

from pathlib import Path

import numpy as np

from sparsedepth import Origin, Sensor, denoise
from sparsedepth.data.rooms import room
from sparsedepth.metrics import rmse
from sparsedepth.pictures import Panel, save_origin, save_panels
from sparsedepth.sensors.simulate import simulate

output = Path("example-output")
output.mkdir(exist_ok=True)

scene = room(900.0, 3000.0, np.random.default_rng(4), (240, 320))  # mm
frame = simulate(scene, Sensor.preset("realsense_d435"), np.random.default_rng(1))[0]
frame[90:120, 60:75] = np.nan  # something that does not reflect
result = denoise(frame)

for name, depth in {"frame": frame, "restored": result.depth}.items():
    print(f"{name}: RMSE {rmse(depth, scene, missing='ignore'):.1f} mm")
deviation = np.sqrt(result.variance)
panels = [Panel("frame", frame), Panel("restored", result.depth), Panel("scene", scene)]
limits = float(scene.min()), float(scene.max())
save_panels(panels, output / "frame.png", limits=limits, unit="depth, mm", columns=3, width=320)

# %%
# Each pixel has a standard deviation. It is larger where the camera is less precise.

near, far = scene < np.quantile(scene, 0.2), scene > np.quantile(scene, 0.8)
filled = result.origin == Origin.FILLED
for name, where in {"near": near & ~filled, "far": far & ~filled, "filled": filled}.items():
    error = np.sqrt(np.mean((result.depth - scene)[where] ** 2))
    print(f"{name}: standard deviation {np.median(deviation[where]):.1f} mm, RMSE {error:.1f} mm")
save_origin(result.origin, output / "origin.png", title="origin of each pixel")

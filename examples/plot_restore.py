"""
Restore a noisy map with holes
==============================

A real disparity map has real holes, and noise was added to five per cent of its pixels. `denoise` gets the map alone,
without a parameter. It returns three maps: the restored one, and the variance and the origin of each pixel.
"""

from pathlib import Path

import numpy as np

from sparsedepth import Origin, denoise
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.synthetic import corrupted
from sparsedepth.metrics import psnr
from sparsedepth.pictures import Panel, save_origin, save_panels

output = Path("example-output")
output.mkdir(exist_ok=True)

truth = motorcycle_disparity()[150:350, 480:680]
noisy = corrupted(truth, 0.05, np.random.default_rng(0))
result = denoise(noisy)

print(f"noisy {psnr(noisy, truth):.1f} dB, restored {psnr(result.depth, truth):.1f} dB")
limits = float(np.nanmin(truth)), float(np.nanmax(truth))
panels = [
    Panel("noisy, holes in red", noisy),
    Panel("restored", result.depth),
    Panel("variance of each pixel, px²", result.variance, "variance"),
]
save_panels(panels, output / "restored.png", limits=limits, unit="disparity, px", columns=3, width=400)

# %%
# Correct measurements are kept. A hole that contains a whole patch is refused (NaN).

for origin in Origin:
    print(f"{origin.name.lower()}: {(result.origin == origin).mean():.1%}")
save_origin(result.origin, output / "origin.png", title="origin of each pixel")

"""
Restore a noisy map with holes
==============================

A real disparity map has real holes, and five per cent of its pixels are wrong by unknown amounts. `denoise` is told
nothing of this. It gives three maps: the restored one, the variance of each pixel, and where each pixel comes from.
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
# What was measured well stays as it was. A hole that holds a whole patch is refused rather than invented.

for origin in Origin:
    print(f"{origin.name.lower()}: {(result.origin == origin).mean():.1%}")
save_origin(result.origin, output / "origin.png", title="where each pixel comes from")

"""
Which pixels of a depth map can be trusted?
===========================================

A depth map has a few wrong pixels, and does not say which. Sparse coding explains each patch by a few edges and slopes.
What they cannot explain is noise, and the inferred variance of each pixel says how much.
"""

from pathlib import Path

import numpy as np

from sparsedepth import Dictionary, Jeffreys, infer
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.synthetic import corrupted
from sparsedepth.patches import cut, normalise, overlay
from sparsedepth.pictures import save_map, save_variance

output = Path("example-output")
output.mkdir(exist_ok=True)

disparity = motorcycle_disparity()[150:250, 480:580]
noisy = corrupted(disparity, 0.02, np.random.default_rng(0))

# Cut overlapping patches, remove each one's mean, scale it to variance 1, and code it.
dictionary = Dictionary.builtin("phi1_annealed")
patches = normalise(cut(noisy, dictionary.patch_shape, stride=2))
code = infer(patches.patches, dictionary, Jeffreys(floor=0.01))

# Each pixel is covered by many patches: average their values, in the unit of the map.
variance = code.variance * patches.scale[:, None] ** 2
variance = overlay(np.where(np.isfinite(variance), variance, np.nan), noisy.shape, dictionary.patch_shape, stride=2)
save_map(noisy, output / "noisy.png", title="2 % of the pixels are wrong", unit="px")
save_variance(variance, output / "variance.png", title="inferred noise variance", unit="px²")

wrong = np.abs(noisy - disparity) > 1
print(
    f"median variance of wrong pixels {np.nanmedian(variance[wrong]):.3g} px², of all {np.nanmedian(variance):.3g} px²"
)

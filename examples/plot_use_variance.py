"""
Fuse two scans by their variances
=================================

Two scans of one scene have errors at different pixels, and their mean has the errors of both. With a variance for each
pixel, a weighted mean follows the better scan: inverse-variance weights are three lines.
"""

from pathlib import Path

import numpy as np

from sparsedepth import denoise
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.synthetic import corrupted
from sparsedepth.findings import draw_calibration
from sparsedepth.metrics import rmse, sparsification
from sparsedepth.pictures import Panel, save_panels

output = Path("example-output")
output.mkdir(exist_ok=True)

truth = motorcycle_disparity()[200:320, 500:620]
scans = [corrupted(truth, 0.15, np.random.default_rng(seed)) for seed in (1, 2)]
results = [denoise(scan, fill=False, sensor="clean") for scan in scans]  # exact, but for the outliers

depths = np.stack([result.depth for result in results])
weights = 1 / np.stack([result.variance for result in results])
fused = (weights * depths).sum(axis=0) / weights.sum(axis=0)

for name, estimate in {
    "mean of the scans": np.mean(scans, axis=0),
    "one restored scan": depths[0],
    "mean of the restored scans": depths.mean(axis=0),
    "restored, weighed by variance": fused,
}.items():
    print(f"{name}: RMSE {rmse(estimate, truth, missing='ignore'):.3f} px")

limits = float(np.nanmin(truth)), float(np.nanmax(truth))
panels = [Panel("first scan", scans[0]), Panel("second scan", scans[1]), Panel("fused by variance", fused)]
save_panels(panels, output / "fused.png", limits=limits, unit="disparity, px", columns=3, width=240)

# %%
# Is the variance calibrated? Pixels are sorted by their predicted variance into tenths, and the true error of each is
# compared with the prediction. Does a large variance mean a large error? Leave out the pixels of largest variance, and
# see how fast the error of the others falls.

error = np.asarray(results[0].depth, np.float64) - truth
ratio = draw_calibration(error, results[0].variance, output / "calibration.png", "px")
left = sparsification(error, results[0].variance).by_variance
print(f"squared error / variance: {ratio:.2f} (1 = calibrated, above 1 = too small)")
print(f"without the tenth of largest variance, the RMSE is {left[10]:.0%} of the whole")

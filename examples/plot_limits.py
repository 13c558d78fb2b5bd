"""
Where it fails
==============

Six small maps on which restoring fails, or does less than you may expect. The maps are simulated, and the numbers are
printed as they are.
"""

from pathlib import Path

import numpy as np

from sparsedepth import denoise, inpaint
from sparsedepth.pictures import Panel, save_panels

output = Path("example-output")
output.mkdir(exist_ok=True)

rng = np.random.default_rng(0)
y, x = np.mgrid[:80, :80]
wall = 3.0 + 0.004 * x + 0.3 * (x > 50)


def show(name, panels):
    save_panels(panels, output / f"{name}.png", limits=(1.8, 3.8), unit="depth, m", columns=len(panels), width=240)


# %%
# Isolated true returns look like noise
# -------------------------------------
# Leaves, rain, wires one pixel wide: one pixel in twenty is truly nearer than its neighbours. Nothing in the map
# distinguishes it from an outlier, so it is moved towards them. Pass on what the sensor knows (``variance=``), or use
# `inpaint`, which changes no measured value.

leaves = np.where(rng.random(wall.shape) < 0.05, wall - rng.uniform(0.3, 1.0, wall.shape), wall)
result = denoise(leaves)
alone = leaves != wall
print(f"true leaves that were kept within 5 cm: {(abs(result.depth - leaves) < 0.05)[alone].mean():.0%}")
show("leaves", [Panel("true: leaves before a wall", leaves), Panel("denoise moves them to the wall", result.depth)])

# %%
# Few spikes of a raw map are kept
# --------------------------------
# Raw scans have up to three isolated true returns in a thousand pixels. So as few spikes are kept in a map that is
# rough everywhere, as sensors measure it. Most of them get a large variance. If you know that they are wrong, mask them
# by it and fill the holes.

raw = wall + 0.001 * rng.standard_normal(wall.shape)
spikes = rng.choice(wall.size, 12, replace=False)
raw.ravel()[spikes] += rng.choice([-0.8, 0.8], 12)
result = denoise(raw)
doubtful = np.sqrt(result.variance) > 0.1
filled = inpaint(np.where(doubtful, np.nan, raw))
print(f"spikes that were kept: {(abs(result.depth - raw) < 0.05).ravel()[spikes].mean():.0%}")
print(f"of large variance: {doubtful.ravel()[spikes].mean():.0%} of them, {doubtful.mean():.1%} of all pixels")
print(f"largest error after these are filled: {abs(filled.depth - wall).max():.2f} m")
show("spikes", [Panel("a raw map", raw), Panel("pixels of large variance filled", filled.depth)])

# %%
# A wrong region looks like an object
# -----------------------------------
# A reflection or a mismatch as wide as a patch fits the model as well as any object, so its variance is small. A large
# variance marks pixels that do not fit their surroundings. It cannot show that the surroundings are wrong.

ghost = wall.copy()
ghost[30:44, 20:34] = 2.0
result = denoise(ghost)
inside, outside = (np.sqrt(np.median(result.variance[part])) for part in (ghost != wall, ghost == wall))
print(f"kept of the wrong region: {(abs(result.depth - ghost) < 0.05)[ghost != wall].mean():.0%}")
print(f"standard deviation inside {inside:.2g} m, outside {outside:.2g} m; true error inside 1 m")
panels = [Panel("a wrong region", ghost), Panel("denoise keeps it", result.depth)]
show("ghost", [*panels, Panel("variance, m²", result.variance, "variance")])

# %%
# A bias is not detected
# ----------------------
# Multipath, a wrong calibration or a change of temperature bend the map smoothly. The map alone does not show it.

bent = wall + 0.2 * np.exp(-((x - 25) ** 2 + (y - 40) ** 2) / 300)
result = denoise(bent)
deviation = np.sqrt(np.median(result.variance))
print(f"largest error {abs(result.depth - wall).max():.2f} m, median standard deviation {deviation:.2g} m")

# %%
# Wide holes are refused, and filling them is a guess
# ---------------------------------------------------
# A hole that contains a whole patch is refused. ``holes="all"`` extends the surfaces around it, with a variance that
# grows inwards. It cannot know what lies within: here the rest of a box.

box = np.where((abs(x - 40) < 22) & (abs(y - 40) < 12), 2.2, wall)
holed = box.copy()
holed[26:54, 30:70] = np.nan
refused, guessed = inpaint(holed), inpaint(holed, holes="all")
hole = np.isnan(holed)
print(f"refused: {np.isnan(refused.depth)[hole].mean():.0%} of the hole")
error = np.sqrt(np.mean((guessed.depth - box)[hole] ** 2))
print(f"filled: RMSE {error:.2f} m, predicted {np.sqrt(guessed.variance[hole].mean()):.2f} m")
panels = [Panel("a hole over the end of a box", holed), Panel("refused", refused.depth)]
show("holes", [*panels, Panel('holes="all"', guessed.depth), Panel("variance, m²", guessed.variance, "variance")])

# %%
# Very sparse maps
# ----------------
# With one valid pixel in twenty, as from a laser scanner with few beams, filling is interpolation, and much is refused.
# Depth completion guided by a photograph does better.

sparse = np.where(rng.random(box.shape) < 0.05, box, np.nan)
result = inpaint(sparse)
error = np.sqrt(np.nanmean((result.depth - box) ** 2))
print(f"refused: {np.isnan(result.depth).mean():.0%}; RMSE of the rest {error:.2f} m")
show("sparse", [Panel("5 % valid", sparse), Panel("filled", result.depth), Panel("true", box)])

"""
Where it fails
==============

Six maps on which restoring does not do what one might wish, made small and plain. Nothing is tuned to look worse or
better than it is: the numbers are printed as they come.
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
# True returns that stand alone look like noise
# ---------------------------------------------
# Leaves, wires of a pixel's width, rain: if one pixel in twenty is truly nearer than its neighbours, nothing in the map
# tells it from an outlier, and it is moved towards them. Say what the sensor knows (``variance=``), or use `inpaint`,
# which changes nothing that was measured.

leaves = np.where(rng.random(wall.shape) < 0.05, wall - rng.uniform(0.3, 1.0, wall.shape), wall)
result = denoise(leaves)
alone = leaves != wall
print(f"true leaves that were kept within 5 cm: {(abs(result.depth - leaves) < 0.05)[alone].mean():.0%}")
show("leaves", [Panel("true: leaves before a wall", leaves), Panel("denoise pulls them back", result.depth)])

# %%
# A few spikes of a raw map may be true
# -------------------------------------
# Scanners leave up to three single true returns among a thousand pixels. So as few spikes of a map that is rough
# everywhere, as its sensor measured it, are kept; the variance says which, mostly. Whoever knows that they are wrong
# leaves them out, and fills.

raw = wall + 0.001 * rng.standard_normal(wall.shape)
spikes = rng.choice(wall.size, 12, replace=False)
raw.ravel()[spikes] += rng.choice([-0.8, 0.8], 12)
result = denoise(raw)
doubtful = np.sqrt(result.variance) > 0.1
filled = inpaint(np.where(doubtful, np.nan, raw))
print(f"spikes that were kept: {(abs(result.depth - raw) < 0.05).ravel()[spikes].mean():.0%}")
print(f"doubtful: {doubtful.ravel()[spikes].mean():.0%} of them, {doubtful.mean():.1%} of all pixels")
print(f"largest error once those are filled: {abs(filled.depth - wall).max():.2f} m")
show("spikes", [Panel("a raw map", raw), Panel("doubtful pixels filled", filled.depth)])

# %%
# A wrong patch that hangs together looks like an object
# ------------------------------------------------------
# A reflection or a mismatch that is as wide as a patch is explained as well as any object. Its variance is low. The
# variance tells of pixels that do not fit their surroundings, not of surroundings that are wrong.

ghost = wall.copy()
ghost[30:44, 20:34] = 2.0
result = denoise(ghost)
inside, outside = (np.sqrt(np.median(result.variance[part])) for part in (ghost != wall, ghost == wall))
print(f"left of the ghost: {(abs(result.depth - ghost) < 0.05)[ghost != wall].mean():.0%}")
print(f"deviation promised in it {inside:.2g} m, outside it {outside:.2g} m; true error 1 m")
panels = [Panel("a ghost that is not there", ghost), Panel("denoise keeps it", result.depth)]
show("ghost", [*panels, Panel("variance, m²", result.variance, "variance")])

# %%
# A bias is invisible
# -------------------
# Multipath, a bad calibration, a temperature drift: what bends the map smoothly cannot be found in the map.

bent = wall + 0.2 * np.exp(-((x - 25) ** 2 + (y - 40) ** 2) / 300)
result = denoise(bent)
print(
    f"largest error {abs(result.depth - wall).max():.2f} m, median promise {np.sqrt(np.median(result.variance)):.2g} m"
)

# %%
# Wide holes are refused, and filling them outward is a guess
# -----------------------------------------------------------
# A hole that holds a whole patch stays unknown. ``holes="all"`` goes on from its rim with growing variance; what lies
# within (here the rest of a box) nobody can know.

box = np.where((abs(x - 40) < 22) & (abs(y - 40) < 12), 2.2, wall)
holed = box.copy()
holed[26:54, 30:70] = np.nan
refused, guessed = inpaint(holed), inpaint(holed, holes="all")
hole = np.isnan(holed)
print(f"refused: {np.isnan(refused.depth)[hole].mean():.0%} of the hole")
error = np.sqrt(np.mean((guessed.depth - box)[hole] ** 2))
print(f"guessed outward: RMSE {error:.2f} m, promised {np.sqrt(guessed.variance[hole].mean()):.2f} m")
panels = [Panel("a hole over the end of a box", holed), Panel("refused", refused.depth)]
show("holes", [*panels, Panel("guessed outward", guessed.depth), Panel("variance, m²", guessed.variance, "variance")])

# %%
# Very sparse maps
# ----------------
# With one pixel in twenty known, as from a laser scanner of few beams, filling is interpolation, and much is refused.
# Methods made for completion, or guided by a photograph, do better.

sparse = np.where(rng.random(box.shape) < 0.05, box, np.nan)
result = inpaint(sparse)
error = np.sqrt(np.nanmean((result.depth - box) ** 2))
print(f"refused: {np.isnan(result.depth).mean():.0%}; RMSE of the rest {error:.2f} m")
show("sparse", [Panel("5 % known", sparse), Panel("filled where it could be", result.depth), Panel("true", box)])

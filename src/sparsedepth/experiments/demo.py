"""What `sparsedepth demo` shows: a dictionary learned from a real map, a noisy map coded with it, and its variance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sparsedepth.coding.infer import infer
from sparsedepth.coding.learn import learn
from sparsedepth.coding.noise import Jeffreys
from sparsedepth.data.motorcycle import motorcycle_disparity
from sparsedepth.data.synthetic import corrupted
from sparsedepth.experiments import Progress
from sparsedepth.patches import PatchStream, cut, normalise, overlay
from sparsedepth.pictures import save_map, save_mosaic, save_variance
from sparsedepth.vocabulary import DepthMap

STEPS = 120
SHAPE = (8, 8)


def run(output: Path, progress: Progress, quick: bool = False) -> dict[str, Any]:
    """Learn from the left half of the Motorcycle map, code a noisy crop of the right half; write five pictures."""
    disparity = motorcycle_disparity()
    left, crop = disparity[:, :400], disparity[150:350, 480:680]
    stream = PatchStream([left], SHAPE, batch=512)
    steps = 12 if quick else STEPS
    dictionary = None
    for step in learn(stream, 128, Jeffreys(), steps=steps):
        progress("learning 128 atoms", step.step, steps)
        dictionary = step.dictionary
    assert dictionary is not None
    noisy = corrupted(crop, 0.05, np.random.default_rng(0))
    progress("coding the noisy map", 0, 1)
    patches = normalise(cut(noisy, SHAPE))
    code = infer(patches.patches, dictionary, Jeffreys())
    scale = patches.scale[:, None]
    fitted = (code.codes @ dictionary.atoms) * scale + patches.centre[:, None]
    variance = np.where(np.isfinite(code.variance), code.variance * scale**2, np.nan)
    coded, spread = (overlay(values, noisy.shape, SHAPE) for values in (fitted, variance))
    limits = float(np.nanmin(crop)), float(np.nanmax(crop))
    save_mosaic(dictionary, output / "mosaic.png", title="128 atoms learned from half of one map, most used first")
    save_map(crop, output / "original.png", title="disparity", unit="px", limits=limits)
    save_map(noisy, output / "noisy.png", title="5 % of the pixels corrupted", unit="px", limits=limits)
    save_map(coded.astype(np.float32), output / "coded.png", title="coded and averaged", unit="px", limits=limits)
    save_variance(spread, output / "variance.png", title="inferred noise variance", unit="px²")
    return {
        "pictures": str(output),
        "rmse_noisy_px": _rmse(noisy, crop),
        "rmse_coded_px": _rmse(coded, crop),
        "patches": len(code.codes),
        "converged": float(code.converged.mean()),
    }


def _rmse(estimate: DepthMap, truth: DepthMap) -> float:
    return round(float(np.sqrt(np.nanmean(np.square(estimate - truth)))), 3)

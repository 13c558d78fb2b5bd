"""Apply common filters to a map with a hole. Writes docs/results/holes.md."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from scipy import ndimage
from skimage import restoration
from sklearn.decomposition import MiniBatchDictionaryLearning

from sparsedepth import Origin, denoise
from sparsedepth.markdown import table, write_made_part
from sparsedepth.patches import cut
from sparsedepth.sklearn import DepthDictionary

SIDE = 64
HOLE = slice(30, 34), slice(30, 34)


def scene() -> np.ndarray:
    """Build a slanted wall with a step, in metres, float32, and a hole of 4x4 pixels."""
    depth = np.add.outer(np.zeros(SIDE), np.linspace(1.0, 2.0, SIDE)).astype(np.float32)
    depth[:, SIDE // 2 :] += 0.5
    depth[HOLE] = np.nan
    return depth


def opencv_inpaint(depth: np.ndarray) -> np.ndarray:
    hole = np.isnan(depth).astype(np.uint8)
    return cv2.inpaint(np.nan_to_num(depth), hole, 3, cv2.INPAINT_TELEA)


def scikit_learn(depth: np.ndarray) -> np.ndarray:
    return MiniBatchDictionaryLearning(8, max_iter=1).fit(cut(depth, (8, 8), 8)).components_


def ours_as_transformer(depth: np.ndarray) -> np.ndarray:
    patches = cut(depth, (8, 8), 8)
    coder = DepthDictionary(8, steps=5, random_state=0).fit(patches)
    return coder.inverse_transform(coder.transform(patches)).reshape(8, 8, 8, 8).swapaxes(1, 2).reshape(SIDE, SIDE)


FILTERS: dict[str, Callable[[np.ndarray], Any]] = {
    "scipy.ndimage.median_filter, 5": lambda depth: ndimage.median_filter(depth, 5),
    "cv2.medianBlur, 5": lambda depth: cv2.medianBlur(depth, 5),
    "cv2.medianBlur, 7": lambda depth: cv2.medianBlur(depth, 7),
    "cv2.bilateralFilter": lambda depth: cv2.bilateralFilter(depth, 5, 0.1, 3),
    "cv2.inpaint (TELEA), hole as mask": opencv_inpaint,
    "skimage denoise_tv_chambolle": restoration.denoise_tv_chambolle,
    "skimage denoise_nl_means": lambda depth: restoration.denoise_nl_means(depth, h=0.1),
    "skimage denoise_bilateral": lambda depth: restoration.denoise_bilateral(depth, sigma_color=0.1),
    "skimage denoise_wavelet": restoration.denoise_wavelet,
    "skimage inpaint_biharmonic, hole as mask": lambda depth: restoration.inpaint_biharmonic(depth, np.isnan(depth)),
    "scikit-learn MiniBatchDictionaryLearning, 8x8 patches": scikit_learn,
    "**sparsedepth** DepthDictionary, 8x8 patches": ours_as_transformer,
    "**sparsedepth** denoise": lambda depth: denoise(depth).depth,
}


def outcome(name: str, depth: np.ndarray) -> tuple[str, str]:
    """Count missing pixels after the filter, and find the largest error at the others; or return its error."""
    truth = scene()
    truth[HOLE] = truth[0, HOLE[1]]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = np.asarray(FILTERS[name](depth))
    except (ValueError, cv2.error) as error:
        said = error.err if isinstance(error, cv2.error) else str(error).splitlines()[0]
        return "refused", said.replace("|", " ")
    lost = np.isnan(result)
    off = f"{np.abs(result - truth)[~lost].max():.2g}" if not lost.all() else ""
    return f"{lost.sum()} of {result.size}", off


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/results/holes.md"))
    path = parser.parse_args().output
    depth = scene()
    rows = [[name, *outcome(name, depth)] for name in FILTERS]
    filled = int((denoise(depth).origin == Origin.FILLED).sum())
    packages = ", ".join(f"{name} {version(name)}" for name in ("scipy", "scikit-image", "scikit-learn"))
    parts = [
        f"A float32 map of {SIDE} x {SIDE} pixels, a slanted wall with a step, with a hole of 4 x 4 pixels: NaN. "
        f"`denoise` fills its 16 pixels and says so: {filled} have the origin *filled*.",
        table(["call", "unknown afterwards", "largest error at all others, m, or what it said"], rows),
        f"{packages}, OpenCV {cv2.__version__}.",
    ]
    print(write_made_part(path, "Other filters on a map with a hole", "python benchmarks/holes.py", parts))


if __name__ == "__main__":
    main()

"""The pictures of the first page, from a recorded frame: `SPARSEDEPTH_DATA=... python docs/_landing.py`.

The frame is number 100 of aims-slam (CMU-AI-Maker-Space, MIT licence), of a RealSense D435; the pictures are made from
it, the frame itself is not kept. It is a development frame: the sensor's preset was chosen on frames like it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sparsedepth import denoise
from sparsedepth.atomic_files import atomic_file
from sparsedepth.data.sensor_frames import sensor_frames
from sparsedepth.pictures import ORIGINS, UNKNOWN
from sparsedepth.vocabulary import DepthImage, Origin

HERE = Path(__file__).parent / "_static"
FRAME = 100
FOCAL_PX = 382.0
NEAR_MM, FAR_MM = 550.0, 9000.0
"""Ends of the colour scale, which is logarithmic."""
CLIFF = 0.08
"""Relative step between neighbours beyond which a slope is no slope of one surface."""
QUALITY = 82
"""Of WebP."""

Floats = NDArray[np.floating]
Picture = NDArray[np.uint8]


def shaded(depth: Floats) -> Picture:
    """Paint depths in colours, lit from the upper left as a relief, so that noise is seen."""
    from matplotlib import colormaps

    known = np.isfinite(depth)
    share = np.log(np.where(known, depth, NEAR_MM) / NEAR_MM) / np.log(FAR_MM / NEAR_MM)
    colour = colormaps["viridis"](np.clip(1 - share, 0, 1))[..., :3]
    light = 0.35 + 0.75 * _light(depth)[..., None]
    return _painted(np.clip(colour * light, 0, 1), known)


def _light(depth: Floats) -> Floats:
    """Return how bright each pixel is, 0 to 1, by the angle between its surface and the light."""
    down, right = (np.gradient(depth, axis=axis) for axis in (0, 1))
    cliff = ~(np.hypot(down, right) < CLIFF * depth)
    with np.errstate(invalid="ignore"):
        slopes = [np.where(cliff, 0.0, slope * FOCAL_PX / depth) for slope in (right, down)]
    normal = np.stack([*slopes, -np.ones_like(depth)], axis=-1)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    towards = np.array([-0.55, -0.6, -0.58])
    return np.nan_to_num(np.clip(normal @ (towards / np.linalg.norm(towards)), 0, 1), nan=0.6)


def deviations(variance: Floats) -> Picture:
    """Paint standard deviations, dark where the depth is sure."""
    from matplotlib import colormaps

    known = np.isfinite(variance)
    share = np.log10(np.sqrt(np.where(known, variance, 1.0))) / 3  # 1 mm to 1 m
    return _painted(colormaps["magma"](np.clip(share, 0, 1))[..., :3], known)


def origins(origin: NDArray[np.integer]) -> Picture:
    """Paint where each pixel comes from."""
    tints = np.array([_rgb(ORIGINS[value.name.lower()]) for value in Origin], np.uint8)
    return tints[origin]


def _painted(colour: Floats, known: NDArray[np.bool_]) -> Picture:
    return np.where(known[..., None], np.rint(255 * colour), _rgb(UNKNOWN)).astype(np.uint8)


def _rgb(code: str) -> list[int]:
    return [int(code[at : at + 2], 16) for at in (1, 3, 5)]


def draw() -> None:
    """Restore the frame and write the pictures."""
    frame = next(each for each in sensor_frames("realsense_d4xx_aims") if each.number == FRAME)
    result = denoise(DepthImage(frame.depth, "mm"), sensor="realsense_d435", quality="best")
    pictures = {
        "before": shaded(frame.depth),
        "after": shaded(result.depth),
        "deviation": deviations(result.variance),
        "origin": origins(result.origin),
    }
    HERE.mkdir(exist_ok=True)
    for name, picture in pictures.items():
        with atomic_file(HERE / f"landing-{name}.webp") as path:
            Image.fromarray(picture).save(path, "WEBP", quality=QUALITY, method=6)


if __name__ == "__main__":
    draw()

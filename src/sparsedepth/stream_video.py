"""Draw a stream as a video to look at: before, after and standard deviation, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sparsedepth.atomic_files import atomic_file
from sparsedepth.extras import needed_for
from sparsedepth.vocabulary import DepthMap, Floats, InputError, Restoration

MAX_WIDTH_PX = 320
"""Width of one of the three pictures; wider frames are thinned."""
MAX_FRAMES = 600
"""Frames of a video; later ones are left out."""
UNKNOWN = (200, 30, 90)
"""Colour of missing pixels."""


class VideoWriter:
    """Collects frames, and writes an animated GIF or WebP picture when it is closed."""

    def __init__(self, path: str | Path, frames_per_second: float = 15.0) -> None:
        self._path, self._frames_per_second = Path(path), frames_per_second
        if self._path.suffix.lower() not in (".gif", ".webp"):
            raise InputError(f"{path} is no video that can be written; use .gif or .webp")
        with needed_for("a video", "plot"):
            from matplotlib import colormaps
        self._of_depth, self._of_std = colormaps["viridis"], colormaps["bone"]
        self._frames: list[Image.Image] = []
        self._limits: tuple[float, float] | None = None

    def add(self, before: DepthMap, result: Restoration) -> None:
        """Add one frame: the map before, (height, width), and its result."""
        if len(self._frames) >= MAX_FRAMES:
            return
        every = -(-before.shape[1] // MAX_WIDTH_PX)
        depth, after = before[::every, ::every], result.depth[::every, ::every]
        if self._limits is None:
            known = after[np.isfinite(after)]
            self._limits = (float(np.quantile(known, 0.02)), float(np.quantile(known, 0.98))) if known.size else (0, 1)
        std = np.sqrt(result.variance[::every, ::every])
        low, high = self._limits
        std_limits = np.log(1e-4 * high), np.log(max(high - low, 1e-3 * high))
        with np.errstate(divide="ignore"):
            last = _coloured(np.log(std), std_limits, self._of_std)
        picture = np.hstack(
            [_coloured(depth, self._limits, self._of_depth), _coloured(after, self._limits, self._of_depth), last]
        )
        self._frames.append(Image.fromarray(picture))

    def close(self) -> None:
        """Write the video, whole or not at all."""
        if not self._frames:
            return
        milliseconds = round(1000 / self._frames_per_second)
        kind = self._path.suffix[1:].upper()
        first, rest = self._frames[0], self._frames[1:]
        with atomic_file(self._path) as temporary:
            first.save(temporary, kind, save_all=True, append_images=rest, duration=milliseconds, loop=0)


def _coloured(values: Floats, limits: tuple[float, float], colours_of: Any) -> NDArray[np.uint8]:
    """Return colours (height, width, 3) of values between limits; missing ones have a colour of their own."""
    low, high = limits
    place = np.clip((values - low) / max(high - low, 1e-12), 0, 1)
    colours = colours_of(np.where(np.isfinite(place), place, 0.0), bytes=True)[..., :3]
    return np.where(np.isfinite(values)[..., None], colours, np.array(UNKNOWN, np.uint8))

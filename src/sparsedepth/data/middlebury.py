"""Middlebury disparity maps, 0 = unknown: 2005 and 2006 to train and tune on, the classical four to test on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparsedepth.data import data_folder, data_set, require_choice
from sparsedepth.files import read_map
from sparsedepth.vocabulary import DepthMap, InputError

SCALE = 3.0
"""Of the 2005 and 2006 maps at a third of their size: px = value / 3."""

BENCHMARK_SCENES = {
    "Teddy": ("middlebury2003/Teddy/disp2.png", 4.0),
    "Cones": ("middlebury2003/Cones/disp2.png", 4.0),
    "Venus": ("middlebury2001/Venus/disp2.png", 8.0),
    "Tsukuba": ("middlebury2001/Tsukuba/truedisp.row3.col3.pgm", 16.0),
}
"""The true map of the left picture of each scene, and its values a pixel of disparity."""


@dataclass(frozen=True)
class BenchmarkScene:
    """A true map and the parts of it on which the stereo benchmark counts errors."""

    disparity: DepthMap
    """Pixels; NaN = unknown."""
    evaluated: NDArray[np.bool_]
    """Where the benchmark counts at all: known, and not at the border of Venus and Tsukuba."""
    unoccluded: NDArray[np.bool_]
    """Evaluated, and seen by both cameras."""
    discontinuous: NDArray[np.bool_]
    """Unoccluded, and near a jump of depth."""


def disparity_files(year: int) -> list[Path]:
    """The files of both views of every scene, in order."""
    files = sorted((data_folder() / f"middlebury{year}").glob("*/disp[15].png"))
    if not files:
        raise InputError(f"there are no Middlebury {year} scenes in {data_folder()}")
    return files


def disparities(year: int) -> list[DepthMap]:
    """Disparities in pixels, NaN = unknown."""
    return [read_map(file, scale=SCALE) for file in disparity_files(year)]


def benchmark_scene(name: str) -> BenchmarkScene:
    """Teddy, Cones, Venus or Tsukuba, with the masks of the benchmark."""
    require_choice("benchmark scene", name, tuple(BENCHMARK_SCENES))
    file, scale = BENCHMARK_SCENES[name]
    path = data_set(*file.split("/")[:-1]) / file.split("/")[-1]
    masks = (read_map(path.with_name(f"mask_{part}.png")) == 255 for part in ("all", "nonocc", "disc"))
    return BenchmarkScene(read_map(path, scale=scale), *masks)


def full_size_art() -> DepthMap:
    """Art of 2005 at full size, 1110 x 1390, in pixels of that size; NaN = unknown."""
    return read_map(data_set("middlebury_full", "Art") / "disp1.png")

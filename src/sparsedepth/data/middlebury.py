"""Middlebury disparity maps, 0 = unknown: 2005 and 2006 to train and tune on, the classical four to test on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter

from sparsedepth.data import data_folder, data_set, require_choice
from sparsedepth.files import read_map, read_photo
from sparsedepth.vocabulary import DepthMap, InputError, StereoPair

VALUES_PER_PX = 3.0
"""Of the 2005 and 2006 maps at a third of their size: px = value / 3."""

BENCHMARK_SCENES = {
    "Teddy": ("middlebury2003/Teddy/disp2.png", 4.0),
    "Cones": ("middlebury2003/Cones/disp2.png", 4.0),
    "Venus": ("middlebury2001/Venus/disp2.png", 8.0),
    "Tsukuba": ("middlebury2001/Tsukuba/truedisp.row3.col3.pgm", 16.0),
}
"""The true map of the left picture of each scene, and its values a pixel of disparity."""

BENCHMARK_VIEWS = {
    "Teddy": ("im2.png", "im6.png", 59),
    "Cones": ("im2.png", "im6.png", 59),
    "Venus": ("im2.png", "im6.png", 19),
    "Tsukuba": ("scene1.row3.col3.ppm", "scene1.row3.col4.ppm", 15),
}
"""Left and right view, and the largest disparity that the benchmark lets one search."""


@dataclass(frozen=True, eq=False)
class StereoScene:
    """Two views, the true disparities of the left one, and masks of the evaluated pixels."""

    pair: StereoPair
    disparity: DepthMap
    """Pixels; NaN = unknown."""
    evaluated: NDArray[np.bool_]
    unoccluded: NDArray[np.bool_]
    """Evaluated, and seen by both cameras."""
    discontinuous: NDArray[np.bool_]
    """Unoccluded, and near a jump of depth."""


@dataclass(frozen=True)
class BenchmarkScene:
    """A true map and the masks of the stereo benchmark."""

    disparity: DepthMap
    """Pixels; NaN = unknown."""
    evaluated: NDArray[np.bool_]
    """Where the benchmark counts at all: known, and not at the border of Venus and Tsukuba."""
    unoccluded: NDArray[np.bool_]
    """Evaluated, and seen by both cameras."""
    discontinuous: NDArray[np.bool_]
    """Unoccluded, and near a jump of depth."""


def disparity_files(year: int) -> list[Path]:
    """List the files of both views of every scene, in order."""
    files = sorted((data_folder() / f"middlebury{year}").glob("*/disp[15].png"))
    if not files:
        raise InputError(f"there are no Middlebury {year} scenes in {data_folder()}")
    return files


def disparities(year: int) -> list[DepthMap]:
    """Read disparities in pixels, NaN = unknown."""
    return [read_map(file, scale=VALUES_PER_PX) for file in disparity_files(year)]


def benchmark_scene(name: str) -> BenchmarkScene:
    """Read Teddy, Cones, Venus or Tsukuba, with the masks of the benchmark."""
    require_choice("benchmark scene", name, tuple(BENCHMARK_SCENES))
    file, scale = BENCHMARK_SCENES[name]
    path = data_set(*file.split("/")[:-1]) / file.split("/")[-1]
    masks = (read_map(path.with_name(f"mask_{part}.png")) == 255 for part in ("all", "nonocc", "disc"))
    return BenchmarkScene(read_map(path, scale=scale), *masks)


def benchmark_pair(name: str) -> StereoScene:
    """Read the views and the truth of Teddy, Cones, Venus or Tsukuba, with the masks of the benchmark."""
    scene = benchmark_scene(name)
    left, right, max_disparity = BENCHMARK_VIEWS[name]
    folder = data_set(*BENCHMARK_SCENES[name][0].split("/")[:-1])
    pair = StereoPair.from_images(read_photo(folder / left), read_photo(folder / right), max_disparity)
    return StereoScene(pair, scene.disparity, scene.evaluated, scene.unoccluded, scene.discontinuous)


def scene_names(year: int) -> list[str]:
    """List the scenes of 2005 or 2006."""
    return sorted({file.parent.name for file in disparity_files(year)})


def stereo_pair(year: int, name: str) -> StereoScene:
    """Read the views and the truth of a scene of 2005 or 2006, at a third of its size: to choose settings on.

    The range ends 2 px above the largest true disparity. A pixel is occluded if the true map of the other view differs
    by more than 1 px. It is discontinuous within 4 px of a true jump of more than 2 px.
    """
    require_choice(f"scene of {year}", name, tuple(scene_names(year)))
    folder = data_set(f"middlebury{year}", name)
    truth, other = (read_map(folder / file, scale=VALUES_PER_PX) for file in ("disp1.png", "disp5.png"))
    left, right = (read_photo(folder / file) for file in ("view1.png", "view5.png"))
    pair = StereoPair.from_images(left, right, int(np.ceil(np.nanmax(truth))) + 2)
    known = np.isfinite(truth)
    seen = known & _seen(truth, other)
    return StereoScene(pair, truth, known, seen, seen & _near_jumps(truth))


def _seen(truth: DepthMap, other: DepthMap) -> NDArray[np.bool_]:
    """Find where the right view's true map agrees with the left one's."""
    place = np.rint(np.arange(truth.shape[1]) - np.nan_to_num(truth)).astype(np.intp)
    back = np.take_along_axis(other, np.maximum(place, 0), axis=1)
    return (place >= 0) & (np.abs(back - truth) <= 1)


def _near_jumps(truth: DepthMap, jump: float = 2.0, reach: int = 4) -> NDArray[np.bool_]:
    """Find pixels near to neighbours whose true disparities differ by more than a jump."""
    jumps = np.zeros(truth.shape, bool)
    for axis in (0, 1):
        steps = np.abs(np.diff(truth, axis=axis)) > jump
        jumps[: steps.shape[0], : steps.shape[1]] |= steps
    return np.asarray(maximum_filter(jumps, 2 * reach + 1), bool)


def full_size_art() -> DepthMap:
    """Read Art of 2005 at full size, 1110 x 1390, in pixels of that size; NaN = unknown."""
    return read_map(data_set("middlebury_full", "Art") / "disp1.png")
